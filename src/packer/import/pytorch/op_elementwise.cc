// Sums and products of tensors and the like, and concatenation.
#include <algorithm>
#include <optional>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

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

// Operands are float32 tensors; a number becomes a scalar.
Ref float_binary(OpContext& op, const char* ir_op) {
  const auto operand = [&](size_t i) {
    if (const std::optional<double> number = op.scalar_beside(i, 1 - i))
      return op.constant(ir::make_scalar(static_cast<float>(*number)));
    const Flow flow = op.flow(i);
    if (flow.quantization) throw Unsupported{"a quantised tensor"};
    if (op.dtype(flow) != ir::kFloat32) throw Unsupported{ir::to_string(op.dtype(flow)) + " tensors"};
    return flow.value;
  };
  const ir::ValueId a = operand(0), b = operand(1);
  return op.result(op.emit(ir_op, {a, b}, {}));
}

bool is_float_tensor(OpContext& op, size_t i) {
  const Tensor* tensor = op.values().get<Tensor>(op.ref(i));
  const Storage* storage = tensor == nullptr ? nullptr : op.values().get<Storage>(tensor->storage);
  return storage != nullptr &&
         (storage->type == ScalarType::kFloat16 || storage->type == ScalarType::kFloat32 ||
          storage->type == ScalarType::kFloat64);
}

// torch.add and torch.sub of numbers are arithmetic on sizes.
bool both_numbers(OpContext& op) {
  const auto is_number = [&](size_t i) {
    return !op.is_flow(i) && !is_float_tensor(op, i) && op.as_number(op.ref(i));
  };
  return is_number(0) && is_number(1);
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

Ref import_div(OpContext& op) {
  if (op.has(2)) throw Unsupported{"a rounding mode"};
  return float_binary(op, "divide");
}
Ref import_maximum(OpContext& op) { return float_binary(op, "maximum"); }
Ref import_minimum(OpContext& op) { return float_binary(op, "minimum"); }

// For quantised tensors the result has the quantisation of the first one.
Ref import_cat(OpContext& op) {
  const std::vector<Flow> flows = op.flows(0);
  return concatenate(op, flows[0].quantization, false);
}

}  // namespace qplan::pt
