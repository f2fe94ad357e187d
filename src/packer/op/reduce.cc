// qnn.mean, mean and argmax: operators that remove axes, or keep them with extent 1.
#include <algorithm>

#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

ir::Shape reduced(const ir::Shape& shape, const ir::Ints& axes, bool keepdims) {
  ir::Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::ranges::binary_search(axes, static_cast<int64_t>(i))) {
      out.push_back(shape[i]);
    } else if (keepdims) {
      out.push_back(1);
    }
  }
  return out;
}

std::vector<ir::TensorType> infer_mean(const InferInput& input) {
  check_quantized(input, 0);
  const ir::TensorType& data = input.type(0);
  check_qparams(input, 1, data.dtype);
  check_qparams(input, 3, data.dtype);
  check_contract(input.node);
  const ir::Ints axes = normalized_axes(attr_ints(input.node, "axis"), data.shape.size());
  return {{data.dtype, reduced(data.shape, axes, attr_bool(input.node, "keepdims"))}};
}

std::vector<ir::TensorType> infer_float_mean(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const ir::Ints axes = normalized_axes(attr_ints(input.node, "axis"), data.shape.size());
  return {{data.dtype, reduced(data.shape, axes, attr_bool(input.node, "keepdims"))}};
}

std::vector<ir::TensorType> infer_argmax(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt32, ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  const ir::DType dtype = dtype_attr(input.node, "dtype", {ir::kInt32, ir::kInt64});
  return {{dtype, reduced(data.shape, {axis}, attr_bool(input.node, "keepdims"))}};
}

}  // namespace

OpDef list::qnn_mean() {
  return {.name = "qnn.mean",
          .operands = {"data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"},
          .attrs = {{"axis", AttrKind::kInts, ir::Ints{}},
                    {"keepdims", AttrKind::kBool, false},
                    {"contract", AttrKind::kString, "tfl2"}},
          .infer = infer_mean};
}

OpDef list::mean() {
  return {.name = "mean",
          .operands = {"data"},
          .attrs = {{"axis", AttrKind::kInts, ir::Ints{}}, {"keepdims", AttrKind::kBool, false}},
          .infer = infer_float_mean};
}

OpDef list::argmax() {
  return {.name = "argmax",
          .operands = {"data"},
          .attrs = {{"axis", AttrKind::kInt},
                    {"keepdims", AttrKind::kBool, false},
                    {"dtype", AttrKind::kString, "int32"}},
          .infer = infer_argmax};
}

}  // namespace qplan::op
