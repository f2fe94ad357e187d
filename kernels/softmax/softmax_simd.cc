// softmax by vectors. An exponential depends on the distance of an element to the largest one alone, of which
// there are 256: much work takes them from a table, and the outputs of a long row, too.
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/fixed_point.h"
#include "kernels/simd/simd.h"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace {

// fixed_exp_negative<5> on vectors, equal to that of kernels/numeric/fixed_point.h in every bit.

// v / 2^kCount rounded to nearest, ties away from zero, for |v| < 2^31 - 2^kCount.
template <int kCount>
inline VecI32 rounding_shift(VecI32 v) {
  const auto half = set_ints(1 << (kCount - 1));
  return shift_right<kCount>(add(add(v, half), shift_right<31>(v)));
}

inline VecI32 exp_quarter(VecI32 a) {
  const auto minus_eighth = set_ints(1895147668);  // exp(-1/8)
  const auto x = add(a, set_ints(1 << 28));
  const auto x2 = doubling_high_mul(x, x);
  const auto x3 = doubling_high_mul(x2, x);
  const auto x4 = doubling_high_mul(x2, x2);
  const auto cubic = add(rounding_shift<2>(x4), x3);
  const auto third = doubling_high_mul(cubic, set_ints(715827883));
  const auto tail = rounding_shift<1>(add(third, x2));
  return add(minus_eighth, doubling_high_mul(add(x, tail), minus_eighth));
}

inline VecI32 exp_negative(VecI32 a) {
  constexpr int kFractionBits = 26;
  constexpr int32_t kQuarter = int32_t{1} << (kFractionBits - 2);
  const auto rest = sub(bit_and(a, set_ints(kQuarter - 1)), set_ints(kQuarter));
  const auto quarters = sub(rest, a);
  // rest is at least -2^24: nothing saturates.
  auto result = exp_quarter(shift_left<5>(rest));
  const auto factor = [&](int32_t value) { return doubling_high_mul(result, set_ints(value)); };
  result = select_bit<kFractionBits - 2>(quarters, factor(1672461947), result);
  result = select_bit<kFractionBits - 1>(quarters, factor(1302514674), result);
  result = select_bit<kFractionBits>(quarters, factor(790015084), result);
  result = select_bit<kFractionBits + 1>(quarters, factor(290630308), result);
  result = select_bit<kFractionBits + 2>(quarters, factor(39332535), result);
  result = select_bit<kFractionBits + 3>(quarters, factor(720401), result);
  result = select_bit<kFractionBits + 4>(quarters, factor(242), result);
  return select_zero(a, set_ints(INT32_MAX), result);
}

constexpr uint32_t kDistances = 256;

inline uint32_t first_lanes_of(uint32_t count) { return count < kLanes ? count : kLanes; }

// What is less is done before a vector is ready.
inline Refusal softmax_rows_accept(const SoftmaxArgs& args) {
  return uint64_t{args.rows} * args.depth >= 8 ? Refusal::kNone : Refusal::kTooSmall;
}

template <typename Value>
struct SoftmaxScratch {
  Value table[kDistances];        // of a whole call
  Value values[kDistances];       // of a short row
  uint8_t distances[kDistances];  // of a short row
  uint8_t outputs[kDistances];    // of a row, by distance
};
constexpr size_t kSoftmaxScratchBytes = (sizeof(SoftmaxScratch<int32_t>) + 63) / 64 * 64;

// v and factor are not negative: bytes of zero + min(255, factor * v / 2^(31 + right)).
inline LaneBytes scaled_bytes(VecI32 v, int32_t factor, int32_t right, uint8_t zero) {
  const VecI32 half = set_ints(right < 32 ? 1 << (right - 1) : 0);
  const VecI32 product = add(doubling_high_mul(v, set_ints(factor)), half);
  const VecI32 scaled = shift_right_zeros(product, right);
  return add_lane_bytes(low_bytes(min_unsigned(scaled, set_ints(255))), set_lane_bytes(zero));
}

// F32E: the outputs of entries of the table.
inline LaneBytes share_bytes(VecF32 v, float sum, const SoftmaxArgs& args) {
  const RealOutput output =
      set_real_output(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
  const VecF32 share = div(v, set_reals(sum));
  return finish(div(share, set_reals(args.output_scale)), output);
}

// The rules of the contracts: what the table holds, how a row sums it up, and how outputs come from it.
struct SoftmaxTfl2 {
  using Value = int32_t;
  using Sum = uint64_t;
  const SoftmaxArgs& args;

  const Value* table(SoftmaxScratch<Value>* scratch) const {
    for (uint32_t d = 0; d < kDistances; ++d) scratch->distances[d] = static_cast<uint8_t>(d);
    exps_of_distances(scratch->distances, kDistances, scratch->table);
    return scratch->table;
  }
  // Writes whole vectors.
  void exps_of_distances(const uint8_t* distances, uint32_t count, Value* exps) const {
    for (uint32_t i = 0; i < count; i += kLanes) {
      const auto distance = widen(distances + i);
      const auto shifted = shift_left(sub(set_ints(0), distance), args.input_left_shift);
      const auto scaled = doubling_high_mul(shifted, set_ints(args.input_multiplier));
      store_ints(exps + i, zero_above(distance, -args.diff_min, exp_negative(scaled)));
    }
  }

  // exp / 2^12 to nearest.
  static void add(Value exp, Sum* sum) { *sum += (static_cast<uint32_t>(exp) + (uint32_t{1} << 11)) >> 12; }

  void outputs_of(const Value* exps, uint32_t count, Sum total, uint8_t* outputs) const {
    const uint32_t sum = total < INT32_MAX ? static_cast<uint32_t>(total) : INT32_MAX;
    const int32_t headroom = __builtin_clz(sum);
    const int32_t reciprocal =
        fixed_reciprocal_one_plus(static_cast<int32_t>((sum << headroom) - (uint32_t{1} << 31)));
    for (uint32_t i = 0; i < count; i += kLanes) {
      const auto bytes = scaled_bytes(load_ints(exps + i), reciprocal, 12 - headroom + 23,
                                      static_cast<uint8_t>(dtype_min(args.dtype)));
      store_bytes(outputs + i, bytes, first_lanes_of(count - i));
    }
  }
};

struct SoftmaxF32e {
  using Value = float;
  using Sum = float;
  const SoftmaxArgs& args;

  const Value* table(SoftmaxScratch<Value>*) const { return args.table; }

  static void add(Value exp, Sum* sum) { *sum += exp; }

  void outputs_of(const Value* exps, uint32_t count, Sum sum, uint8_t* outputs) const {
    for (uint32_t i = 0; i < count; i += kLanes) {
      store_bytes(outputs + i, share_bytes(load_reals(exps + i), sum, args), first_lanes_of(count - i));
    }
  }
};

template <typename Rule>
inline void short_row(const Rule& rule, const typename Rule::Value* values, uint8_t* output) {
  typename Rule::Sum sum = 0;
  for (uint32_t i = 0; i < rule.args.depth; ++i) Rule::add(values[i], &sum);
  rule.outputs_of(values, rule.args.depth, sum, output);
}

template <typename Rule>
inline void table_rows(const Rule& rule, uint32_t begin, uint32_t end,
                       SoftmaxScratch<typename Rule::Value>* scratch) {
  const SoftmaxArgs& args = rule.args;
  const uint8_t sign_bias = args.dtype == Dtype::kS8 ? 128 : 0;
  const typename Rule::Value* table = rule.table(scratch);
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = static_cast<const uint8_t*>(args.input) + uint64_t{row} * args.depth;
    uint8_t* output = static_cast<uint8_t*>(args.output) + uint64_t{row} * args.depth;
    // With a sign bias or without, x differs from the largest by the same.
    const uint8_t top = static_cast<uint8_t>(largest_byte(input, args.depth, sign_bias) ^ sign_bias);
    if (args.depth <= kDistances) {
      for (uint32_t i = 0; i < args.depth; ++i) {
        scratch->values[i] = table[static_cast<uint8_t>(top - input[i])];
      }
      short_row(rule, scratch->values, output);
      continue;
    }
    typename Rule::Sum sum = 0;
    for (uint32_t i = 0; i < args.depth; ++i) Rule::add(table[static_cast<uint8_t>(top - input[i])], &sum);
    rule.outputs_of(table, kDistances, sum, scratch->outputs);
    for (uint32_t i = 0; i < args.depth; ++i) {
      output[i] = scratch->outputs[static_cast<uint8_t>(top - input[i])];
    }
  }
}

inline void run_rows(const SoftmaxArgs& args, uint32_t begin, uint32_t end, void* memory) {
  if (args.contract == Contract::kF32e) {
    const SoftmaxF32e rule = {args};
    return table_rows(rule, begin, end, static_cast<SoftmaxScratch<float>*>(memory));
  }
  const SoftmaxTfl2 rule = {args};
  auto* scratch = static_cast<SoftmaxScratch<int32_t>*>(memory);
  if (uint64_t{end - begin} * args.depth > kDistances) {
    return table_rows(rule, begin, end, scratch);
  }
  const uint8_t sign_bias = args.dtype == Dtype::kS8 ? 128 : 0;
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = static_cast<const uint8_t*>(args.input) + uint64_t{row} * args.depth;
    const uint8_t top = static_cast<uint8_t>(largest_byte(input, args.depth, sign_bias) ^ sign_bias);
    for (uint32_t i = 0; i < args.depth; ++i) scratch->distances[i] = static_cast<uint8_t>(top - input[i]);
    rule.exps_of_distances(scratch->distances, args.depth, scratch->values);
    short_row(rule, scratch->values, static_cast<uint8_t*>(args.output) + uint64_t{row} * args.depth);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(softmax) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const SoftmaxArgs& args) { return softmax_rows_accept(args); }

size_t scratch_bytes(const SoftmaxArgs&) { return kSoftmaxScratchBytes; }

uint32_t work_items(const SoftmaxArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const SoftmaxArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  run_rows(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(softmax)

}  // namespace qplan
