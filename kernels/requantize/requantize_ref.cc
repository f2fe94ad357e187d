// The formula of kernels/requantize/requantize.h as it stands there, for every dtype.
#include "kernels/numeric/requantize.h"
#include "kernels/requantize/requantize.h"

namespace qplan::requantize_ref {
namespace {

int32_t requantize_one(const RequantizeArgs& a, int32_t x, uint32_t c) {
  if (a.contract == Contract::kF32e) {
    const float scale = a.scales != nullptr ? a.scales[c] : a.scale;
    return requantize_f32e(x, scale, a.output_zero_point, a.clamp_min, a.clamp_max);
  }
  const int32_t multiplier = a.multipliers != nullptr ? a.multipliers[c] : a.multiplier;
  const int32_t shift = a.shifts != nullptr ? a.shifts[c] : a.shift;
  const int32_t scaled = a.contract == Contract::kTfl1 ? requantize_tfl1(x, multiplier, shift)
                                                       : requantize_tfl2(x, multiplier, shift);
  return add_clamp(scaled, a.output_zero_point, a.clamp_min, a.clamp_max);
}

template <typename In, typename Out>
void run_chunks(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const In* in = static_cast<const In*>(a.input);
  Out* out = static_cast<Out*>(a.output);
  const uint64_t first = uint64_t{begin} * kRequantizeChunk;
  const uint64_t stop = uint64_t{end} * kRequantizeChunk;
  const uint64_t last = stop < a.count ? stop : a.count;
  for (uint64_t i = first; i < last; ++i) {
    const auto c = static_cast<uint32_t>(i / a.inner % a.channels);
    out[i] = static_cast<Out>(requantize_one(a, wrap_sub(in[i], a.input_zero_point), c));
  }
}

template <typename In>
void run_output(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  if (a.output_dtype == Dtype::kS8) {
    run_chunks<In, int8_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS16) {
    run_chunks<In, int16_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS32) {
    run_chunks<In, int32_t>(a, begin, end);
  } else {
    run_chunks<In, uint8_t>(a, begin, end);
  }
}

}  // namespace

Refusal accepts(const RequantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const RequantizeArgs&) { return 0; }

uint32_t work_items(const RequantizeArgs& args) {
  return static_cast<uint32_t>((args.count + kRequantizeChunk - 1) / kRequantizeChunk);
}

void run(const RequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.input_dtype == Dtype::kS32) {
    run_output<int32_t>(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end);
  } else if (args.input_dtype == Dtype::kS16) {
    run_output<int16_t>(args, begin, end);
  } else {
    run_output<uint8_t>(args, begin, end);
  }
}

}  // namespace qplan::requantize_ref
