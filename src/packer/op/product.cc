// Sums of products with weights, and what adds or multiplies one value per channel: qnn.conv2d, nn.conv2d,
// qnn.dense, nn.dense, nn.bias_add, nn.batch_norm.
#include <algorithm>
#include <cmath>

#include "src/packer/op/attributes.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

// Operands of the quantised products; the float ones have the first two.
enum ProductOperand : size_t { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };

// ---- convolutions: depthwise ones have as many groups as input channels ----

void check_channels(const InferInput& input, int64_t in_channels, int64_t out_channels,
                    int64_t weight_channels) {
  const int64_t groups = attr_int(input.node, "groups");
  if (groups < 1) invalid(cat("attribute 'groups' is ", groups, ", expected at least 1"));
  if (in_channels % groups != 0) {
    invalid(cat("input channels ", in_channels, " are not divisible by groups ", groups));
  }
  if (out_channels % groups != 0) {
    invalid(cat("output channels ", out_channels, " are not divisible by groups ", groups));
  }
  if (weight_channels != in_channels / groups) {
    invalid(cat("'weight' has ", weight_channels, " input channels, expected ", in_channels / groups, " (",
                in_channels, " channels of 'data' in ", groups, " groups)"));
  }
  const int64_t channels = attr_int(input.node, "channels");
  if (channels != 0 && channels != out_channels) {
    invalid(
        cat("attribute 'channels' is ", channels, ", but 'weight' has ", out_channels, " output channels"));
  }
}

// The shape of the result.
ir::Shape convolved(const InferInput& input) {
  check_rank(input, kData, 4);
  check_rank(input, kWeight, 4);
  const ir::TensorType& data = input.type(kData);
  const ir::TensorType& weight = input.type(kWeight);
  const DataLayout d = data_layout(attr_string(input.node, "data_layout"));
  const WeightLayout w = weight_layout(attr_string(input.node, "kernel_layout"));
  const int64_t out_channels = weight.shape[w.o];
  check_channels(input, data.shape[d.c], out_channels, weight.shape[w.i]);
  const Window2d window = conv2d_window(input.node, weight);
  ir::Shape shape(4);
  shape[d.n] = data.shape[d.n];
  shape[d.h] = window.out_h(data.shape[d.h]);
  shape[d.w] = window.out_w(data.shape[d.w]);
  shape[d.c] = out_channels;
  return shape;
}

// Accumulators are int32; of int16 data they may be int64.
ir::DType accumulator_dtype(const InferInput& input) {
  if (input.type(kData).dtype == ir::kInt16)
    return dtype_attr(input.node, "out_dtype", {ir::kInt32, ir::kInt64});
  return dtype_attr(input.node, "out_dtype", {ir::kInt32});
}

std::vector<ir::TensorType> infer_qnn_conv2d(const InferInput& input) {
  check_quantized(input, kData);
  check_8_bit(input, kWeight);
  ir::Shape shape = convolved(input);
  const ir::DType data = input.type(kData).dtype;
  const int64_t out_channels = shape[data_layout(attr_string(input.node, "data_layout")).c];
  check_zero_point(input, kInputZeroPoint, data);
  check_zero_point(input, kKernelZeroPoint, input.type(kWeight).dtype, out_channels);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, out_channels);
  const ir::DType out = accumulator_dtype(input);
  if (const ir::AttrValue* pad_value = input.node.attrs.find("pad_value")) {
    const int64_t value = std::get<int64_t>(*pad_value);
    if (value < data.min() || value > data.max()) {
      invalid(cat("attribute 'pad_value' is ", value, ", outside of ", data));
    }
  }
  return {{out, std::move(shape)}};
}

// Each element of the data adds a window of products, the windows `strides` apart; `crop` rows and columns
// are cut off before the result, whose extents are `output_size`. NHWC and OHWI alone.
std::vector<ir::TensorType> infer_qnn_conv2d_transpose(const InferInput& input) {
  check_quantized(input, kData);
  check_8_bit(input, kWeight);
  check_rank(input, kData, 4);
  check_rank(input, kWeight, 4);
  const ir::TensorType& data = input.type(kData);
  const ir::TensorType& weight = input.type(kWeight);
  if (weight.shape[3] != data.shape[3]) {
    invalid(cat("'weight' has ", weight.shape[3], " input channels, expected ", data.shape[3]));
  }
  check_zero_point(input, kInputZeroPoint, data.dtype);
  check_zero_point(input, kKernelZeroPoint, weight.dtype, weight.shape[0]);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, weight.shape[0]);
  const auto pair = [&](const char* name, int64_t least) {
    const ir::Ints& values = attr_ints(input.node, name);
    constexpr int64_t kMost = INT32_MAX;
    if (values.size() == 2 &&
        std::ranges::all_of(values, [&](int64_t v) { return v >= least && v <= kMost; }))
      return values;
    invalid(cat("attribute '", name, "' is ", to_text(values), ", expected two values from ", least, " on"));
  };
  pair("strides", 1);
  pair("crop", 0);
  const ir::Ints size = pair("output_size", 1);
  return {{accumulator_dtype(input), {data.shape[0], size[0], size[1], weight.shape[0]}}};
}

std::vector<ir::TensorType> infer_nn_conv2d(const InferInput& input) {
  check_dtype(input, kData, {ir::kFloat32});
  check_dtype(input, kWeight, {ir::kFloat32});
  return {{ir::kFloat32, convolved(input)}};
}

void normalize_conv2d(const InferInput& input, ir::Attrs* attrs) {
  const ir::TensorType& weight = input.type(kWeight);
  const Window2d window = conv2d_window(input.node, weight);
  write_window(window, "kernel_size", attrs);
  attrs->set("dilation", ir::Ints{window.dilation_h, window.dilation_w});
  attrs->set("channels", weight.shape[weight_layout(attr_string(input.node, "kernel_layout")).o]);
  const ir::AttrValue* pad_value = attrs->find("pad_value");
  if (pad_value == nullptr) return;
  const int64_t zero_point = constant_operand(input, kInputZeroPoint).as<int32_t>()[0];
  if (!window.is_padded() || std::get<int64_t>(*pad_value) == zero_point) attrs->erase("pad_value");
}

std::optional<ir::Shape> conv2d_weight_shape(const ir::Node& node, const KnownShapes& known) {
  const ir::Ints& kernel_size = attr_ints(node, "kernel_size");
  const int64_t groups = attr_int(node, "groups");
  const ir::Shape* data = known.data;
  if (data == nullptr || data->size() != 4 || kernel_size.size() != 2 || groups < 1) return std::nullopt;
  const DataLayout d = data_layout(attr_string(node, "data_layout"));
  const WeightLayout w = weight_layout(attr_string(node, "kernel_layout"));
  int64_t channels = attr_int(node, "channels");
  if (channels == 0 && known.result != nullptr && known.result->size() == 4) channels = (*known.result)[d.c];
  if (channels < 1 || (*data)[d.c] % groups != 0) return std::nullopt;
  ir::Shape shape(4);
  shape[w.o] = channels;
  shape[w.i] = (*data)[d.c] / groups;
  shape[w.h] = kernel_size[0];
  shape[w.w] = kernel_size[1];
  return shape;
}

// ---- fully connected layers: data [..., k] times weight [n, k] transposed ----

// The shape of the result.
ir::Shape multiplied(const InferInput& input) {
  check_rank(input, kWeight, 2);
  const ir::TensorType& data = input.type(kData);
  const ir::TensorType& weight = input.type(kWeight);
  if (data.shape.empty()) invalid(cat("'data' is ", data, ", expected rank 1 or more"));
  if (data.shape.back() != weight.shape[1]) {
    invalid(cat("'data' is ", data, " and 'weight' is ", weight, ": last extents ", data.shape.back(),
                " and ", weight.shape[1], " differ"));
  }
  const int64_t units = attr_int(input.node, "units");
  if (units != 0 && units != weight.shape[0]) {
    invalid(cat("attribute 'units' is ", units, ", but 'weight' has ", weight.shape[0], " rows"));
  }
  ir::Shape shape = data.shape;
  shape.back() = weight.shape[0];
  return shape;
}

std::vector<ir::TensorType> infer_qnn_dense(const InferInput& input) {
  check_quantized(input, kData);
  check_8_bit(input, kWeight);
  ir::Shape shape = multiplied(input);
  const int64_t out_channels = shape.back();
  check_zero_point(input, kInputZeroPoint, input.type(kData).dtype);
  check_zero_point(input, kKernelZeroPoint, input.type(kWeight).dtype, out_channels);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, out_channels);
  return {{accumulator_dtype(input), std::move(shape)}};
}

std::vector<ir::TensorType> infer_nn_dense(const InferInput& input) {
  check_dtype(input, kData, {ir::kFloat32});
  check_dtype(input, kWeight, {ir::kFloat32});
  return {{ir::kFloat32, multiplied(input)}};
}

void normalize_dense(const InferInput& input, ir::Attrs* attrs) {
  attrs->set("units", input.type(kWeight).shape[0]);
}

std::optional<ir::Shape> dense_weight_shape(const ir::Node& node, const KnownShapes& known) {
  int64_t units = attr_int(node, "units");
  if (units == 0 && known.result != nullptr && !known.result->empty()) units = known.result->back();
  if (known.data == nullptr || known.data->empty() || units <= 0) return std::nullopt;
  return ir::Shape{units, known.data->back()};
}

std::vector<ir::TensorType> infer_nn_batch_matmul(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  check_dtype(input, 1, {ir::kFloat32});
  return {{ir::kFloat32, matmul_shape(input)}};
}

// ---- one value per channel ----

std::vector<ir::TensorType> infer_bias_add(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt64, ir::kFloat32});
  check_same_dtype(input, 1, 0);
  check_rank(input, 1, 1);
  const ir::TensorType& data = input.type(0);
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  const int64_t extent = data.shape[static_cast<size_t>(axis)];
  if (input.type(1).shape[0] != extent) {
    invalid(cat("'bias' is ", input.type(1), ", expected ", extent, " values for axis ", axis, " of ", data));
  }
  return {data};
}

// (data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta, as inference applies it.
std::vector<ir::TensorType> infer_batch_norm(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), data.shape.size()));
  const ir::TensorType expected{ir::kFloat32, {data.shape[axis]}};
  for (size_t i = 1; i < input.node.operands.size(); ++i) {
    if (input.type(i) == expected) continue;
    invalid(cat(operand_name(input, i), " is ", input.type(i), ", expected ", expected, " for axis ", axis,
                " of ", data));
  }
  const double epsilon = attr_float(input.node, "epsilon");
  if (!std::isfinite(epsilon) || epsilon < 0) invalid("attribute 'epsilon' must be finite and not negative");
  return {data};
}

// ---- rows ----

OpDef quantized_product(std::string name, std::vector<AttrDef> attrs) {
  return {.name = std::move(name),
          .operands = {{"data"},
                       {"weight", OperandRole::kWeight},
                       zero_point("input_zero_point", kData),
                       zero_point("kernel_zero_point", kWeight),
                       scale("input_scale", kData),
                       scale("kernel_scale", kWeight)},
          .attrs = std::move(attrs),
          .kind = OpKind::kProduct,
          .quantization = Quantization::kOperands};
}

OpDef float_product(std::string name, std::vector<AttrDef> attrs, std::string quantized_form) {
  return {.name = std::move(name),
          .operands = {{.name = "data", .dtype = ir::kFloat32},
                       {.name = "weight", .role = OperandRole::kWeight, .dtype = ir::kFloat32}},
          .attrs = std::move(attrs),
          .kind = OpKind::kProduct,
          .keeps_dtype = true,
          .result_dtype = ir::kFloat32,
          .quantized_form = std::move(quantized_form)};
}

std::vector<AttrDef> conv2d_attrs() {
  return {{"strides", AttrKind::kInts, ir::Ints{1, 1}},
          {"padding", AttrKind::kInts, ir::Ints{0, 0, 0, 0}},
          {"dilation", AttrKind::kInts, ir::Ints{1, 1}},
          {"groups", AttrKind::kInt, 1},
          {"channels", AttrKind::kInt, 0},
          with_role(AttrRole::kWindow, {"kernel_size", AttrKind::kInts, ir::Ints{}}),
          with_role(AttrRole::kLayout, {"data_layout", AttrKind::kString, "NCHW"}),
          with_role(AttrRole::kWeightLayout, {"kernel_layout", AttrKind::kString, "OIHW"})};
}

// What Relay's convolutions and fully connected layers say of their own schedules.
std::vector<RelayAttrDef> conv2d_relay_attrs() {
  return {{"auto_scheduler_rewritten_layout", {""}}, {"meta_schedule_original_shape", {"*"}}};
}

std::vector<RelayAttrDef> dense_relay_attrs() {
  return {{"auto_scheduler_rewritten_layout", {""}}, {"meta_schedule_original_shape", {"*"}}};
}

RelayAttrDef float_output() { return {"out_dtype", {"", "float32"}}; }

}  // namespace

OpDef list::qnn_conv2d() {
  std::vector<AttrDef> attrs = conv2d_attrs();
  attrs.push_back(with_role(AttrRole::kDtype, {"out_dtype", AttrKind::kString, "int32"}));
  attrs.push_back(
      {.name = "pad_value", .kind = AttrKind::kInt, .optional = true, .role = AttrRole::kDataValue});
  OpDef op = quantized_product("qnn.conv2d", std::move(attrs));
  op.relay_attrs = conv2d_relay_attrs();
  op.infer = infer_qnn_conv2d;
  op.normalize = normalize_conv2d;
  op.weight_shape = conv2d_weight_shape;
  op.complete = complete_out_layout;
  return op;
}

OpDef list::qnn_conv2d_transpose() {
  OpDef op = quantized_product("qnn.conv2d_transpose",
                               {{"strides", AttrKind::kInts, ir::Ints{1, 1}},
                                {"crop", AttrKind::kInts, ir::Ints{0, 0}},
                                {"output_size", AttrKind::kInts},
                                with_role(AttrRole::kDtype, {"out_dtype", AttrKind::kString, "int32"})});
  // No pass may move its zero point into the bias: how many products an output has depends on its position.
  op.kind = OpKind::kOpaque;
  op.work = Work::kConvolution;
  op.infer = infer_qnn_conv2d_transpose;
  return op;
}

OpDef list::nn_conv2d() {
  OpDef op = float_product("nn.conv2d", conv2d_attrs(), "qnn.conv2d");
  op.relay_attrs = conv2d_relay_attrs();
  op.relay_attrs.push_back(float_output());
  op.infer = infer_nn_conv2d;
  op.weight_shape = conv2d_weight_shape;
  op.complete = complete_out_layout;
  return op;
}

OpDef list::qnn_dense() {
  OpDef op = quantized_product(
      "qnn.dense",
      {{"units", AttrKind::kInt, 0}, with_role(AttrRole::kDtype, {"out_dtype", AttrKind::kString, "int32"})});
  op.relay_attrs = dense_relay_attrs();
  op.infer = infer_qnn_dense;
  op.normalize = normalize_dense;
  op.weight_shape = dense_weight_shape;
  return op;
}

OpDef list::nn_dense() {
  OpDef op = float_product("nn.dense", {{"units", AttrKind::kInt, 0}}, "qnn.dense");
  op.relay_attrs = dense_relay_attrs();
  op.relay_attrs.push_back(float_output());
  op.infer = infer_nn_dense;
  op.weight_shape = dense_weight_shape;
  return op;
}

OpDef list::nn_batch_matmul() {
  return {.name = "nn.batch_matmul",
          .operands = {{.name = "lhs", .dtype = ir::kFloat32}, {.name = "rhs", .dtype = ir::kFloat32}},
          .attrs = {{"transpose_b", AttrKind::kBool, false}},
          .keeps_dtype = true,
          .result_dtype = ir::kFloat32,
          .quantized_form = "qnn.batch_matmul",
          .work = Work::kConvolution,
          .relay_attrs = {{"transpose_a", {"False", "0"}}, float_output()},
          .infer = infer_nn_batch_matmul};
}

OpDef list::nn_bias_add() {
  return {.name = "nn.bias_add",
          .operands = {{"data"}, {"bias", OperandRole::kPerChannel}},
          .attrs = {axis_attr(1)},
          .kind = OpKind::kBroadcast,
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .infer = infer_bias_add};
}

OpDef list::nn_batch_norm() {
  const auto per_channel = [](std::string name, bool positive) {
    return OperandDef{.name = std::move(name),
                      .role = OperandRole::kPerChannel,
                      .dtype = ir::kFloat32,
                      .positive = positive};
  };
  return {.name = "nn.batch_norm",
          .operands = {{.name = "data", .dtype = ir::kFloat32},
                       per_channel("gamma", false),
                       per_channel("beta", false),
                       per_channel("moving_mean", false),
                       per_channel("moving_var", true)},
          .attrs = {axis_attr(1), {"epsilon", AttrKind::kFloat, 1e-5}},
          .kind = OpKind::kBroadcast,
          .keeps_shape = true,
          .keeps_dtype = true,
          .result_dtype = ir::kFloat32,
          .follows_layout = true,
          .relay_attrs = {{"center", {"True", "1"}}, {"scale", {"True", "1"}}},
          .infer = infer_batch_norm};
}

}  // namespace qplan::op
