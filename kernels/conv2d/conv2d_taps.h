// How the vector variants read the window of a convolution: in taps, runs of bytes that they multiply four at
// a time; and the layout that has the weights in this order. Both follow from the layer alone: the packer
// asks here, too. Internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_TAPS_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_TAPS_H_

#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// Bytes of a column of an interleaved line buffer, which has one row of output.
constexpr uint32_t kMaxInterleavedBytes = 16;
constexpr uint32_t kMinInterleavedWidth = 16;

// Whether the rows of a line buffer are interleaved into one, where that makes fewer groups of four: all of a
// window is then one tap, column by column. Not where rows of output share most rows of input: each is
// interleaved anew.
inline bool rows_are_interleaved(const Conv2dArgs& a) {
  const uint64_t run = uint64_t{a.kernel_w} * a.input_c;
  return a.groups == 1 && a.stride_h > 1 && a.dilation_h == 1 && a.dilation_w == 1 &&
         a.output_w >= kMinInterleavedWidth && uint64_t{a.kernel_h} * a.input_c <= kMaxInterleavedBytes &&
         (a.kernel_h * run + 3) / 4 < a.kernel_h * ((run + 3) / 4);
}

// Whether a tap is a row of the window, else a pixel: the channels of one of several groups are not side by
// side from pixel to pixel.
inline bool taps_are_rows(const Conv2dArgs& a) {
  return (a.dilation_w == 1 || a.kernel_w == 1) && a.groups == 1;
}

// Whether each group has whole blocks of 16 channels.
inline bool has_whole_blocks(const Conv2dArgs& a) { return a.groups == 1 || a.output_c / a.groups % 16 == 0; }

// Whether weights are packed for vector variants: of layers under ACC32 they stay as they are.
inline bool has_vector_variants(const Conv2dArgs& a) {
  return a.contract != Contract::kAcc32 && has_whole_blocks(a);
}

// The one layout that the variants read: its taps are theirs. Where they are whole groups of four anyway it
// is o16k4. Plans before 1.5 have all weights in o16k4; where that is not the layout, the reference runs.
inline uint16_t layout_in_place(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return kLayout_o16z4;
  if (taps_are_rows(a)) return uint64_t{a.kernel_w} * a.input_c % 4 == 0 ? kLayout_o16k4 : kLayout_o16r4;
  return a.input_c / a.groups % 4 == 0 ? kLayout_o16k4 : kLayout_o16i4;
}

// Bytes of such a tap.
inline uint64_t vector_tap_bytes(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return uint64_t{a.kernel_h} * a.kernel_w * a.input_c;
  return taps_are_rows(a) ? uint64_t{a.kernel_w} * a.input_c : uint64_t{a.input_c} / a.groups;
}

// The same taps in groups of eight bytes.
inline uint16_t layout_of_eights(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return kLayout_o16z8;
  return taps_are_rows(a) ? kLayout_o16r8 : kLayout_o16i8;
}

// Whether groups of eight bytes take fewer products than groups of four, for kernels that read both: a tap of
// one group of four would leave half a group of eight empty.
inline bool eights_are_better(const Conv2dArgs& a) { return vector_tap_bytes(a) > 4; }

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_TAPS_H_
