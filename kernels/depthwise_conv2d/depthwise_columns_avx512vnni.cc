// depthwise_conv2d of 3x3 and 5x5: bytes of four rows of a column are gathered into the 32-bit lanes of
// vectors, one channel a lane, once for all outputs that read them; a column of the kernel is then one
// vpdpbusd.
//
// Vectors come in fours. Unpacking leaves channels 16 * lane + 4 * q + j in lane 4 * lane + j of vector q,
// and packing the outputs of the four puts them back into their order. Weights and per-channel constants are
// brought into that order once per block of channels.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_channels_avx512vnni.h"
#include "kernels/simd/gemm_avx512vnni.h"

namespace qplan::depthwise_columns_avx512vnni {
namespace {

// For channels without a float epilogue: outputs of sums, in place. Apart and never inlined, as it is large.
struct IntegerEpilogue {};

__attribute__((noinline)) void requantize_sums(const Prepared& p, uint32_t q, __m512i (&sums)[4]) {
  if (p.is_tfl2) {
    const Tfl2Epilogue epilogue(p, 16 * q);
    for (__m512i& sum : sums) sum = epilogue.outputs(sum);
  } else {
    const Tfl1Epilogue epilogue(p, 16 * q);
    for (__m512i& sum : sums) sum = epilogue.outputs(sum);
  }
}

template <typename Epilogue>
__attribute__((always_inline)) inline void requantize(const Prepared& p, uint32_t q, __m512i (&sums)[4]) {
  const Epilogue epilogue(p, 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) sums[i] = epilogue.outputs(sums[i]);
}

template <>
__attribute__((always_inline)) inline void requantize<IntegerEpilogue>(const Prepared& p, uint32_t q,
                                                                       __m512i (&sums)[4]) {
  requantize_sums(p, q, sums);
}

// Vector q of four outputs, [row][x], without zero point and clamp.
template <typename Epilogue, uint32_t kKernel, uint32_t kStride>
__attribute__((always_inline)) inline void outputs_of_vector(const Prepared& p, const int8_t* columns,
                                                             uint32_t q, __m512i (&sums)[4]) {
  constexpr uint32_t kX = outputs_in_row(kStride), kRows = 4 / kX, kDwords = kKernel == 3 ? 1 : 2;
  constexpr uint32_t kColumns = (kX - 1) * kStride + kKernel;
#pragma GCC unroll 16
  for (uint32_t i = 0; i < 4; ++i) sums[i] = _mm512_load_si512(p.bias + 16 * q);
  const int8_t* weights = p.weights + 64 * q;
  const uint32_t num_parts = (p.rests >> q & 0x11111) != 0 ? p.num_parts : 1;
  uint32_t part = 0;
  do {
#pragma GCC unroll 16
    for (uint32_t d = 0; d < kDwords; ++d) {
      __m512i column[kColumns];
#pragma GCC unroll 16
      for (uint32_t c = 0; c < kColumns; ++c)
        column[c] = _mm512_load_si512(columns + (c * kDwords + d) * 256 + 64 * q);
#pragma GCC unroll 16
      for (uint32_t kx = 0; kx < kKernel; ++kx) {
#pragma GCC unroll 16
        for (uint32_t row = 0; row < kRows; ++row) {
          const __m512i w = _mm512_load_si512(weights + ((kx * kRows + row) * kDwords + d) * 256);
#pragma GCC unroll 16
          for (uint32_t x = 0; x < kX; ++x) dot_u8s8_512(sums[row * kX + x], column[x * kStride + kx], w);
        }
      }
    }
    weights += kKernel * kRows * kDwords * 256;
  } while (++part < num_parts);
  requantize<Epilogue>(p, q, sums);
}

// num_x vectors of outputs of each row.
template <typename Epilogue, uint32_t kKernel, uint32_t kStride>
__attribute__((noinline)) void make_outputs(const DepthwiseConv2dArgs& a, const Prepared& p,
                                            const OutputRows& to, uint32_t num_x) {
  constexpr uint32_t kX = outputs_in_row(kStride), kDwords = kKernel == 3 ? 1 : 2;
  const Finish finish(a);
  const int8_t* columns = p.columns;
  for (uint32_t x = 0; x < num_x; x += kX, columns += kX * kStride * kDwords * 256) {
    __m512i first[4], second[4], words[4];
    outputs_of_vector<Epilogue, kKernel, kStride>(p, columns, 0, first);
    outputs_of_vector<Epilogue, kKernel, kStride>(p, columns, 1, second);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) words[i] = _mm512_packs_epi32(first[i], second[i]);
    outputs_of_vector<Epilogue, kKernel, kStride>(p, columns, 2, first);
    outputs_of_vector<Epilogue, kKernel, kStride>(p, columns, 3, second);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      const __m512i v = finish.pack(words[i], _mm512_packs_epi32(first[i], second[i]));
      uint8_t* row = to.rows[i / kX][0];
      const uint32_t at = x + i % kX;
      if (at < num_x && row != nullptr) _mm512_storeu_si512(row + at * to.pixel_bytes, v);
    }
  }
}

template <uint32_t kKernel, uint32_t kStride>
void make_any_outputs(const DepthwiseConv2dArgs& a, const Prepared& p, Form form, const OutputRows& to,
                      uint32_t num_x) {
  switch (form) {
    case Form::kPlain:
      return make_outputs<PlainEpilogue, kKernel, kStride>(a, p, to, num_x);
    case Form::kSigned:
      return make_outputs<SignedEpilogue, kKernel, kStride>(a, p, to, num_x);
    case Form::kFractions:
      return make_outputs<F32eFractionEpilogue, kKernel, kStride>(a, p, to, num_x);
    case Form::kF32e:
      return make_outputs<F32eEpilogue, kKernel, kStride>(a, p, to, num_x);
    case Form::kIntegers:
      return make_outputs<IntegerEpilogue, kKernel, kStride>(a, p, to, num_x);
  }
}

// All outputs of one phase of the rows of a work item, by way of the scratch.
template <uint32_t kKernel, uint32_t kStride>
void run_chunks(const DepthwiseConv2dArgs& a, const Prepared& p, Form form, const Scratch& s, ColumnRun run,
                OutputRows to, uint32_t num_outputs) {
  constexpr uint32_t kRows = kStride == 1 ? 2 : 1, kInputRows = kKernel + kRows - 1;
  const Block& block = p.block;
  const Gather gather = gather_of<kInputRows>(a, block);
  // Chunks of about the same number of outputs.
  const uint32_t num_chunks = (num_outputs + kChunk - 1) / kChunk;
  const uint32_t chunk = ((num_outputs + num_chunks - 1) / num_chunks + 3) / 4 * 4;
  for (uint32_t x = 0; x < num_outputs; x += chunk) {
    const uint32_t num_x = num_outputs - x < chunk ? num_outputs - x : chunk;
    run.end = run.first + int64_t{num_x - 1} * kStride + kKernel;
    gather(a, run, mask64(block.count), s.columns);
    if (block.count == 64) {
      make_any_outputs<kKernel, kStride>(a, p, form, to, num_x);
    } else {
      const OutputRows narrow = {{{s.narrow}, {s.narrow + kChunk * 64}}, 64};
      make_any_outputs<kKernel, kStride>(a, p, form, narrow, num_x);
      for (uint32_t r = 0; r < kRows; ++r)
        store_narrow(block, s.narrow + r * kChunk * 64, num_x, to.rows[r], to.pixel_bytes);
    }
    run.first += int64_t{chunk} * kStride;
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t g = 0; g < block.groups && to.rows[r][g] != nullptr; ++g)
        to.rows[r][g] += chunk * to.pixel_bytes;
    }
  }
}

// A row of padding, which is written when a run first meets it.
struct Padding {
  uint8_t* row;
  bool is_filled;
  __attribute__((noinline)) const uint8_t* filled(const DepthwiseConv2dArgs& a) {
    if (!is_filled) fill(row, static_cast<uint8_t>(a.pad_value), padding_bytes(a));
    is_filled = true;
    return row;
  }
};

// What work items of a block of channels have in common: the rows of one phase of one image.
struct BlockRows {
  Phase phase;
  uint32_t end_row;
  const uint8_t* image;  // the first input row of the phase, in the first column
  size_t input_step;     // bytes from a row of the phase to the next
  uint8_t* out;          // the same of outputs
  size_t output_step;
};

inline BlockRows rows_of_block(const DepthwiseConv2dArgs& a, const Block& block, const Cursor& at) {
  const uint32_t phases = num_phases(a.output_h, a.dilation_h);
  const uint32_t n = phases == 1 ? at.image : at.image / phases, first = at.image - n * phases;
  const size_t input_row = size_t{a.input_w} * a.input_c, output_row = size_t{a.output_w} * a.output_c;
  BlockRows rows;
  rows.phase = phase_at(first, a.output_h, a.input_h, a.pad_top, a.dilation_h);
  rows.end_row = at.end_row < rows.phase.num_outputs ? at.end_row : rows.phase.num_outputs;
  rows.image = static_cast<const uint8_t*>(a.input) +
               (size_t{n} * a.input_h + rows.phase.first_input) * input_row + block.channel;
  rows.input_step = a.dilation_h * input_row;
  rows.out = static_cast<uint8_t*>(a.output) + (size_t{n} * a.output_h + first) * output_row + block.channel;
  rows.output_step = a.dilation_h * output_row;
  return rows;
}

// Where the rows of a work item begin, in the first column of the image. group_rows: of outputs, at most
// kRows.
template <uint32_t kKernel, uint32_t kStride>
void find_rows(const DepthwiseConv2dArgs& a, uint32_t groups, uint32_t group_rows, const BlockRows& rows,
               uint32_t row, Padding* padding, ColumnRun* run, OutputRows* to) {
  constexpr uint32_t kRows = kStride == 1 ? 2 : 1, kInputRows = kKernel + kRows - 1;
  for (uint32_t g = 0; g < groups; ++g) {
    const uint32_t y = row + g * group_rows;
    const int64_t first = int64_t{y} * kStride + rows.phase.begin;
    const uint8_t** at = run->rows + g;
    if (y < rows.end_row && first >= 0 && first + kInputRows <= rows.phase.num_inputs) {
      const uint8_t* from = rows.image + static_cast<size_t>(first) * rows.input_step;
      for (uint32_t r = 0; r < kInputRows; ++r, from += rows.input_step) at[r * groups] = from;
    } else {
      for (uint32_t r = 0; r < kInputRows; ++r) {
        const int64_t iy = first + r;
        const bool is_inside = y < rows.end_row && iy >= 0 && iy < rows.phase.num_inputs;
        at[r * groups] =
            is_inside ? rows.image + static_cast<size_t>(iy) * rows.input_step : padding->filled(a);
      }
    }
    uint8_t* out = rows.out + y * rows.output_step;
    for (uint32_t r = 0; r < kRows; ++r, out += rows.output_step)
      to->rows[r][g] = r < group_rows && y + r < rows.end_row ? out : nullptr;
  }
}

// Phases of the columns; those of the usual dilations are computed once.
struct ColumnPhases {
  static constexpr uint32_t kKept = 4;
  uint32_t count;
  Phase kept[kKept];
  explicit ColumnPhases(const DepthwiseConv2dArgs& a) : count(num_phases(a.output_w, a.dilation_w)) {
    for (uint32_t x = 0; x < kKept && x < count; ++x) kept[x] = computed(a, x);
  }
  static Phase computed(const DepthwiseConv2dArgs& a, uint32_t x) {
    return phase_at(x, a.output_w, a.input_w, a.pad_left, a.dilation_w);
  }
};

template <uint32_t kKernel, uint32_t kStride>
void run_work_item(const DepthwiseConv2dArgs& a, const Prepared& p, Form form, Way way, const BlockRows& rows,
                   uint32_t row, const ColumnPhases& phases, const Scratch& s, Padding* padding) {
  constexpr uint32_t kRows = kStride == 1 ? 2 : 1, kInputRows = kKernel + kRows - 1;
  ColumnRun run;
  OutputRows to;
  const uint32_t groups = p.block.groups, left = rows.end_row - row;
  const uint32_t group_rows = way.spreads_rows && left <= groups ? 1 : kRows;
  find_rows<kKernel, kStride>(a, groups, group_rows, rows, row, padding, &run, &to);
  if (to.rows[0][0] == nullptr) return;  // the first phase has a row more than this one
  const Slide slide = kRows == 2 && to.rows[1][0] == nullptr ? way.single_row : way.rows;
  run.step = size_t{a.dilation_w} * a.input_c;
  to.pixel_bytes = size_t{a.dilation_w} * a.output_c;
  uint32_t column = 0;
  for (uint32_t x = 0;;) {
    const Phase phase = x < ColumnPhases::kKept ? phases.kept[x] : ColumnPhases::computed(a, x);
    if (phase.first_input != column) {
      const ptrdiff_t distance = (ptrdiff_t{phase.first_input} - ptrdiff_t{column}) * ptrdiff_t{a.input_c};
      for (uint32_t i = 0; i < kInputRows * p.block.groups; ++i) run.rows[i] += distance;
      column = phase.first_input;
    }
    run.num_columns = phase.num_inputs;
    run.first = phase.begin;
    if (slide != nullptr) {
      slide(a, p, run, to, phase.num_outputs);
    } else {
      run_chunks<kKernel, kStride>(a, p, form, s, run, to, phase.num_outputs);
    }
    if (++x == phases.count) return;
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t g = 0; g < p.block.groups && to.rows[r][g] != nullptr; ++g) to.rows[r][g] += a.output_c;
    }
  }
}

template <uint32_t kKernel, uint32_t kStride>
void run_work_items(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const Scratch s = scratch_in(a, scratch);
  const ColumnPhases phases(a);
  Padding padding = {s.padding, false};
  Cursor at = cursor_at(a, begin);
  while (begin < end) {
    const Block block = block_at(a.input_c, at.block);
    const Form form = form_of(a, block);
    const Prepared prepared = prepare < kKernel, kStride == 1 ? 2 : 1 > (a, block, form, s);
    const Way way = way_of<kStride>(a, prepared, form);
    const BlockRows rows = rows_of_block(a, block, at);
    bool is_next;
    do {
      run_work_item<kKernel, kStride>(a, prepared, form, way, rows, at.row, phases, s, &padding);
      is_next = advance(a, rows_at_once(a) * block.groups, &at);
    } while (++begin < end && !is_next);
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& args) { return columns_accepts(args); }

size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return columns_scratch_bytes(args); }

uint32_t work_items(const DepthwiseConv2dArgs& args) { return num_images(args) * work_items_of_image(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.kernel_h == 3) {
    return args.stride_h == 1 ? run_work_items<3, 1>(args, begin, end, scratch)
                              : run_work_items<3, 2>(args, begin, end, scratch);
  }
  return args.stride_h == 1 ? run_work_items<5, 1>(args, begin, end, scratch)
                            : run_work_items<5, 2>(args, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_columns_avx512vnni
