// The references of avg_pool2d and max_pool2d. A work item is an output row.
#include "kernels/numeric/requantize.h"
#include "kernels/pool2d/pool2d.h"

namespace qplan {
namespace {

// The average of a window of `count` elements. A function of its own, as there is a loop for each dtype.
__attribute__((noinline)) int32_t average(const Pool2dArgs& args, int64_t sum, int64_t count) {
  if (args.contract == Contract::kF32e) {
    const int64_t centered = sum - count * args.input_zero_point;
    const float scale = pool_scale_f32e(args, static_cast<uint64_t>(count));
    return quantize_f32e(wide_float(centered) * scale, args.output_zero_point, args.clamp_min,
                         args.clamp_max);
  }
  // Half away from zero.
  const uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum) + static_cast<uint64_t>(count) / 2;
  const auto rounded = static_cast<int32_t>(wide_quotient(magnitude, static_cast<uint64_t>(count)));
  return sum < 0 ? -rounded : rounded;
}

template <typename T>
struct Average {
  int64_t sum = 0;
  void add(T value) { sum += value; }
  int32_t result(const Pool2dArgs& args, int64_t count) const { return average(args, sum, count); }
};

template <typename T>
struct Maximum {
  int32_t max = INT32_MIN;
  void add(T value) { max = value > max ? value : max; }
  int32_t result(const Pool2dArgs&, int64_t) const { return max; }
};

template <typename T, typename Reduction>
void run_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t row_elements = uint64_t{args.input_w} * args.channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h;
    const uint32_t y = row % args.output_h;
    const T* image = static_cast<const T*>(args.input) + n * args.input_h * row_elements;
    T* output = static_cast<T*>(args.output) + uint64_t{row} * args.output_w * args.channels;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const int64_t count = int64_t{rows.end - rows.begin} * (columns.end - columns.begin);
      for (uint32_t c = 0; c < args.channels; ++c) {
        Reduction reduction;
        for (uint32_t in_y = rows.begin; in_y < rows.end; ++in_y) {
          for (uint32_t in_x = columns.begin; in_x < columns.end; ++in_x) {
            reduction.add(image[in_y * row_elements + uint64_t{in_x} * args.channels + c]);
          }
        }
        *output++ = static_cast<T>(clamp_s32(reduction.result(args, count), args.clamp_min, args.clamp_max));
      }
    }
  }
}

template <template <typename> class Reduction>
void run_any(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  if (args.dtype == Dtype::kU8) {
    run_rows<uint8_t, Reduction<uint8_t>>(args, begin, end);
  } else if (args.dtype == Dtype::kS16) {
    run_rows<int16_t, Reduction<int16_t>>(args, begin, end);
  } else {
    run_rows<int8_t, Reduction<int8_t>>(args, begin, end);
  }
}

}  // namespace

namespace avg_pool2d_ref {
Refusal accepts(const Pool2dArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_any<Average>(args, begin, end); }
}  // namespace avg_pool2d_ref

namespace max_pool2d_ref {
Refusal accepts(const Pool2dArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_any<Maximum>(args, begin, end); }
}  // namespace max_pool2d_ref

}  // namespace qplan
