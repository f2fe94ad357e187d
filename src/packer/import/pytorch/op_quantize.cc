// quantize_per_tensor and dequantize.
#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {

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
