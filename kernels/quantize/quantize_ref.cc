#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/saturate.h"
#include "kernels/quantize/quantize.h"

namespace qplan {
namespace quantize_ref {
namespace {

// Beyond +-2^17 every result saturates; within, float32 holds all halves exactly.
float limit(float x) {
  constexpr float kLimit = 131072.0f;
  if (x != x) return 0.0f;
  return x < -kLimit ? -kLimit : x > kLimit ? kLimit : x;
}

int32_t round_half_away(float x) {
  const int32_t whole = static_cast<int32_t>(x);
  const float rest = x - static_cast<float>(whole);
  return rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}

int32_t round_half_even(float x) {
  // Adding 1.5 * 2^23 leaves no fraction bits, so that the addition itself rounds half to even.
  constexpr float kMagic = 12582912.0f;
  return static_cast<int32_t>((x + kMagic) - kMagic);
}

template <typename T, QuantizeRounding kRule>
void run_typed(const QuantizeArgs& args, ElementRange range) {
  T* output = static_cast<T*>(args.output);
  const float inverse = 1.0f / args.scale;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    const float x = args.input[i];
    const float real = limit(kRule == QuantizeRounding::kMulEven ? x * inverse : x / args.scale);
    const int32_t rounded =
        kRule == QuantizeRounding::kDivAway ? round_half_away(real) : round_half_even(real);
    output[i] =
        static_cast<T>(clamp_s32(rounded + args.zero_point, dtype_min(args.dtype), dtype_max(args.dtype)));
  }
}

template <typename T>
void run_rule(const QuantizeArgs& args, ElementRange range) {
  switch (args.rule) {
    case QuantizeRounding::kDivAway:
      return run_typed<T, QuantizeRounding::kDivAway>(args, range);
    case QuantizeRounding::kDivEven:
      return run_typed<T, QuantizeRounding::kDivEven>(args, range);
    case QuantizeRounding::kMulEven:
      return run_typed<T, QuantizeRounding::kMulEven>(args, range);
  }
}

}  // namespace

Refusal accepts(const QuantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const QuantizeArgs&) { return 0; }
uint32_t work_items(const QuantizeArgs& args) { return num_chunks(args.elements); }

void run(const QuantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_rule<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_rule<int16_t>(args, range);
  } else {
    run_rule<int8_t>(args, range);
  }
}

}  // namespace quantize_ref
}  // namespace qplan
