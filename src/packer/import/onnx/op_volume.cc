// Layers over depth, height and width become layers over height and width: the depth of a window becomes
// copies of frames, or a second window along the depth.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

ir::Ints axes_of(const ir::Shape& data) { return {data.begin() + 2, data.end()}; }

// [n, c, d, h, w] as [n * outputs, c * kernel, h, w]: the frames that each output of the depth reads.
Value gathered_frames(const OpContext& op, const Value& data, const WindowAxis& depth) {
  Value padded = data;
  if (depth.pad_begin != 0 || depth.pad_end != 0) {
    const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {depth.pad_begin, depth.pad_end}, {0, 0}, {0, 0}};
    padded = op.emit("nn.pad", {data, ir::make_scalar(0.0f)}, {{"pad_width", width}});
  }
  const int64_t outputs = depth.outputs();
  op.graph().charge(static_cast<uint64_t>(num_positions(outputs, depth.kernel)) * sizeof(int64_t));
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

// The pool of height and width, and then the one of the depth. pool(value, h, w): over the last two axes.
template <typename Pool>
Value pooled_volume(const OpContext& op, const Value& data, const Window& window, const Pool& pool) {
  const ir::Shape s = op.shape(data);
  const Value planes =
      pool(op.reshape(data, {s[0], s[1] * s[2], s[3], s[4]}), window.axes[1], window.axes[2]);
  const int64_t h = op.shape(planes)[2], w = op.shape(planes)[3];
  const Value volume = pool(op.reshape(planes, {s[0], s[1], s[2], h * w}), window.axes[0], {.extent = h * w});
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
  return pooled_volume(op, data, window, [&](const Value& plane, const WindowAxis& h, const WindowAxis& w) {
    return average_plane(op, plane, h, w, include);
  });
}

Value volume_max_pool(const OpContext& op, const Value& data) {
  const Window window = read_window(op, axes_of(op.shape(data)), {});
  return pooled_volume(op, data, window, [&](const Value& plane, const WindowAxis& h, const WindowAxis& w) {
    return op.emit("nn.max_pool2d", {plane}, Window{.axes = {h, w}}.plane_attrs("pool_size"));
  });
}

}  // namespace qplan::onnx
