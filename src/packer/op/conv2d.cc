// qnn.conv2d and nn.conv2d: depthwise convolutions are those whose groups equal the input channels.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

enum Operand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };

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

std::vector<ir::TensorType> infer_quantized(const InferInput& input) {
  check_quantized(input, kData);
  check_quantized(input, kWeight);
  ir::Shape shape = convolved(input);
  const ir::DType data = input.type(kData).dtype;
  const int64_t out_channels = shape[data_layout(attr_string(input.node, "data_layout")).c];
  check_zero_point(input, kInputZeroPoint, data);
  check_zero_point(input, kKernelZeroPoint, input.type(kWeight).dtype, out_channels);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, out_channels);
  const ir::DType out = dtype_attr(input.node, "out_dtype", {ir::kInt32});
  if (const ir::AttrValue* pad_value = input.node.attrs.find("pad_value")) {
    const int64_t value = std::get<int64_t>(*pad_value);
    if (value < data.min() || value > data.max()) {
      invalid(cat("attribute 'pad_value' is ", value, ", outside of ", data));
    }
  }
  return {{out, std::move(shape)}};
}

std::vector<ir::TensorType> infer_float(const InferInput& input) {
  check_dtype(input, kData, {ir::kFloat32});
  check_dtype(input, kWeight, {ir::kFloat32});
  return {{ir::kFloat32, convolved(input)}};
}

std::vector<AttrDef> common_attrs() {
  return {{"strides", AttrKind::kInts, ir::Ints{1, 1}},
          {"padding", AttrKind::kInts, ir::Ints{0, 0, 0, 0}},
          {"dilation", AttrKind::kInts, ir::Ints{1, 1}},
          {"groups", AttrKind::kInt, 1},
          {"channels", AttrKind::kInt, 0},
          {"kernel_size", AttrKind::kInts, ir::Ints{}},
          {"data_layout", AttrKind::kString, "NCHW"},
          {"kernel_layout", AttrKind::kString, "OIHW"}};
}

}  // namespace

OpDef list::qnn_conv2d() {
  std::vector<AttrDef> attrs = common_attrs();
  attrs.push_back({"out_dtype", AttrKind::kString, "int32"});
  attrs.push_back({.name = "pad_value", .kind = AttrKind::kInt, .optional = true});
  return {
      .name = "qnn.conv2d",
      .operands = {"data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale"},
      .attrs = std::move(attrs),
      .infer = infer_quantized};
}

OpDef list::nn_conv2d() {
  return {.name = "nn.conv2d", .operands = {"data", "weight"}, .attrs = common_attrs(), .infer = infer_float};
}

}  // namespace qplan::op
