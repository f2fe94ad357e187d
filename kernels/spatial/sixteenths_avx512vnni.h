// What resizing between sixteenths by 16-bit elements shares among the kernels of AVX-512. Internal linkage
// only.
#ifndef QPLAN_KERNELS_SPATIAL_SIXTEENTHS_AVX512VNNI_H_
#define QPLAN_KERNELS_SPATIAL_SIXTEENTHS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/spatial/sixteenths.h"
#include "kernels/spatial/spatial.h"

namespace qplan {
namespace {

constexpr uint32_t kSixteenthsWords = 32;  // of a vector

// Up to 32 channels of a pixel of the input between two rows, in sixteenths, and what they grow by from row
// to row of the output. `at` is the first of `count` channels in either row, row_growth the scale of the
// height.
struct SixteenthsColumn {
  __m512i first, growth;
};
template <bool kSigned>
__attribute__((always_inline)) inline SixteenthsColumn sixteenths_column(const uint8_t* top,
                                                                         const uint8_t* bottom, uint64_t at,
                                                                         uint32_t count, int32_t distance,
                                                                         __m512i row_growth) {
  const __mmask32 mask = count >= kSixteenthsWords ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
  const auto load = [&](const uint8_t* row) {
    const __m256i bytes = _mm256_maskz_loadu_epi8(mask, row + at);
    return kSigned ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
  };
  const __m512i upper = load(top), slope = _mm512_sub_epi16(load(bottom), upper);
  const __m512i moved = _mm512_mullo_epi16(slope, _mm512_set1_epi16(static_cast<int16_t>(distance)));
  return {_mm512_add_epi16(_mm512_slli_epi16(upper, 4), moved), _mm512_mullo_epi16(slope, row_growth)};
}

// A sum in 256ths whose high byte is the value. For int8, half away from zero: a negative sum is rounded half
// down. Sums of uint8 have the half already.
template <bool kSigned>
__attribute__((always_inline)) inline __m512i sixteenths_rounded(__m512i sum) {
  if constexpr (!kSigned) return sum;
  return _mm512_add_epi16(_mm512_add_epi16(sum, _mm512_set1_epi16(128)), _mm512_srai_epi16(sum, 15));
}

// Rows [begin, end) of the output, of all images, in runs of up to max_rows that lie between the same two
// rows of the input: make(top, bottom, run, row), where `row` is the first of the run.
template <typename Make>
inline void for_each_row_run(const ResizeBilinearArgs& args, const SixteenthsAxis& height, uint32_t begin,
                             uint32_t end, uint32_t max_rows, Make make) {
  const uint64_t input_row = uint64_t{args.input_w} * args.channels;
  for (uint32_t y = begin; y < end;) {
    const uint32_t image_y = y % args.rows;
    SixteenthsRun rows = sixteenths_run(height, args.first_row + image_y, args.first_row + args.rows);
    if (rows.count > end - y) rows.count = end - y;
    if (rows.count > max_rows) rows.count = max_rows;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + y / args.rows * args.input_h * input_row;
    make(image + rows.lower * input_row, image + rows.upper * input_row, rows, y);
    y += rows.count;
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SPATIAL_SIXTEENTHS_AVX512VNNI_H_
