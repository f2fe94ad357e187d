// Index functions of the weight layouts of kernels/layouts.def.
//
// Steps may say of weights in groups of four, in blocks of 16 outputs, how many groups have products that
// meet in 16 bits (int16_groups: 2 or 4; less: nobody knows). Of each tap that vector kernels read
// (kernels/conv2d/conv2d.h; of fully_connected one with all inputs), so many groups are taken at a time,
// from the first one on, with what is left over as the last. The weights that one output has there at one
// place of the groups, times any bytes of int8, are numbers whose sum, and that of the first ones of them, is
// within int16. A packer has proved it; kernels that rely on it wrap around where it is not so.
#ifndef QPLAN_KERNELS_LAYOUT_H_
#define QPLAN_KERNELS_LAYOUT_H_

#include <stdint.h>

namespace qplan {

enum Layout : uint16_t {
#define QPLAN_LAYOUT(id, name) kLayout_##name = id,
#include "kernels/layouts.def"
#undef QPLAN_LAYOUT
};

constexpr const char* layout_name(uint16_t layout) {
  switch (layout) {
#define QPLAN_LAYOUT(id, name) \
  case id:                     \
    return #name;
#include "kernels/layouts.def"
#undef QPLAN_LAYOUT
    default:
      return "unknown";
  }
}

// What a layout must know of the window that weights [num_o, num_k] belong to: num_k = h * w * channels.
struct LayoutWindow {
  uint64_t h;
  uint64_t w;
  uint64_t channels;      // of a group of the convolution
  uint64_t stride_h = 1;  // these: of conv2d_transpose
  uint64_t stride_w = 1;
};

// The weights of an output that are neighbours.
__attribute__((always_inline)) constexpr uint64_t layout_group(uint16_t layout) {
  return layout == kLayout_o16r8 || layout == kLayout_o16i8 || layout == kLayout_o16z8 ? 8 : 4;
}

// The weights of an output are contiguous, in this many taps; layouts in blocks of 16 outputs fill up each
// with zeros to whole groups.
struct LayoutTaps {
  uint64_t count;
  uint64_t bytes;  // of one, without the zeros
  uint64_t group;  // bytes

  constexpr uint64_t groups() const { return (bytes + group - 1) / group; }
  // With the zeros; a group is a power of two.
  constexpr uint64_t padded() const { return (bytes + group - 1) & ~(group - 1); }
};

__attribute__((always_inline)) constexpr LayoutTaps layout_taps(uint16_t layout, const LayoutWindow& window) {
  switch (layout) {
    case kLayout_o16r4:
    case kLayout_o16r8:
    case kLayout_o2r4:
    case kLayout_o2h4:
      return {window.h, window.w * window.channels, layout_group(layout)};
    case kLayout_o16i4:
    case kLayout_o16i8:
    case kLayout_o16p4:
      return {window.h * window.w, window.channels, layout_group(layout)};
    default:
      return {1, window.h * window.w * window.channels, layout_group(layout)};
  }
}

// Outputs of a block, of which groups of weights of a tap are neighbours; 1: there are no blocks.
__attribute__((always_inline)) constexpr uint64_t layout_block(uint16_t layout) {
  switch (layout) {
    case kLayout_ohwi:
      return 1;
    case kLayout_o2r4:
    case kLayout_o2h4:
      return 2;
    case kLayout_o4k4:
    case kLayout_o4h4:
    case kLayout_o4k16:
      return 4;
    default:
      return 16;
  }
}

// Whether weights have zeros where a tap is no whole number of groups, which steps are refused without:
// variants multiply them by the bytes that follow the tap in memory. Not so in layouts without groups, and in
// those whose variants fill up copied rows with the zero point, so that weights there add nothing.
constexpr bool layout_needs_zeros(uint16_t layout) {
  switch (layout) {
    case kLayout_ohwi:
    case kLayout_hwo16:
    case kLayout_o16k4:
    case kLayout_o4k4:
    case kLayout_o4h4:
    case kLayout_o4k16:
      return false;
    default:
      return true;
  }
}

// Byte `at` of tap `tap` of output o, in blocks of `block`.
__attribute__((always_inline)) constexpr uint64_t layout_tap_index(uint64_t o, uint64_t tap, uint64_t at,
                                                                   const LayoutTaps& taps,
                                                                   uint64_t block = 16) {
  return ((o / block * taps.count + tap) * taps.groups() + at / taps.group) * block * taps.group +
         o % block * taps.group + at % taps.group;
}

// The same where two outputs share int16.
__attribute__((always_inline)) constexpr uint64_t layout_half_index(uint64_t o, uint64_t tap, uint64_t at,
                                                                    const LayoutTaps& taps, uint64_t block) {
  const uint64_t place = at % 4 == 1 ? 2 : at % 4 == 2 ? 1 : at % 4;
  const uint64_t first = ((o / block * taps.count + tap) * taps.groups() + at / 4) * block * 4;
  return first + place / 2 * block * 2 + o % block / 2 * 4 + place % 2 * 2 + o % 2;
}

// Taps 0 .. extent - 1 of an axis are ordered by their remainder modulo the stride. Returns how many of them
// have a remainder smaller than `phase`.
__attribute__((always_inline)) constexpr uint64_t layout_taps_before(uint64_t phase, uint64_t stride,
                                                                     uint64_t extent) {
  const uint64_t more = extent % stride;
  return phase * (extent / stride) + (phase < more ? phase : more);
}

// Where taps of one remainder by both strides begin in o16p4, and how many there are.
struct LayoutPhase {
  uint64_t begin;  // bytes
  uint64_t rows;
  uint64_t columns;
};
__attribute__((always_inline)) constexpr LayoutPhase layout_phase(uint64_t phase_h, uint64_t phase_w,
                                                                  uint64_t num_o,
                                                                  const LayoutWindow& window) {
  const uint64_t rows_before = layout_taps_before(phase_h, window.stride_h, window.h);
  const uint64_t columns_before = layout_taps_before(phase_w, window.stride_w, window.w);
  const uint64_t rows = layout_taps_before(phase_h + 1, window.stride_h, window.h) - rows_before;
  const uint64_t columns = layout_taps_before(phase_w + 1, window.stride_w, window.w) - columns_before;
  const uint64_t tap_bytes = (num_o + 15) / 16 * 16 * ((window.channels + 3) / 4 * 4);
  return {(rows_before * window.w + rows * columns_before) * tap_bytes, rows, columns};
}

// Byte of weight (o, k) of num_o outputs, k = (y * w + x) * channels + i. Reference kernels ask it for each
// weight, and know the layout: a call would take most of their time.
__attribute__((always_inline)) constexpr uint64_t layout_index(uint16_t layout, uint64_t o, uint64_t k,
                                                               uint64_t num_o, const LayoutWindow& window) {
  const LayoutTaps taps = layout_taps(layout, window);
  switch (layout) {
    case kLayout_o16k4:
      return layout_tap_index(o, 0, k, taps);
    case kLayout_o16r4:
    case kLayout_o16i4:
    case kLayout_o16r8:
    case kLayout_o16i8:
      return layout_tap_index(o, k / taps.bytes, k % taps.bytes, taps);
    case kLayout_o2r4:
    case kLayout_o4k4:
      return layout_tap_index(o, k / taps.bytes, k % taps.bytes, taps, layout_block(layout));
    case kLayout_o2h4:
    case kLayout_o4h4:
      return layout_half_index(o, k / taps.bytes, k % taps.bytes, taps, layout_block(layout));
    case kLayout_o16z4:
    case kLayout_o16z8: {
      const uint64_t pixel = k / window.channels, y = pixel / window.w, x = pixel % window.w;
      return layout_tap_index(o, 0, (x * window.h + y) * window.channels + k % window.channels, taps);
    }
    case kLayout_o16p4: {
      const uint64_t pixel = k / window.channels, y = pixel / window.w, x = pixel % window.w;
      const LayoutPhase phase = layout_phase(y % window.stride_h, x % window.stride_w, num_o, window);
      const LayoutTaps own = {phase.rows * phase.columns, window.channels, 4};
      const uint64_t tap = y / window.stride_h * phase.columns + x / window.stride_w;
      return phase.begin + layout_tap_index(o, tap, k % window.channels, own);
    }
    case kLayout_hwo16:
      return k * ((num_o + 15) / 16 * 16) + o;
    case kLayout_o4k16:
      return ((o / 4 * ((taps.bytes + 15) / 16) + k / 16) * 4 + o % 4) * 16 + k % 16;
    default:
      return o * taps.bytes + k;
  }
}

// Bytes of the weights of num_o outputs in that layout.
constexpr uint64_t layout_bytes(uint16_t layout, uint64_t num_o, const LayoutWindow& window) {
  const LayoutTaps taps = layout_taps(layout, window);
  const uint64_t block = layout_block(layout);  // a power of two, too
  const uint64_t padded_o = (num_o + block - 1) & ~(block - 1);
  switch (layout) {
    case kLayout_o16k4:
    case kLayout_o16r4:
    case kLayout_o16i4:
    case kLayout_o16z4:
    case kLayout_o16r8:
    case kLayout_o16i8:
    case kLayout_o16z8:
    case kLayout_o16p4:
    case kLayout_o2r4:
    case kLayout_o4k4:
    case kLayout_o2h4:
    case kLayout_o4h4:
      return padded_o * taps.count * taps.padded();
    case kLayout_hwo16:
      return padded_o * taps.bytes;
    case kLayout_o4k16:
      return padded_o * ((taps.bytes + 15) / 16 * 16);
    default:
      return num_o * taps.bytes;
  }
}

// The same of a matrix [num_o, num_k], which is a window of one pixel.
__attribute__((always_inline)) constexpr uint64_t layout_index(uint16_t layout, uint64_t o, uint64_t k,
                                                               uint64_t num_o, uint64_t num_k) {
  return layout_index(layout, o, k, num_o, LayoutWindow{1, 1, num_k});
}
constexpr uint64_t layout_bytes(uint16_t layout, uint64_t num_o, uint64_t num_k) {
  return layout_bytes(layout, num_o, LayoutWindow{1, 1, num_k});
}

__attribute__((always_inline)) constexpr bool layout_has_halves(uint16_t layout) {
  return layout == kLayout_o2h4 || layout == kLayout_o4h4;
}

// The weight of output o at `index`.
__attribute__((always_inline)) constexpr int32_t layout_weight(uint16_t layout, const int8_t* weights,
                                                               uint64_t index, uint64_t o) {
  const bool has_borrowed = layout_has_halves(layout) && o % 2 != 0 && weights[index - 1] < 0;
  return weights[index] + (has_borrowed ? 1 : 0);
}

// Entries of a per-channel constant (bias, multiplier, shift) that goes with that layout.
constexpr uint64_t layout_channels(uint16_t layout, uint64_t num_o) {
  return layout == kLayout_ohwi ? num_o : (num_o + 15) / 16 * 16;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_LAYOUT_H_
