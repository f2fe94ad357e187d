// Pools and means, which keep their input's quantisation.
#include <algorithm>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/op/attributes.h"

namespace qplan::pt {
namespace {

// The window of a pool. Each list has the value of the height, then that of the width.
struct Window {
  std::vector<int64_t> kernel, stride, padding;
  std::vector<int64_t> ceil_padding = {0, 0};  // after the data and its padding, for ceil_mode

  bool has_ceil_padding() const { return ceil_padding != std::vector<int64_t>{0, 0}; }
};

// Checks the window, and sets ceil_padding.
void complete_window(const OpContext& op, const Flow& input, bool ceil_mode, Window* completed) {
  Window& window = *completed;
  for (size_t i = 0; i < 2; ++i) {
    constexpr int64_t kMost = 1 << 20;
    const int64_t extent = op.shape(input)[2 + i];
    if (window.kernel[i] < 1 || window.kernel[i] > kMost) invalid(cat("kernel size ", window.kernel[i]));
    if (window.stride[i] < 1 || window.stride[i] > kMost) invalid(cat("stride ", window.stride[i]));
    if (window.padding[i] < 0 || window.padding[i] > window.kernel[i] / 2) {
      invalid(cat("padding ", window.padding[i], " is not from 0 to half of kernel size ", window.kernel[i]));
    }
    const int64_t rest = extent + 2 * window.padding[i] - window.kernel[i];
    if (rest < 0) invalid(cat("kernel size ", window.kernel[i], " does not fit the extent ", extent));
    if (ceil_mode) {
      window.ceil_padding[i] =
          op::ceil_padding(extent, window.padding[i], window.padding[i], window.kernel[i], window.stride[i]);
    }
  }
}

ir::Attrs window_attrs(const Window& window) {
  const std::vector<int64_t>&p = window.padding, &c = window.ceil_padding;
  return {{"pool_size", window.kernel},
          {"strides", window.stride},
          {"padding", ir::Ints{p[0], p[1], p[0] + c[0], p[1] + c[1]}},
          {"layout", std::string("NCHW")}};
}

// The data with zeros around it.
Flow padded(OpContext& op, const Flow& input, const std::vector<int64_t>& padding) {
  const ir::ValueId zero =
      input.quantization ? op.zero_point(input.quantization->zero_point) : op.scale(0.0f);
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {padding[0], padding[0]}, {padding[1], padding[1]}};
  Flow result = input;
  result.value = op.emit("nn.pad", {input.value, zero}, {{"pad_width", width}});
  return result;
}

// Kernel, stride and padding, arguments 1 to 3; of a sequence the height's are those of a pool that does
// nothing.
Window window_of(OpContext& op, const Plane& plane, bool ceil_mode) {
  op.ref(1);
  Window window{
      .kernel = plane.numbers(op, 1, {1, 1}), .stride = {}, .padding = plane.numbers(op, 3, {0, 0})};
  window.stride = plane.numbers(op, 2, window.kernel);
  complete_window(op, plane.input(), ceil_mode, &window);
  return window;
}

Ref average(OpContext& op, const Plane& plane, Window window, bool count_include_pad) {
  Flow input = plane.input();
  // The padding of ceil_mode is not counted.
  if (count_include_pad && window.has_ceil_padding()) {
    input = padded(op, input, window.padding);
    window.padding = {0, 0};
    count_include_pad = false;
  }
  ir::Attrs attrs = window_attrs(window);
  attrs.set("count_include_pad", count_include_pad);
  if (!input.quantization) return plane.result(op, op.emit("nn.avg_pool2d", {input.value}, std::move(attrs)));
  const std::vector<QuantParams> params = {*input.quantization, *input.quantization};
  return plane.result(op, op.emit_quantized("qnn.avg_pool2d", {input.value}, params, std::move(attrs)),
                      input.quantization);
}

Ref max_pool(OpContext& op, size_t spatial_axes) {
  const Plane plane(op, op.flow(0), spatial_axes);
  if (plane.numbers(op, 4, {1, 1}) != std::vector<int64_t>{1, 1}) throw Unsupported{"dilation other than 1"};
  const Window window = window_of(op, plane, op.boolean(5, false));
  return plane.result(op, op.emit("nn.max_pool2d", {plane.input().value}, window_attrs(window)),
                      plane.input().quantization);
}

Ref avg_pool(OpContext& op, size_t spatial_axes) {
  const Plane plane(op, op.flow(0), spatial_axes);
  const Window window = window_of(op, plane, op.boolean(4, false));
  const bool is_padded = window.padding != std::vector<int64_t>{0, 0};
  return average(op, plane, window, is_padded && op.boolean(5, true));
}

// Windows of one size, side by side: the output's extents must divide the input's.
Ref adaptive_avg_pool(OpContext& op, size_t spatial_axes) {
  const Plane plane(op, op.flow(0), spatial_axes);
  op.ref(1);
  const std::vector<int64_t> output = plane.numbers(op, 1, {1, 1});
  Window window{.kernel = {}, .stride = {}, .padding = {0, 0}};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = op.shape(plane.input())[2 + i];
    if (output[i] < 1) invalid(cat("output extent ", output[i], " is not positive"));
    if (extent % output[i] != 0)
      throw Unsupported{cat("output extent ", output[i], " of ", extent, ", windows of two sizes")};
    window.kernel.push_back(extent / output[i]);
  }
  window.stride = window.kernel;
  return average(op, plane, window, false);
}

}  // namespace

Ref import_max_pool1d(OpContext& op) { return max_pool(op, 1); }
Ref import_max_pool2d(OpContext& op) { return max_pool(op, 2); }

// The result, and positions, which only training reads.
Ref import_max_pool2d_with_indices(OpContext& op) {
  const Ref result = import_max_pool2d(op);
  return op.add(Tuple{{result, op.add(None{})}});
}

Ref import_avg_pool1d(OpContext& op) { return avg_pool(op, 1); }
Ref import_avg_pool2d(OpContext& op) {
  if (op.has(6)) throw Unsupported{"divisor_override"};
  return avg_pool(op, 2);
}

Ref import_adaptive_avg_pool1d(OpContext& op) { return adaptive_avg_pool(op, 1); }
Ref import_adaptive_avg_pool2d(OpContext& op) { return adaptive_avg_pool(op, 2); }

Ref import_mean(OpContext& op) {
  const Flow input = op.flow(0);
  const size_t rank = op.shape(input).size();
  if (op.has(3) && op.integer(3) != static_cast<int64_t>(ScalarType::kFloat32))
    throw Unsupported{"another dtype"};
  std::vector<int64_t> axes;
  if (op.has(1)) axes = op.integers(1);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  for (size_t axis = 0; axes.size() < rank && !op.has(1); ++axis) axes.push_back(static_cast<int64_t>(axis));
  std::ranges::sort(axes);
  if (axes.empty()) throw Unsupported{"an empty list of axes"};
  ir::Attrs attrs{{"axis", axes}, {"keepdims", op.boolean(2, false)}};
  if (!input.quantization) return op.result(op.emit("mean", {input.value}, std::move(attrs)));
  return op.result(input, op.emit_quantized("qnn.mean", {input.value},
                                            {*input.quantization, *input.quantization}, std::move(attrs)));
}

}  // namespace qplan::pt
