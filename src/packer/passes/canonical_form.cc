// One way of writing the same network: operators, then dead code, common subexpressions and the order of
// nodes.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// One way of writing the same operator: windows written out, axes counted from the front and left out where
// nothing is per axis, zero points that are the same everywhere as scalars, attributes that mean nothing
// removed.

namespace {

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

// One way of writing an average over height and width. Where scale and zero point change, and the window is
// the whole image, it is a mean: TFLite's average pool cannot change them, its converter writes MEAN, and
// under other contracts the two are the same arithmetic. A smaller window under TFLite's contract becomes a
// pool and a requantisation. Where nothing changes it is a pool; a mean under TFLite's contract stays one,
// since it rounds differently.
namespace {

bool covers_all(const op::Window2d& window, const ir::Shape& shape, const op::DataLayout& layout) {
  return window.kernel_h == shape[layout.h] && window.kernel_w == shape[layout.w] &&
         (window.pad_top | window.pad_left | window.pad_bottom | window.pad_right) == 0;
}

Result rescaled_pool(const pattern::RewriteContext& c, std::string* why) {
  const pattern::PreNode pool = c.root;
  if (c.r[pool.operand(1)] == c.r[pool.operand(3)] && c.r[pool.operand(2)] == c.r[pool.operand(4)]) {
    *why = "scale and zero point stay the same";
    return std::nullopt;
  }
  const op::DataLayout layout = op::data_layout(op::attr_string(pool.node(), "layout"));
  const std::string contract = op::attr_string(pool.node(), "contract");
  std::vector<PostValue> operands = c.r.operands(pool);
  if (covers_all(op::pool2d_window(pool.node()), c.pre().type(pool.operand(0)).shape, layout)) {
    *why = "contract " + contract + ": a mean over height and width";
    const ir::Ints axes{static_cast<int64_t>(layout.h), static_cast<int64_t>(layout.w)};
    return c.post().call("qnn.mean", operands, {{"axis", axes}, {"keepdims", true}, {"contract", contract}},
                         pool.name());
  }
  if (contract != "tfl2") {
    *why = "contract " + contract + " has such pools";
    return std::nullopt;
  }
  *why = "contract " + contract + ": a pool, then a requantisation";
  const PostValue output_scale = operands[3], output_zero_point = operands[4];
  operands[3] = operands[1];
  operands[4] = operands[2];
  const PostValue pooled = c.post().call("qnn.avg_pool2d", operands, pool.attrs(), pool.name());
  return c.post().call(
      "qnn.requantize", {pooled, operands[1], operands[2], output_scale, output_zero_point},
      {{"out_dtype", ir::to_string(c.pre().type(pool.result()).dtype)}, {"contract", contract}}, pool.name());
}

Result mean_as_pool(const pattern::RewriteContext& c, std::string* why) {
  const pattern::PreNode mean = c.root;
  const ir::Shape& shape = c.pre().type(mean.operand(0)).shape;
  if (op::normalized_axes(op::attr_ints(mean.node(), "axis"), shape.size()) != ir::Ints{1, 2}) {
    *why = "it is not over height and width of NHWC";
    return std::nullopt;
  }
  if (!(c.r[mean.operand(1)] == c.r[mean.operand(3)] && c.r[mean.operand(2)] == c.r[mean.operand(4)])) {
    *why = "it changes scale or zero point";
    return std::nullopt;
  }
  *why = "a pool over the whole image";
  const PostValue pool = c.post().call("qnn.avg_pool2d", c.r.operands(mean),
                                       {{"pool_size", ir::Ints{shape[1], shape[2]}},
                                        {"layout", std::string("NHWC")},
                                        {"contract", op::attr_string(mean.node(), "contract")}},
                                       mean.name());
  if (op::attr_bool(mean.node(), "keepdims")) return pool;
  return c.post().call("reshape", {pool}, {{"newshape", c.pre().type(mean.result()).shape}}, mean.name());
}

}  // namespace

std::span<const pattern::Rewrite> normalize_averages_rewrites() {
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "rescale_avg_pool", .pattern = pattern::op("qnn.avg_pool2d"), .build = rescaled_pool},
      {.name = "mean_as_avg_pool",
       .pattern = pattern::op("qnn.mean", {pattern::any().rank(4)}).attr("contract", std::string("f32e")),
       .build = mean_as_pool}};
  return rows;
}

std::unique_ptr<ir::Function> run_normalize_averages(const ir::Module&, const ir::Function& pre,
                                                     PassContext& context) {
  return run_rewrites(normalize_averages_rewrites(), pre, context);
}

// Three passes over whole functions: dead code, common subexpressions, one order of nodes.

// Drops nodes that no output depends on. Parameters stay: they are the model's interface.
std::unique_ptr<ir::Function> run_dead_code(const ir::Module&, const ir::Function& pre,
                                            PassContext& context) {
  const std::vector<bool> live = pattern::live_nodes(pre);
  if (std::ranges::all_of(live, [](bool alive) { return alive; })) return nullptr;
  pattern::Rebuild rebuild(pre);
  for (size_t i = 0; i < live.size(); ++i) {
    const pattern::PreNode node(pre, i);
    if (live[i]) {
      rebuild.copy(node);
    } else {
      context.fired("dead_code", node.name(), "unused, dropped");
    }
  }
  return rebuild.finish();
}

// Two nodes with the same operator, operands and attributes compute the same: the first one's results serve
// both. A product whose sums a bias is added to serves both only with the rest of its layer: no kernel adds a
// bias to the sums of another step. So each bias gets a product of its own, also where the source wrote one
// product for several readers.
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::Rebuild;

class CommonSubexpressions {
 public:
  CommonSubexpressions(const ir::Function& pre, PassContext& context)
      : r_(pre), context_(context), gets_bias_(pre.num_values()), same_as_(pre.num_values()) {
    for (const ir::Node& node : pre.nodes()) {
      if (node.op != nullptr && node.op->name == "nn.bias_add") gets_bias_[node.operands[0].index] = true;
    }
    for (uint32_t i = 0; i < same_as_.size(); ++i) same_as_[i] = i;
  }

  std::unique_ptr<ir::Function> run() {
    const ir::Function& function = r_.pre().function();
    bool changed = false;
    for (size_t i = 0; i < function.nodes().size(); ++i) changed = visit(PreNode(function, i)) || changed;
    return changed ? r_.finish() : nullptr;
  }

 private:
  // Whether the node has gone.
  bool visit(PreNode node) {
    if (node.op() == nullptr) {
      r_.copy(node);
      return false;
    }
    const auto [first, inserted] = seen_.try_emplace(key_of(node), node);
    if (inserted) return copy_with_own_product(node);
    const PreNode same = first->second;
    for (size_t i = 0; i < node.num_results(); ++i)
      same_as_[node.result(i).id.index] = same_as_[same.result(i).id.index];
    if (op::is_product(node.op()) && gets_bias_[node.result().id.index]) {
      r_.copy(node);
      return false;
    }
    for (size_t i = 0; i < node.num_results(); ++i) r_.replace(node.result(i), r_[same.result(i)]);
    context_.fired("common_subexpressions", node.name(), "the same as '" + same.name() + "'");
    return true;
  }

  // Copies the node; true for a bias that is added to sums with other readers, which gets its own.
  bool copy_with_own_product(PreNode node) {
    const pattern::Pre& pre = r_.pre();
    const std::optional<PreNode> product =
        node.is("nn.bias_add") ? pre.producer(node.operand(0)) : std::nullopt;
    if (!product || !op::is_quantized_product(product->op()) || pre.num_uses(node.operand(0)) == 1) {
      r_.copy(node);
      return false;
    }
    std::vector<PostValue> operands = r_.operands(node);
    operands[0] =
        r_.post().call(product->op()->name, r_.operands(*product), product->attrs(), product->name());
    r_.replace(node.result(), r_.post().call(node.op()->name, operands, node.attrs(), node.name()));
    context_.fired("common_subexpressions", node.name(),
                   "sums of '" + product->name() + "' of its own, which others read without its bias");
    return true;
  }

  // Equal for equal computations. An attribute counts with its fallback, so that a written default changes
  // nothing.
  std::string key_of(PreNode node) {
    std::string key;
    ir::append_key(&key, node.op());
    ir::append_key(&key, op::is_product(node.op()) && gets_bias_[node.result().id.index]);
    ir::append_key(&key, node.num_operands());
    for (size_t i = 0; i < node.num_operands(); ++i) {
      const pattern::PreValue same = {ir::ValueId{same_as_[node.operand(i).id.index]}};
      ir::append_key(&key, r_[same].id.index);
    }
    for (const op::AttrDef& def : node.op()->attrs) {
      const ir::AttrValue* value = node.attrs().find(def.name);
      if (value == nullptr && def.fallback) value = &*def.fallback;
      ir::append_key(&key, value != nullptr);
      if (value != nullptr) ir::append_key(&key, *value);
    }
    return key;
  }

  Rebuild r_;
  PassContext& context_;
  std::unordered_map<std::string, PreNode> seen_;
  std::vector<bool> gets_bias_;    // by value
  std::vector<uint32_t> same_as_;  // by value: the first one that is the same
};

}  // namespace

std::unique_ptr<ir::Function> run_common_subexpressions(const ir::Module&, const ir::Function& pre,
                                                        PassContext& context) {
  return CommonSubexpressions(pre, context).run();
}

// Nodes in the order in which a walk from the outputs, operands from first to last, finishes them: two graphs
// of the same computation become the same list, in whatever order their sources wrote it.

namespace {

using pattern::PreNode;
using pattern::Rebuild;

class FinishingOrder {
 public:
  explicit FinishingOrder(const ir::Function& function)
      : function_(function), seen_(function.nodes().size(), false) {}

  std::vector<size_t> run() {
    for (const ir::ValueId output : function_.outputs()) {
      enter(output);
      while (!open_.empty()) step();
    }
    return std::move(order_);
  }

 private:
  struct Open {
    size_t node;
    size_t next_operand;
  };

  void enter(ir::ValueId value) {
    const ir::Value& known = function_.value(value);
    if (known.kind != ir::ValueKind::kResult || seen_[known.producer]) return;
    seen_[known.producer] = true;
    open_.push_back({known.producer, 0});
  }

  void step() {
    Open& top = open_.back();
    const ir::Node& node = function_.nodes()[top.node];
    if (top.next_operand < node.operands.size()) {
      enter(node.operands[top.next_operand++]);
      return;
    }
    order_.push_back(top.node);
    open_.pop_back();
  }

  const ir::Function& function_;
  std::vector<bool> seen_;
  std::vector<Open> open_;
  std::vector<size_t> order_;
};

}  // namespace

std::unique_ptr<ir::Function> run_canonical_order(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  const std::vector<size_t> order = FinishingOrder(pre).run();
  bool same = order.size() == pre.nodes().size();
  for (size_t i = 0; same && i < order.size(); ++i) same = order[i] == i;
  if (same) return nullptr;
  Rebuild r(pre);
  for (const size_t index : order) r.copy(PreNode(pre, index));
  context.fired("canonical_order", pre.name(), "nodes sorted");
  return r.finish();
}

}  // namespace qplan::passes
