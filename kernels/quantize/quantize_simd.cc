// quantize by vectors.
#include "kernels/elementwise/broadcast.h"
#include "kernels/quantize/quantize.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

template <QuantizeRounding kRule>
inline void quantize_range(const QuantizeArgs& args, ElementRange range) {
  uint8_t* to = static_cast<uint8_t*>(args.output);
  const VecF32 factor = set_reals(kRule == QuantizeRounding::kMulEven ? 1.0f / args.scale : args.scale);
  const Output output = set_output(args.zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
  // Beyond them every result saturates.
  const VecF32 low = set_reals(-1024.0f), high = set_reals(1024.0f);
  for (uint64_t i = range.begin; i < range.end; i += kLanes) {
    const uint64_t left = range.end - i;
    const uint32_t count = left < kLanes ? static_cast<uint32_t>(left) : kLanes;
    const VecF32 x = load_reals(args.input + i, count);
    const VecF32 real = zero_nans(kRule == QuantizeRounding::kMulEven ? mul(x, factor) : div(x, factor));
    const VecF32 limited = min(max(real, low), high);
    const VecI32 whole = kRule == QuantizeRounding::kDivAway ? round_away(limited) : round(limited);
    store_bytes(to + i, finish(whole, output), count);
  }
}

inline void quantize_lanes(const QuantizeArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  switch (args.rule) {
    case QuantizeRounding::kDivAway:
      return quantize_range<QuantizeRounding::kDivAway>(args, range);
    case QuantizeRounding::kDivEven:
      return quantize_range<QuantizeRounding::kDivEven>(args, range);
    case QuantizeRounding::kMulEven:
      return quantize_range<QuantizeRounding::kMulEven>(args, range);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(quantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const QuantizeArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const QuantizeArgs&) { return 0; }

uint32_t work_items(const QuantizeArgs& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const QuantizeArgs& args, uint32_t begin, uint32_t end, void*) { quantize_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(quantize)

}  // namespace qplan
