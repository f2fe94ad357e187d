// Operators whose operands say what the integers stand for: qnn.quantize, qnn.dequantize, qnn.requantize;
// nn.dynamic_quantize, nn.dynamic_dequantize; qnn.add, qnn.subtract, qnn.mul; qnn.sigmoid, qnn.softmax and
// nn.softmax, of which it is made; qnn.lookup.
#include <algorithm>
#include <cmath>

#include "src/packer/op/attributes.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/requantize_bytes.h"

namespace qplan::op {
namespace {

// ---- conversions ----

std::vector<ir::TensorType> infer_quantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const ir::DType out = dtype_attr(input.node, "out_dtype", {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32});
  check_qparams(input, 1, out, per_axis_extent(input, 1, data));
  check_contract(input.node);
  choice_attr(input.node, "rule", {"", "div_away", "div_even", "mul_even"});
  return {{out, data.shape}};
}

std::vector<ir::TensorType> infer_dequantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32});
  const ir::TensorType& data = input.type(0);
  check_qparams(input, 1, data.dtype, per_axis_extent(input, 1, data));
  check_contract(input.node);
  return {{ir::kFloat32, data.shape}};
}

std::vector<ir::TensorType> infer_requantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt64, ir::kInt8, ir::kUint8, ir::kInt16});
  const ir::TensorType& data = input.type(0);
  const ir::DType out = dtype_attr(input.node, "out_dtype", {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32});
  check_qparams(input, 1, data.dtype, per_axis_extent(input, 1, data));
  check_qparams(input, 3, out, per_axis_extent(input, 3, data));
  check_contract(input.node);
  choice_attr(input.node, "multiplier", {"product_f64", "product_f32", "none"});
  if (requantizes_in_float(input.node)) {
    check_8_bit(input, 0);
    bool has_one_scale = true;
    for (size_t i = 1; i < 5; ++i) has_one_scale = has_one_scale && input.type(i).shape.empty();
    if (out.bits != 8 || !has_one_scale)
      invalid("attribute 'multiplier' is \"none\", expected 8-bit results and scales of one number");
  }
  return {{out, data.shape}};
}

// Relay's `rounding` of qnn.requantize. UPWARD adds one half to the 62-bit product and shifts once: that is
// contract tfl1.
RelayAttr read_rounding(const std::string& value) {
  if (value == "None" || value.empty())
    return {.kind = RelayAttr::Kind::kDrop, .name = "", .value = {}, .reason = ""};
  if (value == "UPWARD") {
    return {.kind = RelayAttr::Kind::kKeep, .name = "contract", .value = "tfl1", .reason = ""};
  }
  const std::string reason =
      value == "TONEAREST"
          ? "rounding \"TONEAREST\" (halves away from zero, in one step) is computed by no kernel, expected "
            "\"UPWARD\" or "
            "\"None\""
          : "unknown rounding \"" + value + "\", expected \"UPWARD\" or \"None\"";
  return {.kind = RelayAttr::Kind::kRefuse, .name = "", .value = {}, .reason = reason};
}

void complete_requantize(ir::Function* function, ir::Node* node) {
  const ir::AttrValue* value = node->attrs.find("out_dtype");
  const auto* name = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  if (name != nullptr && *name == kOperandDtype) {
    node->attrs.set("out_dtype", ir::to_string(function->type(node->operands[0]).dtype));
  }
}

// ---- one operand ----

std::vector<ir::TensorType> infer_qnn_unary(const InferInput& input) {
  check_8_bit(input, 0);
  check_qparams(input, 1, input.type(0).dtype);
  check_qparams(input, 3, input.type(0).dtype);
  check_contract(input.node);
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_qnn_softmax(const InferInput& input) {
  normalized_axis(attr_int(input.node, "axis"), input.type(0).shape.size());
  const double beta = attr_float(input.node, "beta");
  if (!std::isfinite(beta) || beta <= 0) invalid("attribute 'beta' must be positive and finite");
  return infer_qnn_unary(input);
}

std::vector<ir::TensorType> infer_softmax(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32, ir::kFloat64});
  normalized_axis(attr_int(input.node, "axis"), input.type(0).shape.size());
  return {input.type(0)};
}

// int8 or int16 along the last axis.
std::vector<ir::TensorType> infer_integer_softmax(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kInt16});
  if (input.type(0).shape.empty()) invalid("'data' is a scalar, expected an axis");
  for (const char* name : {"input_scale", "beta"}) {
    const double value = attr_float(input.node, name);
    if (!std::isfinite(value) || value <= 0)
      invalid(cat("attribute '", name, "' must be positive and finite"));
  }
  return {{ir::kInt16, input.type(0).shape}};
}

// Any function of an 8-bit value, as a table of its 256 results.
std::vector<ir::TensorType> infer_lookup(const InferInput& input) {
  check_8_bit(input, 0);
  check_8_bit(input, 1);
  if (input.type(1).shape != ir::Shape{256}) {
    invalid(cat("'table' is ", input.type(1), ", expected 256 values: one for each byte of 'data'"));
  }
  constant_operand(input, 1);
  return {{input.type(1).dtype, input.type(0).shape}};
}

// int16 alone: of 8 bits it is a table.
std::vector<ir::TensorType> infer_qnn_tanh(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt16});
  check_qparams(input, 1, ir::kInt16);
  check_qparams(input, 3, ir::kInt16);
  check_contract(input.node);
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_qnn_sigmoid(const InferInput& input) {
  return input.type(0).dtype == ir::kInt16 ? infer_qnn_tanh(input) : infer_qnn_unary(input);
}

std::vector<ir::TensorType> infer_along_last_axis(const InferInput& input) {
  if (input.type(0).shape.empty()) invalid("'data' is a scalar, expected a last axis");
  return infer_qnn_unary(input);
}

// ---- two operands, with broadcasting ----

std::vector<ir::TensorType> infer_qnn_binary(const InferInput& input) {
  check_quantized(input, 0);
  check_same_dtype(input, 1, 0);
  const ir::DType dtype = input.type(0).dtype;
  for (const size_t scale : {2, 4, 6}) check_qparams(input, scale, dtype);
  check_contract(input.node);
  return {{dtype, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

// The output has the shape of the first operand.
std::vector<ir::TensorType> infer_qnn_prelu(const InferInput& input) {
  std::vector<ir::TensorType> result = infer_qnn_binary(input);
  if (result[0].shape == input.type(0).shape) return result;
  invalid(cat("'rhs' is ", input.type(1), ", which does not broadcast to 'lhs', ", input.type(0)));
}

// Matrices [..., m, k] and [..., k, n], or [..., n, k] with transpose_b.
std::vector<ir::TensorType> infer_qnn_batch_matmul(const InferInput& input) {
  check_quantized(input, 0);
  check_same_dtype(input, 1, 0);
  const ir::DType dtype = input.type(0).dtype;
  for (const size_t scale : {2, 4, 6}) check_qparams(input, scale, dtype);
  check_contract(input.node);
  return {{dtype, matmul_shape(input)}};
}

OpDef qnn_binary(std::string name) {
  return {.name = std::move(name),
          .operands = {{"lhs"},
                       {"rhs"},
                       scale("lhs_scale", 0),
                       zero_point("lhs_zero_point", 0),
                       scale("rhs_scale", 1),
                       zero_point("rhs_zero_point", 1),
                       scale("output_scale", kResult),
                       zero_point("output_zero_point", kResult)},
          .attrs = {contract_attr()},
          .kind = OpKind::kBroadcast,
          .quantization = Quantization::kOperands,
          .keeps_dtype = true,
          .follows_layout = true,
          // Scales of operands are scalars here, whose axis means nothing.
          .relay_attrs = {{"lhs_axis", {"*"}}, {"rhs_axis", {"*"}}},
          .infer = infer_qnn_binary};
}

// ---- scales that the run gives ----

// Elements of a row: what one index of the first `rows` axes has. The number of rows.
int64_t num_rows(const InferInput& input, const ir::Shape& shape) {
  const int64_t axes = attr_int(input.node, "rows");
  if (axes < 0 || axes > std::ssize(shape))
    invalid(cat("attribute 'rows' is ", axes, ", expected 0 to ", shape.size(), " axes"));
  int64_t rows = 1;
  for (int64_t axis = 0; axis < axes; ++axis) rows *= shape[static_cast<size_t>(axis)];
  return rows;
}

std::vector<ir::TensorType> infer_dynamic_quantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  ir::Shape shape = input.type(0).shape;
  const int64_t rows = num_rows(input, shape);
  const ir::Ints& padding = attr_ints(input.node, "padding");
  const bool legal = padding.size() == 4 &&
                     std::ranges::all_of(padding, [](int64_t p) { return p >= 0 && p < int64_t{1} << 31; });
  if (!legal)
    invalid(cat("attribute 'padding' is ", to_text(padding), ", expected top, left, bottom, right"));
  if (std::ranges::any_of(padding, [](int64_t p) { return p != 0; })) {
    if (shape.size() != 4 || attr_int(input.node, "rows") != 1)
      invalid("attribute 'padding' asks for data [n, h, w, c] with 'rows' 1");
    shape[1] += padding[0] + padding[2];
    shape[2] += padding[1] + padding[3];
  }
  return {{ir::kInt8, shape}, {ir::kFloat32, {rows}}, {ir::kInt32, {rows}}};
}

std::vector<ir::TensorType> infer_dynamic_dequantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32});
  const ir::Shape& shape = input.type(0).shape;
  if (shape.empty()) invalid("'data' is a scalar, expected channels as its last axis");
  const int64_t rows = num_rows(input, shape);
  const auto expect = [&](size_t operand, ir::TensorType expected) {
    if (input.type(operand) == expected) return;
    invalid(cat(operand_name(input, operand), " is ", input.type(operand), ", expected ", expected));
  };
  expect(1, {ir::kFloat32, {rows}});
  expect(2, {ir::kInt32, {rows}});
  expect(3, {ir::kFloat32, {shape.back()}});
  expect(4, {ir::kInt32, {shape.back()}});
  return {{ir::kFloat32, shape}};
}

AttrDef scale_axis_attr() { return with_role(AttrRole::kScaleAxis, {"axis", AttrKind::kInt, -1}); }
AttrDef out_dtype_attr() { return with_role(AttrRole::kDtype, {"out_dtype", AttrKind::kString, "int8"}); }

}  // namespace

OpDef list::qnn_quantize() {
  return {.name = "qnn.quantize",
          .operands = {{.name = "data", .dtype = ir::kFloat32},
                       scale("output_scale", kResult),
                       zero_point("output_zero_point", kResult)},
          .attrs = {out_dtype_attr(), scale_axis_attr(), contract_attr(),
                    with_role(AttrRole::kRounding, {"rule", AttrKind::kString, ""})},
          .kind = OpKind::kElementwise,
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .converts = true,
          .follows_layout = true,
          .work = Work::kConvert,
          .infer = infer_quantize};
}

OpDef list::qnn_dequantize() {
  return {.name = "qnn.dequantize",
          .operands = {{"data"}, scale("input_scale", 0), zero_point("input_zero_point", 0)},
          .attrs = {scale_axis_attr(), contract_attr()},
          .kind = OpKind::kElementwise,
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .result_dtype = ir::kFloat32,
          .converts = true,
          .contracts_agree = true,
          .follows_layout = true,
          .work = Work::kConvert,
          .relay_attrs = {{"out_dtype", {"float32"}}},
          .infer = infer_dequantize};
}

OpDef list::nn_dynamic_quantize() {
  return {.name = "nn.dynamic_quantize",
          .operands = {{.name = "data", .dtype = ir::kFloat32}},
          .attrs = {{"rows", AttrKind::kInt, 1},
                    {"symmetric", AttrKind::kBool, false},
                    {"padding", AttrKind::kInts, ir::Ints{0, 0, 0, 0}}},
          .work = Work::kConvert,
          .infer = infer_dynamic_quantize,
          .num_results = [](const ir::Node&) { return size_t{3}; }};
}

OpDef list::nn_dynamic_dequantize() {
  const auto of_dtype = [](std::string name, ir::DType dtype) {
    return OperandDef{.name = std::move(name), .dtype = dtype};
  };
  return {.name = "nn.dynamic_dequantize",
          .operands = {of_dtype("data", ir::kInt32), of_dtype("row_scales", ir::kFloat32),
                       of_dtype("row_zero_points", ir::kInt32), of_dtype("weight_scales", ir::kFloat32),
                       of_dtype("weight_sums", ir::kInt32)},
          .attrs = {{"rows", AttrKind::kInt, 1}, {"in_turn", AttrKind::kBool, false}},
          .keeps_shape = true,
          .result_dtype = ir::kFloat32,
          .work = Work::kConvert,
          .infer = infer_dynamic_dequantize};
}

OpDef list::qnn_requantize() {
  return {
      .name = "qnn.requantize",
      .operands = quantized_unary(),
      .attrs = {scale_axis_attr(), out_dtype_attr(), contract_attr(),
                with_role(AttrRole::kRounding, {"multiplier", AttrKind::kString, "product_f64"})},
      .kind = OpKind::kElementwise,
      .quantization = Quantization::kOperands,
      .keeps_shape = true,
      .converts = true,
      .follows_layout = true,
      .work = Work::kConvert,
      .relay_attrs = {{"compute_dtype", {"", "None", "int64"}}, {.name = "rounding", .read = read_rounding}},
      .infer = infer_requantize,
      .complete = complete_requantize};
}

OpDef list::qnn_softmax() {
  return {.name = "qnn.softmax",
          .operands = quantized_unary("scale", "zero_point"),
          .attrs = {axis_attr(-1), {"beta", AttrKind::kFloat, 1.0}, contract_attr()},
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .work = Work::kSoftmax,
          .infer = infer_qnn_softmax};
}

OpDef list::qnn_log_softmax() {
  return {.name = "qnn.log_softmax",
          .operands = quantized_unary("scale", "zero_point"),
          .attrs = {contract_attr()},
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .keeps_dtype = true,
          .work = Work::kSoftmax,
          .infer = infer_along_last_axis};
}

OpDef list::nn_softmax() {
  return {.name = "nn.softmax",
          .operands = {{"data"}},
          .attrs = {axis_attr(-1), {"beta", AttrKind::kFloat, 1.0}},
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .quantized_form = "qnn.softmax",
          .work = Work::kSoftmax,
          .infer = infer_softmax,
          .evaluate = evaluate_softmax};
}

OpDef list::nn_log_softmax() {
  return {.name = "nn.log_softmax",
          .operands = {{"data"}},
          .attrs = {axis_attr(-1)},
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .work = Work::kSoftmax,
          .infer = infer_softmax};
}

OpDef list::nn_integer_softmax() {
  return {.name = "nn.integer_softmax",
          .operands = {{"data"}},
          .attrs = {{"input_scale", AttrKind::kFloat}, {"beta", AttrKind::kFloat, 1.0}},
          .keeps_shape = true,
          .result_dtype = ir::kInt16,
          .work = Work::kSoftmax,
          .infer = infer_integer_softmax};
}

OpDef list::qnn_sigmoid() {
  return {.name = "qnn.sigmoid",
          .operands = quantized_unary("scale", "zero_point"),
          .attrs = {contract_attr()},
          .kind = OpKind::kElementwise,
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .keeps_dtype = true,
          .follows_layout = true,
          .work = Work::kTable,
          .infer = infer_qnn_sigmoid};
}

OpDef list::qnn_tanh() {
  OpDef op = qnn_sigmoid();
  op.name = "qnn.tanh";
  op.infer = infer_qnn_tanh;
  return op;
}

OpDef list::qnn_l2_normalize() {
  return {.name = "qnn.l2_normalize",
          .operands = quantized_unary("scale", "zero_point"),
          .attrs = {contract_attr()},
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .keeps_dtype = true,
          .work = Work::kSoftmax,
          .infer = infer_along_last_axis};
}

OpDef list::qnn_lookup() {
  return {.name = "qnn.lookup",
          .operands = {{"data"}, {"table", OperandRole::kTable}},
          .kind = OpKind::kElementwise,
          .quantization = Quantization::kOperands,
          .keeps_shape = true,
          .follows_layout = true,
          .work = Work::kTable,
          .infer = infer_lookup};
}

OpDef list::qnn_add() { return qnn_binary("qnn.add"); }
OpDef list::qnn_subtract() { return qnn_binary("qnn.subtract"); }
OpDef list::qnn_mul() { return qnn_binary("qnn.mul"); }
OpDef list::qnn_squared_difference() { return qnn_binary("qnn.squared_difference"); }
OpDef list::qnn_divide() { return qnn_binary("qnn.divide"); }
OpDef list::qnn_prelu() {
  OpDef op = qnn_binary("qnn.prelu");
  op.infer = infer_qnn_prelu;
  return op;
}
OpDef list::qnn_batch_matmul() {
  OpDef op = qnn_binary("qnn.batch_matmul");
  op.attrs.push_back({"transpose_b", AttrKind::kBool, false});
  op.kind = OpKind::kOpaque;
  op.follows_layout = false;
  op.work = Work::kConvolution;
  op.infer = infer_qnn_batch_matmul;
  return op;
}

}  // namespace qplan::op
