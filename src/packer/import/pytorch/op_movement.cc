// Operators that move or reshape a tensor, and those that leave it unchanged; the quantisation stays.
#include <algorithm>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

namespace qplan::pt {
namespace {

Ref reshape(OpContext& op, const Flow& input, const std::vector<int64_t>& shape) {
  return op.result(input, op.emit("reshape", {input.value}, {{"newshape", shape}}));
}

Ref permute(OpContext& op, const Flow& input, const std::vector<int64_t>& axes) {
  return op.result(input, op.emit("transpose", {input.value}, {{"axes", axes}}));
}

// pad: [before, after] of the last axis, then of the one before it, ...
Ref pad(OpContext& op, double value) {
  const Flow input = op.flow(0);
  const std::vector<int64_t> pads = op.integers(1);
  const size_t rank = op.shape(input).size();
  if (pads.size() % 2 != 0 || pads.size() / 2 > rank) {
    invalid(cat("there are ", pads.size(), " pads for a tensor of rank ", rank));
  }
  std::vector<ir::Ints> widths(rank, ir::Ints{0, 0});
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < 0) throw Unsupported{"negative pads"};
    widths[rank - 1 - i / 2][i % 2] = pads[i];
  }
  ir::ValueId fill;
  if (input.quantization) {
    fill = op.zero_point(static_cast<int32_t>(quantize_value(value, *input.quantization, op.dtype(input))));
  } else {
    fill = op.scale(static_cast<float>(value));
  }
  return op.result(input, op.emit("nn.pad", {input.value, fill}, {{"pad_width", std::move(widths)}}));
}

}  // namespace

Ref import_pad(OpContext& op) {
  if (const std::string mode = op.text(2, "constant"); mode != "constant")
    throw Unsupported{"mode " + in_quotes(mode)};
  return pad(op, op.number(3, 0.0));
}

Ref import_constant_pad_nd(OpContext& op) { return pad(op, op.number(2, 0.0)); }

Ref import_flatten(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.empty()) return reshape(op, input, {1});
  const auto first = static_cast<size_t>(OpContext::axis_of(op.integer(1, 0), shape.size()));
  const auto last = static_cast<size_t>(OpContext::axis_of(op.integer(2, -1), shape.size()));
  if (first > last) invalid(cat("start_dim ", first, " is after end_dim ", last));
  ir::Shape flat(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  flat.push_back(1);
  for (size_t i = first; i <= last; ++i) flat.back() *= shape[i];  // bounded by ir/types.h
  flat.insert(flat.end(), shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, shape.end());
  return reshape(op, input, flat);
}

Ref import_reshape(OpContext& op) { return reshape(op, op.flow(0), op.integers(1)); }

Ref import_squeeze(OpContext& op) {
  const Flow input = op.flow(0);
  const ir::Shape shape = op.shape(input);
  std::vector<int64_t> axes;
  if (op.has(1)) axes = op.integers(1);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, shape.size());
  ir::Shape squeezed;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool named = !op.has(1) || std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (shape[i] != 1 || !named) squeezed.push_back(shape[i]);
  }
  return reshape(op, input, squeezed);
}

Ref import_unsqueeze(OpContext& op) {
  const Flow input = op.flow(0);
  ir::Shape shape = op.shape(input);
  const int64_t axis = OpContext::axis_of(op.integer(1), shape.size() + 1);
  shape.insert(shape.begin() + axis, 1);
  return reshape(op, input, shape);
}

Ref import_permute(OpContext& op) {
  const Flow input = op.flow(0);
  std::vector<int64_t> axes = op.integers(1);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(input).size());
  return permute(op, input, axes);
}

Ref import_transpose(OpContext& op) {
  const Flow input = op.flow(0);
  const size_t rank = op.shape(input).size();
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(OpContext::axis_of(op.integer(1), rank))],
            axes[static_cast<size_t>(OpContext::axis_of(op.integer(2), rank))]);
  return permute(op, input, axes);
}

Ref import_same(OpContext& op) { return op.ref(0); }

// A value of its own: operators in place change one and not the other.
Ref import_clone(OpContext& op) { return op.add(Value(op.values().at(op.ref(0)))); }

Ref import_dropout(OpContext& op) {
  if (op.boolean(2, false)) throw Unsupported{"train=True"};
  return op.ref(0);
}

// Sums and products of tensors, and concatenation.
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

// Operands are float32 tensors; a number becomes a scalar.
Ref float_binary(OpContext& op, const char* ir_op) {
  const auto operand = [&](size_t i) {
    const std::optional<double> number = op.is_flow(i) ? std::nullopt : op.as_number(op.ref(i));
    if (number) return op.constant(ir::make_scalar(static_cast<float>(*number)));
    const Flow flow = op.flow(i);
    if (flow.quantization) throw Unsupported{"a quantised tensor"};
    if (op.dtype(flow) != ir::kFloat32) throw Unsupported{ir::to_string(op.dtype(flow)) + " tensors"};
    return flow.value;
  };
  const ir::ValueId a = operand(0), b = operand(1);
  return op.result(op.emit(ir_op, {a, b}, {}));
}

// torch.add and torch.sub of numbers are arithmetic on sizes.
bool both_numbers(OpContext& op) {
  return !op.is_flow(0) && !op.is_flow(1) && op.as_number(op.ref(0)) && op.as_number(op.ref(1));
}

Ref integer_result(OpContext& op, int64_t (*apply)(uint64_t a, uint64_t b)) {
  return op.add(apply(static_cast<uint64_t>(op.integer(0)), static_cast<uint64_t>(op.integer(1))));
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

Ref import_quantized_add(OpContext& op) { return quantized_binary(op, "qnn.add", false); }
Ref import_quantized_add_relu(OpContext& op) { return quantized_binary(op, "qnn.add", true); }
Ref import_quantized_mul(OpContext& op) { return quantized_binary(op, "qnn.mul", false); }
Ref import_quantized_mul_relu(OpContext& op) { return quantized_binary(op, "qnn.mul", true); }
Ref import_quantized_cat(OpContext& op) { return quantized_cat(op, false); }
Ref import_quantized_cat_relu(OpContext& op) { return quantized_cat(op, true); }

Ref import_add(OpContext& op) {
  if (both_numbers(op)) {
    return integer_result(op, [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a + b); });
  }
  if (op.number(2, 1.0) != 1.0) throw Unsupported{"alpha other than 1"};
  return float_binary(op, "add");
}

Ref import_sub(OpContext& op) {
  if (both_numbers(op)) {
    return integer_result(op, [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b); });
  }
  if (op.number(2, 1.0) != 1.0) throw Unsupported{"alpha other than 1"};
  return float_binary(op, "subtract");
}

Ref import_mul(OpContext& op) {
  if (both_numbers(op)) {
    return integer_result(op, [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a * b); });
  }
  return float_binary(op, "multiply");
}

// For quantised tensors the result has the quantisation of the first one.
Ref import_cat(OpContext& op) {
  const std::vector<Flow> flows = op.flows(0);
  return concatenate(op, flows[0].quantization, false);
}

}  // namespace qplan::pt
