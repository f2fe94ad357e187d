// The references of elementwise kernels: the formulas of add.h and elementwise.h as they stand there.
#include <string.h>

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

enum class Combine { kAdd, kSubtract, kSquaredDifference };

template <Combine kCombine>
int32_t combined(const AddArgs& args, int32_t a, int32_t b) {
  if constexpr (kCombine == Combine::kSquaredDifference) {
    return squared_difference_tfl2(args, a - args.input1_zero_point, b - args.input2_zero_point);
  } else {
    return sum_of(args, a, b, kCombine == Combine::kSubtract);
  }
}

template <Combine kCombine>
void run_any(const AddArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_quantized(args, range, [&](int32_t a, int32_t b) { return combined<kCombine>(args, a, b); });
}

}  // namespace

namespace add_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kAdd>(args, begin, end);
}
}  // namespace add_ref

namespace sub_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kSubtract>(args, begin, end);
}
}  // namespace sub_ref

namespace squared_difference_ref {
Refusal accepts(const AddArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t work_items(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) {
  run_any<Combine::kSquaredDifference>(args, begin, end);
}
}  // namespace squared_difference_ref

namespace mul_ref {
namespace {

int32_t product_tfl2(const MulArgs& args, int32_t a, int32_t b) {
  const int32_t scaled = requantize_tfl2(a * b, args.output_multiplier, args.output_shift);
  return add_clamp(scaled, args.output_zero_point, args.clamp_min, args.clamp_max);
}

int32_t product_f32e(const MulArgs& args, int32_t a, int32_t b) {
  const float a_scaled = static_cast<float>(a) * args.input1_scale;
  const float b_scaled = static_cast<float>(b) * args.input2_scale;
  return quantize_f32e(a_scaled * b_scaled / args.output_scale, args.output_zero_point, args.clamp_min,
                       args.clamp_max);
}

// kProduct: of a and b less their zero points.
template <int32_t (*kProduct)(const MulArgs&, int32_t, int32_t)>
void run_dtype(const MulArgs& args, ElementRange range) {
  combine_quantized(args, range, [&](int32_t a, int32_t b) {
    return kProduct(args, a - args.input1_zero_point, b - args.input2_zero_point);
  });
}

}  // namespace

Refusal accepts(const MulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MulArgs&) { return 0; }
uint32_t work_items(const MulArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.contract == Contract::kF32e) {
    run_dtype<product_f32e>(args, range);
  } else {
    run_dtype<product_tfl2>(args, range);
  }
}

}  // namespace mul_ref

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

namespace minmax_ref {

Refusal accepts(const MinmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MinmaxArgs&) { return 0; }
uint32_t work_items(const MinmaxArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MinmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  combine_quantized(args, range, [&](auto x, auto y) {
    const bool takes_x = args.is_maximum ? x > y : x < y;
    return takes_x ? x : y;
  });
}

}  // namespace minmax_ref

namespace prelu_ref {
namespace {

int32_t prelu_of(const PreluArgs& args, int32_t x, int32_t alpha) {
  const int32_t v = x - args.input_zero_point;
  // A product is within +-2^16 of 8 bits, and within +-2^30 of int16.
  const int32_t scaled =
      v >= 0 ? requantize_tfl2(v, args.above_multiplier, args.above_shift)
             : requantize_tfl2(v * (alpha - args.alpha_zero_point), args.below_multiplier, args.below_shift);
  return add_clamp(scaled, args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
}

template <typename T>
void run_typed(const PreluArgs& args, ElementRange range) {
  combine_elements(args.broadcast, range, static_cast<const T*>(args.input),
                   static_cast<const T*>(args.alpha), static_cast<T*>(args.output),
                   [&](int32_t x, int32_t alpha) { return prelu_of(args, x, alpha); });
}

}  // namespace

Refusal accepts(const PreluArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const PreluArgs&) { return 0; }
uint32_t work_items(const PreluArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const PreluArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, range);
  } else {
    run_typed<int8_t>(args, range);
  }
}

}  // namespace prelu_ref

namespace compare_ref {
namespace {

template <typename T>
bool holds(Comparison op, T a, T b) {
  switch (op) {
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kEqual:
      return a == b;
  }
  return false;
}

template <typename T>
void run_elements(const CompareArgs& args, const ElementRange& range) {
  combine_elements(args.broadcast, range, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                   args.output, [&](T a, T b) { return holds(args.op, a, b) ? 1 : 0; });
}

}  // namespace

Refusal accepts(const CompareArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CompareArgs&) { return 0; }
uint32_t work_items(const CompareArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const CompareArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  switch (args.dtype) {
    case Dtype::kU8:
      return run_elements<uint8_t>(args, range);
    case Dtype::kS8:
      return run_elements<int8_t>(args, range);
    case Dtype::kS16:
      return run_elements<int16_t>(args, range);
    case Dtype::kS32:
      return run_elements<int32_t>(args, range);
    case Dtype::kS64:
      return run_elements<int64_t>(args, range);
    case Dtype::kF32:
      return run_elements<float>(args, range);
    case Dtype::kOther:
      break;
  }
}

}  // namespace compare_ref

namespace select_ref {

Refusal accepts(const SelectArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SelectArgs&) { return 0; }
uint32_t work_items(const SelectArgs& args) { return num_chunks(args.elements); }

void run(const SelectArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const uint64_t last = args.rank - 1;
  for (uint64_t at = range.begin; at < range.end;) {
    // What is left of the innermost axis from here on.
    uint64_t rest = at, condition = 0, a = 0, b = 0, count = 0;
    for (uint32_t axis = args.rank; axis-- > 0;) {
      const uint64_t index = rest % args.extents[axis];
      rest /= args.extents[axis];
      condition += index * args.condition_strides[axis];
      a += index * args.a_strides[axis];
      b += index * args.b_strides[axis];
      if (axis == last) count = args.extents[axis] - index;
    }
    if (count > range.end - at) count = range.end - at;
    for (uint64_t i = 0; i < count; ++i) {
      const bool first = args.condition[condition + i * args.condition_strides[last]] != 0;
      const uint8_t* from = first ? args.a + (a + i * args.a_strides[last]) * args.element_bytes
                                  : args.b + (b + i * args.b_strides[last]) * args.element_bytes;
      memcpy(args.output + (at + i) * args.element_bytes, from, args.element_bytes);
    }
    at += count;
  }
}

}  // namespace select_ref

namespace lut8_ref {

Refusal accepts(const Lut8Args&) { return Refusal::kNone; }
size_t scratch_bytes(const Lut8Args&) { return 0; }
uint32_t work_items(const Lut8Args& args) { return num_chunks(args.elements); }

void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  for (uint64_t i = range.begin; i < range.end; ++i) args.output[i] = args.table[args.input[i]];
}

}  // namespace lut8_ref

namespace lut16_ref {
namespace {

// The table's function at |v|, with `bits` of fraction; `saturated` beyond it.
uint32_t interpolated(const Lut16Args& args, uint32_t magnitude, uint32_t bits, uint32_t saturated) {
  const uint32_t h = magnitude >> bits, t = magnitude & ((1u << bits) - 1);
  if (h >= Lut16Args::kTableEntries - 1) return saturated;
  const auto from = static_cast<uint32_t>(args.table[h]), to = static_cast<uint32_t>(args.table[h + 1]);
  return (from << bits) + t * (to - from);
}

int16_t logistic_of(const Lut16Args& args, int32_t v, uint32_t magnitude) {
  const uint32_t f = interpolated(args, magnitude, 9, 0x7fffu << 10);
  const uint32_t sum = v >= 0 ? f + (1u << 9) : (1u << 25) - f + (1u << 9) - 1;
  return static_cast<int16_t>(static_cast<uint16_t>(sum >> 10));
}

int16_t tanh_of(const Lut16Args& args, int32_t v, uint32_t magnitude) {
  const uint32_t f = interpolated(args, magnitude, 8, 0xffffu << 8);
  const uint32_t sum = v >= 0 ? f - (1u << 23) + (1u << 7) : (1u << 23) - f + (1u << 7) - 1;
  return static_cast<int16_t>(static_cast<uint16_t>(static_cast<int32_t>(sum) >> 8));
}

}  // namespace

Refusal accepts(const Lut16Args&) { return Refusal::kNone; }
size_t scratch_bytes(const Lut16Args&) { return 0; }
uint32_t work_items(const Lut16Args& args) { return num_chunks(args.elements); }

void run(const Lut16Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const int64_t half = args.shift == 0 ? 0 : int64_t{1} << (args.shift - 1);
  for (uint64_t i = range.begin; i < range.end; ++i) {
    // Within +-2^30, as multiplier is below 2^15.
    const auto v = static_cast<int32_t>((int64_t{args.input[i]} * args.multiplier + half) >> args.shift);
    const auto magnitude = static_cast<uint32_t>(v < 0 ? -v : v);
    args.output[i] = args.is_tanh ? tanh_of(args, v, magnitude) : logistic_of(args, v, magnitude);
  }
}

}  // namespace lut16_ref
}  // namespace qplan
