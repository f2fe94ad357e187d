// The input under a block of output pixels as a line buffer: its rows copied side by side in scratch memory,
// with padding where they end, so that windows are at one distance from each other and have no borders. Each
// input byte is copied about kernel_h / stride_h times and multiplied by kernel_h * kernel_w * output_c
// weights. Shared by the ISA files, which pass their ways to copy and fill; internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_LINE_BUFFER_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_LINE_BUFFER_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"

namespace qplan {
namespace {

// Pixels of a block, where the schedule does not say. Of a line buffer: as many rows of output as make about
// this many, or a part of one row. The more, the fewer rows of input are copied twice; but there are to be
// blocks of about this many products for other threads, and the line buffer is to stay in the cache. Of
// pixels as they are: more where they have few channels.
constexpr uint32_t kManyLineBufferPixels = 192;
constexpr uint32_t kFewLineBufferPixels = 48;
constexpr uint64_t kBlockProducts = 1 << 19;
constexpr size_t kCachedLineBufferBytes = 16 << 10;
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
constexpr uint64_t kMaxLineBufferBytes = 8 << 20;
// The last group of four bytes of a tap may be read beyond the end of a row.
constexpr size_t kRowSlack = 64;

// A block of `height` rows and `width` columns of output pixels, and its line buffer.
struct LineBuffer {
  uint32_t height, width;
  uint32_t full_height;                 // of a block where the output has so many rows
  uint32_t blocks_down, blocks_across;  // of one image
  uint32_t tap_rows, tap_columns;       // taps: runs of tap_bytes
  uint32_t tap_bytes;
  uint32_t row_step;    // rows of the line buffer are input rows this far apart
  size_t columns;       // of input pixels
  size_t pitch;         // bytes of a row
  bool is_interleaved;  // its rows into one: all of a window is then one tap
};

inline uint32_t div_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

inline uint32_t column_bytes(const Conv2dArgs& a, const LineBuffer& line_buffer) {
  return line_buffer.is_interleaved ? a.kernel_h * a.input_c : a.input_c;
}

inline LineBuffer line_buffer_of_pixels(const Conv2dArgs& a, uint32_t pixels) {
  LineBuffer line_buffer;
  line_buffer.is_interleaved = rows_are_interleaved(a);
  line_buffer.blocks_across = div_up(a.output_w, kMaxBlockWidth);
  line_buffer.width = div_up(a.output_w, line_buffer.blocks_across);
  // Several rows of output share rows of the line buffer if those are neighbours. They are whole rows, and
  // contiguous in the output.
  const bool alone = a.dilation_h != 1 || line_buffer.width >= pixels || line_buffer.is_interleaved ||
                     line_buffer.blocks_across > 1;
  line_buffer.full_height = alone ? 1 : div_up(pixels, line_buffer.width);
  line_buffer.height = line_buffer.full_height < a.output_h ? line_buffer.full_height : a.output_h;
  line_buffer.blocks_down = div_up(a.output_h, line_buffer.height);
  const bool in_runs = taps_are_rows(a);
  line_buffer.tap_rows = a.kernel_h;
  line_buffer.tap_columns = in_runs ? 1 : a.kernel_w;
  line_buffer.tap_bytes = in_runs ? a.kernel_w * a.input_c : a.input_c / a.groups;
  if (line_buffer.is_interleaved) {
    line_buffer.tap_rows = 1;
    line_buffer.tap_bytes *= a.kernel_h;
  }
  line_buffer.row_step = a.dilation_h;
  line_buffer.columns =
      size_t{line_buffer.width - 1} * a.stride_w + size_t{a.kernel_w - 1} * a.dilation_w + 1;
  line_buffer.pitch = (line_buffer.columns * a.input_c + 63) / 64 * 64 + kRowSlack;
  return line_buffer;
}

inline uint32_t num_taps(const LineBuffer& line_buffer) {
  return line_buffer.tap_rows * line_buffer.tap_columns;
}
// Rows of the line buffer under `height` rows of output.
inline size_t line_buffer_rows(const Conv2dArgs& a, uint32_t height) {
  return size_t{height - 1} * a.stride_h + a.kernel_h;
}
inline size_t line_buffer_bytes(const Conv2dArgs& a, const LineBuffer& line_buffer) {
  return line_buffer_rows(a, line_buffer.height) * line_buffer.pitch;
}
inline size_t interleaved_bytes(const Conv2dArgs& a, const LineBuffer& line_buffer) {
  return line_buffer.is_interleaved ? line_buffer.columns * column_bytes(a, line_buffer) + kRowSlack : 0;
}

// Before the first row of a line buffer, so that what follows the padding of rows begins where a vector of 64
// bytes is stored in one piece. They are part of the slack of rows, of which the most is read where these are
// interleaved.
inline size_t bytes_before_rows(const Conv2dArgs& a, const LineBuffer& line_buffer) {
  const size_t before = (64 - size_t{a.pad_left} * a.input_c % 64) % 64;
  const bool has_room = before + line_buffer.columns * a.input_c + kMaxInterleavedBytes <= line_buffer.pitch;
  return has_room ? before : 0;
}

inline bool line_buffer_fits(const Conv2dArgs& a, const LineBuffer& line_buffer) {
  return line_buffer.columns <= kMaxLineBufferBytes && line_buffer.pitch <= kMaxLineBufferBytes &&
         line_buffer_rows(a, line_buffer.height) <= kMaxLineBufferBytes &&
         line_buffer_bytes(a, line_buffer) <= kMaxLineBufferBytes;
}

inline uint32_t scheduled_pixels(const Conv2dArgs& a) {
  return knob_value(a.schedule, kConv2dKnobs, kConv2dBlockPixels);
}

// With the schedule's pixels, but where their line buffer would be too large.
inline LineBuffer line_buffer_of(const Conv2dArgs& a) {
  const uint32_t pixels = scheduled_pixels(a);
  if (pixels != 0) {
    const LineBuffer line_buffer = line_buffer_of_pixels(a, pixels);
    if (line_buffer_fits(a, line_buffer)) return line_buffer;
  }
  uint64_t wanted = kBlockProducts / (uint64_t{a.kernel_h} * a.kernel_w * a.input_c * a.output_c);
  if (wanted > kManyLineBufferPixels) wanted = kManyLineBufferPixels;
  if (wanted > kFewLineBufferPixels) {
    // Not by the rows that there are, so that fewer rows never take more memory.
    const LineBuffer many = line_buffer_of_pixels(a, static_cast<uint32_t>(wanted));
    if (line_buffer_fits(a, many) &&
        line_buffer_rows(a, many.full_height) * many.pitch <= kCachedLineBufferBytes)
      return many;
  }
  return line_buffer_of_pixels(a, kFewLineBufferPixels);
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

// The first pixel of a run of `runs` (num_runs), a multiple of a tile; run `runs` begins where the pixels
// end.
inline uint32_t run_begin(const Conv2dArgs& a, uint32_t runs, uint32_t run) {
  const uint32_t pixels = a.batch * a.output_h * a.output_w;
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

// A line buffer holds uint8: 128 is added to int8 on the way, unless products keep bytes as they are.
inline uint8_t line_buffer_sign_bias(const Conv2dArgs& a, bool keeps_bytes) {
  return a.input_dtype == Dtype::kS8 && !keeps_bytes ? 0x80 : 0;
}

// Whether int8 pixels become uint8 once for all channels, and not in each tile: where products are few for
// the outputs they make, tiles have no time for it.
inline bool pixels_are_copied(const Conv2dArgs& a, bool keeps_bytes) {
  return line_buffer_sign_bias(a, keeps_bytes) != 0 && a.input_c <= kFewChannels &&
         a.output_c > kGroupChannels;
}

// What the vector variants compute: ACC32 where the product makes sums, all other contracts, with whole
// blocks of 16 channels in each group and a zero point that the product takes (the packer sees to both).
inline Refusal line_buffer_accepts(const Conv2dArgs& a, bool makes_sums, bool takes_centred,
                                   bool takes_eights) {
  constexpr uint64_t kMax = 1 << 28;
  if (a.contract == Contract::kAcc32 && !makes_sums) return Refusal::kContract;
  if (!has_whole_blocks(a)) return Refusal::kGroups;
  if (a.weights_layout != layout_in_place(a) && !(takes_eights && a.weights_layout == layout_of_eights(a))) {
    return Refusal::kLayout;
  }
  if (a.input_zero_point != dtype_min(a.input_dtype) &&
      !(takes_centred && a.input_zero_point == dtype_middle(a.input_dtype))) {
    return Refusal::kInputZeroPoint;
  }
  if (uint64_t{a.kernel_h} * a.kernel_w > kMaxTaps || uint64_t{a.kernel_h} * a.kernel_w * a.input_c > kMax ||
      uint64_t{a.dilation_h} * a.kernel_h > kMax || uint64_t{a.dilation_w} * a.kernel_w > kMax ||
      a.stride_h > kMax || a.stride_w > kMax || uint64_t{a.batch} * a.output_h > kMax || a.output_w > kMax ||
      uint64_t{a.batch} * a.output_h * a.output_w > kMax || a.input_c > kMax) {
    return Refusal::kTooLarge;
  }
  if (windows_are_pixels(a)) return Refusal::kNone;
  const LineBuffer line_buffer = line_buffer_of(a);
  return line_buffer_fits(a, line_buffer) ? Refusal::kNone : Refusal::kTooLarge;
}

// Where byte k of a window, in the order [kernel_h, kernel_w, channels], is in its taps.
struct TapByte {
  uint32_t tap, at;
};
inline TapByte tap_byte(const Conv2dArgs& a, uint32_t k) {
  const uint32_t row = a.kernel_w * a.input_c;
  if (rows_are_interleaved(a)) {
    return {0, (k % row / a.input_c * a.kernel_h + k / row) * a.input_c + k % a.input_c};
  }
  const uint32_t tap_bytes = taps_are_rows(a) ? row : a.input_c;
  return {k / tap_bytes, k % tap_bytes};
}

// The parts of the scratch memory.
struct LineBufferScratch {
  size_t* tap_offsets;   // [num_taps]
  const uint8_t** rows;  // [height * width] where a block has several rows
  int32_t* terms;        // [height * width, rounded up to four]
  uint8_t* line_buffer;
  uint8_t* interleaved;
  size_t bytes;
};

inline LineBufferScratch line_buffer_scratch(const Conv2dArgs& a, const LineBuffer& line_buffer,
                                             bool keeps_bytes, void* scratch) {
  const auto aligned = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const bool pixels = windows_are_pixels(a);
  const size_t num_rows = pixels ? max_run_pixels(a) : size_t{line_buffer.height} * line_buffer.width;
  auto* at = static_cast<uint8_t*>(scratch);
  LineBufferScratch parts;
  parts.bytes = 0;
  const auto take = [&](size_t bytes) {
    uint8_t* part = scratch == nullptr ? nullptr : at + parts.bytes;
    parts.bytes += aligned(bytes);
    return part;
  };
  parts.terms = reinterpret_cast<int32_t*>(take(aligned(num_rows * sizeof(int32_t))));
  if (pixels) {
    parts.line_buffer = take(pixels_are_copied(a, keeps_bytes) ? num_rows * a.input_c + kRowSlack : 0);
    return parts;
  }
  parts.tap_offsets = reinterpret_cast<size_t*>(take(num_taps(line_buffer) * sizeof(size_t)));
  parts.rows =
      reinterpret_cast<const uint8_t**>(take(line_buffer.height == 1 ? 0 : num_rows * sizeof(void*)));
  parts.line_buffer = take(line_buffer_bytes(a, line_buffer));
  if (scratch != nullptr) parts.line_buffer += bytes_before_rows(a, line_buffer);
  parts.interleaved = take(interleaved_bytes(a, line_buffer));
  return parts;
}

// What the rows of a line buffer are made of, in bytes: padding, a run of a row of input, padding.
struct LineBufferRow {
  size_t before, run, after;
  size_t first;  // of the run, in a row of input
  uint8_t pad, sign_bias;
};

// Columns [begin, begin + line buffer.columns) of a row of input, of which those outside [0, input_w) are
// padding.
inline LineBufferRow line_buffer_row(const Conv2dArgs& a, const LineBuffer& line_buffer, int64_t begin,
                                     bool keeps_bytes) {
  const size_t c = a.input_c;
  const auto columns = static_cast<int64_t>(line_buffer.columns);
  const int64_t room = int64_t{a.input_w} - begin;
  const int64_t first = begin >= 0 ? 0 : (-begin < columns ? -begin : columns);
  const int64_t end = room >= columns ? columns : (room > first ? room : first);
  LineBufferRow row;
  row.before = c * static_cast<size_t>(first);
  row.run = c * static_cast<size_t>(end - first);
  row.after = c * static_cast<size_t>(columns - end);
  row.first = row.run > 0 ? c * static_cast<size_t>(begin + first) : 0;
  row.sign_bias = line_buffer_sign_bias(a, keeps_bytes);
  row.pad = static_cast<uint8_t>(a.pad_value) ^ row.sign_bias;
  return row;
}

template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t)>
inline void copy_line_buffer_row(const LineBufferRow& row, const uint8_t* input, uint8_t* to) {
  if (row.before > 0) kFill(to, row.pad, row.before);
  if (row.run > 0) kCopyRun(to + row.before, input + row.first, row.run, row.sign_bias);
  if (row.after > 0) kFill(to + row.before + row.run, row.pad, row.after);
}

// The line buffer of `height` rows of output from row y and column x on, of image n. Rows that windows step
// over are left out.
template <void (*kCopyRun)(uint8_t*, const uint8_t*, size_t, uint8_t),
          void (*kFill)(uint8_t*, uint8_t, size_t), bool kKeepsBytes = false>
inline void copy_line_buffer(const Conv2dArgs& a, const LineBuffer& line_buffer, uint32_t n, uint32_t y,
                             uint32_t x, uint32_t height, uint8_t* to) {
  const size_t row_bytes = size_t{a.input_w} * a.input_c;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * row_bytes;
  const LineBufferRow parts =
      line_buffer_row(a, line_buffer, int64_t{x} * a.stride_w - a.pad_left, kKeepsBytes);
  int64_t row = int64_t{y} * a.stride_h - a.pad_top;
  uint32_t of_step = 0;
  for (size_t left = line_buffer_rows(a, height); left > 0;
       --left, row += line_buffer.row_step, to += line_buffer.pitch) {
    const bool is_read = of_step < a.kernel_h;
    of_step = of_step + 1 == a.stride_h ? 0 : of_step + 1;
    if (!is_read) continue;
    if (row >= 0 && row < a.input_h) {
      copy_line_buffer_row<kCopyRun, kFill>(parts, image + static_cast<size_t>(row) * row_bytes, to);
    } else {
      kFill(to, parts.pad, parts.before + parts.run + parts.after);
    }
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_LINE_BUFFER_H_
