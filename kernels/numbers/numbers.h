// Operators on numbers that stand for themselves: int_binary, int_reduce, cast, gather_nd.
//
//   int_binary: out = op(a, b) on int32 or int64, modulo 2^32 or 2^64, a and b broadcast as NumPy does
//     kAdd a + b, kSub a - b, kMul a * b, kMaximum, kMinimum,
//     kFloorDiv floor(a / b), kFloorMod a - b * floor(a / b), kDiv a / b towards zero; all 0 where b is 0
//   int_reduce: over the n elements e of the reduced axes, on int32 or int64
//     kSum of all e, kProduct of all e: modulo 2^32 or 2^64
//     kMaximum, kMinimum,
//     kMean sum / n towards zero, the sum of either dtype modulo 2^64
//   cast: out = x as another dtype. Integers are taken modulo 2^bits; float32 of an integer is rounded to
//   nearest even;
//     an integer of a float32 is truncated and held in its dtype, 0 for NaN.
//   gather_nd: out[o, i, e] = x[o, p(i), e], where the indices of row i, one for each of the axes between,
//   give the place
//     p(i). A negative index counts from the axis' end; then it is held within the axis.
//
// docs/numerics/data_movement.md.
#ifndef QPLAN_KERNELS_NUMBERS_NUMBERS_H_
#define QPLAN_KERNELS_NUMBERS_NUMBERS_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

// The numbers are those of format/plan.fbs.
enum class IntBinary : uint8_t { kAdd, kSub, kMul, kMaximum, kMinimum, kFloorDiv, kFloorMod, kDiv };
enum class IntReduction : uint8_t { kMean, kSum, kMaximum, kMinimum, kProduct };

struct IntBinaryArgs {
  IntBinary op = IntBinary::kAdd;
  Dtype dtype = Dtype::kS32;  // kS32, kS64
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
};

// Axes outermost first, those that continue one another as one.
struct IntReduceArgs {
  static constexpr uint32_t kMaxRank = 6;

  IntReduction reduction = IntReduction::kMean;
  Dtype dtype = Dtype::kS32;  // kS32, kS64
  uint32_t kept_rank = 0;
  uint32_t reduced_rank = 0;
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t num_outputs = 1;
  uint64_t num_reduced = 1;
  uint64_t kept_extents[kMaxRank] = {};
  uint64_t kept_strides[kMaxRank] = {};  // elements of the input
  uint64_t reduced_extents[kMaxRank] = {};
  uint64_t reduced_strides[kMaxRank] = {};
};

struct CastArgs {
  Dtype input_dtype = Dtype::kOther;
  Dtype output_dtype = Dtype::kOther;
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t elements = 0;
};

struct GatherNdArgs {
  static constexpr uint32_t kMaxRank = 6;

  const uint8_t* input = nullptr;
  const int32_t* indices = nullptr;  // [rows, rank]
  uint8_t* output = nullptr;         // [outer, rows, block]
  uint64_t outer = 1;
  uint64_t rows = 1;
  uint64_t block_bytes = 0;  // of an element and all axes after those of the indices
  uint64_t outer_bytes = 0;  // of the input, for one index of the axes before
  uint32_t rank = 1;
  uint32_t extents[kMaxRank] = {};  // of the axes that the indices are of
};

// Work items: chunks of elements (int_binary, cast), of outputs (int_reduce), or of rows, outer * rows of
// them (gather_nd).
#define QPLAN_INT_BINARY_VARIANTS QPLAN_VARIANT(int_binary_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_INT_REDUCE_VARIANTS QPLAN_VARIANT(int_reduce_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_CAST_VARIANTS QPLAN_VARIANT(cast_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_GATHER_ND_VARIANTS QPLAN_VARIANT(gather_nd_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, IntBinaryArgs)
QPLAN_INT_BINARY_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, IntReduceArgs)
QPLAN_INT_REDUCE_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CastArgs)
QPLAN_CAST_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, GatherNdArgs)
QPLAN_GATHER_ND_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMBERS_NUMBERS_H_
