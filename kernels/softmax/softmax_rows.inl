// Rows of softmax on vectors. An exponential depends on the distance of an element to the largest one alone,
// of which there are 256: much work takes them from a table, and the outputs of a long row, too. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SOFTMAX_SOFTMAX_ROWS_INL_
#define QPLAN_KERNELS_SOFTMAX_SOFTMAX_ROWS_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/fixed_point_lanes.inl"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace {

constexpr uint32_t kDistances = 256;

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

// The rules of the contracts: what the table holds, how a row sums it up, and how outputs come from it.
// Lanes: those of fixed_point_lanes.inl, and
//   kCount, load(from), store(to, v)                32 bits each
//   widen(bytes), shift_left_by(v, count)
//   zero_above(v, limit, value)                     value, but 0 where v > limit
//   largest(from, count, flip)                      the largest byte, each flipped before
//   scaled_bytes(v, factor, right, zero)            bytes of zero + min(255, factor * v / 2^(31 + right))
//   share_bytes(v, sum, args)                       F32E: the outputs of entries of the table
template <typename Lanes>
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
    for (uint32_t i = 0; i < count; i += Lanes::kCount) {
      const auto distance = Lanes::widen(distances + i);
      const auto shifted = Lanes::shift_left_by(Lanes::sub(Lanes::set1(0), distance), args.input_left_shift);
      const auto scaled = Lanes::doubling_high_mul(shifted, Lanes::set1(args.input_multiplier));
      Lanes::store(exps + i, Lanes::zero_above(distance, -args.diff_min, exp_negative_lanes<Lanes>(scaled)));
    }
  }

  // exp / 2^12 to nearest.
  static void add(Value exp, Sum* sum) { *sum += (static_cast<uint32_t>(exp) + (uint32_t{1} << 11)) >> 12; }

  void outputs_of(const Value* exps, uint32_t count, Sum total, uint8_t* outputs) const {
    const uint32_t sum = total < INT32_MAX ? static_cast<uint32_t>(total) : INT32_MAX;
    const int32_t headroom = __builtin_clz(sum);
    const int32_t reciprocal =
        fixed_reciprocal_one_plus(static_cast<int32_t>((sum << headroom) - (uint32_t{1} << 31)));
    for (uint32_t i = 0; i < count; i += Lanes::kCount) {
      const auto bytes = Lanes::scaled_bytes(Lanes::load(exps + i), reciprocal, 12 - headroom + 23,
                                             static_cast<uint8_t>(dtype_min(args.dtype)));
      Lanes::store_bytes(outputs + i, bytes, count - i);
    }
  }
};

template <typename Lanes>
struct SoftmaxF32e {
  using Value = float;
  using Sum = float;
  const SoftmaxArgs& args;

  const Value* table(SoftmaxScratch<Value>*) const { return args.table; }

  static void add(Value exp, Sum* sum) { *sum += exp; }

  void outputs_of(const Value* exps, uint32_t count, Sum sum, uint8_t* outputs) const {
    for (uint32_t i = 0; i < count; i += Lanes::kCount) {
      Lanes::store_bytes(outputs + i, Lanes::share_bytes(Lanes::load(exps + i), sum, args), count - i);
    }
  }
};

template <typename Rule>
inline void short_row(const Rule& rule, const typename Rule::Value* values, uint8_t* output) {
  typename Rule::Sum sum = 0;
  for (uint32_t i = 0; i < rule.args.depth; ++i) Rule::add(values[i], &sum);
  rule.outputs_of(values, rule.args.depth, sum, output);
}

template <typename Lanes, typename Rule>
inline void table_rows(const Rule& rule, uint32_t begin, uint32_t end,
                       SoftmaxScratch<typename Rule::Value>* scratch) {
  const SoftmaxArgs& args = rule.args;
  const uint8_t flip = args.dtype == Dtype::kS8 ? 128 : 0;
  const typename Rule::Value* table = rule.table(scratch);
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = static_cast<const uint8_t*>(args.input) + uint64_t{row} * args.depth;
    uint8_t* output = static_cast<uint8_t*>(args.output) + uint64_t{row} * args.depth;
    // Flipped or not, x differs from the largest by the same.
    const uint8_t top = static_cast<uint8_t>(Lanes::largest(input, args.depth, flip) ^ flip);
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

template <typename Lanes>
inline void run_rows(const SoftmaxArgs& args, uint32_t begin, uint32_t end, void* memory) {
  if (args.contract == Contract::kF32e) {
    const SoftmaxF32e<Lanes> rule = {args};
    return table_rows<Lanes>(rule, begin, end, static_cast<SoftmaxScratch<float>*>(memory));
  }
  const SoftmaxTfl2<Lanes> rule = {args};
  auto* scratch = static_cast<SoftmaxScratch<int32_t>*>(memory);
  if (uint64_t{end - begin} * args.depth > kDistances) {
    return table_rows<Lanes>(rule, begin, end, scratch);
  }
  const uint8_t flip = args.dtype == Dtype::kS8 ? 128 : 0;
  for (uint32_t row = begin; row < end; ++row) {
    const uint8_t* input = static_cast<const uint8_t*>(args.input) + uint64_t{row} * args.depth;
    const uint8_t top = static_cast<uint8_t>(Lanes::largest(input, args.depth, flip) ^ flip);
    for (uint32_t i = 0; i < args.depth; ++i) scratch->distances[i] = static_cast<uint8_t>(top - input[i]);
    rule.exps_of_distances(scratch->distances, args.depth, scratch->values);
    short_row(rule, scratch->values, static_cast<uint8_t*>(args.output) + uint64_t{row} * args.depth);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SOFTMAX_SOFTMAX_ROWS_INL_
