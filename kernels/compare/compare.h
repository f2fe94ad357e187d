// compare and select: comparison of two tensors, and the choice between two by a third.
//
//   compare: out = op(a, b) ? 1 : 0, a and b of one dtype, broadcast as NumPy does
//     kLess a < b, kLessEqual a <= b, kEqual a == b; every comparison with a NaN is false
//   select:  out = condition != 0 ? a : b, all three broadcast as NumPy does; the bytes of a and b are moved
//
// Conditions are bytes: 0 is false, everything else true. docs/numerics/data_movement.md.
#ifndef QPLAN_KERNELS_COMPARE_COMPARE_H_
#define QPLAN_KERNELS_COMPARE_COMPARE_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

// The numbers are those of format/plan.fbs.
enum class Comparison : uint8_t { kLess, kLessEqual, kEqual };

struct CompareArgs {
  Comparison op = Comparison::kLess;
  Dtype dtype = Dtype::kOther;  // of the inputs
  const void* a = nullptr;
  const void* b = nullptr;
  uint8_t* output = nullptr;
  Broadcast broadcast;
};

struct SelectArgs {
  const uint8_t* condition = nullptr;
  const uint8_t* a = nullptr;
  const uint8_t* b = nullptr;
  uint8_t* output = nullptr;
  uint32_t element_bytes = 0;  // 1, 2, 4 or 8
  uint32_t rank = 1;           // at least 1
  uint64_t elements = 1;       // of the output
  // Outermost first. Strides count elements and are 0 where the input is repeated.
  uint64_t extents[Broadcast::kMaxRank] = {1};
  uint64_t condition_strides[Broadcast::kMaxRank] = {};
  uint64_t a_strides[Broadcast::kMaxRank] = {};
  uint64_t b_strides[Broadcast::kMaxRank] = {};
};

// Work items: chunks of elements.
#define QPLAN_COMPARE_VARIANTS QPLAN_VARIANT(compare_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SELECT_VARIANTS QPLAN_VARIANT(select_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CompareArgs)
QPLAN_COMPARE_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SelectArgs)
QPLAN_SELECT_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_COMPARE_COMPARE_H_
