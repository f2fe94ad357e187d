// The formulas of softmax.h as they stand there.
#include "kernels/numeric/fixed_point.h"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace softmax16_ref {
namespace {

template <typename T>
int32_t max_of(const T* input, uint32_t depth) {
  int32_t max = input[0];
  for (uint32_t i = 1; i < depth; ++i) max = input[i] > max ? input[i] : max;
  return max;
}

int32_t scaled_exp(const Softmax16Args& args, int32_t difference) {
  const int32_t shifted = wrap_shift_left(difference, args.input_shift);
  return fixed_exp_negative<5>(doubling_high_mul(shifted, args.input_multiplier));
}

void run_row_s8(const Softmax16Args& args, const int8_t* input, int16_t* output) {
  constexpr int32_t kIntegerBits = 12;
  const int32_t max = max_of(input, args.depth);
  uint64_t total = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    if (difference < args.diff_min) continue;
    total += static_cast<uint32_t>(rounding_shift_right(scaled_exp(args, difference), kIntegerBits));
  }
  // The largest element contributes 2^19, so that the sum is not zero.
  const uint32_t sum = total < INT32_MAX ? static_cast<uint32_t>(total) : INT32_MAX;
  const int32_t headroom = __builtin_clz(sum);
  const int32_t reciprocal =
      fixed_reciprocal_one_plus(static_cast<int32_t>((sum << headroom) - (uint32_t{1} << 31)));
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    int32_t value = 0;
    if (difference >= args.diff_min) {
      value = rounding_shift_right(doubling_high_mul(reciprocal, scaled_exp(args, difference)),
                                   kIntegerBits - headroom + 15);
    }
    output[i] = static_cast<int16_t>(saturate_s16(value + INT16_MIN));
  }
}

int32_t lookup(const int16_t* table, int32_t value) {
  const int32_t at = 256 + (value >> 7), rest = value & 127;
  const int32_t slope = table[at + 1] - table[at];
  return table[at] + ((slope * rest + 64) >> 7);
}

void run_row_s16(const Softmax16Args& args, const int16_t* input, int16_t* output) {
  const int32_t max = max_of(input, args.depth);
  int32_t sum = 0;
  const auto exp_of = [&](uint32_t i) {
    const int32_t scaled = requantize_tfl2(input[i] - max, args.input_multiplier, args.input_shift);
    return lookup(args.exp_table, add_clamp(scaled, INT16_MAX, INT16_MIN, INT16_MAX));
  };
  for (uint32_t i = 0; i < args.depth; ++i) sum += exp_of(i);
  // The largest element contributes at least 2.
  const int32_t headroom = __builtin_clz(static_cast<uint32_t>(sum));
  const int64_t shifted = ((int64_t{sum} << (headroom - 1)) + (1 << 13)) >> 14;
  const int32_t reciprocal =
      lookup(args.reciprocal_table, saturate_s16(static_cast<int32_t>(shifted) - (1 << 15) - (1 << 16)));
  const int32_t right = 31 - headroom;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int64_t product = int64_t{exp_of(i)} * reciprocal + (int64_t{1} << (right - 1));
    const int64_t value = product >> right;
    output[i] = static_cast<int16_t>(value < 0 ? 0 : value > INT16_MAX ? INT16_MAX : value);
  }
}

}  // namespace

Refusal accepts(const Softmax16Args&) { return Refusal::kNone; }
size_t scratch_bytes(const Softmax16Args&) { return 0; }
uint32_t work_items(const Softmax16Args& args) { return args.rows; }

void run(const Softmax16Args& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t at = uint64_t{row} * args.depth;
    if (args.dtype == Dtype::kS8) {
      run_row_s8(args, static_cast<const int8_t*>(args.input) + at, args.output + at);
    } else {
      run_row_s16(args, static_cast<const int16_t*>(args.input) + at, args.output + at);
    }
  }
}

}  // namespace softmax16_ref
}  // namespace qplan
