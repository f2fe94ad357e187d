// The formula of svdf.h as it stands there.
#include "kernels/numeric/requantize.h"
#include "kernels/svdf/svdf.h"

namespace qplan {
namespace svdf_ref {
namespace {

// Brings the filter's state forward by one step and returns its sum over time.
template <typename T>
uint32_t filter_sum(const SvdfArgs& a, const int8_t* x, uint32_t filter, const T* from, T* to) {
  const int8_t* weights = a.feature_weights + uint64_t{filter} * a.input_c;
  auto feature = static_cast<uint32_t>(a.feature_bias[filter]);
  for (uint32_t k = 0; k < a.input_c; ++k) feature += static_cast<uint32_t>(weights[k] * x[k]);
  const int32_t scaled =
      requantize_tfl2(static_cast<int32_t>(feature), a.feature_multiplier, a.feature_shift);
  const T* time_weights = static_cast<const T*>(a.time_weights) + uint64_t{filter} * a.memory;
  uint32_t sum = 0;
  for (uint32_t t = 0; t < a.memory; ++t) {
    // `to` may be `from`: an element is read before the one at its place is written.
    to[t] = t + 1 < a.memory
                ? from[t + 1]
                : static_cast<T>(clamp_s32(scaled, dtype_min(a.state_dtype), dtype_max(a.state_dtype)));
    sum += static_cast<uint32_t>(time_weights[t] * to[t]);
  }
  return sum;
}

template <typename T>
void run_units(const SvdfArgs& a, uint32_t begin, uint32_t end) {
  const uint32_t units = a.filters / a.rank;
  for (uint32_t item = begin; item < end; ++item) {
    const uint32_t sample = item / units, unit = item % units;
    const int8_t* x = a.input + uint64_t{sample} * a.input_c;
    auto sum = static_cast<uint32_t>(a.bias[unit]);
    for (uint32_t r = 0; r < a.rank; ++r) {
      const uint32_t filter = unit * a.rank + r;
      const uint64_t at = (uint64_t{sample} * a.filters + filter) * a.memory;
      sum += filter_sum(a, x, filter, static_cast<const T*>(a.first_state) + at,
                        static_cast<T*>(a.last_state) + at);
    }
    const int32_t scaled = requantize_tfl2(static_cast<int32_t>(sum), a.output_multiplier, a.output_shift);
    a.output[item] = static_cast<int8_t>(add_clamp(scaled, a.output_zero_point, -128, 127));
  }
}

}  // namespace

Refusal accepts(const SvdfArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SvdfArgs&) { return 0; }
uint32_t work_items(const SvdfArgs& args) { return args.batch * (args.filters / args.rank); }

void run(const SvdfArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.state_dtype == Dtype::kS8) {
    run_units<int8_t>(args, begin, end);
  } else {
    run_units<int16_t>(args, begin, end);
  }
}

}  // namespace svdf_ref
}  // namespace qplan
