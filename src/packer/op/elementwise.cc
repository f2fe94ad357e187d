// Operators on numbers as they stand, without quantisation: one element in, one out; two with broadcasting;
// comparisons and selection.
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_any(const InferInput& input) {
  check_dtype(input, 0, kArithmetic);
  if (input.type(0).dtype == ir::kBool)
    unsupported("dtype bool of 'data' is not supported, expected numbers");
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_float(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32, ir::kFloat64});
  return {input.type(0)};
}

void check_pair(const InferInput& input, size_t lhs, size_t rhs) {
  check_dtype(input, lhs, kArithmetic);
  check_same_dtype(input, rhs, lhs);
}

std::vector<ir::TensorType> infer_binary(const InferInput& input) {
  check_pair(input, 0, 1);
  return {{input.type(0).dtype, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

std::vector<ir::TensorType> infer_comparison(const InferInput& input) {
  check_pair(input, 0, 1);
  return {{ir::kBool, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

std::vector<ir::TensorType> infer_where(const InferInput& input) {
  check_dtype(input, 0, {ir::kBool});
  check_pair(input, 1, 2);
  const ir::Shape values = broadcast_shape(input.type(1).shape, input.type(2).shape);
  return {{input.type(1).dtype, broadcast_shape(input.type(0).shape, values)}};
}

OpDef unary(std::string name, std::vector<ir::TensorType> (*infer)(const InferInput&),
            std::vector<AttrDef> attrs = {}) {
  return {.name = std::move(name),
          .operands = {"data"},
          .attrs = std::move(attrs),
          .infer = infer,
          .evaluate = evaluate_unary};
}

OpDef binary(std::string name, std::vector<ir::TensorType> (*infer)(const InferInput&)) {
  return {.name = std::move(name), .operands = {"lhs", "rhs"}, .infer = infer, .evaluate = evaluate_binary};
}

}  // namespace

OpDef list::add() { return binary("add", infer_binary); }
OpDef list::subtract() { return binary("subtract", infer_binary); }
OpDef list::multiply() { return binary("multiply", infer_binary); }
OpDef list::divide() { return binary("divide", infer_binary); }
OpDef list::maximum() { return binary("maximum", infer_binary); }
OpDef list::minimum() { return binary("minimum", infer_binary); }
OpDef list::less() { return binary("less", infer_comparison); }
OpDef list::equal() { return binary("equal", infer_comparison); }

OpDef list::where() {
  return {
      .name = "where", .operands = {"condition", "x", "y"}, .infer = infer_where, .evaluate = evaluate_where};
}

OpDef list::nn_relu() { return unary("nn.relu", infer_any); }
OpDef list::nn_leaky_relu() {
  return unary("nn.leaky_relu", infer_float, {{"alpha", AttrKind::kFloat, 0.01}});
}
OpDef list::sigmoid() { return unary("sigmoid", infer_float); }
OpDef list::tanh() { return unary("tanh", infer_float); }
OpDef list::exp() { return unary("exp", infer_float); }
OpDef list::sqrt() { return unary("sqrt", infer_float); }
OpDef list::negative() { return unary("negative", infer_any); }
OpDef list::abs() { return unary("abs", infer_any); }
OpDef list::round() { return unary("round", infer_any); }
OpDef list::floor() { return unary("floor", infer_any); }
OpDef list::ceil() { return unary("ceil", infer_any); }
OpDef list::hard_sigmoid() {
  return unary("hard_sigmoid", infer_float,
               {{"alpha", AttrKind::kFloat, 0.2}, {"beta", AttrKind::kFloat, 0.5}});
}

}  // namespace qplan::op
