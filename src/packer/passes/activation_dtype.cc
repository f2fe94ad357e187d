#include "src/packer/passes/activation_dtype.h"

#include <algorithm>

#include "src/packer/op/properties.h"
#include "src/packer/passes/product_of.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::Pre;
using pattern::PreNode;

// As int8 weights, whatever dtype they have.
bool has_weight_zero_point(const Pre& pre, PreNode layer) {
  const size_t weight = *op::operand_with(*layer.op(), op::OperandRole::kWeight);
  const ir::ConstantRef zero_points = pre.constant(layer.operand(*op::zero_point_of(*layer.op(), weight)));
  if (zero_points == nullptr) return false;
  const int32_t symmetric = pre.type(layer.operand(weight)).dtype == ir::kUint8 ? 128 : 0;
  return std::ranges::any_of(zero_points->as<int32_t>(), [&](int32_t value) { return value != symmetric; });
}

bool is_uint8_arithmetic(const Pre& pre, PreNode node) {
  if (op::is_quantized_product(node.op())) return has_weight_zero_point(pre, node);
  if (!node.is("qnn.requantize") || op::attr_string(node.node(), "multiplier") != "product_f32") return false;
  // Fully connected layers form it so for both dtypes.
  const auto product = product_of(pre, node.operand(0));
  return product && product->is("qnn.conv2d");
}

}  // namespace

ir::DType activation_dtype(const ir::Function& function) {
  const Pre pre(function);
  for (size_t i = 0; i < function.nodes().size(); ++i) {
    if (is_uint8_arithmetic(pre, PreNode(function, i))) return ir::kUint8;
  }
  return ir::kInt8;
}

}  // namespace qplan::passes
