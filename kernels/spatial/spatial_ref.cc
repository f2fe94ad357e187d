// The references of avg_pool2d, max_pool2d and resize_bilinear. A work item is an output row.
#include "kernels/numeric/requantize.h"
#include "kernels/spatial/spatial.h"

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

namespace resize_bilinear_ref {
namespace {

// One axis of the resize.
struct Axis {
  int32_t input;
  int32_t output;
  bool align_corners;
  bool half_pixel_centers;
};

// The two neighbours of an output and its distance to the lower one: in elements or, as an integer, in
// 1/1024.
template <typename Distance>
struct Neighbours {
  int32_t lower;
  int32_t upper;
  Distance distance;
};

struct Float {
  using Distance = float;
  static constexpr float kOne = 1.0f;

  static Neighbours<float> neighbours(const Axis& axis, int32_t at) {
    float scale = static_cast<float>(axis.input) / static_cast<float>(axis.output);
    if (axis.align_corners && axis.output > 1) {
      scale = static_cast<float>(axis.input - 1) / static_cast<float>(axis.output - 1);
    }
    const float value = static_cast<float>(at);
    const float position = axis.half_pixel_centers ? (value + 0.5f) * scale - 0.5f : value * scale;
    const int32_t whole = static_cast<int32_t>(position);  // towards zero: floor where position >= 0
    const int32_t ceiling = static_cast<float>(whole) < position ? whole + 1 : whole;
    const int32_t last = axis.input - 1;
    const int32_t lower = clamp_s32(whole, 0, last);
    return {lower, clamp_s32(ceiling, 0, last), position - static_cast<float>(lower)};
  }

  static int32_t rounded(float sum) { return static_cast<int32_t>(sum + 0.5f); }
};

struct Integer {
  using Distance = int64_t;
  static constexpr int64_t kOne = 1024;

  static Neighbours<int64_t> neighbours(const Axis& axis, int32_t at) {
    int32_t scale = (1024 * axis.input + axis.output / 2) / axis.output;
    if (axis.align_corners && axis.output > 1) {
      scale = (1024 * (axis.input - 1) + (axis.output - 1) / 2) / (axis.output - 1);
    }
    const int32_t position = axis.half_pixel_centers ? at * scale + scale / 2 - 512 : at * scale;
    const int32_t last = axis.input - 1;
    const int32_t lower = clamp_s32(position / 1024, 0, last);
    return {lower, clamp_s32((position + 1023) / 1024, 0, last), position - 1024 * lower};
  }

  static int32_t rounded(int64_t sum) {
    constexpr int64_t kHalf = int64_t{1} << 19;
    return static_cast<int32_t>((sum + (sum > 0 ? kHalf : -kHalf)) / (int64_t{1} << 20));
  }
};

template <typename T, typename Rule>
void run_rows(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end) {
  using Distance = typename Rule::Distance;
  const Axis height = {static_cast<int32_t>(args.input_h), static_cast<int32_t>(args.output_h),
                       args.align_corners, args.half_pixel_centers};
  const Axis width = {static_cast<int32_t>(args.input_w), static_cast<int32_t>(args.output_w),
                      args.align_corners, args.half_pixel_centers};
  const uint64_t row_elements = uint64_t{args.input_w} * args.channels;
  for (uint32_t row = begin; row < end; ++row) {
    const T* image = static_cast<const T*>(args.input) + row / args.rows * args.input_h * row_elements;
    T* output = static_cast<T*>(args.output) + uint64_t{row} * args.output_w * args.channels;
    const auto y = Rule::neighbours(height, static_cast<int32_t>(args.first_row + row % args.rows));
    const T* top_row = image + static_cast<uint32_t>(y.lower) * row_elements;
    const T* bottom_row = image + static_cast<uint32_t>(y.upper) * row_elements;
    for (uint32_t column = 0; column < args.output_w; ++column) {
      const auto x = Rule::neighbours(width, static_cast<int32_t>(column));
      const uint64_t left = static_cast<uint64_t>(x.lower) * args.channels;
      const uint64_t right = static_cast<uint64_t>(x.upper) * args.channels;
      const Distance dy = y.distance;
      const Distance dx = x.distance;
      for (uint32_t c = 0; c < args.channels; ++c) {
        const Distance x00 = static_cast<Distance>(top_row[left + c]);
        const Distance x10 = static_cast<Distance>(bottom_row[left + c]);
        const Distance x01 = static_cast<Distance>(top_row[right + c]);
        const Distance x11 = static_cast<Distance>(bottom_row[right + c]);
        const Distance sum = x00 * (Rule::kOne - dy) * (Rule::kOne - dx) + x10 * dy * (Rule::kOne - dx) +
                             x01 * (Rule::kOne - dy) * dx + x11 * dy * dx;
        *output++ = static_cast<T>(Rule::rounded(sum));
      }
    }
  }
}

}  // namespace

Refusal accepts(const ResizeBilinearArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const ResizeBilinearArgs&) { return 0; }
uint32_t work_items(const ResizeBilinearArgs& args) { return args.batch * args.rows; }

void run(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.rule == ResizeRounding::kFloat) return run_rows<uint8_t, Float>(args, begin, end);
  if (args.dtype == Dtype::kU8) return run_rows<uint8_t, Integer>(args, begin, end);
  if (args.dtype == Dtype::kS16) return run_rows<int16_t, Integer>(args, begin, end);
  run_rows<int8_t, Integer>(args, begin, end);
}

}  // namespace resize_bilinear_ref
}  // namespace qplan
