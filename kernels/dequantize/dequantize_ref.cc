#include "kernels/dequantize/dequantize.h"
#include "kernels/elementwise/broadcast.h"

namespace qplan {
namespace dequantize_ref {
namespace {

// step: between elements of the input.
template <typename T>
void run_typed(const DequantizeArgs& args, const T* from, uint64_t step, float* to, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i)
    to[i] = args.scale * static_cast<float>(from[i * step] - args.zero_point);
}

// Pixels of all images, which have all channels. One channel: the elements.
template <typename T>
void run_pixels(const DequantizeArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  if (args.channels == 1)
    return run_typed<T>(args, input + range.begin, 1, args.output + range.begin, range.end - range.begin);
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t image = at / args.pixels, first = at % args.pixels;
    const uint64_t rest = range.end - at, count = args.pixels - first < rest ? args.pixels - first : rest;
    float* to = args.output + image * args.channels * args.pixels + first;
    for (uint32_t c = 0; c < args.channels; ++c)
      run_typed<T>(args, input + at * args.channels + c, args.channels, to + c * args.pixels, count);
    at += count;
  }
}

}  // namespace

Refusal accepts(const DequantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DequantizeArgs&) { return 0; }
uint32_t work_items(const DequantizeArgs& args) { return num_chunks(args.elements / args.channels); }

void run(const DequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements / args.channels, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_pixels<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_pixels<int16_t>(args, range);
  } else {
    run_pixels<int8_t>(args, range);
  }
}

}  // namespace dequantize_ref
}  // namespace qplan
