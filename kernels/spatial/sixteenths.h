// The axes of resize_bilinear between sixteenths. Internal linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_SPATIAL_SIXTEENTHS_H_
#define QPLAN_KERNELS_SPATIAL_SIXTEENTHS_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/spatial/spatial.h"

namespace qplan {
namespace {

// Resizing where every output is at a multiple of 1/16 between its neighbours: enlarging by 2, 4, 8 or 16
// with aligned corners, by 2, 4 or 8 with half-pixel centres, and from one element. Weights are then
// sixteenths and the sums multiples of 1/256 below 2^8: float32 holds each step of kFloat exactly, so that
// both rules are the same integers, of 16 bits.

// Output o of an axis is at o * scale + offset sixteenths of an element.
struct SixteenthsAxis {
  int32_t scale;
  int32_t offset;
  int32_t last;  // of the input
};

struct SixteenthsPosition {
  uint32_t lower;
  uint32_t upper;
  int32_t distance;  // [0, 16)
};

// Positions beyond the last element have it as both neighbours, and any distance is right.
inline SixteenthsPosition sixteenths_position(const SixteenthsAxis& axis, uint32_t at) {
  const int32_t position = static_cast<int32_t>(at) * axis.scale + axis.offset;
  if (position < 0) return {0, 0, 0};
  const int32_t distance = position & 15, whole = position >> 4;
  const int32_t lower = whole < axis.last ? whole : axis.last;
  const int32_t upper = lower < axis.last && distance != 0 ? lower + 1 : lower;
  return {static_cast<uint32_t>(lower), static_cast<uint32_t>(upper), distance};
}

// Outputs that follow one another between the same two elements: the distance of each is the scale of the
// axis more than that of the one before it.
struct SixteenthsRun {
  uint32_t lower;
  uint32_t upper;
  int32_t distance;  // of the first; any value where lower is upper
  uint32_t count;
};

// The run that begins with the output `at` of `extent`.
inline SixteenthsRun sixteenths_run(const SixteenthsAxis& axis, uint32_t at, uint32_t extent) {
  const int32_t position = static_cast<int32_t>(at) * axis.scale + axis.offset;
  const uint32_t rest = extent - at;
  const int32_t lower = position < 0 ? 0 : position >> 4;
  const uint32_t last = static_cast<uint32_t>(axis.last);
  if (lower >= axis.last) return {last, last, 0, rest};
  const int32_t end = position < 0 ? 0 : (lower + 1) * 16;
  const uint32_t distance = static_cast<uint32_t>(end - position);
  const uint32_t scale = static_cast<uint32_t>(axis.scale);
  const uint32_t count = scale == 1 ? distance : scale == 0 ? rest : (distance + scale - 1) / scale;
  return {static_cast<uint32_t>(lower), static_cast<uint32_t>(position < 0 ? 0 : lower + 1), position & 15,
          count < rest ? count : rest};
}

// The scale of the rule in sixteenths; -1 where it is no whole number of them.
inline int32_t sixteenths_scale(const ResizeBilinearArgs& args, int32_t in, int32_t out) {
  const bool corners = args.align_corners && out > 1;
  if (args.rule == ResizeRounding::kInteger) {
    const int32_t scale =
        corners ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
    return scale % 64 == 0 ? scale / 64 : -1;
  }
  const float scale = corners ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                              : static_cast<float>(in) / static_cast<float>(out);
  const int32_t sixteenths = static_cast<int32_t>(scale * 16.0f);
  return static_cast<float>(sixteenths) == scale * 16.0f ? sixteenths : -1;
}

// False where the axis is another one.
inline bool sixteenths_axis(const ResizeBilinearArgs& args, uint32_t input, uint32_t output,
                            SixteenthsAxis* axis) {
  const int32_t in = static_cast<int32_t>(input), out = static_cast<int32_t>(output);
  const int32_t scale = sixteenths_scale(args, in, out);
  if (scale < 0 || (args.half_pixel_centers && scale % 2 != 0)) return false;
  // Positions, and half an element more, are exact in float32.
  if (int64_t{scale} * (int64_t{out} + 1) >= int64_t{1} << 23) return false;
  *axis = {scale, args.half_pixel_centers ? scale / 2 - 8 : 0, in - 1};
  return true;
}

inline Refusal sixteenths_accept(const ResizeBilinearArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  SixteenthsAxis axis;
  const bool both = sixteenths_axis(args, args.input_h, args.output_h, &axis) &&
                    sixteenths_axis(args, args.input_w, args.output_w, &axis);
  return both ? Refusal::kNone : Refusal::kScale;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SPATIAL_SIXTEENTHS_H_
