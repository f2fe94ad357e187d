// Rows of a fully connected layer as uint8 (int8 plus 128), ready for the packed weights. Shared by the ISA
// files; internal linkage only.
#ifndef QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_ROWS_INL_
#define QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_ROWS_INL_

#include <stddef.h>
#include <stdint.h>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// A work unit is a chunk of rows by a group of channel blocks.
constexpr uint32_t kRowChunk = 24;
constexpr uint32_t kBlockGroup = 4;

inline uint32_t num_blocks(const FullyConnectedArgs& a) { return (a.output_c + 15) / 16; }
inline uint32_t num_groups(const FullyConnectedArgs& a) {
  return (num_blocks(a) + kBlockGroup - 1) / kBlockGroup;
}
inline uint32_t row_units(const FullyConnectedArgs& a) {
  return (a.rows + kRowChunk - 1) / kRowChunk * num_groups(a);
}

// As for conv2d: not ACC32, and the input zero point is the dtype's minimum, where the packer puts it.
inline bool rows_accepts(const FullyConnectedArgs& a) {
  return a.contract != Contract::kAcc32 && a.weights_layout == kLayout_o16k4 &&
         a.input_zero_point == dtype_min(a.input_dtype) && a.input_c < (1u << 30);
}

// Whether the input's rows can be read as they are.
inline bool rows_are_input(const FullyConnectedArgs& a) {
  return a.input_dtype == Dtype::kU8 && a.input_c % 4 == 0;
}
inline uint32_t chunk_rows(const FullyConnectedArgs& a) { return a.rows < kRowChunk ? a.rows : kRowChunk; }
inline size_t row_stride(const FullyConnectedArgs& a) { return (size_t{a.input_c} + 63) / 64 * 64; }

// Scratch: the rows of a chunk unless they are read in place, then a term for each.
inline size_t rows_scratch_bytes(const FullyConnectedArgs& a) {
  const size_t terms = (kRowChunk * sizeof(int32_t) + 63) / 64 * 64;
  return (rows_are_input(a) ? 0 : chunk_rows(a) * row_stride(a)) + terms;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_ROWS_INL_
