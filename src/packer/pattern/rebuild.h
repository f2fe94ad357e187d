// Rewriting builds a new function from an old one. The two sides have different types: what is read is a
// PreValue of the old function, what is built on is a PostValue of the new one, and only Rebuild leads from
// the one to the other. An operand of the wrong function is therefore a compile error, not a wrong network.
//
//   auto result = rebuild(function, [&](Rebuild& r, PreNode node) {
//     if (!node.is("cast") || r.pre().type(node.operand(0)) != r.pre().type(node.result(0))) return false;
//     r.replace(node.result(0), r[node.operand(0)]);
//     return true;
//   });
//
// Nodes are visited once, in order; everything is linear in the size of the function and nothing recurses.
#ifndef QPLAN_SRC_PACKER_PATTERN_REBUILD_H_
#define QPLAN_SRC_PACKER_PATTERN_REBUILD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"

namespace qplan::pattern {

struct PreValue {
  ir::ValueId id;
  bool operator==(const PreValue&) const = default;
};
struct PostValue {
  ir::ValueId id;
  bool operator==(const PostValue&) const = default;
};

// A node of one side. It stays good while the new function grows; references that it returns do not.
template <typename Value>
class NodeView {
 public:
  NodeView(const ir::Function& function, size_t index) : function_(&function), index_(index) {}

  bool is(std::string_view op_name) const { return op() != nullptr && op()->name == op_name; }
  const op::OpDef* op() const { return node().op; }  // null: a call
  const std::string& name() const { return node().name; }
  const ir::Attrs& attrs() const { return node().attrs; }
  size_t num_operands() const { return node().operands.size(); }
  Value operand(size_t i) const { return {node().operands.at(i)}; }
  size_t num_results() const { return node().results.size(); }
  Value result(size_t i = 0) const { return {node().results.at(i)}; }
  // For op::attr_*() and the like, which look at attributes only.
  const ir::Node& node() const { return function_->nodes()[index_]; }

 private:
  const ir::Function* function_;
  size_t index_;
};
using PreNode = NodeView<PreValue>;
using PostNode = NodeView<PostValue>;

// The reading interface of both functions.
template <typename Value>
class FunctionView {
 public:
  explicit FunctionView(const ir::Function& function) : function_(&function) {}

  const ir::TensorType& type(Value value) const { return function_->type(value.id); }
  const std::string& name(Value value) const { return function_->value(value.id).name; }
  ir::ConstantRef constant(Value value) const { return function_->value(value.id).constant; }  // null: none
  // The node that makes the value; nullopt for parameters and constants.
  std::optional<NodeView<Value>> producer(Value value) const {
    const ir::Value& known = function_->value(value.id);
    if (known.kind != ir::ValueKind::kResult) return std::nullopt;
    return NodeView<Value>(*function_, known.producer);
  }
  // The same, when it is one of this operator.
  std::optional<NodeView<Value>> producer(Value value, std::string_view op) const {
    const std::optional<NodeView<Value>> node = producer(value);
    return node && node->is(op) ? node : std::nullopt;
  }
  // For reading what the views do not show.
  const ir::Function& function() const { return *function_; }

 private:
  const ir::Function* function_;
};

class Pre : public FunctionView<PreValue> {
 public:
  explicit Pre(const ir::Function& function) : FunctionView(function), uses_(ir::count_uses(function)) {}
  // By operands and outputs.
  uint32_t num_uses(PreValue value) const { return uses_.at(value.id.index); }

 private:
  std::vector<uint32_t> uses_;
};

class Post : public FunctionView<PostValue> {
 public:
  explicit Post(ir::Function& function) : FunctionView(function), function_(&function) {}

  PostValue constant_value(ir::ConstantRef constant, const std::string& name = "");
  PostValue scalar(float value) { return constant_value(ir::make_scalar(value)); }
  PostValue scalar(int32_t value) { return constant_value(ir::make_scalar(value)); }
  // A call of an operator with one result.
  PostValue call(std::string_view op, const std::vector<PostValue>& operands, ir::Attrs attrs,
                 const std::string& name);
  // All results.
  std::vector<PostValue> call_all(std::string_view op, const std::vector<PostValue>& operands,
                                  ir::Attrs attrs, const std::string& name);
  using FunctionView::constant;

 private:
  friend class Rebuild;
  ir::Function* function_;
};

class Rebuild {
 public:
  // The new function's parameters are the old one's, except for the types that param_type changes: the
  // replacement of such a parameter must be given with replace() before it is read.
  using ParamType = std::function<ir::TensorType(size_t index, const ir::TensorType& old)>;
  explicit Rebuild(const ir::Function& function, const ParamType& param_type = {});

  const Pre& pre() const { return pre_; }
  Post& post() { return post_; }
  PostValue param(size_t index) const { return params_.at(index); }

  // The new function's counterpart of the old value.
  PostValue operator[](PreValue value);
  std::vector<PostValue> operands(PreNode node);
  // The node as it is. Every node is either copied or has all results replaced, when its turn comes.
  void copy(PreNode node);
  // The types must be the same.
  void replace(PreValue value, PostValue replacement);
  // The new function, without the nodes that nothing uses any more. outputs: in place of the old one's.
  std::unique_ptr<ir::Function> finish();
  std::unique_ptr<ir::Function> finish(const std::vector<PostValue>& outputs);

 private:
  const ir::Function& old_;
  std::unique_ptr<ir::Function> new_;
  Pre pre_;
  Post post_;
  std::vector<PostValue> params_;
  std::vector<PostValue> map_;  // by old value
};

// Visits each node. rewrite(Rebuild&, PreNode) returns true after replacing all results, false to leave the
// node as it is. Null when nothing was rewritten.
template <typename Rewrite>
std::unique_ptr<ir::Function> rebuild(const ir::Function& function, Rewrite&& rewrite) {
  Rebuild state(function);
  bool changed = false;
  for (size_t i = 0; i < function.nodes().size(); ++i) {
    const PreNode node(function, i);
    if (rewrite(state, node)) {
      changed = true;
    } else {
      state.copy(node);
    }
  }
  return changed ? state.finish() : nullptr;
}

// Whether each node contributes to an output, in the order of the nodes.
std::vector<bool> live_nodes(const ir::Function& function);

// Rebuilding in any shape: values are replaced one by one, and all nodes between are copied. For passes that
// are neither a list of rewrites nor one visit of the nodes.
class Edit {
 public:
  explicit Edit(const ir::Function& function) : function_(function), rebuild_(function) {}

  const Pre& pre() const { return rebuild_.pre(); }
  Post& post() { return rebuild_.post(); }

  // The new function's counterpart of the old value. Nodes that are not replaced, up to the one that makes
  // it, are copied.
  PostValue operator[](PreValue value);
  // Later readers of the old value read the replacement, which has the same type. PackError
  // (QPLAN_INVALID_ARGUMENT) where nodes after the value's own have already been copied or replaced: they
  // would keep their old operands. A replacement may read the old value: operator[] before replace().
  void replace(PreValue value, PostValue replacement);
  // The new function; null when nothing was replaced.
  std::unique_ptr<ir::Function> finish();

 private:
  // Copies what is left of the nodes before this one.
  void advance_to(size_t node);

  const ir::Function& function_;
  Rebuild rebuild_;
  size_t next_ = 0;                 // first node that is neither copied nor replaced
  std::vector<uint32_t> replaced_;  // the results of node next_ that are replaced, where not all are
  bool changed_ = false;
};

}  // namespace qplan::pattern

#endif  // QPLAN_SRC_PACKER_PATTERN_REBUILD_H_
