// transpose of bytes between planes and pixels of 2 to 4 channels, 16 pixels at a time: each vector of the
// output is put together from all those of the input.
#include <immintrin.h>

#include "kernels/transpose/transpose.h"

namespace qplan::transpose_sse41 {
namespace {

constexpr uint64_t kMaxChannels = 4;
constexpr uint64_t kUnitPixels = 1024;

bool to_pixels(const TransposeArgs& args) {
  return args.extents[1] <= kMaxChannels && args.input_strides[0] == 1 &&
         args.input_strides[1] == args.extents[0];
}
bool to_planes(const TransposeArgs& args) {
  return args.extents[0] <= kMaxChannels && args.input_strides[0] == 1 &&
         args.input_strides[1] == args.extents[0];
}

// The shuffles of 16 pixels: places[o][i] says where in input vector i each byte of output vector o is; -1
// means that it is in another one.
template <int kChannels>
struct Places {
  __m128i of[kChannels][kChannels];

  explicit Places(bool pixels) {
    for (int o = 0; o < kChannels; ++o) {
      alignas(16) int8_t from[kChannels][16];
      for (int byte = 0; byte < 16; ++byte) {
        // The byte of pixel p and channel c is number p * channels + c among pixels, p of plane c.
        const int at = o * 16 + byte;
        const int place = pixels ? at % kChannels * 16 + at / kChannels : byte * kChannels + o;
        for (int i = 0; i < kChannels; ++i) {
          from[i][byte] = static_cast<int8_t>(place / 16 == i ? place % 16 : -1);
        }
      }
      for (int i = 0; i < kChannels; ++i) of[o][i] = _mm_load_si128(reinterpret_cast<__m128i*>(from[i]));
    }
  }
};

// Vector i of 16 pixels is at i * stride.
template <int kChannels>
inline void move_pixels(const Places<kChannels>& places, const uint8_t* from, uint64_t from_stride,
                        uint8_t* to, uint64_t to_stride) {
  __m128i in[kChannels];
  for (int i = 0; i < kChannels; ++i) {
    in[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + static_cast<uint64_t>(i) * from_stride));
  }
  for (int o = 0; o < kChannels; ++o) {
    __m128i out = _mm_shuffle_epi8(in[0], places.of[o][0]);
    for (int i = 1; i < kChannels; ++i) out = _mm_or_si128(out, _mm_shuffle_epi8(in[i], places.of[o][i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + static_cast<uint64_t>(o) * to_stride), out);
  }
}

template <int kChannels>
void run_channels(const TransposeArgs& args, bool pixels, uint64_t begin, uint64_t end) {
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint64_t count = args.elements / kChannels;
  const Places<kChannels> places(pixels);
  uint64_t p = begin;
  for (; p + 16 <= end; p += 16) {
    if (pixels) {
      move_pixels(places, input + p, count, output + p * kChannels, 16);
    } else {
      move_pixels(places, input + p * kChannels, 16, output + p, count);
    }
  }
  for (; p < end; ++p) {
    for (uint64_t c = 0; c < kChannels; ++c) {
      if (pixels) {
        output[p * kChannels + c] = input[c * count + p];
      } else {
        output[c * count + p] = input[p * kChannels + c];
      }
    }
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const TransposeArgs& args) {
  if (args.element_bytes != 1) return Refusal::kDtype;
  if (args.rank != 2 || (!to_pixels(args) && !to_planes(args))) return Refusal::kAxes;
  return args.elements < uint64_t{1} << 40 ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const TransposeArgs&) { return 0; }

uint32_t units(const TransposeArgs& args) {
  const uint64_t pixels = to_pixels(args) ? args.extents[0] : args.extents[1];
  return static_cast<uint32_t>((pixels + kUnitPixels - 1) / kUnitPixels);
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const TransposeArgs& args, uint32_t begin, uint32_t end, void*) {
  const bool pixels = to_pixels(args);
  const uint64_t count = pixels ? args.extents[0] : args.extents[1];
  const uint64_t first = uint64_t{begin} * kUnitPixels, stop = uint64_t{end} * kUnitPixels;
  const uint64_t last = stop < count ? stop : count;
  switch (args.elements / count) {
    case 2:
      return run_channels<2>(args, pixels, first, last);
    case 3:
      return run_channels<3>(args, pixels, first, last);
    default:
      return run_channels<4>(args, pixels, first, last);
  }
}
#endif

}  // namespace qplan::transpose_sse41
