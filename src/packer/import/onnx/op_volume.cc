// Layers over depth, height and width become layers over height and width: the depth of a window becomes
// copies of frames, or a second window along the depth. Max pools with dilations become copies, too.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

ir::Ints axes_of(const ir::Shape& data) { return {data.begin() + 2, data.end()}; }

int64_t num_copies(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!checked_mul(a, b, &result) || result > kMaxPositions)
    throw Unsupported{cat(a, " times ", b, " copies of frames; make the window or the clip shorter")};
  return result;
}

// [n, c, d, h, w] as [n * outputs, c * kernel, h, w]: the frames that each output of the depth reads.
Value gathered_frames(const OpContext& op, const Value& data, const WindowAxis& depth) {
  Value padded = data;
  if (depth.pad_begin != 0 || depth.pad_end != 0) {
    const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {depth.pad_begin, depth.pad_end}, {0, 0}, {0, 0}};
    padded = op.emit("nn.pad", {data, ir::make_scalar(0.0f)}, {{"pad_width", width}});
  }
  const int64_t outputs = depth.outputs();
  op.graph().charge(static_cast<uint64_t>(num_copies(outputs, depth.kernel)) * sizeof(int64_t));
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < depth.kernel; ++k) positions.push_back(o * depth.stride + k * depth.dilation);
  }
  const Value frames = taken(op, padded, 2, positions);
  const ir::Shape s = op.shape(data);
  const Value apart = op.reshape(frames, {s[0], s[1], outputs, depth.kernel, s[3], s[4]});
  const Value moved = op.emit("transpose", {apart}, {{"axes", ir::Ints{0, 2, 1, 3, 4, 5}}});
  return op.reshape(moved, {s[0] * outputs, s[1] * depth.kernel, s[3], s[4]});
}

// The greatest element of each window along one axis, with dilations: a window's positions in the padding
// name its first element inside instead, which changes no maximum.
Value dilated_max(const OpContext& op, const Value& data, size_t at, const WindowAxis& axis) {
  const int64_t outputs = axis.outputs();
  op.graph().charge(static_cast<uint64_t>(num_copies(outputs, axis.kernel)) * sizeof(int64_t));
  ir::Ints positions;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t begin = o * axis.stride - axis.pad_begin;
    const int64_t skipped = begin < 0 ? (-begin + axis.dilation - 1) / axis.dilation : 0;
    const int64_t inside = begin + skipped * axis.dilation;
    if (skipped >= axis.kernel || inside >= axis.extent)
      throw Unsupported{"a window that lies in the padding; give it fewer pads"};
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = begin + k * axis.dilation;
      positions.push_back(position < 0 || position >= axis.extent ? inside : position);
    }
  }
  ir::Shape shape = op.shape(data);
  shape[at] = outputs;
  shape.insert(shape.begin() + static_cast<int64_t>(at) + 1, axis.kernel);
  const Value windows = op.reshape(taken(op, data, at, positions), shape);
  return op.emit("max", {windows}, {{"axis", ir::Ints{static_cast<int64_t>(at) + 1}}});
}

// The pool of height and width, and then the one of the depth.
Value pooled_volume(const OpContext& op, const Value& data, const Window& window, const char* ir_op,
                    bool include_padding) {
  const auto pool = [&](const Value& value, ir::Attrs attrs) {
    const ir::Ints padding = attrs.get_ints("padding", {});
    const bool is_padded = std::ranges::any_of(padding, [](int64_t pad) { return pad != 0; });
    if (include_padding && is_padded) attrs.set("count_include_pad", true);
    return op.emit(ir_op, {value}, std::move(attrs));
  };
  const ir::Shape s = op.shape(data);
  const Value planes =
      pool(op.reshape(data, {s[0], s[1] * s[2], s[3], s[4]}), window.plane_attrs("pool_size"));
  const int64_t h = op.shape(planes)[2], w = op.shape(planes)[3];
  const WindowAxis& depth = window.axes[0];
  const Value volume = pool(op.reshape(planes, {s[0], s[1], s[2], h * w}),
                            {{"pool_size", ir::Ints{depth.kernel, 1}},
                             {"strides", ir::Ints{depth.stride, 1}},
                             {"padding", ir::Ints{depth.pad_begin, 0, depth.pad_end, 0}}});
  return op.reshape(volume, {s[0], s[1], op.shape(volume)[2], h, w});
}

}  // namespace

Value volume_conv(const OpContext& op, const Value& data, const Value& weights) {
  const ir::Shape s = op.shape(data), k = op.shape(weights);
  if (k.size() != 5) invalid(cat("the weights are ", op.type(weights), ", expected rank 5"));
  const Window window = read_window(op, axes_of(s), {k[2], k[3], k[4]});
  const std::vector<WindowAxis>& axes = window.axes;
  ir::Attrs attrs = window.plane_attrs("kernel_size");
  if (const int64_t groups = op.attr_int("group", 1); groups != 1) attrs.set("groups", groups);
  attrs.set("channels", k[0]);
  const Value frames = gathered_frames(op, data, axes[0]);
  Value result =
      op.emit("nn.conv2d", {frames, op.reshape(weights, {k[0], k[1] * k[2], k[3], k[4]})}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  const ir::Shape made = op.shape(result);
  const Value apart = op.reshape(result, {s[0], axes[0].outputs(), made[1], made[2], made[3]});
  return op.emit("transpose", {apart}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
}

Value volume_average_pool(const OpContext& op, const Value& data) {
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const Window window = read_window(op, axes_of(op.shape(data)), {});
  check_average(window, include);
  return pooled_volume(op, data, window, "nn.avg_pool2d", include);
}

Value volume_max_pool(const OpContext& op, const Value& data) {
  return pooled_volume(op, data, read_window(op, axes_of(op.shape(data)), {}), "nn.max_pool2d", false);
}

std::optional<Value> dilated_max_pool(const OpContext& op, const Value& data) {
  const ir::Shape& shape = op.shape(data);
  const auto dilations = op.attr_ints("dilations");
  const bool has_any = dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; });
  if (shape.size() < 3 || !has_any) return std::nullopt;
  const Window window = read_window(op, axes_of(shape), {});
  Value result = data;
  for (size_t i = 0; i < window.axes.size(); ++i) result = dilated_max(op, result, i + 2, window.axes[i]);
  return result;
}

}  // namespace qplan::onnx
