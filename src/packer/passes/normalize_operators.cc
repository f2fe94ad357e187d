// One way of writing the same operator: windows written out, axes counted from the front and left out where
// nothing is per axis, zero points that are the same everywhere as scalars, attributes that mean nothing
// removed.
#include <algorithm>

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

bool ends_with_zero_point(const std::string& name) { return name.ends_with("zero_point"); }
bool ends_with_scale(const std::string& name) { return name.ends_with("scale"); }

// A vector of zero points that are all the same, or of one scale, as a scalar; null: it stays.
ir::ConstantRef as_scalar(const ir::ConstantRef& constant, const std::string& operand) {
  if (constant == nullptr || constant->type().shape.size() != 1) return nullptr;
  if (ends_with_zero_point(operand) && constant->type().dtype == ir::kInt32) {
    const auto values = constant->as<int32_t>();
    const bool same = std::ranges::all_of(values, [&](int32_t value) { return value == values[0]; });
    return same ? ir::make_scalar(values[0]) : nullptr;
  }
  if (ends_with_scale(operand) && constant->type().dtype == ir::kFloat32 &&
      constant->as<float>().size() == 1) {
    return ir::make_scalar(constant->as<float>()[0]);
  }
  return nullptr;
}

bool has_attr(PreNode node, std::string_view name) {
  return std::ranges::any_of(node.op()->attrs, [&](const op::AttrDef& attr) { return attr.name == name; });
}

// Whether a scale or zero point of the node is a vector.
bool is_per_axis(const Rebuild& r, PreNode node) {
  for (size_t i = 1; i < node.num_operands(); ++i) {
    if (!r.pre().type(node.operand(i)).shape.empty()) return true;
  }
  return false;
}

void normalize_axis(const Rebuild& r, PreNode node, ir::Attrs* attrs) {
  // The axis of expand_dims is one of its result.
  if (!has_attr(node, "axis") || node.is("expand_dims")) return;
  const bool quantization_axis =
      node.is("qnn.quantize") || node.is("qnn.dequantize") || node.is("qnn.requantize");
  if (quantization_axis && !is_per_axis(r, node)) {
    attrs->erase("axis");
    return;
  }
  const size_t rank = r.pre().type(node.operand(0)).shape.size();
  const ir::AttrValue* value = attrs->find("axis");
  if (value == nullptr && !quantization_axis && !node.is("qnn.softmax") && !node.is("nn.softmax")) return;
  const ir::AttrValue& axis = op::attr(node.node(), "axis");
  if (const auto* one = std::get_if<int64_t>(&axis)) {
    attrs->set("axis", op::normalized_axis(*one, rank));
  } else if (const auto* several = std::get_if<ir::Ints>(&axis); several != nullptr && node.is("qnn.mean")) {
    attrs->set("axis", op::normalized_axes(*several, rank));
  }
}

void write_window(const op::Window2d& window, const char* kernel, ir::Attrs* attrs) {
  attrs->set(kernel, ir::Ints{window.kernel_h, window.kernel_w});
  attrs->set("strides", ir::Ints{window.stride_h, window.stride_w});
  attrs->set("padding", ir::Ints{window.pad_top, window.pad_left, window.pad_bottom, window.pad_right});
}

bool is_padded(const op::Window2d& window) {
  return (window.pad_top | window.pad_left | window.pad_bottom | window.pad_right) != 0;
}

void normalize_conv2d(const Rebuild& r, PreNode conv, ir::Attrs* attrs) {
  const ir::TensorType& weight = r.pre().type(conv.operand(1));
  const op::Window2d window = op::conv2d_window(conv.node(), weight);
  write_window(window, "kernel_size", attrs);
  attrs->set("dilation", ir::Ints{window.dilation_h, window.dilation_w});
  attrs->set("channels", weight.shape[op::weight_layout(op::attr_string(conv.node(), "kernel_layout")).o]);
  const ir::AttrValue* pad_value = attrs->find("pad_value");
  if (pad_value == nullptr) return;
  const int64_t zero_point = r.pre().constant(conv.operand(2))->as<int32_t>()[0];
  if (!is_padded(window) || std::get<int64_t>(*pad_value) == zero_point) attrs->erase("pad_value");
}

void normalize_pool2d(PreNode pool, ir::Attrs* attrs) {
  const op::Window2d window = op::pool2d_window(pool.node());
  write_window(window, "pool_size", attrs);
  if (!is_padded(window)) attrs->erase("count_include_pad");
}

// The accumulators' scale of a convolution's or fully connected layer's requantisation, where it is the
// product of the layer's scales rounded by whoever printed it, as that product; null: it stays.
ir::ConstantRef product_scale(const Rebuild& r, PreNode requantize) {
  const pattern::Pre& pre = r.pre();
  const auto layer = product_of(pre, requantize.operand(0));
  if (!layer) return nullptr;
  const ir::ConstantRef given = pre.constant(requantize.operand(1));
  const float input = pre.constant(layer->operand(4))->as<float>()[0];
  const auto weights = pre.constant(layer->operand(5))->as<float>();
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

bool rewrite(Rebuild& r, PreNode node, PassContext& context) {
  if (node.op() == nullptr) return false;
  std::vector<PostValue> operands = r.operands(node);
  bool changed = false;
  if (!node.op()->variadic) {
    for (size_t i = 0; i < node.num_operands(); ++i) {
      const ir::ConstantRef scalar = as_scalar(r.pre().constant(node.operand(i)), node.op()->operands[i]);
      if (scalar == nullptr) continue;
      operands[i] = r.post().constant_value(scalar);
      changed = true;
    }
  }
  if (node.is("qnn.requantize")) {
    if (const ir::ConstantRef product = product_scale(r, node)) {
      operands[1] = r.post().constant_value(product);
      changed = true;
    }
  }
  ir::Attrs attrs = node.attrs();
  normalize_axis(r, node, &attrs);
  if (node.is("qnn.conv2d")) normalize_conv2d(r, node, &attrs);
  if (node.is("qnn.dense")) attrs.set("units", r.pre().type(node.operand(1)).shape[0]);
  if (node.is("qnn.avg_pool2d") || node.is("nn.max_pool2d")) normalize_pool2d(node, &attrs);
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
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) { return rewrite(r, node, context); });
}

}  // namespace qplan::passes
