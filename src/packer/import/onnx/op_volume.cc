// Layers over depth, height and width, by those over height and width: what a window has of the depth is made
// of copies of frames, or of a second window along the depth. Max pools with dilations, likewise.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The numbers of a window along one axis.
struct VolumeAxis {
  int64_t extent, kernel, stride, dilation, pad_begin, pad_end;

  int64_t covered() const { return (kernel - 1) * dilation + 1; }
  int64_t outputs() const { return (extent + pad_begin + pad_end - covered()) / stride + 1; }
};

constexpr int64_t kMaxVolumeWindow = int64_t{1} << 31;

int64_t axis_entry(const std::optional<ir::Ints>& values, size_t i, size_t count, int64_t fallback,
                   int64_t least, const char* name) {
  if (!values) return fallback;
  if (values->size() != count)
    invalid(cat("attribute '", name, "' has ", values->size(), " values, expected ", count));
  if ((*values)[i] < 0 && least == 0) throw Unsupported{cat("negative ", name)};
  if ((*values)[i] < least || (*values)[i] > kMaxVolumeWindow)
    invalid(cat("attribute '", name, "' is ", to_text(*values), ", expected values from ", least, " to ",
                kMaxVolumeWindow));
  return (*values)[i];
}

// SAME_UPPER, SAME_LOWER: as many outputs as strides fit, the odd element of padding after or before.
void pad_axis_same(bool is_upper, VolumeAxis* axis) {
  const int64_t outputs = (axis->extent - 1) / axis->stride + 1;
  const int64_t total = std::max<int64_t>((outputs - 1) * axis->stride + axis->covered() - axis->extent, 0);
  axis->pad_begin = is_upper ? total / 2 : total - total / 2;
  axis->pad_end = total - axis->pad_begin;
}

// Padding after the input for the last, incomplete window, unless it would begin in the padding.
bool pad_axis_ceil(VolumeAxis* axis) {
  const int64_t padded = axis->extent + axis->pad_begin + axis->pad_end;
  int64_t outputs = (padded - axis->covered() + axis->stride - 1) / axis->stride + 1;
  if ((outputs - 1) * axis->stride >= axis->extent + axis->pad_begin) --outputs;
  const int64_t missing = (outputs - 1) * axis->stride + axis->covered() - padded;
  if (missing > 0) axis->pad_end += missing;
  return missing > 0;
}

struct VolumeAxes {
  std::vector<VolumeAxis> of;  // as many as the data has after batch and channels
  bool ceil_padding = false;
};

// kernel: the weights' extents; where it is empty attribute kernel_shape must be there.
VolumeAxes read_volume_axes(const OpContext& op, const ir::Shape& data, const ir::Ints& kernel) {
  const size_t count = data.size() - 2;
  const auto shape = op.attr_ints("kernel_shape"), strides = op.attr_ints("strides"),
             dilations = op.attr_ints("dilations"), pads = op.attr_ints("pads");
  const std::string mode = op.attr_string("auto_pad", "NOTSET");
  const bool ceil_mode = op.attr_int("ceil_mode", 0) != 0;
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    invalid("attribute 'auto_pad' is " + quoted(mode));
  if (!shape && kernel.empty()) invalid("attribute 'kernel_shape' is missing");
  VolumeAxes axes;
  for (size_t i = 0; i < count; ++i) {
    VolumeAxis axis{.extent = data[i + 2],
                    .kernel = axis_entry(shape, i, count, kernel.empty() ? 0 : kernel[i], 1, "kernel_shape"),
                    .stride = axis_entry(strides, i, count, 1, 1, "strides"),
                    .dilation = axis_entry(dilations, i, count, 1, 1, "dilations"),
                    .pad_begin = mode == "VALID" ? 0 : axis_entry(pads, i, 2 * count, 0, 0, "pads"),
                    .pad_end = mode == "VALID" ? 0 : axis_entry(pads, i + count, 2 * count, 0, 0, "pads")};
    if (!kernel.empty() && axis.kernel != kernel[i])
      invalid(
          cat("attribute 'kernel_shape' is ", to_text(*shape), ", but the weights have ", to_text(kernel)));
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") pad_axis_same(mode == "SAME_UPPER", &axis);
    if (axis.extent + axis.pad_begin + axis.pad_end < axis.covered())
      invalid(cat("a window of ", axis.covered(), " does not fit an axis of ", axis.extent));
    if (ceil_mode && (mode == "NOTSET" || mode == "VALID")) axes.ceil_padding |= pad_axis_ceil(&axis);
    axes.of.push_back(axis);
  }
  return axes;
}

// The attributes of operators over height and width, for the two axes from `first` on.
ir::Attrs plane_attrs(const VolumeAxes& axes, size_t first, const char* kernel_name) {
  const VolumeAxis &h = axes.of[first], &w = axes.of[first + 1];
  return {{kernel_name, ir::Ints{h.kernel, w.kernel}},
          {"strides", ir::Ints{h.stride, w.stride}},
          {"padding", ir::Ints{h.pad_begin, w.pad_begin, h.pad_end, w.pad_end}}};
}

int64_t num_copies(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!checked_mul(a, b, &result) || result > kMaxPositions)
    throw Unsupported{cat(a, " times ", b, " copies of frames; make the window or the clip shorter")};
  return result;
}

// [n, c, d, h, w] as [n * outputs, c * kernel, h, w]: the frames that each output of the depth reads.
Value gathered_frames(const OpContext& op, const Value& data, const VolumeAxis& depth) {
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
Value dilated_max(const OpContext& op, const Value& data, size_t at, const VolumeAxis& axis) {
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
Value pooled_volume(const OpContext& op, const Value& data, const VolumeAxes& axes, const char* ir_op,
                    bool include_padding) {
  const auto pool = [&](const Value& value, ir::Attrs attrs) {
    const ir::Ints padding = attrs.get_ints("padding", {});
    const bool is_padded = std::ranges::any_of(padding, [](int64_t pad) { return pad != 0; });
    if (include_padding && is_padded) attrs.set("count_include_pad", true);
    return op.emit(ir_op, {value}, std::move(attrs));
  };
  const ir::Shape s = op.shape(data);
  const Value planes =
      pool(op.reshape(data, {s[0], s[1] * s[2], s[3], s[4]}), plane_attrs(axes, 1, "pool_size"));
  const int64_t h = op.shape(planes)[2], w = op.shape(planes)[3];
  const VolumeAxis& depth = axes.of[0];
  const Value volume = pool(op.reshape(planes, {s[0], s[1], s[2], h * w}),
                            {{"pool_size", ir::Ints{depth.kernel, 1}},
                             {"strides", ir::Ints{depth.stride, 1}},
                             {"padding", ir::Ints{depth.pad_begin, 0, depth.pad_end, 0}}});
  return op.reshape(volume, {s[0], s[1], op.shape(volume)[2], h, w});
}

bool has_volume_dilations(const VolumeAxes& axes) {
  return std::ranges::any_of(axes.of, [](const VolumeAxis& axis) { return axis.dilation != 1; });
}

}  // namespace

Value volume_conv(const OpContext& op, const Value& data, const Value& weights) {
  const ir::Shape s = op.shape(data), k = op.shape(weights);
  if (k.size() != 5) invalid(cat("the weights are ", op.type(weights), ", expected rank 5"));
  const VolumeAxes axes = read_volume_axes(op, s, {k[2], k[3], k[4]});
  ir::Attrs attrs = plane_attrs(axes, 1, "kernel_size");
  if (axes.of[1].dilation != 1 || axes.of[2].dilation != 1)
    attrs.set("dilation", ir::Ints{axes.of[1].dilation, axes.of[2].dilation});
  if (const int64_t groups = op.attr_int("group", 1); groups != 1) attrs.set("groups", groups);
  attrs.set("channels", k[0]);
  const Value frames = gathered_frames(op, data, axes.of[0]);
  Value result =
      op.emit("nn.conv2d", {frames, op.reshape(weights, {k[0], k[1] * k[2], k[3], k[4]})}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  const ir::Shape made = op.shape(result);
  const Value apart = op.reshape(result, {s[0], axes.of[0].outputs(), made[1], made[2], made[3]});
  return op.emit("transpose", {apart}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
}

Value volume_average_pool(const OpContext& op, const Value& data) {
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const VolumeAxes axes = read_volume_axes(op, op.shape(data), {});
  if (has_volume_dilations(axes))
    throw Unsupported{"dilations; average without them, or with a Conv of equal weights"};
  if (include && axes.ceil_padding)
    throw Unsupported{"count_include_pad together with ceil_mode; pad with Pad before it"};
  return pooled_volume(op, data, axes, "nn.avg_pool2d", include);
}

Value volume_max_pool(const OpContext& op, const Value& data) {
  return pooled_volume(op, data, read_volume_axes(op, op.shape(data), {}), "nn.max_pool2d", false);
}

std::optional<Value> dilated_max_pool(const OpContext& op, const Value& data) {
  const ir::Shape& shape = op.shape(data);
  const auto dilations = op.attr_ints("dilations");
  const bool has_any = dilations && std::ranges::any_of(*dilations, [](int64_t d) { return d != 1; });
  if (shape.size() < 3 || !has_any) return std::nullopt;
  const VolumeAxes axes = read_volume_axes(op, shape, {});
  Value result = data;
  for (size_t i = 0; i < axes.of.size(); ++i) result = dilated_max(op, result, i + 2, axes.of[i]);
  return result;
}

}  // namespace qplan::onnx
