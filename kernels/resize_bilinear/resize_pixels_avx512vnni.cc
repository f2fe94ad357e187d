// resize_bilinear between sixteenths of up to 32 channels, as many pixels as fit 64 bytes at a time: 33 x 33
// to 513 x 513 of 21 channels takes 101 us, pixel by pixel 170 (Zen 5).
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/resize_bilinear/resize_bilinear.h"
#include "kernels/resize_bilinear/sixteenths.h"

namespace qplan::resize_pixels_avx512vnni {
namespace {

constexpr uint32_t kWords = 32;  // of a vector

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ResizeBilinearArgs& args) {
  return args.channels > kWords ? Refusal::kTooLarge : sixteenths_accept(args);
}

size_t scratch_bytes(const ResizeBilinearArgs& args) { return sixteenths_scratch_bytes(args, kWords); }

uint32_t work_items(const ResizeBilinearArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
namespace {

// The words of a row between two rows: top[i] * (16 - distance) + bottom[i] * distance.
template <bool kSigned>
void blend_rows(const uint8_t* top, const uint8_t* bottom, int32_t distance, uint64_t count, int16_t* row) {
  const __m512i top_weight = _mm512_set1_epi16(static_cast<int16_t>(16 - distance));
  const __m512i bottom_weight = _mm512_set1_epi16(static_cast<int16_t>(distance));
  for (uint64_t i = 0; i < count; i += kWords) {
    const uint64_t left = count - i;
    const __mmask32 mask = left >= kWords ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
    const auto load = [&](const uint8_t* from) {
      const __m256i bytes = _mm256_maskz_loadu_epi8(mask, from + i);
      return kSigned ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
    };
    const __m512i upper = _mm512_mullo_epi16(load(top), top_weight);
    const __m512i lower = _mm512_mullo_epi16(load(bottom), bottom_weight);
    _mm512_storeu_si512(row + i, _mm512_add_epi16(upper, lower));
  }
}

// Pixels side by side in 64 bytes. Even and odd bytes are computed apart, as words, of which byte i is the
// channel i % channels of the pixel i / channels.
template <bool kSigned>
class PixelRows {
 public:
  PixelRows(const ResizeBilinearArgs& args, const SixteenthsAxis& width)
      : width_(width), channels_(args.channels), pixels_(args.output_w), at_once_(64 / args.channels) {
    const int16_t scale = static_cast<int16_t>(width.scale);
    growth_ = _mm512_set1_epi16(static_cast<int16_t>(at_once_ * width.scale));
    alignas(64) int16_t channel[2][kWords], distance[2][kWords];
    uint32_t c = 0, pixel = 0;
    for (uint32_t i = 0; i < 2 * kWords; ++i) {
      channel[i % 2][i / 2] = static_cast<int16_t>(c);
      distance[i % 2][i / 2] = static_cast<int16_t>(pixel * scale);
      if (++c == channels_) c = 0, ++pixel;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      channel_[i] = _mm512_load_si512(channel[i]);
      distance_[i] = _mm512_load_si512(distance[i]);
    }
  }

  // What is stored beyond the pixels between two elements is stored again with those that follow. Sums beyond
  // them may be beyond 16 bits.
  void blend(const int16_t* row, uint8_t* output) const {
    uint8_t* const end = output + uint64_t{pixels_} * channels_;
    const uint32_t stride = at_once_ * channels_;
    for (uint32_t x = 0; x < pixels_;) {
      const SixteenthsRun run = sixteenths_run(width_, x, pixels_);
      const __m512i left = _mm512_loadu_si512(row + uint64_t{run.lower} * channels_);
      const __m512i right = _mm512_loadu_si512(row + uint64_t{run.upper} * channels_);
      const __m512i slope = _mm512_sub_epi16(right, left);
      const __m512i distance = _mm512_set1_epi16(static_cast<int16_t>(run.distance));
      __m512i first = _mm512_add_epi16(_mm512_slli_epi16(left, 4), _mm512_mullo_epi16(slope, distance));
      if constexpr (!kSigned) first = _mm512_add_epi16(first, _mm512_set1_epi16(128));
      __m512i sum[2], step[2];
      for (uint32_t i = 0; i < 2; ++i) {
        const __m512i of_byte = _mm512_permutexvar_epi16(channel_[i], slope);
        sum[i] = _mm512_add_epi16(_mm512_permutexvar_epi16(channel_[i], first),
                                  _mm512_mullo_epi16(of_byte, distance_[i]));
        step[i] = _mm512_mullo_epi16(of_byte, growth_);
      }
      uint8_t* const next = output + uint64_t{run.count} * channels_;
      for (; output < next; output += stride) {
        const __m512i bytes = bytes_of(sum[0], sum[1]);
        const uint64_t room = static_cast<uint64_t>(end - output);
        if (room >= 64) {
          _mm512_storeu_si512(output, bytes);
        } else {
          _mm512_mask_storeu_epi8(output, (__mmask64{1} << room) - 1, bytes);
        }
        for (uint32_t i = 0; i < 2; ++i) sum[i] = _mm512_add_epi16(sum[i], step[i]);
      }
      output = next;
      x += run.count;
    }
  }

 private:
  // The high bytes of the sums. For int8, half away from zero: a negative sum is rounded half down.
  static __m512i bytes_of(__m512i even, __m512i odd) {
    if constexpr (kSigned) {
      const __m512i half = _mm512_set1_epi16(128);
      even = _mm512_add_epi16(_mm512_add_epi16(even, half), _mm512_srai_epi16(even, 15));
      odd = _mm512_add_epi16(_mm512_add_epi16(odd, half), _mm512_srai_epi16(odd, 15));
    }
    // mask ? odd : even >> 8
    return _mm512_ternarylogic_epi32(_mm512_srli_epi16(even, 8), odd,
                                     _mm512_set1_epi16(static_cast<int16_t>(0xFF00)), 0xD8);
  }

  SixteenthsAxis width_;
  uint32_t channels_, pixels_;  // pixels of an output row
  uint32_t at_once_;
  __m512i growth_;
  __m512i channel_[2], distance_[2];  // [even, odd]
};

template <bool kSigned>
void resize_rows(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, int16_t* row) {
  SixteenthsAxis height, width;
  if (!sixteenths_axis(args, args.input_h, args.output_h, &height)) return;
  if (!sixteenths_axis(args, args.input_w, args.output_w, &width)) return;
  const PixelRows<kSigned> pixels(args, width);
  const uint64_t input_row = uint64_t{args.input_w} * args.channels;
  const uint64_t output_row = uint64_t{args.output_w} * args.channels;
  for (uint32_t y = begin; y < end; ++y) {
    const uint8_t* image =
        static_cast<const uint8_t*>(args.input) + y / args.output_h * args.input_h * input_row;
    const SixteenthsPosition rows = sixteenths_position(height, y % args.output_h);
    blend_rows<kSigned>(image + rows.lower * input_row, image + rows.upper * input_row, rows.distance,
                        input_row, row);
    pixels.blend(row, static_cast<uint8_t*>(args.output) + y * output_row);
  }
}

}  // namespace

void run(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  int16_t* const row = static_cast<int16_t*>(scratch);
  if (args.dtype == Dtype::kS8) return resize_rows<true>(args, begin, end, row);
  resize_rows<false>(args, begin, end, row);
}
#endif

}  // namespace qplan::resize_pixels_avx512vnni
