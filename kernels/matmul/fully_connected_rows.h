// Where the rows of a fully connected layer are: in the input, or copied to whole groups of four bytes; and
// how they are cut into work items. Shared by the instruction sets; internal linkage only.
#ifndef QPLAN_KERNELS_MATMUL_FULLY_CONNECTED_ROWS_H_
#define QPLAN_KERNELS_MATMUL_FULLY_CONNECTED_ROWS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/layout.h"
#include "kernels/matmul/matmul.h"

namespace qplan {
namespace {

// A work item is a chunk of rows by a group of channel blocks; these where the schedule does not say.
constexpr uint32_t kRowChunk = 24;
constexpr uint32_t kBlockGroup = 4;
constexpr uint32_t kRowBlockGroup = 8;  // of one row, which does less with what it reads

inline uint32_t row_chunk(const FullyConnectedArgs& a) {
  const uint32_t rows = knob_value(a.schedule, kFullyConnectedKnobs, kFullyConnectedRowChunk);
  return rows != 0 ? rows : kRowChunk;
}
inline uint32_t block_group(const FullyConnectedArgs& a) {
  const uint32_t blocks = knob_value(a.schedule, kFullyConnectedKnobs, kFullyConnectedBlockGroup);
  if (blocks != 0) return blocks;
  return a.rows == 1 ? kRowBlockGroup : kBlockGroup;
}

inline uint32_t num_blocks(const FullyConnectedArgs& a) { return (a.output_c + 15) / 16; }
inline uint32_t num_groups(const FullyConnectedArgs& a) {
  return (num_blocks(a) + block_group(a) - 1) / block_group(a);
}
inline uint32_t row_work_items(const FullyConnectedArgs& a) {
  return (a.rows + row_chunk(a) - 1) / row_chunk(a) * num_groups(a);
}

// As for conv2d: ACC32 where the product makes sums, and an input zero point that the product takes.
inline Refusal rows_accepts(const FullyConnectedArgs& a, bool makes_sums, bool takes_zero_point,
                            bool takes_eights) {
  if (a.contract == Contract::kAcc32 && !makes_sums) return Refusal::kContract;
  if (a.weights_layout != kLayout_o16k4 && !(takes_eights && a.weights_layout == kLayout_o16r8)) {
    return Refusal::kLayout;
  }
  if (!takes_zero_point) return Refusal::kInputZeroPoint;
  return a.input_c < (1u << 30) ? Refusal::kNone : Refusal::kTooLarge;
}

// Whether the input's rows can be read as they are.
inline bool rows_are_input(const FullyConnectedArgs& a) { return a.input_c % 4 == 0; }
inline uint32_t chunk_rows(const FullyConnectedArgs& a) {
  return a.rows < row_chunk(a) ? a.rows : row_chunk(a);
}
// Copies of rows reach over their ends.
inline size_t row_copy_bytes(const FullyConnectedArgs& a) { return (size_t{a.input_c} + 63) / 64 * 64 + 64; }

// Scratch: a term for each row of a chunk, then the copies.
inline size_t term_bytes(const FullyConnectedArgs& a) {
  return (row_chunk(a) * sizeof(int32_t) + 63) / 64 * 64;
}
inline size_t rows_scratch_bytes(const FullyConnectedArgs& a) {
  return term_bytes(a) + (rows_are_input(a) ? 0 : chunk_rows(a) * row_copy_bytes(a));
}

// Copies hold uint8, int8 plus 128, unless products keep bytes as they are.
inline uint8_t row_copy_sign_bias(const FullyConnectedArgs& a, bool keeps_bytes) {
  return a.input_dtype == Dtype::kS8 && !keeps_bytes ? 0x80 : 0;
}

// Rows [first, first + count), filled up to whole groups of four with the input's zero point: whatever
// weights are there add nothing.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t, uint8_t), bool kKeepsBytes>
inline void copy_rows(const FullyConnectedArgs& a, uint32_t first, uint32_t count, uint8_t* to) {
  const uint8_t* row = static_cast<const uint8_t*>(a.input) + size_t{first} * a.input_c;
  const uint8_t sign_bias = row_copy_sign_bias(a, kKeepsBytes);
  const uint8_t tail = static_cast<uint8_t>(a.input_zero_point) ^ sign_bias;
  for (uint32_t p = 0; p < count; ++p, row += a.input_c, to += row_copy_bytes(a)) {
    kCopyRun(to, row, a.input_c, sign_bias);
    for (uint32_t k = a.input_c; k % 4 != 0; ++k) to[k] = tail;
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_MATMUL_FULLY_CONNECTED_ROWS_H_
