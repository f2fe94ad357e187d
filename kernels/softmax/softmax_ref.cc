// The formulas of softmax.h as they stand there. A work item is a row.
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

namespace log_softmax_ref {
namespace {

// Q5.26.
int32_t scaled(const LogSoftmaxArgs& args, int32_t difference) {
  return doubling_high_mul(wrap_shift_left(difference, args.input_left_shift), args.input_multiplier);
}

template <typename T>
void run_row(const LogSoftmaxArgs& args, const T* input, T* output) {
  const int32_t lowest = dtype_min(args.dtype), highest = dtype_max(args.dtype);
  int32_t max = lowest;
  for (uint32_t i = 0; i < args.depth; ++i) max = input[i] > max ? input[i] : max;
  uint64_t total = 0;  // Q12.19; the largest element contributes 1
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    if (difference < args.diff_min) continue;
    const int32_t e = fixed_exp_negative<5>(scaled(args, difference));
    total += static_cast<uint32_t>(rounding_shift_right(e, 12));
  }
  const int32_t log = fixed_log(total < INT32_MAX ? static_cast<int32_t>(total) : INT32_MAX);

  // log is not negative, so that this does not leave int32.
  const int32_t farthest = requantize_tfl2(INT32_MIN + log, args.reverse_multiplier, args.reverse_shift);
  const int32_t least = farthest > args.diff_min - 1 ? farthest : args.diff_min - 1;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    int32_t value = lowest;
    if (difference > least) {
      const int32_t sixteenths = rounding_shift_right(wrap_sub(scaled(args, difference), log), 22);
      value = clamp_s32(highest + sixteenths, lowest, highest);
    }
    output[i] = static_cast<T>(value);
  }
}

template <typename T>
void run_rows(const LogSoftmaxArgs& args, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t at = uint64_t{row} * args.depth;
    run_row(args, static_cast<const T*>(args.input) + at, static_cast<T*>(args.output) + at);
  }
}

}  // namespace

Refusal accepts(const LogSoftmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const LogSoftmaxArgs&) { return 0; }
uint32_t work_items(const LogSoftmaxArgs& args) { return args.rows; }

void run(const LogSoftmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kU8) {
    run_rows<uint8_t>(args, begin, end);
  } else {
    run_rows<int8_t>(args, begin, end);
  }
}

}  // namespace log_softmax_ref

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
