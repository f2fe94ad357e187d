// QuantizeLinear, DequantizeLinear, of ONNX and of ONNX Runtime's own domain: float32 arithmetic, halves to
// even.
#include "src/packer/import/onnx/ops.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The axis of per-channel scales, which counts only where there are several.
int64_t axis_attr(const OpContext& op, const Value& data, const QParams& params) {
  const int64_t axis = op.attr_int("axis", 1);
  if (op.attr_int("block_size", 0) != 0) throw Unsupported{"quantisation in blocks"};
  if (!params.per_axis()) return -1;
  return OpContext::axis_of(axis, op.shape(data).size());
}

}  // namespace

void import_quantize_linear(const OpContext& op) {
  op.expect_counts(2, 3);
  const Value& data = op.input(0);
  const QParams params = op.qparams(1);
  const int64_t axis = axis_attr(op, data, params);
  op.attr_int("saturate", 1);  // means something for float8 only
  if (op.attr_int("precision", 1) > 1) throw Unsupported{"another precision than float32"};
  const int64_t named = op.attr_int("output_dtype", 0);
  if (named < 0 || named > INT32_MAX) invalid(cat("attribute 'output_dtype' is ", named));
  const auto named_type = static_cast<int32_t>(named);
  ir::DType dtype = op.zero_point_dtype(2);
  if (named != 0) {
    const std::optional<ir::DType> found = ir_dtype(named_type);
    if (!found) throw Unsupported{type_name(named_type) + " output"};
    if (op.has_input(2) && dtype != *found) {
      invalid(cat("attribute 'output_dtype' is ", *found, ", but the zero point is ", dtype));
    }
    dtype = *found;
  }
  op.define(0, op.quantize(data, params, dtype, axis));
}

void import_dequantize_linear(const OpContext& op) {
  op.expect_counts(2, 3);
  const Value& data = op.input(0);
  const QParams params = op.qparams(1);
  const int64_t axis = axis_attr(op, data, params);
  const int64_t named = op.attr_int("output_dtype", 0);
  if (named != 0 && named != 1) throw Unsupported{"another output type than float32"};
  if (op.has_input(2) && op.zero_point_dtype(2) != op.type(data).dtype) {
    invalid(cat("the data is ", op.type(data).dtype, ", but the zero point is ", op.zero_point_dtype(2)));
  }
  op.define(0, op.dequantize(data, params, axis));
}

}  // namespace qplan::onnx
