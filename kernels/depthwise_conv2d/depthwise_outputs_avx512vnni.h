// The end of depthwise_columns_avx512vnni.cc: sums without zero point and clamp become bytes and find their
// place. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_OUTPUTS_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_OUTPUTS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_prepare_avx512vnni.h"

namespace qplan {
namespace {

// Outputs that are computed together: four, of two rows or of one.
constexpr uint32_t outputs_in_row(uint32_t stride) { return stride == 1 ? 2 : 4; }

// Zero point and clamp of outputs that are words, as bytes. int8 is lifted by 128 on the way, so that most
// layers, whose outputs fill their dtype from the zero point on, need nothing but the saturation of packing.
struct Finish {
  __m512i zero_point;  // int16
  __m512i clamp_min, clamp_max, sign_bias;
  bool is_free;
  explicit Finish(const DepthwiseConv2dArgs& a) {
    const int32_t lift = a.output_dtype == Dtype::kS8 ? 128 : 0;
    zero_point = _mm512_set1_epi16(static_cast<int16_t>(a.output_zero_point + lift));
    clamp_min = _mm512_set1_epi8(static_cast<char>(a.clamp_min + lift));
    clamp_max = _mm512_set1_epi8(static_cast<char>(a.clamp_max + lift));
    sign_bias = _mm512_set1_epi8(static_cast<char>(lift));
    is_free = a.clamp_max - a.clamp_min == 255 && a.output_zero_point == a.clamp_min;
  }
  __attribute__((always_inline)) __m512i pack(__m512i words01, __m512i words23) const {
    if (is_free) return _mm512_xor_si512(_mm512_packus_epi16(words01, words23), sign_bias);
    const __m512i v =
        _mm512_packus_epi16(_mm512_adds_epi16(words01, zero_point), _mm512_adds_epi16(words23, zero_point));
    return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(v, clamp_min), clamp_max), sign_bias);
  }
};

// Where outputs go: for each row of each group of rows the address of its first pixel, null where there is no
// such row.
struct OutputRows {
  uint8_t* rows[2][4];
  size_t pixel_bytes;
};

// One vector of outputs to pixel x of one row of each of the groups.
template <uint32_t kGroups, bool kWhole>
__attribute__((always_inline)) inline void store_groups(const OutputRows& to, uint32_t row, size_t x,
                                                        __m512i v, __mmask64 mask) {
  const size_t offset = x * to.pixel_bytes;
  uint8_t* const* rows = to.rows[row];
  if (kGroups == 1) {
    if (rows[0] == nullptr) return;
    if (kWhole) return _mm512_storeu_si512(rows[0] + offset, v);
    _mm512_mask_storeu_epi8(rows[0] + offset, mask, v);
  } else if (kGroups == 4) {
    const auto store = [&](uint32_t g, __m128i quarter) {
      if (rows[g] == nullptr) return;
      if (kWhole) return _mm_storeu_si128(reinterpret_cast<__m128i*>(rows[g] + offset), quarter);
      _mm_mask_storeu_epi8(rows[g] + offset, static_cast<__mmask16>(mask), quarter);
    };
    store(0, _mm512_castsi512_si128(v));
    store(1, _mm512_extracti32x4_epi32(v, 1));
    store(2, _mm512_extracti32x4_epi32(v, 2));
    store(3, _mm512_extracti32x4_epi32(v, 3));
  } else {
    const auto store = [&](uint32_t g, __m256i half) {
      if (rows[g] == nullptr) return;
      if (kWhole) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows[g] + offset), half);
      _mm256_mask_storeu_epi8(rows[g] + offset, static_cast<__mmask32>(mask), half);
    };
    store(0, _mm512_castsi512_si256(v));
    store(1, _mm512_extracti64x4_epi64(v, 1));
  }
}

// From the scratch to the image: num_x vectors of one row of each group; to: one address for each group, null
// where there is no such row.
inline void store_narrow(const Block& block, const uint8_t* from, uint32_t num_x, uint8_t* const (&to)[4],
                         size_t pixel_bytes) {
  const uint32_t width = 64 / block.groups;
  const __mmask64 mask = mask64(block.count);
  const auto store_all = [&](auto store) {
    for (uint32_t g = 0; g < block.groups && to[g] != nullptr; ++g) {
      for (uint32_t x = 0; x < num_x; ++x) store(to[g] + x * pixel_bytes, from + 64 * x + width * g);
    }
  };
  if (block.count != width) {
    store_all([mask](uint8_t* pixel, const uint8_t* vector) {
      _mm512_mask_storeu_epi8(pixel, mask, _mm512_maskz_loadu_epi8(mask, vector));
    });
  } else if (width == 32) {
    store_all([](uint8_t* pixel, const uint8_t* vector) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pixel),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(vector)));
    });
  } else {
    store_all([](uint8_t* pixel, const uint8_t* vector) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pixel),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(vector)));
    });
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_OUTPUTS_AVX512VNNI_H_
