// How a depthwise convolution of 3x3 or 5x5 is cut for vectors whose 32-bit lanes hold up to four rows of one
// column of one channel: into blocks of rows, blocks of channels and work items of a few output rows.
// Shared by the ISA files; internal linkage only.
//
// With dilation d, outputs y, y + d, y + 2d, ... read rows that no others read: a phase. The phases of an
// image are worked on like images of their own, without dilation; those of a row likewise (Phase).
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_COLUMNS_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_COLUMNS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// One output per input channel, the input zero point at the dtype's minimum (where the packer puts it), so
// that the bytes, seen as uint8, are the factors.
inline Refusal columns_accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (a.input_zero_point != dtype_min(a.input_dtype)) return Refusal::kInputZeroPoint;
  const bool has_code = a.kernel_h == a.kernel_w && (a.kernel_h == 3 || a.kernel_h == 5) &&
                        a.stride_h == a.stride_w && a.stride_h <= 2 &&
                        (a.stride_h == 1 || (a.dilation_h == 1 && a.dilation_w == 1));
  if (!has_code) return Refusal::kWindow;
  const bool fits =
      a.input_c < (1u << 20) && a.input_w < (1u << 20) && a.output_w < (1u << 20) &&
      a.output_h < (1u << 20) && a.batch < (1u << 10) &&
      (uint64_t{a.output_h} + 1) * a.batch * (uint64_t{a.input_c} / 64 + 2) < (uint64_t{1} << 31);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

// Phases of `outputs` rows or columns, and the outputs of the first one, which has most.
inline uint32_t num_phases(uint32_t outputs, uint32_t dilation) {
  return dilation < outputs ? dilation : outputs;
}
inline uint32_t phase_outputs(uint32_t outputs, uint32_t dilation) { return (outputs - 1) / dilation + 1; }

// Outputs first, first + dilation, ...: number i of them reads inputs i * stride + begin, ... of those that
// stand at first_input, first_input + dilation, ...
struct Phase {
  uint32_t num_outputs;
  int64_t begin;
  uint32_t first_input;
  uint32_t num_inputs;
};

inline Phase phase_at(uint32_t first, uint32_t outputs, uint32_t inputs, uint32_t pad, uint32_t dilation) {
  const int64_t offset = int64_t{first} - pad;
  if (dilation == 1) return {outputs, offset, 0, inputs};
  const uint32_t num_outputs = phase_outputs(outputs - first, dilation);
  const int64_t remainder = offset % dilation;
  const int64_t first_input = remainder < 0 ? remainder + dilation : remainder;
  if (first_input >= inputs) return {num_outputs, 0, 0, 0};
  return {num_outputs, (offset - first_input) / dilation, static_cast<uint32_t>(first_input),
          phase_outputs(inputs - static_cast<uint32_t>(first_input), dilation)};
}

// At stride 1 a column of four rows serves two rows of outputs.
inline uint32_t rows_at_once(const DepthwiseConv2dArgs& a) { return a.stride_h == 1 ? 2 : 1; }

// A vector has room for 64 channels. What is left of the channels stands 32 or 16 wide, and the vector takes
// the same channels of two or four groups of output rows.
struct Block {
  uint32_t channel;
  uint32_t count;   // <= 64 / groups
  uint32_t groups;  // 1, 2 or 4
};

inline uint32_t num_blocks(uint32_t channels) {
  const uint32_t rest = channels % 64;
  return channels / 64 + (rest == 0 ? 0 : rest > 32 && rest <= 48 ? 2 : 1);
}

inline Block block_at(uint32_t channels, uint32_t index) {
  const uint32_t channel = index * 64, whole = channels / 64;
  if (index < whole) return {channel, 64, 1};
  if (index > whole) return {whole * 64 + 32, channels % 64 - 32, 4};
  const uint32_t rest = channels % 64;
  if (rest > 48) return {channel, rest, 1};
  if (rest > 16) return {channel, rest < 32 ? rest : 32, 2};
  return {channel, rest, 4};
}

// Rows of a row block: enough outputs to pay for preparing a block of channels, few enough to stay in the
// cache until the last block has read them.
inline uint32_t row_block_rows(const DepthwiseConv2dArgs& a) {
  const uint32_t rows = knob_value(a.schedule, kDepthwiseKnobs, kDepthwiseRowBlockRows);
  return rows != 0 ? rows : (448 / a.output_w + 8) / 8 * 8;
}

// Images, or phases of them, and the rows of each. Phases may have a row less than the first.
inline uint32_t num_images(const DepthwiseConv2dArgs& a) {
  return a.batch * num_phases(a.output_h, a.dilation_h);
}
inline uint32_t image_rows(const DepthwiseConv2dArgs& a) { return phase_outputs(a.output_h, a.dilation_h); }

// A work item: the rows that one pass over a block of channels makes.
struct Cursor {
  uint32_t image = 0;      // n * num_phases + phase
  uint32_t first_row = 0;  // of the row block
  uint32_t end_row = 0;
  uint32_t block = 0;
  uint32_t row = 0;
};

inline uint32_t work_items_of_block(const DepthwiseConv2dArgs& a, uint32_t rows, uint32_t block) {
  const uint32_t step = rows_at_once(a) * block_at(a.input_c, block).groups;
  return (rows + step - 1) / step;
}

inline uint32_t work_items_of_row_block(const DepthwiseConv2dArgs& a, uint32_t rows) {
  const uint32_t blocks = num_blocks(a.input_c), whole = a.input_c / 64;
  uint32_t work_items = whole * ((rows + rows_at_once(a) - 1) / rows_at_once(a));
  for (uint32_t b = whole; b < blocks; ++b) work_items += work_items_of_block(a, rows, b);
  return work_items;
}

inline uint32_t work_items_of_image(const DepthwiseConv2dArgs& a) {
  const uint32_t row_block = row_block_rows(a), rest = image_rows(a) % row_block;
  return image_rows(a) / row_block * work_items_of_row_block(a, row_block) +
         (rest != 0 ? work_items_of_row_block(a, rest) : 0);
}

inline Cursor cursor_at(const DepthwiseConv2dArgs& a, uint32_t work_item) {
  if (work_item == 0) {  // each call of a cascade begins so
    Cursor first;
    const uint32_t row_block = row_block_rows(a), rows = image_rows(a);
    first.end_row = rows < row_block ? rows : row_block;
    return first;
  }
  const uint32_t per_image = work_items_of_image(a), row_block = row_block_rows(a),
                 per_row_block = work_items_of_row_block(a, row_block);
  Cursor at;
  at.image = work_item / per_image;
  work_item %= per_image;
  at.first_row = work_item / per_row_block * row_block;
  work_item %= per_row_block;
  at.end_row = image_rows(a) - at.first_row < row_block ? image_rows(a) : at.first_row + row_block;
  const uint32_t rows = at.end_row - at.first_row;
  for (;;) {
    const uint32_t here = work_items_of_block(a, rows, at.block);
    if (work_item < here) break;
    work_item -= here;
    ++at.block;
  }
  at.row = at.first_row + work_item * rows_at_once(a) * block_at(a.input_c, at.block).groups;
  return at;
}

// To the next work item; true where another block of channels, or of another row block, begins.
inline bool advance(const DepthwiseConv2dArgs& a, uint32_t rows, Cursor* at) {
  at->row += rows;
  if (at->row < at->end_row) return false;
  if (++at->block == num_blocks(a.input_c)) {
    at->block = 0;
    at->first_row = at->end_row;
    if (at->first_row == image_rows(a)) {
      at->first_row = 0;
      ++at->image;
    }
    const uint32_t row_block = row_block_rows(a);
    at->end_row = image_rows(a) - at->first_row < row_block ? image_rows(a) : at->first_row + row_block;
  }
  at->row = at->first_row;
  return true;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_COLUMNS_H_
