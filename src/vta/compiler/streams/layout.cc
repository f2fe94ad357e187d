#include "src/vta/compiler/streams/layout.h"

#include <algorithm>

namespace qplan::vta::compiler {
namespace {

// Calls visit(index into the dense tensor, index into the packed one) for every byte of the tensor.
template <typename Visit>
void for_each_byte(const ActivationLayout& layout, const Visit& visit) {
  size_t dense = 0;
  for (int64_t y = 0; y < layout.h; ++y) {
    for (int64_t x = 0; x < layout.w; ++x) {
      // The blocks of a position follow each other: its channels are contiguous.
      const int64_t position = layout.element(y, x) * kInpBytes;
      for (int64_t c = 0; c < layout.channels; ++c) visit(dense++, static_cast<size_t>(position + c));
    }
  }
}

// Writes into the element and, with two planes, the one after it.
void put_weight(int64_t element, int64_t o, int64_t i, int weight, int64_t planes,
                std::vector<uint8_t>* packed) {
  const auto at = static_cast<size_t>(element * kWgtBytes + o * kBlock + i);
  const int first = std::clamp(weight, -128, 127);
  (*packed)[at] = static_cast<uint8_t>(first);
  if (planes == 2) (*packed)[at + static_cast<size_t>(kWgtBytes)] = static_cast<uint8_t>(weight - first);
}

}  // namespace

std::vector<uint8_t> pack_activations(const ActivationLayout& layout, std::span<const uint8_t> dense,
                                      uint8_t flip, int8_t border) {
  std::vector<uint8_t> packed(static_cast<size_t>(layout.bytes()), static_cast<uint8_t>(border));
  for_each_byte(layout, [&](size_t from, size_t to) { packed[to] = dense[from] ^ flip; });
  return packed;
}

std::vector<uint8_t> unpack_activations(const ActivationLayout& layout, std::span<const uint8_t> packed,
                                        uint8_t flip) {
  std::vector<uint8_t> dense(static_cast<size_t>(layout.h * layout.w * layout.channels));
  for_each_byte(layout, [&](size_t to, size_t from) { dense[to] = packed[from] ^ flip; });
  return dense;
}

std::vector<uint8_t> pack_gemm_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                       int64_t planes) {
  const int64_t taps = geometry.taps(), in_blocks = blocks(geometry.in_c);
  std::vector<uint8_t> packed(
      static_cast<size_t>(blocks(geometry.out_c) * taps * in_blocks * planes * kWgtBytes), 0);
  size_t from = 0;
  for (int64_t o = 0; o < geometry.out_c; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < geometry.in_c; ++i) {
        const int64_t element = ((o / kBlock * taps + tap) * in_blocks + i / kBlock) * planes;
        put_weight(element, o % kBlock, i % kBlock, weights[from++], planes, &packed);
      }
    }
  }
  return packed;
}

std::vector<uint8_t> pack_diagonal_weights(const Geometry& geometry, std::span<const int16_t> weights,
                                           int64_t planes) {
  const int64_t taps = geometry.taps();
  std::vector<uint8_t> packed(static_cast<size_t>(blocks(geometry.out_c) * taps * planes * kWgtBytes), 0);
  size_t from = 0;
  for (int64_t c = 0; c < geometry.out_c; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap)
      put_weight((c / kBlock * taps + tap) * planes, c % kBlock, c % kBlock, weights[from++], planes,
                 &packed);
  }
  return packed;
}

}  // namespace qplan::vta::compiler
