// float_conv2d by vectors of output channels: each lane is the chain of one output, so that vectors add in
// the order of the formula. Sums of several pixels, or of several blocks of 16 channels, stay in registers.
#include "kernels/float/float.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint32_t kFloatVectors = kFloatBlock / kLanes;  // of a block
// Pixels of a tile: its sums, a block's weights and one input fit 16 registers, or 32 where lanes are 16.
constexpr uint32_t kFloatPixels = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 3;
// Blocks of a work item; of a tile of one pixel.
constexpr uint32_t kFloatBlocks = 4;
constexpr uint32_t kFloatTileBlocks = kLanes == 4 ? 2 : 4;
// Pixels of a work item where a row of the output need not be one; the last one takes up to half as many
// more.
constexpr uint32_t kFloatItemPixels = 48;

// A layer whose pixels know no neighbours is one of rows of kFloatItemPixels pixels, so that narrow images
// and fully connected layers fill tiles, too.
inline bool float_pixels_are_alone(const FloatConv2dArgs& a) {
  return a.kernel_h == 1 && a.kernel_w == 1 && a.stride_h == 1 && a.stride_w == 1 && a.pad_top == 0 &&
         a.pad_left == 0 && a.input_h == a.output_h && a.input_w == a.output_w;
}

inline uint64_t num_float_rows(const FloatConv2dArgs& a) {
  const uint64_t rows = uint64_t{a.batch} * a.output_h;
  if (!float_pixels_are_alone(a)) return rows;
  const uint64_t items = (rows * a.output_w + kFloatItemPixels / 2) / kFloatItemPixels;
  return items == 0 ? 1 : items;
}

inline uint32_t num_float_block_groups(const FloatConv2dArgs& a) {
  return (a.output_c + kFloatBlocks * kFloatBlock - 1) / (kFloatBlocks * kFloatBlock);
}

// The positions [begin, end) of a window along one axis that are inside the input.
struct FloatTaps {
  uint32_t begin, end;
};
inline FloatTaps float_taps_inside(int32_t first, uint32_t kernel, uint32_t dilation, uint32_t input) {
  FloatTaps taps = {0, kernel};
  const auto step = static_cast<int64_t>(dilation);
  if (first < 0) {
    const int64_t outside = (-int64_t{first} + step - 1) / step;
    taps.begin = outside < kernel ? static_cast<uint32_t>(outside) : kernel;
  }
  const int64_t room = int64_t{input} - first;  // positions below it are inside
  const int64_t end = room <= 0 ? 0 : (room + step - 1) / step;
  if (end < taps.end) taps.end = static_cast<uint32_t>(end);
  if (taps.end < taps.begin) taps.end = taps.begin;
  return taps;
}

// kPixels pixels of kBlocks blocks of 16 output channels.
template <uint32_t kPixels, uint32_t kBlocks>
struct FloatTile {
  VecF32 sums[kPixels][kBlocks][kFloatVectors];

  inline __attribute__((always_inline)) void clear() {
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
      for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
        for (uint32_t v = 0; v < kFloatVectors; ++v) sums[p][b][v] = set_reals(0.0f);
      }
    }
  }

  // count products of inputs, pixels pixel_step apart, and weights, blocks block_step apart.
  inline __attribute__((always_inline)) void add_products(const float* in, uint64_t pixel_step,
                                                          const float* weights, uint64_t block_step,
                                                          uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, weights += kFloatBlock) {
#pragma GCC unroll 4
      for (uint32_t b = 0; b < kBlocks; ++b) {
        VecF32 w[kFloatVectors];
#pragma GCC unroll 4
        for (uint32_t v = 0; v < kFloatVectors; ++v) w[v] = load_reals(weights + b * block_step + v * kLanes);
#pragma GCC unroll 16
        for (uint32_t p = 0; p < kPixels; ++p) {
          const VecF32 x = set_reals(in[p * pixel_step + i]);
#pragma GCC unroll 4
          for (uint32_t v = 0; v < kFloatVectors; ++v) sums[p][b][v] = add(sums[p][b][v], mul(x, w[v]));
        }
      }
    }
  }

  // Channels from `channel` on, of pixels pixel_step apart.
  inline __attribute__((always_inline)) void store(const FloatConv2dArgs& a, uint32_t channel, float* out,
                                                   uint64_t pixel_step) const {
    const VecF32 least = set_reals(a.clamp_min), most = set_reals(a.clamp_max);
#pragma GCC unroll 4
    for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kFloatVectors; ++v) {
        const uint32_t first = channel + b * kFloatBlock + v * kLanes;
        if (first >= a.output_c) return;
        const uint32_t count = a.output_c - first < kLanes ? a.output_c - first : kLanes;
        const VecF32 bias = load_reals(a.bias + first);
#pragma GCC unroll 16
        for (uint32_t p = 0; p < kPixels; ++p) {
          const VecF32 value = add(sums[p][b][v], bias);
          store_reals(out + p * pixel_step + first, clamp(value, least, most), count);
        }
      }
    }
  }
};

// What the pixels of one output row share.
struct FloatRow {
  const FloatConv2dArgs& a;
  const float* image;
  float* out;
  int32_t y0;
  FloatTaps rows;

  FloatRow(const FloatConv2dArgs& args, uint64_t row) : a(args) {
    const uint64_t n = row / a.output_h, y = row % a.output_h;
    image = a.input + n * a.input_h * a.input_w * a.input_c;
    out = a.output + row * a.output_w * a.output_c;
    y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    rows = float_taps_inside(y0, a.kernel_h, a.dilation_h, a.input_h);
  }

  int32_t x0(uint32_t x) const {
    return static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
  }
  FloatTaps columns(uint32_t x) const {
    return float_taps_inside(x0(x), a.kernel_w, a.dilation_w, a.input_w);
  }
  // The input under tap (ky, kx) of the window of output x.
  const float* pixel(uint32_t x, uint32_t ky, uint32_t kx) const {
    const int64_t y = int64_t{y0} + ky * a.dilation_h, at = int64_t{x0(x)} + kx * a.dilation_w;
    return image + (y * a.input_w + at) * a.input_c;
  }
};

// The end of the run of pixels from x on, at most `most`, whose windows have the same columns inside: all of
// them. x itself where its window has not.
inline uint32_t end_of_whole_windows(const FloatRow& row, uint32_t x) {
  const FloatConv2dArgs& a = row.a;
  const uint64_t span = uint64_t{a.kernel_w - 1} * a.dilation_w + 1;
  if (row.x0(x) < 0 || span > a.input_w) return x;
  // x * stride_w - pad_left + span <= input_w
  const uint64_t last = (uint64_t{a.input_w} - span + a.pad_left) / a.stride_w;
  const uint64_t end = last + 1 < a.output_w ? last + 1 : a.output_w;
  return end > x ? static_cast<uint32_t>(end) : x;
}

// The next pixels of a row, for all blocks [block, end_block): tiles of several pixels where windows are
// whole, single ones elsewhere.
template <uint32_t kPixels, uint32_t kBlocks>
inline void float_tile(const FloatRow& row, uint32_t x, FloatTaps columns, uint32_t block) {
  const FloatConv2dArgs& a = row.a;
  const uint64_t tap = uint64_t{a.input_c} * kFloatBlock;
  const uint64_t block_step = uint64_t{a.kernel_h} * a.kernel_w * tap;
  const float* weights = a.weights + block * block_step;
  FloatTile<kPixels, kBlocks> tile;
  tile.clear();
  for (uint32_t ky = row.rows.begin; ky < row.rows.end; ++ky) {
    for (uint32_t kx = columns.begin; kx < columns.end; ++kx) {
      tile.add_products(row.pixel(x, ky, kx), uint64_t{a.stride_w} * a.input_c,
                        weights + (uint64_t{ky} * a.kernel_w + kx) * tap, block_step, a.input_c);
    }
  }
  tile.store(a, block * kFloatBlock, row.out + uint64_t{x} * a.output_c, a.output_c);
}

inline void float_pixel(const FloatRow& row, uint32_t x, FloatTaps columns, uint32_t block,
                        uint32_t end_block) {
  while (end_block - block >= kFloatTileBlocks) {
    float_tile<1, kFloatTileBlocks>(row, x, columns, block);
    block += kFloatTileBlocks;
  }
  if (end_block - block >= 2) {
    float_tile<1, 2>(row, x, columns, block);
    block += 2;
  }
  for (; block < end_block; ++block) float_tile<1, 1>(row, x, columns, block);
}

// Pixels from x on, before end, whose windows are whole, in tiles of so many: those that fill tiles. Returns
// the first after them. A block's weights are used for all tiles before those of the next.
template <uint32_t kPixels>
inline uint32_t float_tiles(const FloatRow& row, uint32_t x, uint32_t end, uint32_t block,
                            uint32_t end_block) {
  const uint32_t tiles_end = x + (end - x) / kPixels * kPixels;
  if (tiles_end == x) return x;
  for (uint32_t b = block; b < end_block; ++b) {
    for (uint32_t at = x; at < tiles_end; at += kPixels)
      float_tile<kPixels, 1>(row, at, {0, row.a.kernel_w}, b);
  }
  return tiles_end;
}

inline void float_row(const FloatRow& row, uint32_t block, uint32_t end_block) {
  const FloatConv2dArgs& a = row.a;
  for (uint32_t x = 0; x < a.output_w;) {
    const uint32_t end = end_of_whole_windows(row, x);
    x = float_tiles<kFloatPixels>(row, x, end, block, end_block);
    // Few pixels in a tile wait for their sums, and load weights more often.
    if constexpr (kFloatPixels >= 6) x = float_tiles<kFloatPixels / 2>(row, x, end, block, end_block);
    if constexpr (kFloatPixels >= 12) x = float_tiles<kFloatPixels / 4>(row, x, end, block, end_block);
    for (; x < end; ++x) float_pixel(row, x, {0, a.kernel_w}, block, end_block);
    if (x < a.output_w && end_of_whole_windows(row, x) == x) {
      float_pixel(row, x, row.columns(x), block, end_block);
      ++x;
    }
  }
}

// One input channel to one output channel: kVectors vectors of channels from c on, of output x; count:
// channels of the last.
template <uint32_t kVectors>
inline __attribute__((always_inline)) void float_depthwise_channels(const FloatRow& row, uint32_t x,
                                                                    FloatTaps columns, uint32_t c,
                                                                    uint32_t count) {
  const FloatConv2dArgs& a = row.a;
  const uint64_t taps = uint64_t{a.kernel_h} * a.kernel_w;
  const uint64_t step = uint64_t{a.dilation_w} * a.input_c;
  const float* weights[kVectors];
  VecF32 sums[kVectors];
  for (uint32_t v = 0; v < kVectors; ++v) {
    const uint32_t channel = c + v * kLanes;
    weights[v] = a.weights + channel / kFloatBlock * taps * kFloatBlock + channel % kFloatBlock;
    sums[v] = set_reals(0.0f);
  }
  for (uint32_t ky = row.rows.begin; ky < row.rows.end; ++ky) {
    const float* in = row.pixel(x, ky, columns.begin) + c;
    uint64_t tap = (uint64_t{ky} * a.kernel_w + columns.begin) * kFloatBlock;
    for (uint32_t kx = columns.begin; kx < columns.end; ++kx, in += step, tap += kFloatBlock) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kVectors; ++v) {
        const float* from = in + v * kLanes;
        const VecF32 values = kVectors > 1 || count == kLanes ? load_reals(from) : load_reals(from, count);
        sums[v] = add(sums[v], mul(values, load_reals(weights[v] + tap)));
      }
    }
  }
  const VecF32 least = set_reals(a.clamp_min), most = set_reals(a.clamp_max);
  float* out = row.out + uint64_t{x} * a.output_c + c;
  for (uint32_t v = 0; v < kVectors; ++v) {
    const VecF32 value = add(sums[v], load_reals(a.bias + c + v * kLanes));
    store_reals(out + v * kLanes, clamp(value, least, most), kVectors > 1 ? kLanes : count);
  }
}

inline void float_depthwise_row(const FloatRow& row, uint32_t block, uint32_t end_block) {
  constexpr uint32_t kVectors = 4;
  const FloatConv2dArgs& a = row.a;
  const uint32_t end = end_block * kFloatBlock < a.output_c ? end_block * kFloatBlock : a.output_c;
  for (uint32_t x = 0; x < a.output_w; ++x) {
    const FloatTaps columns = row.columns(x);
    uint32_t c = block * kFloatBlock;
    for (; end - c >= kVectors * kLanes; c += kVectors * kLanes)
      float_depthwise_channels<kVectors>(row, x, columns, c, kLanes);
    for (; c < end; c += kLanes)
      float_depthwise_channels<1>(row, x, columns, c, end - c < kLanes ? end - c : kLanes);
  }
}

inline void float_conv2d_items(const FloatConv2dArgs& args, uint32_t begin, uint32_t end) {
  const uint32_t num_blocks = (args.output_c + kFloatBlock - 1) / kFloatBlock;
  const uint32_t groups = num_float_block_groups(args);
  const bool alone = float_pixels_are_alone(args) && args.groups == 1;
  const uint64_t pixels = uint64_t{args.batch} * args.output_h * args.output_w;
  const uint64_t last = num_float_rows(args) - 1;
  for (uint32_t item = begin; item < end; ++item) {
    const uint64_t r = item / groups;
    const uint32_t block = item % groups * kFloatBlocks;
    const uint32_t end_block = num_blocks - block < kFloatBlocks ? num_blocks : block + kFloatBlocks;
    if (alone) {
      FloatConv2dArgs of_row = args;
      const uint64_t first = r * kFloatItemPixels;
      of_row.batch = of_row.input_h = of_row.output_h = 1;
      of_row.input_w = of_row.output_w = r == last ? static_cast<uint32_t>(pixels - first) : kFloatItemPixels;
      of_row.input = args.input + first * args.input_c;
      of_row.output = args.output + first * args.output_c;
      float_row(FloatRow(of_row, 0), block, end_block);
    } else if (args.groups == 1) {
      float_row(FloatRow(args, r), block, end_block);
    } else {
      float_depthwise_row(FloatRow(args, r), block, end_block);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_conv2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatConv2dArgs& args) {
  if (args.groups != 1 && (args.groups != args.input_c || args.groups != args.output_c))
    return Refusal::kGroups;
  return num_float_rows(args) * num_float_block_groups(args) <= UINT32_MAX ? Refusal::kNone
                                                                           : Refusal::kTooLarge;
}

size_t scratch_bytes(const FloatConv2dArgs&) { return 0; }

uint32_t work_items(const FloatConv2dArgs& args) {
  const uint64_t rows = args.groups == 1 ? num_float_rows(args) : uint64_t{args.batch} * args.output_h;
  return static_cast<uint32_t>(rows * num_float_block_groups(args));
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatConv2dArgs& args, uint32_t begin, uint32_t end, void*) {
  float_conv2d_items(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_conv2d)

}  // namespace qplan
