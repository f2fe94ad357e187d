#include "kernels/div/div.h"
#include "kernels/elementwise/binary_ref.h"
#include "kernels/numeric/fixed_point.h"

namespace qplan {
namespace div_ref {
namespace {

// How far v can be shifted to the left within int32: -2^31 is in it, 2^31 is not.
int32_t headroom(int32_t v) {
  const auto bits = static_cast<uint32_t>(v < 0 ? -v - 1 : v);
  return bits == 0 ? 31 : __builtin_clz(bits) - 1;
}

int32_t quotient_of(const DivArgs& args, int32_t a, int32_t b) {
  int32_t v = a - args.input1_zero_point;
  int32_t w = b - args.input2_zero_point;
  if (w == 0 && v != 0) return v > 0 ? args.clamp_max : args.clamp_min;
  if (v == 0) return add_clamp(0, args.output_zero_point, args.clamp_min, args.clamp_max);
  if (w < 0) v = -v, w = -w;
  const int32_t zeros = __builtin_clz(static_cast<uint32_t>(w));
  const uint32_t one_or_more = static_cast<uint32_t>(w) << zeros;  // w / 2^k, 1 being 2^31
  const int32_t inverse = fixed_reciprocal_one_plus(static_cast<int32_t>(one_or_more - (uint32_t{1} << 31)));
  const int32_t left = headroom(v);
  const int32_t quotient =
      doubling_high_mul(doubling_high_mul(wrap_shift_left(v, left), inverse), args.output_multiplier);
  const int32_t right = 31 - zeros + left - args.output_shift;
  const int32_t rounded = right > 31 ? 0 : rounding_shift_right(quotient, right);
  return add_clamp(rounded, args.output_zero_point, args.clamp_min, args.clamp_max);
}

}  // namespace

Refusal accepts(const DivArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DivArgs&) { return 0; }
uint32_t work_items(const DivArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const DivArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  const auto quotient = [&](int32_t a, int32_t b) { return quotient_of(args, a, b); };
  if (args.dtype == Dtype::kU8) {
    combine_as<uint8_t>(args, range, quotient);
  } else {
    combine_as<int8_t>(args, range, quotient);
  }
}

}  // namespace div_ref
}  // namespace qplan
