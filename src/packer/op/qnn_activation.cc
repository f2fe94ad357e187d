// qnn.softmax, qnn.sigmoid, nn.softmax.
#include <cmath>

#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_sigmoid(const InferInput& input) {
  check_quantized(input, 0);
  check_qparams(input, 1, input.type(0).dtype);
  check_qparams(input, 3, input.type(0).dtype);
  check_contract(input.node);
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_softmax(const InferInput& input) {
  normalized_axis(attr_int(input.node, "axis"), input.type(0).shape.size());
  const double beta = attr_float(input.node, "beta");
  if (!std::isfinite(beta) || beta <= 0) invalid("attribute 'beta' must be positive and finite");
  return infer_sigmoid(input);
}

std::vector<ir::TensorType> infer_float_softmax(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32, ir::kFloat64});
  normalized_axis(attr_int(input.node, "axis"), input.type(0).shape.size());
  return {input.type(0)};
}

}  // namespace

OpDef list::qnn_softmax() {
  return {.name = "qnn.softmax",
          .operands = {"data", "scale", "zero_point", "output_scale", "output_zero_point"},
          .attrs = {{"axis", AttrKind::kInt, -1},
                    {"beta", AttrKind::kFloat, 1.0},
                    {"contract", AttrKind::kString, "tfl2"}},
          .infer = infer_softmax};
}

OpDef list::qnn_sigmoid() {
  return {.name = "qnn.sigmoid",
          .operands = {"data", "scale", "zero_point", "output_scale", "output_zero_point"},
          .attrs = {{"contract", AttrKind::kString, "tfl2"}},
          .infer = infer_sigmoid};
}

OpDef list::nn_softmax() {
  return {.name = "nn.softmax",
          .operands = {"data"},
          .attrs = {{"axis", AttrKind::kInt, -1}},
          .infer = infer_float_softmax,
          .evaluate = evaluate_softmax};
}

}  // namespace qplan::op
