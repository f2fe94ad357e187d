// A work item is a row.
#include "kernels/numeric/fixed_point.h"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace softmax_ref {
namespace {

constexpr int kAccumulatorIntegerBits = 12;

int32_t scaled_exp(const SoftmaxArgs& args, int32_t difference) {
  const int32_t shifted = wrap_shift_left(difference, args.input_left_shift);
  return fixed_exp_negative<5>(doubling_high_mul(shifted, args.input_multiplier));
}

// a / 2^count for a in [0, 2^31), rounded to nearest; from 32 on that is 0.
int32_t rounding_divide(int32_t a, int32_t count) { return count > 31 ? 0 : rounding_shift_right(a, count); }

template <typename T>
int32_t max_of(const SoftmaxArgs& args, const T* input) {
  int32_t max = dtype_min(args.dtype);
  for (uint32_t i = 0; i < args.depth; ++i) max = input[i] > max ? input[i] : max;
  return max;
}

template <typename T>
void run_row_tfl2(const SoftmaxArgs& args, const T* input, T* output) {
  const int32_t max = max_of(args, input);
  uint64_t total = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    if (difference < args.diff_min) continue;
    total +=
        static_cast<uint32_t>(rounding_shift_right(scaled_exp(args, difference), kAccumulatorIntegerBits));
  }
  // The largest element contributes 2^19, so that the sum is not zero.
  const uint32_t sum = total < INT32_MAX ? static_cast<uint32_t>(total) : INT32_MAX;
  const int32_t headroom = __builtin_clz(sum);
  const int32_t power = kAccumulatorIntegerBits - headroom;
  const int32_t reciprocal =
      fixed_reciprocal_one_plus(static_cast<int32_t>((sum << headroom) - (uint32_t{1} << 31)));

  const int32_t zero = dtype_min(args.dtype);
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    int32_t value = 0;
    if (difference >= args.diff_min) {
      value = rounding_divide(doubling_high_mul(reciprocal, scaled_exp(args, difference)), power + 23);
    }
    output[i] = static_cast<T>(zero + clamp_s32(value, 0, 255));
  }
}

template <typename T>
void run_row_f32e(const SoftmaxArgs& args, const T* input, T* output) {
  const int32_t max = max_of(args, input);
  float sum = 0.0f;  // at least 1 in the end: that is what the largest element adds
  for (uint32_t i = 0; i < args.depth; ++i) sum += args.table[max - input[i]];
  for (uint32_t i = 0; i < args.depth; ++i) {
    const float share = args.table[max - input[i]] / sum;
    output[i] = static_cast<T>(quantize_f32e(share / args.output_scale, args.output_zero_point,
                                             dtype_min(args.dtype), dtype_max(args.dtype)));
  }
}

template <typename T>
void run_typed(const SoftmaxArgs& args, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t at = uint64_t{row} * args.depth;
    const T* input = static_cast<const T*>(args.input) + at;
    T* output = static_cast<T*>(args.output) + at;
    if (args.contract == Contract::kF32e) {
      run_row_f32e(args, input, output);
    } else {
      run_row_tfl2(args, input, output);
    }
  }
}

}  // namespace

Refusal accepts(const SoftmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SoftmaxArgs&) { return 0; }
uint32_t work_items(const SoftmaxArgs& args) { return args.rows; }

void run(const SoftmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, begin, end);
  } else {
    run_typed<int8_t>(args, begin, end);
  }
}

}  // namespace softmax_ref
}  // namespace qplan
