// Kernels that move elements of any dtype without a look at them: copy, concat, split, pad, gather,
// transpose. Lists of variants are best first; the reference, which computes all that is bound, is the last.
#ifndef QPLAN_KERNELS_MOVEMENT_MOVEMENT_H_
#define QPLAN_KERNELS_MOVEMENT_MOVEMENT_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

// copy: the same bytes, under another shape.
struct CopyArgs {
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t bytes = 0;
};

#define QPLAN_COPY_VARIANTS QPLAN_VARIANT(copy_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CopyArgs)
QPLAN_COPY_VARIANTS
#undef QPLAN_VARIANT

// concat: n inputs, one after the other along an axis; all dtypes and other extents agree. Elements are only
// moved, or are there already: with one row an input may be at its place in the output. Inputs whose
// quantisation differs from the output's are rescaled before (docs/numerics/data_movement.md).
struct ConcatArgs {
  // Wider concatenations are made of several.
  static constexpr uint32_t kMaxInputs = 24;

  uint8_t* output = nullptr;
  uint64_t output_row_bytes = 0;  // the sum of all row_bytes
  uint32_t rows = 1;              // the product of the extents before the axis; fits int32
  uint32_t num_inputs = 0;        // [1, kMaxInputs]
  const uint8_t* inputs[kMaxInputs] = {};
  // From the axis on: what input i adds to each row of the output.
  uint64_t row_bytes[kMaxInputs] = {};
};

#define QPLAN_CONCAT_VARIANTS QPLAN_VARIANT(concat_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ConcatArgs)
QPLAN_CONCAT_VARIANTS
#undef QPLAN_VARIANT

// split: one input, cut into n outputs along an axis; all dtypes and other extents agree. Elements are only
// moved, or are there already: with one row an output may be at its place in the input.
struct SplitArgs {
  // What is cut into more parts is cut several times.
  static constexpr uint32_t kMaxOutputs = 24;

  const uint8_t* input = nullptr;
  uint64_t input_row_bytes = 0;  // the sum of all row_bytes
  uint32_t rows = 1;             // the product of the extents before the axis; fits int32
  uint32_t num_outputs = 0;      // [1, kMaxOutputs]
  uint8_t* outputs[kMaxOutputs] = {};
  // From the axis on: what output i takes of each row of the input.
  uint64_t row_bytes[kMaxOutputs] = {};
};

#define QPLAN_SPLIT_VARIANTS QPLAN_VARIANT(split_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SplitArgs)
QPLAN_SPLIT_VARIANTS
#undef QPLAN_VARIANT

// pad: a constant around a tensor.
//
//   out[i] = in[i - before] where that exists, value elsewhere
//
// Elements are only moved; docs/numerics/data_movement.md says what value means for each dtype.
struct PadArgs {
  static constexpr uint32_t kMaxRank = 6;

  const uint8_t* input = nullptr;
  uint8_t* output = nullptr;
  uint32_t element_bytes = 1;  // 1, 2, 4, 8
  uint64_t value = 0;          // its low element_bytes are the element
  uint32_t rows = 1;           // the product of output_extents but the last; fits int32
  // Outermost first; an axis that is not padded is merged into the one before it. before + input <= output.
  uint32_t rank = 1;  // at least 1
  uint64_t input_extents[kMaxRank] = {1};
  uint64_t output_extents[kMaxRank] = {1};
  uint64_t before[kMaxRank] = {};
};

#define QPLAN_PAD_VARIANTS QPLAN_VARIANT(pad_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, PadArgs)
QPLAN_PAD_VARIANTS
#undef QPLAN_VARIANT

// gather: each axis of the output reads positions of the same axis of the input.
//
//   out[i0, i1, ...] = in[p0(i0), p1(i1), ...], where pa(i) = begin + step * i, or table[i]
//
// So it takes slices, with steps of either sign, repeats and mirrors elements, and resizes to the nearest
// element. Elements of any dtype are only moved, or are there already: what is one range of the input may be
// at its place in it.
struct GatherArgs {
  static constexpr uint32_t kMaxRank = 6;

  const uint8_t* input = nullptr;  // where position 0 of every axis reads
  uint8_t* output = nullptr;
  uint64_t block_bytes = 1;  // which are contiguous in the input and in the output
  uint32_t rows = 1;         // the product of extents but the last; fits int32
  // Axes of the output around a block, outermost first; neighbours that can be counted through are merged.
  uint32_t rank = 1;  // at least 1
  uint64_t extents[kMaxRank] = {1};
  int64_t strides[kMaxRank] = {};        // bytes of the input: from a position to the next, or those of one
  const int32_t* tables[kMaxRank] = {};  // element that a table counts in
};

#define QPLAN_GATHER_VARIANTS QPLAN_VARIANT(gather_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, GatherArgs)
QPLAN_GATHER_VARIANTS
#undef QPLAN_VARIANT

// transpose: output axis i is input axis permutation[i]; elements are only moved.
struct TransposeArgs {
  static constexpr uint32_t kMaxRank = 6;

  const void* input = nullptr;
  void* output = nullptr;
  uint32_t element_bytes = 1;  // 1, 2, 4, 8
  uint64_t elements = 1;
  // Axes of the output, outermost first; without those of extent 1, and neighbours that stay neighbours
  // merged.
  uint32_t rank = 1;  // at least 1
  uint64_t extents[kMaxRank] = {1};
  uint64_t input_strides[kMaxRank] = {};  // in elements
};

#define QPLAN_TRANSPOSE_VARIANTS \
  QPLAN_SIMD_VARIANTS(transpose) \
  QPLAN_VARIANT(transpose_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, TransposeArgs)
QPLAN_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_MOVEMENT_MOVEMENT_H_
