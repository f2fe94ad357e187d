// Sums and products of tensors and the like, concatenation, and activations.
#include <algorithm>
#include <cmath>
#include <optional>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

Ref quantized_binary(OpContext& op, const char* ir_op, bool relu) {
  const Flow a = op.quantized_flow(0), b = op.quantized_flow(1);
  if (op.dtype(a) != op.dtype(b)) throw Unsupported{"quint8 and qint8 tensors together"};
  const QuantParams output = op.quantization(2, 3, op.dtype(a));
  ir::ValueId value =
      op.emit_quantized(ir_op, {a.value, b.value}, {*a.quantization, *b.quantization, output}, {});
  if (relu) value = emit_clamp(op, value, {.min = 0}, output);
  return op.result(value, output);
}

// Two tensors, or a tensor and a number.
Ref quantized_sum(OpContext& op, bool relu) {
  if (const std::optional<double> number = op.is_flow(1) ? std::nullopt : op.as_number(op.ref(1)))
    return add_number(op, *number, relu);
  return quantized_binary(op, "qnn.add", relu);
}
Ref quantized_product(OpContext& op, bool relu) {
  if (const std::optional<double> number = op.is_flow(1) ? std::nullopt : op.as_number(op.ref(1)))
    return multiply_number(op, *number, relu);
  return quantized_binary(op, "qnn.mul", relu);
}

Ref binary(OpContext& op, const char* ir_op) {
  const auto [a, b] = two_operands(op);
  return op.result(op.emit(ir_op, {a, b}, {}));
}

// a + alpha * b or a - alpha * b, where a and b are arguments `first` and 1 - first.
Ref sum(OpContext& op, char sign, size_t first = 0) {
  const double alpha = op.number(2, 1.0);
  if (alpha == 1 && first == 0) {
    if (const std::optional<Ref> number = number_arithmetic(op, sign)) return *number;
  }
  if (op.plain_number(0) && op.plain_number(1)) throw Unsupported{"two numbers"};
  const std::array<ir::ValueId, 2> operands = two_operands(op);
  const ir::ValueId a = operands[first];
  ir::ValueId b = operands[1 - first];
  if (alpha != 1 && op.dtype(Flow{b}) != ir::kFloat32) throw Unsupported{"integers and a factor"};
  if (alpha != 1) b = op.emit("multiply", {b, op.scale(static_cast<float>(alpha))}, {});
  return op.result(op.emit(sign == '+' ? "add" : "subtract", {a, b}, {}));
}

// The quotient of integers; PyTorch refuses a divisor of 0, kernels make 0 of it.
Ref rounded_quotient(OpContext& op, const std::string& rounding) {
  const auto operands = integer_operands(op);
  if (!operands || (rounding != "floor" && rounding != "trunc")) throw Unsupported{"a rounding mode"};
  return op.result(
      op.emit(rounding == "floor" ? "floor_divide" : "divide", {(*operands)[0], (*operands)[1]}, {}));
}

// One list after the other.
std::optional<Ref> joined_lists(OpContext& op) {
  const std::vector<Ref>*a = items_of(op.values(), op.ref(0)), *b = items_of(op.values(), op.ref(1));
  if (a == nullptr || b == nullptr) return std::nullopt;
  List list{*a};
  list.items.insert(list.items.end(), b->begin(), b->end());
  return op.add(std::move(list));
}

Ref concatenate(OpContext& op, std::optional<QuantParams> output, bool relu) {
  const std::vector<Flow> flows = op.flows(0);
  const ir::DType dtype = op.dtype(flows[0]);
  std::vector<ir::ValueId> operands;
  for (const Flow& flow : flows) {
    if (op.dtype(flow) != dtype || flow.quantization.has_value() != output.has_value()) {
      throw Unsupported{"tensors of different types"};
    }
    operands.push_back(flow.value);
    if (flow.quantization == output) continue;
    operands.back() = op.emit_quantized("qnn.requantize", {flow.value}, {*flow.quantization, *output},
                                        {{"out_dtype", ir::to_string(dtype)}});
  }
  const int64_t axis = OpContext::axis_of(op.integer(1, 0), op.shape(flows[0]).size());
  ir::ValueId value = op.emit("concatenate", std::move(operands), {{"axis", axis}});
  if (relu) value = emit_clamp(op, value, {.min = 0}, *output);
  return op.result(value, output);
}

Ref quantized_cat(OpContext& op, bool relu) {
  const std::vector<Flow> flows = op.flows(0);
  if (!flows[0].quantization) throw Unsupported{"tensors that are not quantised"};
  QuantParams output = *flows[0].quantization;
  if (op.has(2)) output = op.quantization(2, 3, op.dtype(flows[0]));
  return concatenate(op, output, relu);
}

}  // namespace

ir::ValueId float_operand(OpContext& op, size_t i, size_t other) {
  if (const std::optional<double> number = op.scalar_beside(i, other))
    return op.scale(static_cast<float>(*number));
  const Flow flow = op.flow(i);
  if (flow.quantization) throw Unsupported{"a quantised tensor"};
  // Beside bools and integers the result would be another than float32.
  if (op.dtype(flow) == ir::kBool && !op.scalar_beside(other, i) && op.dtype(op.flow(other)) == ir::kFloat32)
    return emit_ones_where(op, flow.value);
  if (op.dtype(flow) != ir::kFloat32) throw Unsupported{ir::to_string(op.dtype(flow)) + " tensors"};
  return flow.value;
}

bool is_wide_integer(ir::DType dtype) { return dtype == ir::kInt32 || dtype == ir::kInt64; }

std::optional<std::array<ir::ValueId, 2>> integer_operands(OpContext& op) {
  const size_t tensor = op.is_flow(0) ? 0 : 1, other = 1 - tensor;
  if (!op.is_flow(tensor)) return std::nullopt;
  const Flow flow = op.flow(tensor);
  const ir::DType dtype = op.dtype(flow);
  if (!is_wide_integer(dtype) || flow.quantization) return std::nullopt;
  std::array<ir::ValueId, 2> operands = {flow.value, flow.value};
  const std::optional<PlainNumber> plain = op.plain_number(other);
  const int64_t* number = plain ? std::get_if<int64_t>(&*plain) : nullptr;
  // A tensor without axes does not widen one that has some.
  if (number != nullptr && op.shape_of(op.ref(other)).value_or(ir::Shape{}).empty()) {
    const bool is_wide = dtype == ir::kInt64;
    if (!is_wide && *number != static_cast<int32_t>(*number)) throw Unsupported{"a number beyond int32"};
    operands[other] = op.constant(
        is_wide ? ir::make_constant(dtype, {}, std::vector<int64_t>{*number})
                : ir::make_constant(dtype, {}, std::vector<int32_t>{static_cast<int32_t>(*number)}));
    return operands;
  }
  if (!op.is_flow(other) && op.values().get<Tensor>(op.ref(other)) == nullptr) return std::nullopt;
  const Flow second = op.flow(other);
  if (op.dtype(second) != dtype || second.quantization) return std::nullopt;
  operands[other] = second.value;
  return operands;
}

std::array<ir::ValueId, 2> two_operands(OpContext& op) {
  if (const auto operands = integer_operands(op)) return *operands;
  const ir::ValueId a = float_operand(op, 0, 1), b = float_operand(op, 1, 0);
  return {a, b};
}

Ref import_quantized_add(OpContext& op) { return quantized_sum(op, false); }
Ref import_quantized_add_relu(OpContext& op) { return quantized_sum(op, true); }
Ref import_quantized_mul(OpContext& op) { return quantized_product(op, false); }
Ref import_quantized_mul_relu(OpContext& op) { return quantized_product(op, true); }
Ref import_quantized_cat(OpContext& op) { return quantized_cat(op, false); }
Ref import_quantized_cat_relu(OpContext& op) { return quantized_cat(op, true); }

Ref import_add(OpContext& op) {
  if (const std::optional<Ref> list = joined_lists(op)) return *list;
  return sum(op, '+');
}
Ref import_sub(OpContext& op) { return sum(op, '-'); }
Ref import_rsub(OpContext& op) { return sum(op, '-', 1); }

Ref import_mul(OpContext& op) {
  if (const std::optional<Ref> product = number_arithmetic(op, '*')) return *product;
  return binary(op, "multiply");
}

Ref import_div(OpContext& op) {
  if (const std::optional<Ref> quotient = number_quotient(op, op.text(2, ""))) return *quotient;
  if (op.has(2)) return rounded_quotient(op, op.text(2, ""));
  const ir::ValueId a = float_operand(op, 0, 1), b = float_operand(op, 1, 0);
  return op.result(op.emit("divide", {a, b}, {}));
}
Ref import_maximum(OpContext& op) { return binary(op, "maximum"); }
Ref import_minimum(OpContext& op) { return binary(op, "minimum"); }
Ref import_floor_divide(OpContext& op) {
  return op.is_flow(0) || op.is_flow(1) ? rounded_quotient(op, "floor") : import_floordiv(op);
}

// For quantised tensors the result has the quantisation of the first one.
Ref import_cat(OpContext& op) {
  const std::vector<Flow> flows = op.flows(0);
  return concatenate(op, flows[0].quantization, false);
}

// Activations. On quantised tensors a clamp keeps the quantisation; other functions go through float32.
namespace {

Ref clamp(OpContext& op, RealRange range) {
  const Flow input = op.flow(0);
  if (range.min > range.max) invalid("the lower bound is above the upper one");
  if (input.quantization) return op.result(input, emit_clamp(op, input.value, range, *input.quantization));
  if (range.min == 0 && std::isinf(range.max)) return op.result(op.emit("nn.relu", {input.value}, {}));
  constexpr double kLeast = std::numeric_limits<float>::lowest(), kMost = std::numeric_limits<float>::max();
  // Float32 bounds, as PyTorch compares with. A bound that is absent is infinite, so that infinity passes.
  const auto bound = [=](double value) {
    if (std::isinf(value)) return value;
    return static_cast<double>(static_cast<float>(std::clamp(value, kLeast, kMost)));
  };
  return op.result(
      op.emit("clip", {input.value}, {{"a_min", bound(range.min)}, {"a_max", bound(range.max)}}));
}

// Output scale of the quantised sigmoid and similar functions: the function's range divided by 256.
QuantParams unit_range(ir::DType dtype) { return {1.0f / 256, static_cast<int32_t>(dtype.min())}; }
QuantParams symmetric_unit_range(ir::DType dtype) { return {2.0f / 256, dtype == ir::kInt8 ? 0 : 128}; }

// Applies f to floats: quantised tensors are dequantised before and quantised after it, which the passes turn
// into a table.
template <typename Function>
Ref through_floats(OpContext& op, const Flow& input, std::optional<QuantParams> output, Function f) {
  if (!input.quantization) return op.result(f(input.value));
  const ir::ValueId real = op.emit_quantized("qnn.dequantize", {input.value}, {*input.quantization}, {});
  const ir::ValueId value =
      op.emit_quantized("qnn.quantize", {f(real)}, {*output},
                        {{"out_dtype", ir::to_string(op.dtype(input))}, {"rule", std::string("mul_even")}});
  return op.result(value, output);
}

// min(max(x + 3, 0), 6) / 6
ir::ValueId hard_sigmoid(OpContext& op, ir::ValueId x) {
  return op.emit("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
}

Ref sigmoid(OpContext& op, const Flow& input, std::optional<QuantParams> output) {
  if (!input.quantization) return op.result(op.emit("sigmoid", {input.value}, {}));
  return op.result(op.emit_quantized("qnn.sigmoid", {input.value}, {*input.quantization, *output}, {}),
                   output);
}

Ref hardswish(OpContext& op, const Flow& input, std::optional<QuantParams> output) {
  return through_floats(op, input, output, [&](ir::ValueId x) {
    return op.emit("multiply", {x, hard_sigmoid(op, x)}, {});
  });
}

Ref leaky_relu(OpContext& op, const Flow& input, double slope, std::optional<QuantParams> output) {
  return through_floats(op, input, output, [&](ir::ValueId x) {
    return op.emit("nn.leaky_relu", {x}, {{"alpha", slope}});
  });
}

}  // namespace

ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization) {
  const ir::DType dtype = op.dtype(Flow{value});
  const int64_t min = quantize_value(range.min, quantization, dtype);
  const int64_t max = quantize_value(range.max, quantization, dtype);
  if (min == dtype.min() && max == dtype.max()) return value;
  return op.emit("clip", {value}, {{"a_min", static_cast<double>(min)}, {"a_max", static_cast<double>(max)}});
}

Ref import_relu(OpContext& op) { return clamp(op, {.min = 0}); }
Ref import_relu6(OpContext& op) { return clamp(op, {0, 6}); }
Ref import_quantized_relu6(OpContext& op) {
  const Ref result = clamp(op, {0, 6});
  return op.boolean(1, false) ? op.write_back(result) : result;
}
Ref import_hardtanh(OpContext& op) { return clamp(op, {op.number(1, -1.0), op.number(2, 1.0)}); }

Ref import_clamp(OpContext& op) {
  constexpr RealRange kAll;
  const double max = op.number(2, kAll.max);
  return clamp(op, {std::min(op.number(1, kAll.min), max), max});  // the upper bound counts, as in PyTorch
}

Ref import_clamp_min(OpContext& op) { return clamp(op, {.min = op.number(1)}); }
Ref import_clamp_max(OpContext& op) { return clamp(op, {.max = op.number(1)}); }

Ref import_sigmoid(OpContext& op) {
  const Flow input = op.flow(0);
  return sigmoid(op, input, unit_range(op.dtype(input)));
}

Ref import_quantized_sigmoid(OpContext& op) {
  const Flow input = op.quantized_flow(0);
  return sigmoid(op, input, op.quantization(1, 2, op.dtype(input)));
}

Ref import_tanh(OpContext& op) {
  const Flow input = op.flow(0);
  return through_floats(op, input, symmetric_unit_range(op.dtype(input)),
                        [&](ir::ValueId x) { return op.emit("tanh", {x}, {}); });
}

Ref import_hardsigmoid(OpContext& op) {
  const Flow input = op.flow(0);
  return through_floats(op, input, unit_range(op.dtype(input)),
                        [&](ir::ValueId x) { return hard_sigmoid(op, x); });
}

Ref import_hardswish(OpContext& op) {
  const Flow input = op.flow(0);
  if (input.quantization) throw Unsupported{"a quantised tensor"};
  return hardswish(op, input, std::nullopt);
}

Ref import_quantized_hardswish(OpContext& op) {
  const Flow input = op.quantized_flow(0);
  return hardswish(op, input, op.quantization(1, 2, op.dtype(input)));
}

Ref import_leaky_relu(OpContext& op) {
  const Flow input = op.flow(0);
  return leaky_relu(op, input, op.number(1, 0.01), input.quantization);
}

Ref import_quantized_leaky_relu(OpContext& op) {
  const Flow input = op.quantized_flow(0);
  return leaky_relu(op, input, op.number(1), op.quantization(3, 4, op.dtype(input)));
}

Ref import_softmax(OpContext& op) {
  const Flow input = op.flow(0);
  if (input.quantization) throw Unsupported{"a quantised tensor"};
  op.expect_float_result(2);
  const int64_t axis = OpContext::axis_of(op.integer(1), op.shape(input).size());
  return op.result(op.emit("nn.softmax", {input.value}, {{"axis", axis}}));
}

Ref import_quantized_softmax(OpContext& op) {
  const Flow input = op.quantized_flow(0);
  const QuantParams output = op.quantization(2, 3, op.dtype(input));
  const int64_t axis = OpContext::axis_of(op.integer(1), op.shape(input).size());
  return op.result(
      op.emit_quantized("qnn.softmax", {input.value}, {*input.quantization, output}, {{"axis", axis}}),
      output);
}

// x, and of negative ones weight * x: one weight, or one for each index of axis 1.
Ref import_prelu(OpContext& op) {
  const Flow input = op.float_flow(0);
  const Flow weight = op.float_flow(1);
  const ir::Shape& shape = op.shape(input);
  const int64_t count = ir::TensorType{ir::kFloat32, op.shape(weight)}.num_elements();
  if (count != 1 && (shape.size() < 2 || shape[1] != count))
    invalid(cat("there are ", count, " weights for a tensor ", to_text(shape)));
  ir::Shape per_channel(shape.size(), 1);
  if (count != 1) per_channel[1] = count;
  const ir::ValueId factor = op.reshape(weight.value, per_channel);
  const ir::ValueId below = op.emit("minimum", {input.value, op.scale(0.0f)}, {});
  const ir::ValueId above = op.emit("nn.relu", {input.value}, {});
  return op.result(op.emit("add", {above, op.emit("multiply", {below, factor}, {})}, {}));
}

// quantize_per_tensor and dequantize.
Ref import_quantize_per_tensor(OpContext& op) {
  const Flow input = op.flow(0);
  if (input.quantization || op.dtype(input) != ir::kFloat32) {
    throw Unsupported{"a " + ir::to_string(op.dtype(input)) + " tensor"};
  }
  const int64_t type = op.integer(3);
  const bool is_signed = type == static_cast<int64_t>(ScalarType::kQint8);
  if (!is_signed && type != static_cast<int64_t>(ScalarType::kQuint8)) {
    throw Unsupported{cat("dtype ", type, " instead of quint8 (13) or qint8 (12)")};
  }
  const ir::DType dtype = is_signed ? ir::kInt8 : ir::kUint8;
  const QuantParams output = op.quantization(1, 2, dtype);
  const ir::ValueId value =
      op.emit_quantized("qnn.quantize", {input.value}, {output},
                        {{"out_dtype", ir::to_string(dtype)}, {"rule", std::string("mul_even")}});
  return op.result(value, output);
}

Ref import_dequantize(OpContext& op) {
  const Flow input = op.flow(0);
  if (!input.quantization) return op.ref(0);  // PyTorch: a float tensor as it is
  return op.result(op.emit_quantized("qnn.dequantize", {input.value}, {*input.quantization}, {}));
}

}  // namespace qplan::pt
