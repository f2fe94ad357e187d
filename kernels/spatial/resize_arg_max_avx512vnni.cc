// resize_arg_max between sixteenths, where widths grow 8 or 16 times: 33 x 33 to 513 x 513 of 21 channels
// takes 75 us, the two kernels after each other 171 (Zen 5).
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/spatial/resize_arg_max.h"
#include "kernels/spatial/sixteenths_avx512vnni.h"

namespace qplan::resize_arg_max_avx512vnni {
namespace {

constexpr uint32_t kWords = kSixteenthsWords;
// Indices are kept in bytes.
constexpr uint32_t kMaxChannels = 256;
// The keys of a block are in registers.
constexpr uint32_t kMaxVectors = 8;

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ResizeArgMaxArgs& args) {
  if (args.resize.channels > kMaxChannels) return Refusal::kTooLarge;
  const Refusal refusal = sixteenths_accept(args.resize);
  SixteenthsAxis width;
  if (refusal != Refusal::kNone ||
      !sixteenths_axis(args.resize, args.resize.input_w, args.resize.output_w, &width)) {
    return refusal;
  }
  return width.scale == 1 || width.scale == 2 ? Refusal::kNone : Refusal::kTooSmall;
}

size_t scratch_bytes(const ResizeArgMaxArgs&) { return 0; }

uint32_t work_items(const ResizeArgMaxArgs& args) { return args.resize.batch * args.resize.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
namespace {

inline void store_indices(int32_t* to, __m128i words, __mmask8 mask) {
  _mm256_mask_storeu_epi32(to, mask, _mm256_cvtepu16_epi32(words));
}
inline void store_indices(int64_t* to, __m128i words, __mmask8 mask) {
  _mm512_mask_storeu_epi64(to, mask, _mm512_cvtepu16_epi64(words));
}

// Outputs between the same four elements of the input are a block. A vector has a word for each pixel of
// `kRows` rows of it, kColumns pixels each. Channel by channel, the sums of a block grow by the same number
// from vector to vector, in 16 bits. The high byte of a sum is the channel's value; with 255 less the channel
// below it, it is a key, and the largest key of a pixel is that of the first of its largest channels.
template <bool kSigned, uint32_t kColumns, typename Index>
class LabelBlocks {
 public:
  LabelBlocks(const ResizeBilinearArgs& args, const SixteenthsAxis& height, const SixteenthsAxis& width)
      : width_(width), channels_(args.channels), pixels_(args.output_w) {
    row_growth_ = _mm512_set1_epi16(static_cast<int16_t>(height.scale));
    alignas(64) int16_t x[kWords], y[kWords];
    for (uint32_t i = 0; i < kWords; ++i) {
      x[i] = static_cast<int16_t>(i % kColumns * static_cast<uint32_t>(width.scale));
      y[i] = static_cast<int16_t>(i / kColumns);
    }
    x_ = _mm512_load_si512(x);
    y_ = _mm512_load_si512(y);
  }

  // The indices of the rows that lie between two rows of the input.
  void label(const uint8_t* top, const uint8_t* bottom, const SixteenthsRun& rows, Index* output) {
    for (uint32_t x = 0; x < pixels_;) {
      SixteenthsRun run = sixteenths_run(width_, x, pixels_);
      if (run.count > kColumns) run.count = kColumns;
      for (uint32_t c = 0; c < channels_; c += kWords) {
        set_corners(top, bottom, run, rows.distance, c);
      }
      const __m512i distances = _mm512_add_epi16(x_, _mm512_set1_epi16(static_cast<int16_t>(run.distance)));
      const uint32_t vectors = (rows.count + kRows - 1) / kRows;
      if (vectors > 4) {
        label_block<8>(distances, rows.count, run.count, output + x);
      } else if (vectors > 2) {
        label_block<4>(distances, rows.count, run.count, output + x);
      } else {
        label_block<2>(distances, rows.count, run.count, output + x);
      }
      x += run.count;
    }
  }

 private:
  static constexpr uint32_t kRows = kWords / kColumns;

  SixteenthsColumn column(const uint8_t* top, const uint8_t* bottom, uint32_t pixel, uint32_t channel,
                          int32_t distance) const {
    return sixteenths_column<kSigned>(top, bottom, uint64_t{pixel} * channels_ + channel, channels_ - channel,
                                      distance, row_growth_);
  }

  // The sums of 32 channels at the left column, in 256ths, and how they grow along a sixteenth of the width;
  // the same of what they grow by from row to row.
  void set_corners(const uint8_t* top, const uint8_t* bottom, const SixteenthsRun& run, int32_t distance,
                   uint32_t channel) {
    const SixteenthsColumn left = column(top, bottom, run.lower, channel, distance);
    const SixteenthsColumn right = column(top, bottom, run.upper, channel, distance);
    __m512i first = _mm512_slli_epi16(left.first, 4);
    if constexpr (!kSigned) first = _mm512_add_epi16(first, _mm512_set1_epi16(128));
    _mm512_store_si512(first_ + channel, first);
    _mm512_store_si512(slope_ + channel, _mm512_sub_epi16(right.first, left.first));
    _mm512_store_si512(growth_ + channel, _mm512_slli_epi16(left.growth, 4));
    _mm512_store_si512(growth_slope_ + channel, _mm512_sub_epi16(right.growth, left.growth));
  }

  template <uint32_t kVectors>
  void label_block(__m512i distances, uint32_t rows, uint32_t columns, Index* output) const {
    __m512i best[kVectors];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kVectors; ++i) best[i] = _mm512_set1_epi16(kSigned ? INT16_MIN : 0);
    __m512i index = _mm512_set1_epi16(255);
    const __m512i high_bytes = _mm512_set1_epi16(static_cast<int16_t>(0xFF00));
    for (uint32_t c = 0; c < channels_; ++c) {
      const auto at = [&](const int16_t* of) { return _mm512_set1_epi16(of[c]); };
      const __m512i growth = _mm512_add_epi16(at(growth_), _mm512_mullo_epi16(at(growth_slope_), distances));
      __m512i sum = _mm512_add_epi16(at(first_), _mm512_mullo_epi16(at(slope_), distances));
      sum = _mm512_add_epi16(sum, _mm512_mullo_epi16(growth, y_));
      const __m512i step = _mm512_slli_epi16(growth, kRows == 2 ? 1 : 2);
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kVectors; ++i) {
        const __m512i next = _mm512_add_epi16(sum, step);
        // high_bytes ? sum : index
        const __m512i key =
            _mm512_ternarylogic_epi32(sixteenths_rounded<kSigned>(sum), high_bytes, index, 0xE2);
        best[i] = kSigned ? _mm512_max_epi16(best[i], key) : _mm512_max_epu16(best[i], key);
        sum = next;
      }
      index = _mm512_sub_epi16(index, _mm512_set1_epi16(1));
    }
    if (rows == kVectors * kRows && columns == kColumns) {
      store_block<kVectors, true>(best, rows, columns, output);
    } else {
      store_block<kVectors, false>(best, rows, columns, output);
    }
  }

  template <uint32_t kVectors, bool kIsWhole>
  void store_block(const __m512i* best, uint32_t rows, uint32_t columns, Index* output) const {
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kVectors; ++i) {
      const __m512i words = _mm512_andnot_si512(best[i], _mm512_set1_epi16(255));
      store_eight<0, kIsWhole>(words, i, rows, columns, output);
      store_eight<1, kIsWhole>(words, i, rows, columns, output);
      store_eight<2, kIsWhole>(words, i, rows, columns, output);
      store_eight<3, kIsWhole>(words, i, rows, columns, output);
    }
  }

  // Eight pixels of vector i of a block, as far as it has them.
  template <uint32_t kEight, bool kIsWhole>
  void store_eight(__m512i words, uint32_t i, uint32_t rows, uint32_t columns, Index* output) const {
    constexpr uint32_t kRow = 8 * kEight / kColumns, kColumn = 8 * kEight % kColumns;
    const uint32_t row = i * kRows + kRow;
    if (!kIsWhole && (row >= rows || kColumn >= columns)) return;
    const uint32_t left = kIsWhole ? 8 : columns - kColumn;
    const auto mask = static_cast<__mmask8>(left >= 8 ? 0xFF : (1u << left) - 1);
    store_indices(output + uint64_t{row} * pixels_ + kColumn, _mm512_extracti32x4_epi32(words, kEight), mask);
  }

  SixteenthsAxis width_;
  uint32_t channels_, pixels_;  // pixels of an output row
  __m512i row_growth_;
  __m512i x_, y_;  // of each word, from the first pixel of the vector: sixteenths, rows
  alignas(64) int16_t first_[kMaxChannels], slope_[kMaxChannels];
  alignas(64) int16_t growth_[kMaxChannels], growth_slope_[kMaxChannels];
};

template <bool kSigned, uint32_t kColumns, typename Index>
void label_rows(const ResizeArgMaxArgs& args, uint32_t begin, uint32_t end, const SixteenthsAxis& height,
                const SixteenthsAxis& width) {
  const ResizeBilinearArgs& resize = args.resize;
  LabelBlocks<kSigned, kColumns, Index> blocks(resize, height, width);
  constexpr uint32_t kMaxRows = kMaxVectors * kWords / kColumns;
  const auto label = [&](const uint8_t* top, const uint8_t* bottom, const SixteenthsRun& rows, uint32_t y) {
    blocks.label(top, bottom, rows, static_cast<Index*>(args.output) + uint64_t{y} * resize.output_w);
  };
  for_each_row_run(resize, height, begin, end, kMaxRows, label);
}

template <bool kSigned, typename Index>
void run_rows(const ResizeArgMaxArgs& args, uint32_t begin, uint32_t end) {
  SixteenthsAxis height, width;
  if (!sixteenths_axis(args.resize, args.resize.input_h, args.resize.output_h, &height)) return;
  if (!sixteenths_axis(args.resize, args.resize.input_w, args.resize.output_w, &width)) return;
  if (width.scale == 1) return label_rows<kSigned, 16, Index>(args, begin, end, height, width);
  label_rows<kSigned, 8, Index>(args, begin, end, height, width);
}

}  // namespace

void run(const ResizeArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const bool is_signed = args.resize.dtype == Dtype::kS8;
  if (args.output_dtype == Dtype::kS32) {
    return is_signed ? run_rows<true, int32_t>(args, begin, end) : run_rows<false, int32_t>(args, begin, end);
  }
  return is_signed ? run_rows<true, int64_t>(args, begin, end) : run_rows<false, int64_t>(args, begin, end);
}
#endif

}  // namespace qplan::resize_arg_max_avx512vnni
