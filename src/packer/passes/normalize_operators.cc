// One way of writing the same operator: windows written out, axes counted from the front and left out where
// nothing is per axis, zero points that are the same everywhere as scalars, attributes that mean nothing
// removed.
#include <algorithm>

#include "src/packer/op/properties.h"
#include "src/packer/op/scales.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/product_of.h"
#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::Rebuild;

// A vector of zero points that are all the same, or of one scale, as a scalar; null: it stays.
ir::ConstantRef as_scalar(const ir::ConstantRef& constant, op::OperandRole role) {
  if (constant == nullptr || constant->type().shape.size() != 1) return nullptr;
  if (role == op::OperandRole::kZeroPoint && constant->type().dtype == ir::kInt32) {
    const auto values = constant->as<int32_t>();
    const bool same = std::ranges::all_of(values, [&](int32_t value) { return value == values[0]; });
    return same ? ir::make_scalar(values[0]) : nullptr;
  }
  if (role == op::OperandRole::kScale && constant->type().dtype == ir::kFloat32 &&
      constant->as<float>().size() == 1) {
    return ir::make_scalar(constant->as<float>()[0]);
  }
  return nullptr;
}

// Whether a scale or zero point of the node is a vector.
bool is_per_axis(const Rebuild& r, PreNode node) {
  for (size_t i = 1; i < node.num_operands(); ++i) {
    if (!r.pre().type(node.operand(i)).shape.empty()) return true;
  }
  return false;
}

bool is_negative(const std::optional<ir::AttrValue>& value) {
  const int64_t* axis = value ? std::get_if<int64_t>(&*value) : nullptr;
  return axis != nullptr && *axis < 0;
}

void normalize_axis(const Rebuild& r, PreNode node, const op::AttrDef& def, ir::Attrs* attrs) {
  if (def.role == op::AttrRole::kScaleAxis && !is_per_axis(r, node)) {
    attrs->erase(def.name);
    return;
  }
  // A fallback is written out only where it counts from behind.
  if (!attrs->has(def.name) && !is_negative(def.fallback)) return;
  const size_t rank = r.pre().type(node.operand(0)).shape.size();
  const ir::AttrValue& axis = op::attr(node.node(), def.name);
  if (const auto* one = std::get_if<int64_t>(&axis)) {
    attrs->set(def.name, op::normalized_axis(*one, rank));
  } else if (const auto* several = std::get_if<ir::Ints>(&axis)) {
    attrs->set(def.name, op::normalized_axes(*several, rank));
  }
}

// The accumulators' scale of a convolution's or fully connected layer's requantisation, where it is the
// product of the layer's scales rounded by whoever printed it, as that product; null: it stays.
ir::ConstantRef exact_product_scale(const Rebuild& r, PreNode requantize) {
  const pattern::Pre& pre = r.pre();
  const auto layer = product_of(pre, requantize.operand(0));
  if (!layer) return nullptr;
  const ir::ConstantRef given = pre.constant(requantize.operand(1));
  const op::OpDef& op = *layer->op();
  const size_t weight = *op::operand_with(op, op::OperandRole::kWeight);
  const float input = pre.constant(layer->operand(*op::scale_of(op, 0)))->as<float>()[0];
  const auto weights = pre.constant(layer->operand(*op::scale_of(op, weight)))->as<float>();
  std::vector<float> products(given->as<float>().begin(), given->as<float>().end());
  // One scale for all channels cannot become several: the axis of the requantisation would have to follow.
  if (weights.size() != 1 && weights.size() != products.size()) return nullptr;
  for (size_t o = 0; o < products.size(); ++o) {
    const float product = input * weights[weights.size() == 1 ? 0 : o];
    if (op::means_product(static_cast<double>(products[o]), static_cast<double>(product)))
      products[o] = product;
  }
  ir::ConstantRef result = ir::make_constant(ir::kFloat32, given->type().shape, products);
  return result->content_hash() == given->content_hash() ? nullptr : result;
}

// What only other contracts look at.
void drop_multiplier_rule(PreNode node, ir::Attrs* attrs) {
  if (node.is("qnn.requantize") && op::attr_string(node.node(), "contract") == "f32e")
    attrs->erase("multiplier");
}

// Entries that say what the fallback says.
void drop_fallbacks(PreNode node, ir::Attrs* attrs) {
  for (const op::AttrDef& def : node.op()->attrs) {
    const ir::AttrValue* value = attrs->find(def.name);
    if (value != nullptr && def.fallback && *value == *def.fallback) attrs->erase(def.name);
  }
}

bool normalize_node(Rebuild& r, PreNode node, PassContext& context) {
  if (node.op() == nullptr) return false;
  std::vector<PostValue> operands = r.operands(node);
  bool changed = false;
  if (!node.op()->variadic) {
    for (size_t i = 0; i < node.num_operands(); ++i) {
      const ir::ConstantRef scalar =
          as_scalar(r.pre().constant(node.operand(i)), node.op()->operands[i].role);
      if (scalar == nullptr) continue;
      operands[i] = r.post().constant_value(scalar);
      changed = true;
    }
  }
  if (node.is("qnn.requantize")) {
    if (const ir::ConstantRef product = exact_product_scale(r, node)) {
      operands[1] = r.post().constant_value(product);
      changed = true;
    }
  }
  ir::Attrs attrs = node.attrs();
  for (const op::AttrDef& def : node.op()->attrs) {
    const bool is_axis = def.role == op::AttrRole::kAxis || def.role == op::AttrRole::kScaleAxis;
    if (is_axis) normalize_axis(r, node, def, &attrs);
  }
  if (node.op()->normalize != nullptr) node.op()->normalize({r.pre().function(), node.node()}, &attrs);
  drop_multiplier_rule(node, &attrs);
  drop_fallbacks(node, &attrs);
  if (!changed && attrs == node.attrs()) return false;
  context.fired("normalize_operators", node.name(), "written in its normal form");
  const std::vector<PostValue> results =
      r.post().call_all(node.op()->name, operands, std::move(attrs), node.name());
  for (size_t i = 0; i < results.size(); ++i) r.replace(node.result(i), results[i]);
  return true;
}

}  // namespace

std::unique_ptr<ir::Function> run_normalize_operators(const ir::Module&, const ir::Function& pre,
                                                      PassContext& context) {
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) { return normalize_node(r, node, context); });
}

}  // namespace qplan::passes
