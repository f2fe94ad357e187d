// The input under a block of output pixels as a band: its rows copied side by side in scratch memory, with
// padding where they end, so that windows lie at one distance from each other and have no borders. Each input
// byte is copied about kernel_h / stride_h times and multiplied by kernel_h * kernel_w * output_c weights.
// Shared by the ISA files, which pass their ways to copy and fill; internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_BAND_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_BAND_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/conv2d_taps.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// Pixels of a block, where the schedule does not say. Of a band: as many rows of output as make about this
// many, or a part of one row. The more, the fewer rows of input are copied twice; but there are to be blocks
// of about this many products for other threads, and the band is to stay in the cache. Of pixels as they are:
// more where they have few channels.
constexpr uint32_t kManyBandPixels = 192;
constexpr uint32_t kFewBandPixels = 48;
constexpr uint64_t kBlockProducts = 1 << 19;
constexpr size_t kCachedBandBytes = 16 << 10;
constexpr uint32_t kManyRunPixels = 96;
constexpr uint32_t kFewRunPixels = 48;
constexpr uint32_t kMostEvenRunPixels = 60;
constexpr uint32_t kTileRows = 6;
constexpr uint32_t kFewChannels = 64;
constexpr uint32_t kMaxBlockWidth = 240;
// Blocks are divided among groups of 16 x 4 channels where they are few.
constexpr uint32_t kFewBlocks = 8;
constexpr uint32_t kGroupChannels = 64;
constexpr uint32_t kMaxTaps = 1024;
constexpr uint64_t kMaxBandBytes = 8 << 20;
// Copies may write, and the last group of four bytes of a tap may be read, beyond the end of a row.
constexpr size_t kRowSlack = 64;

// A block of `height` rows and `width` columns of output pixels, and its band.
struct Band {
  uint32_t height, width;
  uint32_t full_height;                 // of a block where the output has so many rows
  uint32_t blocks_down, blocks_across;  // of one image
  uint32_t tap_rows, tap_columns;       // taps: runs of tap_bytes
  uint32_t tap_bytes;
  uint32_t row_step;  // rows of the band are input rows this far apart
  size_t columns;     // of input pixels
  size_t pitch;       // bytes of a row
  bool is_zipped;     // its rows into one: all of a window is then one tap
};

inline uint32_t div_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

inline uint32_t column_bytes(const Conv2dArgs& a, const Band& band) {
  return band.is_zipped ? a.kernel_h * a.input_c : a.input_c;
}

inline Band band_of_pixels(const Conv2dArgs& a, uint32_t pixels) {
  Band band;
  band.is_zipped = rows_are_zipped(a);
  band.blocks_across = div_up(a.output_w, kMaxBlockWidth);
  band.width = div_up(a.output_w, band.blocks_across);
  // Several rows of output share rows of the line buffer if those are neighbours. They are whole rows, and
  // contiguous in the output.
  const bool alone = a.dilation_h != 1 || band.width >= pixels || band.is_zipped || band.blocks_across > 1;
  band.full_height = alone ? 1 : div_up(pixels, band.width);
  band.height = band.full_height < a.output_h ? band.full_height : a.output_h;
  band.blocks_down = div_up(a.output_h, band.height);
  const bool in_runs = taps_are_rows(a);
  band.tap_rows = a.kernel_h;
  band.tap_columns = in_runs ? 1 : a.kernel_w;
  band.tap_bytes = in_runs ? a.kernel_w * a.input_c : a.input_c / a.groups;
  if (band.is_zipped) {
    band.tap_rows = 1;
    band.tap_bytes *= a.kernel_h;
  }
  band.row_step = a.dilation_h;
  band.columns = size_t{band.width - 1} * a.stride_w + size_t{a.kernel_w - 1} * a.dilation_w + 1;
  band.pitch = (band.columns * a.input_c + 63) / 64 * 64 + kRowSlack;
  return band;
}

inline uint32_t num_taps(const Band& band) { return band.tap_rows * band.tap_columns; }
// Rows of the band under `height` rows of output.
inline size_t band_rows(const Conv2dArgs& a, uint32_t height) {
  return size_t{height - 1} * a.stride_h + a.kernel_h;
}
inline size_t band_bytes(const Conv2dArgs& a, const Band& band) {
  return band_rows(a, band.height) * band.pitch;
}
inline size_t zipped_bytes(const Conv2dArgs& a, const Band& band) {
  return band.is_zipped ? band.columns * column_bytes(a, band) + kRowSlack : 0;
}

inline bool band_fits(const Conv2dArgs& a, const Band& band) {
  return band.columns <= kMaxBandBytes && band.pitch <= kMaxBandBytes &&
         band_rows(a, band.height) <= kMaxBandBytes && band_bytes(a, band) <= kMaxBandBytes;
}

inline uint32_t scheduled_pixels(const Conv2dArgs& a) {
  return knob_value(a.schedule, kConv2dKnobs, kConv2dBlockPixels);
}

// With the schedule's pixels, but where their band would be too large.
inline Band band_of(const Conv2dArgs& a) {
  const uint32_t pixels = scheduled_pixels(a);
  if (pixels != 0) {
    const Band band = band_of_pixels(a, pixels);
    if (band_fits(a, band)) return band;
  }
  uint64_t wanted = kBlockProducts / (uint64_t{a.kernel_h} * a.kernel_w * a.input_c * a.output_c);
  if (wanted > kManyBandPixels) wanted = kManyBandPixels;
  if (wanted > kFewBandPixels) {
    // Not by the rows that there are, so that fewer rows never take more memory.
    const Band many = band_of_pixels(a, static_cast<uint32_t>(wanted));
    if (band_fits(a, many) && band_rows(a, many.full_height) * many.pitch <= kCachedBandBytes) return many;
  }
  return band_of_pixels(a, kFewBandPixels);
}

// Pixels of a run in a block whose windows are pixels.
inline uint32_t run_pixels(const Conv2dArgs& a) {
  const uint32_t pixels = scheduled_pixels(a);
  if (pixels != 0) return pixels;
  return a.input_c <= kFewChannels ? kManyRunPixels : kFewRunPixels;
}

// Runs of many channels are few, so that a short last one would leave a thread without work: they are of
// about the same size and even in number, unless the channels of a single one can be divided.
inline bool runs_are_even(const Conv2dArgs& a) {
  return scheduled_pixels(a) == 0 && a.input_c > kFewChannels;
}

inline uint32_t num_runs(const Conv2dArgs& a) {
  const uint32_t pixels = a.batch * a.output_h * a.output_w;
  if (!runs_are_even(a)) return div_up(pixels, run_pixels(a));
  const uint32_t runs = div_up(pixels, kMostEvenRunPixels);
  if (pixels < kFewRunPixels || (runs == 1 && a.output_c >= kFewBlocks * kGroupChannels)) return runs;
  return div_up(runs, 2) * 2;
}

// The first pixel of a run, a multiple of a tile; run num_runs begins where the pixels end.
inline uint32_t run_begin(const Conv2dArgs& a, uint32_t run) {
  const uint32_t pixels = a.batch * a.output_h * a.output_w, runs = num_runs(a);
  if (run == runs) return pixels;
  if (!runs_are_even(a)) return run * run_pixels(a);
  return static_cast<uint32_t>(uint64_t{pixels} * run / runs) / kTileRows * kTileRows;
}

// The pixels that the largest run may have.
inline uint32_t max_run_pixels(const Conv2dArgs& a) {
  return runs_are_even(a) ? kMostEvenRunPixels + kTileRows : run_pixels(a);
}

// Whether the windows are the pixels of the input, in order.
inline bool windows_are_pixels(const Conv2dArgs& a) {
  return a.groups == 1 && a.input_c % 4 == 0 && a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 &&
         a.stride_w == 1 && a.pad_top == 0 && a.pad_left == 0 && a.output_h == a.input_h &&
         a.output_w == a.input_w;
}

// A band holds uint8: int8 is lifted by 128 on the way.
inline uint8_t band_flip(const Conv2dArgs& a) { return a.input_dtype == Dtype::kS8 ? 0x80 : 0; }

// Whether int8 pixels are lifted once for all channels, and not by each tile: where products are few for the
// outputs they make, tiles have no time for it.
inline bool pixels_are_copied(const Conv2dArgs& a) {
  return band_flip(a) != 0 && a.input_c <= kFewChannels && a.output_c > kGroupChannels;
}

// What the vector variants compute: everything but ACC32, with whole blocks of 16 channels in each group and
// the input zero point at the dtype's minimum (the packer sees to both), so that the bytes, seen as uint8,
// are the factors.
inline Refusal band_accepts(const Conv2dArgs& a) {
  constexpr uint64_t kMax = 1 << 28;
  if (!has_vector_variants(a)) {
    return a.contract == Contract::kAcc32 ? Refusal::kContract : Refusal::kGroups;
  }
  if (a.weights_layout != layout_in_place(a)) return Refusal::kLayout;
  if (a.input_zero_point != dtype_min(a.input_dtype)) return Refusal::kInputZeroPoint;
  if (uint64_t{a.kernel_h} * a.kernel_w > kMaxTaps || uint64_t{a.kernel_h} * a.kernel_w * a.input_c > kMax ||
      uint64_t{a.dilation_h} * a.kernel_h > kMax || uint64_t{a.dilation_w} * a.kernel_w > kMax ||
      a.stride_h > kMax || a.stride_w > kMax || uint64_t{a.batch} * a.output_h > kMax || a.output_w > kMax ||
      uint64_t{a.batch} * a.output_h * a.output_w > kMax || a.input_c > kMax) {
    return Refusal::kTooLarge;
  }
  if (windows_are_pixels(a)) return Refusal::kNone;
  const Band band = band_of(a);
  return band_fits(a, band) ? Refusal::kNone : Refusal::kTooLarge;
}

// The parts of the scratch memory.
struct BandScratch {
  size_t* tap_offsets;   // [num_taps]
  const uint8_t** rows;  // [height * width] where a block has several rows
  int32_t* terms;        // [height * width, rounded up to four]
  uint8_t* band;
  uint8_t* zipped;
  size_t bytes;
};

inline BandScratch band_scratch(const Conv2dArgs& a, const Band& band, void* scratch) {
  const auto aligned = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const bool pixels = windows_are_pixels(a);
  const size_t num_rows = pixels ? max_run_pixels(a) : size_t{band.height} * band.width;
  auto* at = static_cast<uint8_t*>(scratch);
  BandScratch parts;
  parts.bytes = 0;
  const auto take = [&](size_t bytes) {
    uint8_t* part = scratch == nullptr ? nullptr : at + parts.bytes;
    parts.bytes += aligned(bytes);
    return part;
  };
  parts.terms = reinterpret_cast<int32_t*>(take(aligned(num_rows * sizeof(int32_t))));
  if (pixels) {
    parts.band = take(pixels_are_copied(a) ? num_rows * a.input_c + kRowSlack : 0);
    return parts;
  }
  parts.tap_offsets = reinterpret_cast<size_t*>(take(num_taps(band) * sizeof(size_t)));
  parts.rows = reinterpret_cast<const uint8_t**>(take(band.height == 1 ? 0 : num_rows * sizeof(void*)));
  parts.band = take(band_bytes(a, band));
  parts.zipped = take(zipped_bytes(a, band));
  return parts;
}

// Columns [begin, begin + band.columns) of an input row, of which those outside [0, input_w) are padding.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void copy_band_row(const Conv2dArgs& a, const Band& band, const uint8_t* row, int64_t begin,
                          uint8_t* to) {
  const uint8_t flip = band_flip(a), pad = static_cast<uint8_t>(a.pad_value) ^ flip;
  const size_t c = a.input_c;
  const auto columns = static_cast<int64_t>(band.columns);
  const int64_t room = int64_t{a.input_w} - begin;
  const int64_t first = begin >= 0 ? 0 : (-begin < columns ? -begin : columns);
  const int64_t end = room >= columns ? columns : (room > first ? room : first);
  if (first > 0) kFill(to, pad, c * static_cast<size_t>(first));
  if (end > first) {
    kCopyRun(to + c * static_cast<size_t>(first), row + c * static_cast<size_t>(begin + first),
             c * static_cast<size_t>(end - first), flip);
  }
  if (end < columns) kFill(to + c * static_cast<size_t>(end), pad, c * static_cast<size_t>(columns - end));
}

// The band of `height` rows of output from row y and column x on, of image n.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void copy_band(const Conv2dArgs& a, const Band& band, uint32_t n, uint32_t y, uint32_t x,
                      uint32_t height, uint8_t* to) {
  const size_t row_bytes = size_t{a.input_w} * a.input_c;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * row_bytes;
  const int64_t column = int64_t{x} * a.stride_w - a.pad_left;
  int64_t row = int64_t{y} * a.stride_h - a.pad_top;
  for (size_t i = 0; i < band_rows(a, height); ++i, row += band.row_step, to += band.pitch) {
    if (row >= 0 && row < a.input_h) {
      copy_band_row<kCopyRun, kFill>(a, band, image + static_cast<size_t>(row) * row_bytes, column, to);
    } else {
      kFill(to, static_cast<uint8_t>(a.pad_value) ^ band_flip(a), band.columns * a.input_c);
    }
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_BAND_H_
