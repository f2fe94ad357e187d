// resize_bilinear between sixteenths of up to 32 channels, by blocks of outputs, as many pixels as fit 64
// bytes at a time: 33 x 33 to 513 x 513 of 21 channels takes 72 us, pixel by pixel 170 (Zen 5).
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/spatial/sixteenths_avx512vnni.h"
#include "kernels/spatial/spatial.h"

namespace qplan::resize_pixels_avx512vnni {
namespace {

constexpr uint32_t kWords = kSixteenthsWords;
// Rows of a block: its lines stay in the L1 cache until the next block, which stores the rest of them.
constexpr uint32_t kMaxRows = 16;

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ResizeBilinearArgs& args) {
  return args.channels > kWords ? Refusal::kTooLarge : sixteenths_accept(args);
}

size_t scratch_bytes(const ResizeBilinearArgs&) { return 0; }

uint32_t work_items(const ResizeBilinearArgs& args) { return args.batch * args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
namespace {

// Outputs between the same four elements of the input are a block: along a row of it, and down a column, sums
// grow by the same number from each to the next, in 16 bits. Pixels of a row are side by side in 64 bytes, of
// which even and odd ones are computed apart, as words: byte i is the channel i % channels of the pixel
// i / channels.
template <bool kSigned>
class PixelBlocks {
 public:
  PixelBlocks(const ResizeBilinearArgs& args, const SixteenthsAxis& height, const SixteenthsAxis& width)
      : width_(width), channels_(args.channels), pixels_(args.output_w), at_once_(64 / args.channels) {
    growth_ = _mm512_set1_epi16(static_cast<int16_t>(at_once_ * static_cast<uint32_t>(width.scale)));
    row_growth_ = _mm512_set1_epi16(static_cast<int16_t>(height.scale));
    alignas(64) int16_t channel[2][kWords], distance[2][kWords];
    uint32_t c = 0, pixel = 0;
    for (uint32_t i = 0; i < 2 * kWords; ++i) {
      channel[i % 2][i / 2] = static_cast<int16_t>(c);
      distance[i % 2][i / 2] = static_cast<int16_t>(pixel * static_cast<uint32_t>(width.scale));
      if (++c == channels_) c = 0, ++pixel;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      channel_[i] = _mm512_load_si512(channel[i]);
      distance_[i] = _mm512_load_si512(distance[i]);
    }
  }

  // The output rows of `rows`, of which the first is `output`, between two rows of the input.
  void blend(const uint8_t* top, const uint8_t* bottom, const SixteenthsRun& rows, uint8_t* output) const {
    const uint64_t output_row = uint64_t{pixels_} * channels_;
    for (uint32_t x = 0; x < pixels_;) {
      const SixteenthsRun run = sixteenths_run(width_, x, pixels_);
      const SixteenthsColumn left = column(top, bottom, run.lower, rows.distance);
      const SixteenthsColumn right = column(top, bottom, run.upper, rows.distance);
      const __m512i distance = _mm512_set1_epi16(static_cast<int16_t>(run.distance));
      Line line = line_between(left.first, right.first, distance);
      if constexpr (!kSigned) {
        for (__m512i& sum : line.sum) sum = _mm512_add_epi16(sum, _mm512_set1_epi16(128));
      }
      const Line growth = line_between(left.growth, right.growth, distance);
      uint8_t* to = output + uint64_t{x} * channels_;
      const uint64_t room = uint64_t{pixels_ - x} * channels_;
      for (uint32_t y = 0; y < rows.count; ++y, to += output_row) {
        store_line(line, run.count * channels_, room, to);
        for (uint32_t i = 0; i < 2; ++i) {
          line.sum[i] = _mm512_add_epi16(line.sum[i], growth.sum[i]);
          line.step[i] = _mm512_add_epi16(line.step[i], growth.step[i]);
        }
      }
      x += run.count;
    }
  }

 private:
  SixteenthsColumn column(const uint8_t* top, const uint8_t* bottom, uint32_t pixel, int32_t distance) const {
    return sixteenths_column<kSigned>(top, bottom, uint64_t{pixel} * channels_, channels_, distance,
                                      row_growth_);
  }

  // The sums of the first 64 bytes of a row of a block, [even, odd], and what they grow by to the next ones.
  struct Line {
    __m512i sum[2], step[2];
  };
  Line line_between(__m512i left, __m512i right, __m512i distance) const {
    const __m512i slope = _mm512_sub_epi16(right, left);
    const __m512i first = _mm512_add_epi16(_mm512_slli_epi16(left, 4), _mm512_mullo_epi16(slope, distance));
    Line line;
    for (uint32_t i = 0; i < 2; ++i) {
      const __m512i of_byte = _mm512_permutexvar_epi16(channel_[i], slope);
      line.sum[i] = _mm512_add_epi16(_mm512_permutexvar_epi16(channel_[i], first),
                                     _mm512_mullo_epi16(of_byte, distance_[i]));
      line.step[i] = _mm512_mullo_epi16(of_byte, growth_);
    }
    return line;
  }

  // Stores `count` bytes; what is stored beyond them, up to `room`, is stored again by the next block. Sums
  // beyond them may be beyond 16 bits.
  void store_line(const Line& line, uint32_t count, uint64_t room, uint8_t* to) const {
    const uint32_t stride = at_once_ * channels_;
    __m512i even = line.sum[0], odd = line.sum[1];
    for (uint32_t at = 0; at < count; at += stride) {
      const __m512i bytes = bytes_of(even, odd);
      if (room - at >= 64) {
        _mm512_storeu_si512(to + at, bytes);
      } else {
        _mm512_mask_storeu_epi8(to + at, (__mmask64{1} << (room - at)) - 1, bytes);
      }
      even = _mm512_add_epi16(even, line.step[0]);
      odd = _mm512_add_epi16(odd, line.step[1]);
    }
  }

  // The high bytes of the sums.
  static __m512i bytes_of(__m512i even, __m512i odd) {
    even = sixteenths_rounded<kSigned>(even);
    odd = sixteenths_rounded<kSigned>(odd);
    // mask ? odd : even >> 8
    return _mm512_ternarylogic_epi32(_mm512_srli_epi16(even, 8), odd,
                                     _mm512_set1_epi16(static_cast<int16_t>(0xFF00)), 0xD8);
  }

  SixteenthsAxis width_;
  uint32_t channels_, pixels_;  // pixels of an output row
  uint32_t at_once_;
  __m512i growth_, row_growth_;
  __m512i channel_[2], distance_[2];  // [even, odd]
};

template <bool kSigned>
void resize_blocks(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end) {
  SixteenthsAxis height, width;
  if (!sixteenths_axis(args, args.input_h, args.output_h, &height)) return;
  if (!sixteenths_axis(args, args.input_w, args.output_w, &width)) return;
  const PixelBlocks<kSigned> blocks(args, height, width);
  const uint64_t output_row = uint64_t{args.output_w} * args.channels;
  const auto blend = [&](const uint8_t* top, const uint8_t* bottom, const SixteenthsRun& rows, uint32_t y) {
    blocks.blend(top, bottom, rows, static_cast<uint8_t*>(args.output) + y * output_row);
  };
  for_each_row_run(args, height, begin, end, kMaxRows, blend);
}

}  // namespace

void run(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kS8) return resize_blocks<true>(args, begin, end);
  resize_blocks<false>(args, begin, end);
}
#endif

}  // namespace qplan::resize_pixels_avx512vnni
