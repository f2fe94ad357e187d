// How tensors lie in the device's memory, and the host's packing into it. Elements are of INP and OUT: one
// position, 16 channels, 16 bytes of int8.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYOUT_H_
#define QPLAN_SRC_VTA_COMPILER_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/vta/compiler/config.h"
#include "src/vta/compiler/layer.h"

namespace qplan::target::vta {

// Room around a tensor in its buffer, for readers that pad.
struct Border {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};

// [top + h + bottom][left + w + right][channels / 16][16]. The border holds whatever its reader pads with.
struct ActivationLayout {
  int64_t h = 1, w = 1, channels = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  int64_t channel_blocks() const { return blocks(channels); }
  int64_t row_elements() const { return (left + w + right) * channel_blocks(); }
  int64_t elements() const { return (top + h + bottom) * row_elements(); }
  int64_t bytes() const { return elements() * kInpBytes; }
  // Of position (y, x) inside the border, first block.
  int64_t element(int64_t y, int64_t x) const {
    return (top + y) * row_elements() + (left + x) * channel_blocks();
  }
};

// dense: [h][w][channels]. flip is 0 for int8 and 0x80 for uint8, whose values enter the device less 128.
// border: the byte around the tensor and in the channels beyond the last (after the flip).
std::vector<uint8_t> pack_activations(const ActivationLayout& layout, std::span<const uint8_t> dense,
                                      uint8_t flip, int8_t border);
std::vector<uint8_t> unpack_activations(const ActivationLayout& layout, std::span<const uint8_t> packed,
                                        uint8_t flip);

// Weights for GEMM: [O / 16][KH][KW][I / 16][planes][16 o][16 i], zeros beyond the last channel. A weight is
// the sum of its planes: the first is the weight clamped to int8, the second the rest.
// weights: [O][KH][KW][I], less their zero point, within kMinWeight and kMaxWeight.
std::vector<uint8_t> pack_gemm_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                       int64_t planes);
// Of a depthwise layer, whose blocks of channels do not mix: [C / 16][KH][KW][planes][16][16], all but the
// diagonal 0. weights: [C][KH][KW].
std::vector<uint8_t> pack_diagonal_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                           int64_t planes);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_LAYOUT_H_
