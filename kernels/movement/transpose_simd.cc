// transpose of bytes between planes and pixels of 2 to 4 channels, by the vocabulary's PixelMover.
#include <stddef.h>
#include <stdint.h>

#include "kernels/movement/movement.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint64_t kMinChannels = 2, kMaxChannels = 4;
inline bool are_channels(uint64_t extent) { return extent >= kMinChannels && extent <= kMaxChannels; }
constexpr uint64_t kWorkItemPixels = 1024;

// The planes may be longer than their pixels, which are then some rows of an image.
inline bool to_pixels(const TransposeArgs& args) {
  return are_channels(args.extents[1]) && args.input_strides[0] == 1 &&
         args.input_strides[1] >= args.extents[0];
}
inline bool to_planes(const TransposeArgs& args) {
  return are_channels(args.extents[0]) && args.input_strides[0] == 1 &&
         args.input_strides[1] == args.extents[0];
}

template <int kChannels, bool kToPixels>
inline void move_pixels(const TransposeArgs& args, uint64_t begin, uint64_t end) {
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint64_t stride = kToPixels ? args.input_strides[1] : args.elements / kChannels;
  const PixelMover<kChannels, kToPixels> mover;
  uint64_t p = begin;
  for (; p + mover.kPixels <= end; p += mover.kPixels) {
    mover.move(input + (kToPixels ? p : p * kChannels), output + (kToPixels ? p * kChannels : p), stride);
  }
  for (; p < end; ++p) {
    for (uint64_t c = 0; c < kChannels; ++c) {
      const uint64_t pixel = p * kChannels + c, plane = c * stride + p;
      output[kToPixels ? pixel : plane] = input[kToPixels ? plane : pixel];
    }
  }
}

template <int kChannels>
inline void run_channels(const TransposeArgs& args, bool pixels, uint64_t begin, uint64_t end) {
  pixels ? move_pixels<kChannels, true>(args, begin, end) : move_pixels<kChannels, false>(args, begin, end);
}

// Positions [begin, end) of the second axis, byte by byte.
inline void move_bytes(const TransposeArgs& args, uint64_t begin, uint64_t end) {
  const auto* input = static_cast<const uint8_t*>(args.input);
  auto* output = static_cast<uint8_t*>(args.output);
  for (uint64_t i = 0; i < args.extents[0]; ++i) {
    for (uint64_t j = begin; j < end; ++j) {
      output[i * args.extents[1] + j] = input[i * args.input_strides[0] + j * args.input_strides[1]];
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(transpose) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const TransposeArgs& args) {
  if (args.element_bytes != 1) return Refusal::kDtype;
  if (args.rank != 2 || (!to_pixels(args) && !to_planes(args))) return Refusal::kAxes;
  return args.elements < uint64_t{1} << 40 ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const TransposeArgs&) { return 0; }

uint32_t work_items(const TransposeArgs& args) {
  const uint64_t pixels = to_pixels(args) ? args.extents[0] : args.extents[1];
  return static_cast<uint32_t>((pixels + kWorkItemPixels - 1) / kWorkItemPixels);
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const TransposeArgs& args, uint32_t begin, uint32_t end, void*) {
  const bool pixels = to_pixels(args);
  const uint64_t count = pixels ? args.extents[0] : args.extents[1];
  const uint64_t first = uint64_t{begin} * kWorkItemPixels, stop = uint64_t{end} * kWorkItemPixels;
  const uint64_t last = stop < count ? stop : count;
  // A cascade gives some rows of an image, whose extents need not be those of the whole.
  if (!pixels && !to_planes(args)) return move_bytes(args, first, last);
  switch (pixels ? args.extents[1] : args.extents[0]) {
    case 2:
      return run_channels<2>(args, pixels, first, last);
    case 3:
      return run_channels<3>(args, pixels, first, last);
    case kMaxChannels:
      return run_channels<4>(args, pixels, first, last);
  }
}
#endif

}  // QPLAN_SIMD_NAMESPACE(transpose)

}  // namespace qplan
