// Weights from their natural order [O, K] into the layouts of kernels/layouts.def, written block by block: an
// oracle for the index functions of kernels/layout.h.
#ifndef QPLAN_TESTS_SUPPORT_WEIGHTS_H_
#define QPLAN_TESTS_SUPPORT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/layout.h"

namespace qplan::testing {

// window: that num_k weights of an output are of.
inline std::vector<int8_t> pack_weights(uint16_t layout, const std::vector<int8_t>& weights, size_t num_o,
                                        const LayoutWindow& window) {
  if (layout == kLayout_ohwi) return weights;
  const size_t num_k = window.h * window.w * window.channels;
  const bool halves = layout == kLayout_o2h4 || layout == kLayout_o4h4;
  const size_t block_o = layout == kLayout_o2r4 || layout == kLayout_o2h4   ? 2
                         : layout == kLayout_o4k4 || layout == kLayout_o4h4 ? 4
                                                                            : 16;
  const size_t group = layout == kLayout_o16r8 || layout == kLayout_o16i8 || layout == kLayout_o16z8 ? 8 : 4;
  const size_t padded_o = (num_o + block_o - 1) / block_o * block_o;
  std::vector<int8_t> packed;
  if (layout == kLayout_hwo16) {
    for (size_t k = 0; k < num_k; ++k) {
      for (size_t o = 0; o < padded_o; ++o) packed.push_back(o < num_o ? weights[o * num_k + k] : int8_t{0});
    }
    return packed;
  }
  if (layout == kLayout_o4k16) {
    for (size_t block = 0; block < (num_o + 3) / 4 * 4; block += 4) {
      for (size_t vector = 0; vector < num_k; vector += 16) {
        for (size_t o = block; o < block + 4; ++o) {
          for (size_t k = vector; k < vector + 16; ++k) {
            packed.push_back(o < num_o && k < num_k ? weights[o * num_k + k] : int8_t{0});
          }
        }
      }
    }
    return packed;
  }
  // The k in their order, with kZero where there is none.
  constexpr size_t kZero = SIZE_MAX;
  std::vector<size_t> order;
  const auto fill = [&] {
    while (order.size() % group != 0) order.push_back(kZero);
  };
  if (layout == kLayout_o16p4) {
    for (size_t phase = 0; phase < window.stride_h * window.stride_w; ++phase) {
      for (size_t block = 0; block < padded_o; block += 16) {
        for (size_t y = phase / window.stride_w; y < window.h; y += window.stride_h) {
          for (size_t x = phase % window.stride_w; x < window.w; x += window.stride_w) {
            for (size_t i = 0; i < window.channels; i += 4) {
              for (size_t at = 0; at < 64; ++at) {
                const size_t o = block + at / 4, channel = i + at % 4;
                const bool is_there = o < num_o && channel < window.channels;
                const size_t k = (y * window.w + x) * window.channels + channel;
                packed.push_back(is_there ? weights[o * num_k + k] : int8_t{0});
              }
            }
          }
        }
      }
    }
    return packed;
  }
  const bool zipped = layout == kLayout_o16z4 || layout == kLayout_o16z8;
  for (size_t a = 0; a < (zipped ? window.w : window.h); ++a) {
    for (size_t b = 0; b < (zipped ? window.h : window.w); ++b) {
      const size_t pixel = zipped ? b * window.w + a : a * window.w + b;
      for (size_t i = 0; i < window.channels; ++i) order.push_back(pixel * window.channels + i);
      if (layout == kLayout_o16i4 || layout == kLayout_o16i8) fill();
    }
    if (layout == kLayout_o16r4 || layout == kLayout_o16r8 || layout == kLayout_o2r4 ||
        layout == kLayout_o2h4) {
      fill();
    }
  }
  fill();
  const auto weight = [&](size_t o, size_t k) -> int32_t {
    return o < num_o && k != kZero ? weights[o * num_k + k] : 0;
  };
  for (size_t block = 0; block < padded_o; block += block_o) {
    for (size_t begin = 0; begin < order.size(); begin += group) {
      // Words of two k and two outputs: k 0 and 2 of all outputs, then 1 and 3.
      for (const size_t first : {begin, begin + 1}) {
        for (size_t o = block; halves && o < block + block_o; o += 2) {
          for (const size_t at : {first, first + 2}) {
            const int32_t both = 256 * weight(o + 1, order[at]) + weight(o, order[at]);
            packed.push_back(static_cast<int8_t>(both & 0xff));
            packed.push_back(static_cast<int8_t>(both >> 8));
          }
        }
      }
      if (halves) continue;
      for (size_t o = block; o < block + block_o; ++o) {
        for (size_t at = begin; at < begin + group; ++at) {
          packed.push_back(static_cast<int8_t>(weight(o, order[at])));
        }
      }
    }
  }
  return packed;
}
inline std::vector<int8_t> pack_weights(uint16_t layout, const std::vector<int8_t>& weights, size_t num_o,
                                        size_t num_k) {
  return pack_weights(layout, weights, num_o, LayoutWindow{1, 1, num_k});
}

// How many groups of four of packed weights have products with int8 that meet in 16 bits: 4, 2, or 0 if only
// one. Of any groups that are neighbours, so that it holds for whatever taps kernels read.
inline uint8_t int16_groups(const std::vector<int8_t>& packed) {
  for (const size_t count : {size_t{4}, size_t{2}}) {
    bool fits = true;
    for (size_t first = 0; first < packed.size(); ++first) {
      int32_t largest = 0, smallest = 0;
      for (size_t at = first; at < packed.size() && at < first + count * 64; at += 64) {
        largest += packed[at] < 0 ? packed[at] * -128 : packed[at] * 127;
        smallest += packed[at] < 0 ? packed[at] * 127 : packed[at] * -128;
      }
      fits = fits && largest < 32768 && smallest >= -32768;
    }
    if (fits) return static_cast<uint8_t>(count);
  }
  return 0;
}

// Per-channel constants with as many entries as the layout wants; what no channel reads is `filler`.
template <typename T>
std::vector<T> pack_channels(uint16_t layout, std::vector<T> values, T filler) {
  if (layout != kLayout_ohwi) values.resize((values.size() + 15) & ~size_t{15}, filler);
  return values;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_WEIGHTS_H_
