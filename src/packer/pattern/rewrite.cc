#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::pattern {
namespace {

// Higher benefit first, equal ones in the order of the list.
std::vector<const Rewrite*> by_benefit(std::span<const Rewrite> rewrites) {
  std::vector<const Rewrite*> order;
  for (const Rewrite& rewrite : rewrites) order.push_back(&rewrite);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const Rewrite* r) { return r->benefit; });
  return order;
}

// Builds the replacement of the node; errors name the rewrite.
std::optional<PostValue> build(const Rewrite& rewrite, Rebuild& r, const Matches& matches, PreNode node,
                               std::string* why) {
  try {
    const std::optional<PostValue> result = rewrite.build({r, matches, node}, why);
    if (result) r.replace(node.result(), *result);
    return result;
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("rewrite '", rewrite.name, "' at ",
                                        label(r.pre().function(), node.result().id), ": ", error.what()));
  }
}

}  // namespace

PreNode RewriteContext::node(std::string_view name) const {
  const std::optional<PreNode> node = pre().producer(matches[name]);
  if (!node) throw PackError(QPLAN_INTERNAL, cat("pattern: '", name, "' is no node's result"));
  return *node;
}

std::unique_ptr<ir::Function> rewrite_once(const ir::Function& function, std::span<const Rewrite> rewrites,
                                           const Fired& fired) {
  const std::vector<const Rewrite*> order = by_benefit(rewrites);
  return rebuild(function, [&](Rebuild& r, PreNode node) {
    // A value that nothing reads will be removed anyway.
    if (node.num_results() != 1 || r.pre().num_uses(node.result()) == 0) return false;
    for (const Rewrite* rewrite : order) {
      const std::optional<Matches> matches = match(rewrite->pattern, r.pre(), node.result());
      std::string why;
      if (!matches || !build(*rewrite, r, *matches, node, &why)) continue;
      if (fired) fired(rewrite->name, node.name(), why);
      return true;
    }
    return false;
  });
}

std::string why_not(const Rewrite& rewrite, const ir::Function& function, ir::ValueId value) {
  Rebuild r(function);
  const std::optional<PreNode> node = r.pre().producer(PreValue{value});
  if (!node || node->num_results() != 1) return "rewrites look at the results of nodes with one result";
  if (const std::optional<NearMiss> miss = explain(rewrite.pattern, r.pre(), PreValue{value})) {
    return miss->text();
  }
  for (size_t i = 0; i < function.value(value).producer; ++i) r.copy(PreNode(function, i));
  const Matches matches = *match(rewrite.pattern, r.pre(), PreValue{value});
  std::string why;
  if (build(rewrite, r, matches, *node, &why)) return "";
  return cat(label(function, value), ": the pattern matches, but ",
             why.empty() ? "the rewrite does not change it" : why);
}

// The function that is rebuilt (Rebuild).
namespace {

std::vector<ir::ValueId> ids(const std::vector<PostValue>& values) {
  std::vector<ir::ValueId> result;
  result.reserve(values.size());
  for (const PostValue value : values) result.push_back(value.id);
  return result;
}

}  // namespace

PostValue Post::constant_value(ir::ConstantRef constant, const std::string& name) {
  return {function_->add_constant(std::move(constant), name)};
}

PostValue Post::call(std::string_view op, const std::vector<PostValue>& operands, ir::Attrs attrs,
                     const std::string& name) {
  return call_all(op, operands, std::move(attrs), name).at(0);
}

std::vector<PostValue> Post::call_all(std::string_view op, const std::vector<PostValue>& operands,
                                      ir::Attrs attrs, const std::string& name) {
  const ir::Node& node = function_->add_node(op::get_op(op), ids(operands), std::move(attrs), name);
  std::vector<PostValue> results;
  for (const ir::ValueId result : node.results) results.push_back({result});
  return results;
}

Rebuild::Rebuild(const ir::Function& function, const ParamType& param_type)
    : old_(function),
      new_(std::make_unique<ir::Function>(function.name())),
      pre_(function),
      post_(*new_),
      map_(function.num_values()) {
  new_->attrs() = function.attrs();
  for (const ir::ValueId param : function.params()) {
    const ir::TensorType& old = function.type(param);
    const ir::TensorType type = param_type ? param_type(params_.size(), old) : old;
    params_.push_back({new_->add_param(function.value(param).name, type)});
    if (type == old) map_[param.index] = params_.back();
  }
}

PostValue Rebuild::operator[](PreValue value) {
  PostValue& mapped = map_.at(value.id.index);
  if (!mapped.id.valid()) {
    const ir::Value& known = old_.value(value.id);
    if (known.kind != ir::ValueKind::kConstant) {
      throw PackError(QPLAN_INTERNAL,
                      cat("rebuild: ", describe(old_, value.id), " is used before it is defined"));
    }
    mapped = post_.constant_value(known.constant, known.name);
  }
  return mapped;
}

std::vector<PostValue> Rebuild::operands(PreNode node) {
  std::vector<PostValue> values;
  values.reserve(node.num_operands());
  for (size_t i = 0; i < node.num_operands(); ++i) values.push_back((*this)[node.operand(i)]);
  return values;
}

void Rebuild::copy(PreNode node) {
  std::vector<ir::ValueId> mapped = ids(operands(node));
  const ir::Node* copied = nullptr;
  if (node.op() != nullptr) {
    copied = &new_->add_node(*node.op(), std::move(mapped), node.attrs(), node.name());
  } else {
    std::vector<ir::TensorType> types;
    for (size_t i = 0; i < node.num_results(); ++i) types.push_back(pre_.type(node.result(i)));
    ir::Node& call = new_->add_call(node.node().callee, std::move(mapped), std::move(types), node.name());
    call.attrs = node.attrs();
    copied = &call;
  }
  for (size_t i = 0; i < node.num_results(); ++i) replace(node.result(i), {copied->results.at(i)});
}

void Rebuild::replace(PreValue value, PostValue replacement) {
  if (pre_.type(value) != post_.type(replacement)) {
    throw PackError(QPLAN_INTERNAL,
                    cat("rebuild: ", describe(old_, value.id), " is replaced by a value of another type, ",
                        ir::to_string(post_.type(replacement))));
  }
  map_.at(value.id.index) = replacement;
  keep_name(value, replacement);
}

void Rebuild::keep_name(PreValue value, PostValue replacement) {
  const ir::Value& known = new_->value(replacement.id);
  if (known.kind == ir::ValueKind::kResult && known.name.empty()) {
    new_->set_value_name(replacement.id, pre_.name(value));
  }
}

std::unique_ptr<ir::Function> Rebuild::finish() {
  std::vector<PostValue> outputs;
  for (const ir::ValueId output : old_.outputs()) outputs.push_back((*this)[PreValue{output}]);
  return finish(outputs);
}

std::unique_ptr<ir::Function> Rebuild::finish(const std::vector<PostValue>& outputs) {
  new_->set_outputs(ids(outputs), old_.output_names());

  const std::vector<bool> live = live_nodes(*new_);
  if (std::ranges::all_of(live, [](bool alive) { return alive; })) return std::move(new_);
  Rebuild sweep(*new_);
  for (size_t i = 0; i < live.size(); ++i) {
    if (live[i]) sweep.copy(PreNode(*new_, i));
  }
  return sweep.finish();
}

std::vector<bool> live_nodes(const ir::Function& function) {
  const std::span<const ir::Node> nodes = function.nodes();
  std::vector<bool> live(nodes.size());
  const auto mark = [&](ir::ValueId value) {
    const ir::Value& known = function.value(value);
    if (known.kind == ir::ValueKind::kResult) live[known.producer] = true;
  };
  for (const ir::ValueId output : function.outputs()) mark(output);
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const ir::ValueId operand : nodes[i].operands) mark(operand);
  }
  return live;
}

void Edit::advance_to(size_t node) {
  for (; next_ < node; ++next_) {
    if (!replaced_.empty()) {
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("edit: ", node_label(function_, static_cast<uint32_t>(next_)), " has ",
                          function_.nodes()[next_].results.size(), " results, of which ", replaced_.size(),
                          " are replaced; replace all before anything after them is read or replaced"));
    }
    rebuild_.copy(PreNode(function_, next_));
  }
}

PostValue Edit::operator[](PreValue value) {
  const ir::Value& known = function_.value(value.id);
  const bool pending = known.kind == ir::ValueKind::kResult && known.producer >= next_;
  // Results that have already been replaced can be read while their node is being replaced.
  const bool replaced =
      known.producer == next_ && std::ranges::find(replaced_, known.result_index) != replaced_.end();
  if (pending && !replaced) advance_to(known.producer + size_t{1});
  return rebuild_[value];
}

void Edit::replace(PreValue value, PostValue replacement) {
  const ir::Value& known = function_.value(value.id);
  if (known.kind != ir::ValueKind::kResult) {
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("edit: ", describe(function_, value.id),
                                                " is no node's result: it cannot be replaced"));
  }
  const size_t node = known.producer;
  if (node + 1 < next_) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat("edit: ", describe(function_, value.id), " is replaced after ",
                        node_label(function_, static_cast<uint32_t>(next_ - 1)),
                        " was copied or replaced; replace values in the order of their nodes"));
  }
  advance_to(node);
  rebuild_.replace(value, replacement);
  changed_ = true;
  if (next_ != node) return;
  if (std::ranges::find(replaced_, known.result_index) == replaced_.end())
    replaced_.push_back(known.result_index);
  if (replaced_.size() == function_.nodes()[node].results.size()) {
    ++next_;
    replaced_.clear();
  }
}

std::unique_ptr<ir::Function> Edit::finish() {
  if (!changed_) return nullptr;
  advance_to(function_.nodes().size());
  return rebuild_.finish();
}

}  // namespace qplan::pattern
