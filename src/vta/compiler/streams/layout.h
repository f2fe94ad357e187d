// How tensors lie in the device's memory, the host's packing into it, and the device's limits in the units of
// the compiler. Elements are of INP and OUT: one position, 16 channels, 16 bytes of int8.
#ifndef QPLAN_SRC_VTA_COMPILER_STREAMS_LAYOUT_H_
#define QPLAN_SRC_VTA_COMPILER_STREAMS_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/packer/layer/quantized_layer.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta::compiler {

using layer::Geometry;

inline constexpr int64_t kBlock = kLanes;                                  // channels of an element
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a >= 0, b > 0
inline int64_t blocks(int64_t channels) { return (channels + kBlock - 1) / kBlock; }
// Bytes of one element.
inline constexpr int64_t kWgtBytes = vta::kWgtBytes;
inline constexpr int64_t kInpBytes = vta::kInpBytes;
inline constexpr int64_t kAccBytes = vta::kAccBytes;

// Factors of GEMM and ALU instructions are as wide as the indices of ACC, strides of LOAD and STORE 16 bits.
inline int64_t max_factor(const Config& config) { return (int64_t{1} << config.acc_index_bits) - 1; }
inline constexpr int64_t kMaxDmaStride = 65535;
// What one allocation of the public driver interface gives.
inline constexpr int64_t kMaxBufferBytes = int64_t{32} << 20;
// Up to this magnitude the ALU's sequence for TFL2 is exact, the left shift included.
inline constexpr int64_t kTfl2Bound = int64_t{1} << 29;

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
  // The element of position (y, x) inside the padding, first block.
  int64_t element(int64_t y, int64_t x) const {
    return (top + y) * row_elements() + (left + x) * channel_blocks();
  }
};

inline ActivationLayout with_border(int64_t h, int64_t w, int64_t channels, const Border& border) {
  return {h, w, channels, border.top, border.left, border.bottom, border.right};
}

// dense: [h][w][channels]. flip is 0 for int8 and 0x80 for uint8, whose values enter the device less 128.
// border: the byte around the tensor and in the channels beyond the last (after the flip).
std::vector<uint8_t> pack_activations(const ActivationLayout& layout, std::span<const uint8_t> dense,
                                      uint8_t flip, int8_t border);
std::vector<uint8_t> unpack_activations(const ActivationLayout& layout, std::span<const uint8_t> packed,
                                        uint8_t flip);

// What one weight can be: the sum of up to two int8 weights, each with a micro-op of its own on the same
// input and accumulator. The second one is needed only in layers in which some weight is beyond int8.
inline constexpr int64_t kMinWeight = -256, kMaxWeight = 254;

// Weights for GEMM: [O / 16][KH][KW][I / 16][planes][16 o][16 i], zeros beyond the last channel. A weight is
// the sum of its planes: the first is the weight clamped to int8, the second the rest.
// weights: [O][KH][KW][I], less their zero point, within kMinWeight and kMaxWeight.
std::vector<uint8_t> pack_gemm_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                       int64_t planes);
// The weights of a depthwise layer, whose blocks of channels do not mix: [C / 16][KH][KW][planes][16][16],
// all but the diagonal 0. weights: [C][KH][KW].
std::vector<uint8_t> pack_diagonal_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                           int64_t planes);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_STREAMS_LAYOUT_H_
