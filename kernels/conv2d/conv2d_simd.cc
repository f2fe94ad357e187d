// conv2d as a matrix product of windows and packed weights.
#define QPLAN_PRODUCT_ADDS_RESIDUAL 1  // where it can
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/conv2d_line_buffer.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

#if defined(QPLAN_SIMD_FIRST_LAYERS)
#include QPLAN_SIMD_FIRST_LAYERS
#endif
#if defined(QPLAN_SIMD_INTERLEAVED_LAYERS)
#include QPLAN_SIMD_INTERLEAVED_LAYERS
#endif

namespace qplan {

// Declared by its header too, but where this file is opened alone for an instruction set that this build does
// not have.
QPLAN_DECLARE_VARIANT(QPLAN_SIMD_VECTOR_VARIANT(add), AddArgs)

namespace {

#if !defined(QPLAN_SIMD_FIRST_LAYERS)
inline bool is_first_layer(const Conv2dArgs&) { return false; }
inline void run_first_layer(const Conv2dArgs&, uint32_t, uint32_t) {}
#endif
#if !defined(QPLAN_SIMD_INTERLEAVED_LAYERS)
inline bool is_interleaved_layer(const Conv2dArgs&) { return false; }
inline void run_interleaved_layer(const Conv2dArgs&, uint32_t, uint32_t, void*) {}
#endif

// ---- the work items ----

// How a convolution is divided; asked once a call, as it takes some ten divisions.
struct Conv2dWork {
  bool pixels;             // windows are pixels: blocks are runs of them
  LineBuffer line_buffer;  // else
  uint32_t blocks;         // of pixels
  uint32_t groups;         // of channels
};

inline Conv2dWork conv2d_work(const Conv2dArgs& a) {
  Conv2dWork work = {};
  work.pixels = windows_are_pixels(a);
  if (work.pixels) {
    work.blocks = num_runs(a);
  } else {
    work.line_buffer = line_buffer_of(a);
    work.blocks = a.batch * work.line_buffer.blocks_down * work.line_buffer.blocks_across;
  }
  const uint32_t scheduled = knob_value(a.schedule, kConv2dKnobs, kConv2dChannelGroups);
  const uint32_t most = div_up(a.output_c, 16);
  const uint32_t groups = div_up(a.output_c, kGroupChannels);
  if (scheduled != 0) {
    work.groups = scheduled < most ? scheduled : most;
  } else if (work.blocks >= kFewBlocks) {
    work.groups = 1;
  } else {
    const uint32_t wanted = div_up(kFewBlocks, work.blocks);
    work.groups = groups < wanted ? groups : wanted;
  }
  return work;
}

// ---- the residual: the product adds it where outputs are made, or add's variant on the outputs of a work
// item while they are in the cache ----

// Pixels of so few channels are products that make their outputs while they multiply (kernels/simd/
// gemm_stream_avx512vnni.h), with no room for more.
constexpr uint32_t kStreamedChannels = 256;

// Whether the product adds it: where the sum has a float epilogue. Of a part of the channels add would take
// one row at a time.
inline bool product_adds_residual(const Conv2dArgs& a, const Conv2dWork& work) {
  const bool is_streamed = work.pixels && a.input_c <= kStreamedChannels && work.groups == 1;
  return kProductAddsResidual && a.has_residual && a.residual_sum.contract == Contract::kTfl2 &&
         a.residual_sum.float_scale1 > 0.0f && !is_streamed;
}

inline GemmResidual residual_of(const Conv2dArgs& a) {
  GemmResidual residual;
  residual.scale1 = a.residual_sum.float_scale1;
  residual.scale2 = a.residual_sum.float_scale2;
  residual.offset = a.residual_sum.float_offset;
  residual.clamp_min = a.residual_sum.clamp_min;
  residual.clamp_max = a.residual_sum.clamp_max;
  residual.is_a = a.residual_is_a;
  residual.is_signed = a.output_dtype == Dtype::kS8;
  return residual;
}

// The residual of outputs from `out` on.
inline const uint8_t* residual_at(const Conv2dArgs& a, const uint8_t* out) {
  return static_cast<const uint8_t*>(a.residual) + (out - static_cast<const uint8_t*>(a.output));
}

// Adds it to the outputs of channels [begin, end) of num_rows pixels, contiguous from `out` on.
inline void add_residual(const Conv2dArgs& a, uint8_t* out, uint64_t num_rows, uint32_t begin, uint32_t end) {
  const bool is_whole = begin == 0 && end == a.output_c;
  const uint64_t count = is_whole ? num_rows * a.output_c : end - begin;
  AddArgs add;
  static_cast<AddFormula&>(add) = a.residual_sum;
  add.broadcast.elements = add.broadcast.extents[0] = count;
  add.broadcast.a_strides[0] = add.broadcast.b_strides[0] = 1;
  out += begin;
  for (uint64_t row = 0; row < (is_whole ? 1 : num_rows); ++row, out += a.output_c) {
    add.a = a.residual_is_a ? residual_at(a, out) : out;
    add.b = a.residual_is_a ? out : residual_at(a, out);
    add.output = out;
    QPLAN_SIMD_VECTOR_VARIANT(add)::run(add, 0, num_chunks(count), nullptr);
  }
}

// ---- the product ----

// Where group `group` begins: at whole tiles of 64 channels if there are as many.
inline uint32_t group_begin(uint32_t num_blocks, uint32_t group, uint32_t groups) {
  constexpr uint32_t kTileBlocks = kGroupChannels / 16;
  const uint32_t tiles = div_up(num_blocks, kTileBlocks);
  if (groups > tiles) return num_blocks * group / groups;
  const uint32_t block = tiles * group / groups * kTileBlocks;
  return block < num_blocks ? block : num_blocks;
}

inline size_t conv2d_scratch_bytes(const Conv2dArgs& a) {
  return line_buffer_scratch(a, conv2d_work(a).line_buffer, kKeepsBytes, nullptr).bytes;
}

// Pixels of runs that are one product where a call has them all: a product takes a tile's time to begin and
// to end, for each 32 channels.
constexpr uint32_t kMostMergedPixels = 384;

// As many runs as need no copy and whose pixels, and 64 channels of outputs, stay in the first cache.
inline uint32_t merged_runs(const Conv2dArgs& a, const Conv2dWork& work) {
  constexpr uint32_t kMostBytes = 16 << 10;
  if (!work.pixels || work.groups > 1 || pixels_are_copied(a, kKeepsBytes)) return 1;
  const uint32_t in_cache = kMostBytes / a.input_c;
  const uint32_t runs = (in_cache < kMostMergedPixels ? in_cache : kMostMergedPixels) / max_run_pixels(a);
  return runs > 1 ? runs : 1;
}

// Rows of the product for blocks [begin, end), where windows are pixels.
inline void pixel_rows(const Conv2dArgs& a, const Conv2dWork& work, uint32_t begin, uint32_t end,
                       const LineBufferScratch& parts, Gemm* product) {
  const uint32_t first = run_begin(a, work.blocks, begin);
  product->num_rows = run_begin(a, work.blocks, end) - first;
  product->first_row = static_cast<const uint8_t*>(a.input) + size_t{first} * a.input_c;
  product->first_out = static_cast<uint8_t*>(a.output) + first * product->out_stride;
  if (pixels_are_copied(a, kKeepsBytes)) {
    copy_run(parts.line_buffer, product->first_row, size_t{product->num_rows} * a.input_c,
             line_buffer_sign_bias(a, kKeepsBytes));
    product->first_row = parts.line_buffer;
  }
}

#if !defined(QPLAN_SIMD_ROWS)
// Writes where `count` rows begin, side by side; returns where the next is written.
inline const uint8_t** list_rows(const uint8_t** rows, const uint8_t* row, size_t row_stride,
                                 uint32_t count) {
  for (uint32_t j = 0; j < count; ++j, row += row_stride) *rows++ = row;
  return rows;
}
#endif

// Interleaves the rows of input under row y of output where they are, without a copy of each; false where one
// of them is outside of the image, where fewer bytes of input follow the last one than may be read after it,
// or where bytes would have to change.
inline bool interleave_in_place(const Conv2dArgs& a, const LineBuffer& line_buffer,
                                const RowInterleave& interleave, uint32_t n, uint32_t y, uint32_t x,
                                uint8_t* to) {
  const LineBufferRow row =
      line_buffer_row(a, line_buffer, int64_t{x} * a.stride_w - a.pad_left, kKeepsBytes);
  const int64_t first = int64_t{y} * a.stride_h - a.pad_top;
  if (row.sign_bias != 0 || row.run == 0 || first < 0 || first + a.kernel_h > a.input_h) return false;
  const size_t row_bytes = size_t{a.input_w} * a.input_c, rows_before = size_t{n} * a.input_h + first;
  const size_t all_bytes = size_t{a.batch} * a.input_h * row_bytes;
  const size_t begin = rows_before * row_bytes + row.first;
  if (begin + (a.kernel_h - 1) * row_bytes + row.run + kRowSlack > all_bytes) return false;
  fill(to, row.pad, row.before * a.kernel_h);
  to += row.before * a.kernel_h;
  interleave.interleave(static_cast<const uint8_t*>(a.input) + begin, row_bytes, row.run / a.input_c, to);
  fill(to + row.run * a.kernel_h, row.pad, row.after * a.kernel_h);
  return true;
}

// Rows of the product for a block of windows, whose line buffer is filled.
inline void block_rows(const Conv2dArgs& a, const LineBuffer& line_buffer, const RowInterleave& interleave,
                       uint32_t block, const LineBufferScratch& parts, Gemm* product) {
  const uint32_t across = block % line_buffer.blocks_across, down = block / line_buffer.blocks_across;
  const uint32_t n = down / line_buffer.blocks_down, y = down % line_buffer.blocks_down * line_buffer.height,
                 x = across * line_buffer.width;
  const uint32_t height = a.output_h - y < line_buffer.height ? a.output_h - y : line_buffer.height;
  const uint32_t width = a.output_w - x < line_buffer.width ? a.output_w - x : line_buffer.width;
  if (!line_buffer.is_interleaved ||
      !interleave_in_place(a, line_buffer, interleave, n, y, x, parts.interleaved)) {
    copy_line_buffer<copy_run, fill, kKeepsBytes>(a, line_buffer, n, y, x, height, parts.line_buffer);
    if (line_buffer.is_interleaved)
      interleave.interleave(parts.line_buffer, line_buffer.pitch, line_buffer.columns, parts.interleaved);
  }
  product->num_rows = height * width;
  product->first_out =
      static_cast<uint8_t*>(a.output) + ((size_t{n} * a.output_h + y) * a.output_w + x) * product->out_stride;
  if (line_buffer.height == 1) return;
  product->even_rows = width;
  const uint8_t** rows = parts.rows;
  for (uint32_t i = 0; i < height; ++i) {
    const uint8_t* row = parts.line_buffer + i * a.stride_h * line_buffer.pitch;
    rows = list_rows(rows, row, product->row_stride, width);
  }
}

// Where the taps of a group of the convolution begin, in a line buffer of all channels.
inline void place_taps(const Conv2dArgs& a, const LineBuffer& line_buffer, uint32_t group,
                       size_t* tap_offsets) {
  for (uint32_t i = 0; i < line_buffer.tap_rows; ++i) {
    for (uint32_t j = 0; j < line_buffer.tap_columns; ++j) {
      tap_offsets[i * line_buffer.tap_columns + j] = i * line_buffer.pitch +
                                                     size_t{j} * a.dilation_w * a.input_c +
                                                     size_t{group} * (a.input_c / a.groups);
    }
  }
}

// Blocks [begin, end) of channels, group by group of the convolution, each with its channels of the input.
inline void multiply_groups(const Conv2dArgs& a, const LineBuffer& line_buffer, uint32_t begin, uint32_t end,
                            const LineBufferScratch& parts, const Gemm& product) {
  const uint32_t blocks = a.output_c / a.groups / 16;  // of a group
  while (begin < end) {
    const uint32_t group = begin / blocks, group_end = (group + 1) * blocks;
    const uint32_t stop = group_end < end ? group_end : end;
    place_taps(a, line_buffer, group, parts.tap_offsets);
    if (a.weights_zero_point != 0) row_sums(product, -a.weights_zero_point, parts.terms);
    QPLAN_SIMD_VARIANT(gemm)::run(product, begin, stop);
    begin = stop;
  }
}

// The rests of weights, once the taps are placed. pixels: windows are pixels. Not inlined: few layers have
// any.
__attribute__((noinline)) inline void find_rests(const Conv2dArgs& a, bool pixels, GemmRest* rests,
                                                 Gemm* product) {
  for (uint32_t i = 0; i < a.num_weight_rests; ++i) {
    const WeightRest rest = weight_rest(a, i);
    const TapByte byte = pixels ? TapByte{0, rest.k} : tap_byte(a, rest.k);
    fill(reinterpret_cast<uint8_t*>(rests[i].weights), 0, sizeof(rests[i].weights));
    rests[i].weights[(GemmRest::kMostBlocks - 1) * 64 + rest.channel % 16 * 4 + byte.at % 4] =
        static_cast<int8_t>(rest.rest);
    rests[i].block = rest.channel / 16;
    rests[i].at = product->tap_offsets[byte.tap] + byte.at / 4 * 4;
  }
  product->rests = rests;
  product->num_rests = a.num_weight_rests;
}

// rests: room for num_weight_rests.
inline void conv2d_gemm(const Conv2dArgs& args, uint32_t begin, uint32_t end, GemmRest* rests,
                        void* scratch) {
  const Conv2dWork work = conv2d_work(args);
  const LineBuffer& line_buffer = work.line_buffer;
  const LineBufferScratch parts = line_buffer_scratch(args, line_buffer, kKeepsBytes, scratch);
  const bool pixels = work.pixels;
  const RowInterleave interleave(line_buffer.is_interleaved ? args.kernel_h : 0, args.input_c);
  constexpr size_t kNoOffset[1] = {0};
  Gemm product = gemm_of(args);
  product.num_taps = pixels ? 1 : num_taps(line_buffer);
  product.tap_bytes = pixels ? args.input_c : line_buffer.tap_bytes;
  product.tap_offsets = pixels ? kNoOffset : parts.tap_offsets;
  product.row_stride = pixels ? args.input_c : size_t{args.stride_w} * column_bytes(args, line_buffer);
  product.has_eights = layout_group(args.weights_layout) == 8;
  if (line_buffer_sign_bias(args, kKeepsBytes) != 0 && (!pixels || pixels_are_copied(args, kKeepsBytes))) {
    product.sign_bias = 0;
  }
  GemmResidual residual = residual_of(args);
  const bool adds_residual = product_adds_residual(args, work);
  if (adds_residual) product.residual = &residual;
  if (!pixels) {
    product.first_row = line_buffer.is_interleaved ? parts.interleaved : parts.line_buffer;
    product.rows = line_buffer.height == 1 ? nullptr : parts.rows;
    place_taps(args, line_buffer, 0, parts.tap_offsets);
  }
  if (args.num_weight_rests != 0) find_rests(args, pixels, rests, &product);
  const uint32_t groups = work.groups, blocks = work.blocks, num_blocks = div_up(args.output_c, 16);
  const bool groups_outer = knob_value(args.schedule, kConv2dKnobs, kConv2dGroupsOuter) != 0;
  const uint32_t merged = merged_runs(args, work);
  // Merged runs have more rows than the scratch memory of plans has room for.
  int32_t merged_terms[kMostMergedPixels];
  int32_t* terms = merged > 1 ? merged_terms : parts.terms;
  product.row_term = args.weights_zero_point != 0 ? terms : nullptr;
  // Work item u is group u % groups of the channels of block u / groups, or, with groups outermost, group u /
  // blocks of block u % blocks.
  for (uint32_t work_item = begin, count; work_item < end; work_item += count) {
    count = end - work_item < merged ? end - work_item : merged;
    const uint32_t block = groups_outer ? work_item % blocks : work_item / groups;
    const uint32_t group = groups_outer ? work_item / blocks : work_item % groups;
    if (work_item == begin || group == 0 || groups_outer) {
      pixels ? pixel_rows(args, work, block, block + count, parts, &product)
             : block_rows(args, line_buffer, interleave, block, parts, &product);
      // sum u * (w - z) = sum u * w - z * sum u
      if (args.weights_zero_point != 0 && args.groups == 1)
        row_sums(product, -args.weights_zero_point, terms);
    }
    const uint32_t first = group_begin(num_blocks, group, groups),
                   last = group_begin(num_blocks, group + 1, groups);
    if (args.has_residual) residual.first = residual_at(args, product.first_out);
    args.groups == 1 ? QPLAN_SIMD_VARIANT(gemm)::run(product, first, last)
                     : multiply_groups(args, line_buffer, first, last, parts, product);
    if (args.has_residual && !adds_residual) {
      const uint32_t channels_end = last * 16 < args.output_c ? last * 16 : args.output_c;
      add_residual(args, product.first_out, product.num_rows, first * 16, channels_end);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(conv2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Conv2dArgs& args) {
  if (args.num_weight_rests != 0 && (!kProductAddsRests || args.groups != 1)) return Refusal::kWeightRests;
  return line_buffer_accepts(args, kProductMakesSums, takes_centred(args.input_dtype), kProductTakesEights);
}

size_t scratch_bytes(const Conv2dArgs& args) { return conv2d_scratch_bytes(args); }

uint32_t work_items(const Conv2dArgs& args) {
  if (is_first_layer(args)) return args.batch * args.output_h;
  const Conv2dWork work = conv2d_work(args);
  return work.blocks * work.groups;
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (is_first_layer(args)) return run_first_layer(args, begin, end);
  if (is_interleaved_layer(args)) return run_interleaved_layer(args, begin, end, scratch);
  GemmRest rests[kMaxWeightRests];
  conv2d_gemm(args, begin, end, rests, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(conv2d)

}  // namespace qplan
