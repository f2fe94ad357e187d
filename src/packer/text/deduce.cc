#include <algorithm>
#include <deque>

#include "src/packer/error.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/parser.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

class Deduction {
 public:
  Deduction(Draft* draft, const std::function<void(ir::ValueId)>& typed);
  std::optional<DeductionFailure> run();

 private:
  const DraftValue& operand(const ir::Node& node, size_t i) const { return draft_[node.operands[i]]; }
  void set(ir::ValueId id, const std::optional<ir::Shape>& shape, std::optional<ir::DType> dtype);
  void push(uint32_t node);
  void visit(uint32_t index);
  void infer(uint32_t index);
  void deduce_dtypes(const ir::Node& node);
  void deduce_data(const ir::Node& node);
  void deduce_weights(const ir::Node& node);
  void deduce_per_channel(const ir::Node& node);

  Draft& draft_;
  const std::function<void(ir::ValueId)>& typed_;
  std::vector<std::vector<uint32_t>> users_;  // of each value; a node is listed once for each use
  std::vector<size_t> unknown_operands_;      // of each node
  std::deque<uint32_t> queue_;
  std::vector<bool> queued_;
  std::optional<DeductionFailure> failure_;
};

Deduction::Deduction(Draft* draft, const std::function<void(ir::ValueId)>& typed)
    : draft_(*draft),
      typed_(typed),
      users_(draft->values.size()),
      unknown_operands_(draft->nodes.size()),
      queued_(draft->nodes.size()) {
  for (uint32_t i = 0; i < draft_.nodes.size(); ++i) {
    for (const ir::ValueId id : draft_.nodes[i].node.operands) {
      users_[id.index].push_back(i);
      if (!draft_[id].known()) ++unknown_operands_[i];
    }
    push(i);
  }
}

std::optional<DeductionFailure> Deduction::run() {
  // Types that the text states may also be waited for.
  for (uint32_t i = 0; i < draft_.values.size(); ++i) {
    const DraftValue& value = draft_.values[i];
    const bool leaf = value.kind == DraftValue::Kind::kParam || value.kind == DraftValue::Kind::kPlaceholder;
    if (leaf && value.known() && value.constant == nullptr) typed_({i});
  }
  while (!queue_.empty()) {
    const uint32_t node = queue_.front();
    queue_.pop_front();
    queued_[node] = false;
    visit(node);
  }
  return failure_;
}

void Deduction::push(uint32_t node) {
  if (queued_[node]) return;
  queued_[node] = true;
  queue_.push_back(node);
}

void Deduction::set(ir::ValueId id, const std::optional<ir::Shape>& shape, std::optional<ir::DType> dtype) {
  DraftValue& value = draft_[id];
  if (value.known()) return;
  const bool news = (shape && !value.shape) || (dtype && !value.dtype);
  if (!news) return;
  if (!value.shape) value.shape = shape;
  if (!value.dtype) value.dtype = dtype;
  if (value.known()) {
    if (!ir::type_error(value.type()).empty()) {  // deduced from attributes that no tensor fits
      value.shape.reset();
      return;
    }
    for (const uint32_t user : users_[id.index]) --unknown_operands_[user];
    if (value.kind != DraftValue::Kind::kResult) typed_(id);
  }
  for (const uint32_t user : users_[id.index]) push(user);
  if (value.kind == DraftValue::Kind::kResult) push(value.node);
}

void Deduction::visit(uint32_t index) {
  const DraftNode& node = draft_.nodes[index];
  if (node.node.op == nullptr) {
    for (size_t i = 0; i < node.node.results.size() && i < node.call_types.size(); ++i) {
      set(node.node.results[i], node.call_types[i].shape, node.call_types[i].dtype);
    }
    return;
  }
  const bool complete = !node.node.operands.empty() && unknown_operands_[index] == 0;
  if (complete) {
    infer(index);
    return;
  }
  if (node.node.op->variadic || node.node.operands.size() != node.node.op->operands.size()) return;
  try {
    deduce_dtypes(node.node);
    deduce_data(node.node);
    deduce_weights(node.node);
  } catch (const PackError&) {  // attributes that inference will refuse
  }
}

// On a function of its own that has nothing but the operands.
void Deduction::infer(uint32_t index) {
  const DraftNode& draft_node = draft_.nodes[index];
  if (std::ranges::all_of(draft_node.node.results, [&](ir::ValueId id) { return draft_[id].known(); }))
    return;
  ir::Function function("deduce");
  ir::Node node = draft_node.node;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const DraftValue& value = draft_[node.operands[i]];
    node.operands[i] = value.constant != nullptr ? function.add_constant(value.constant)
                                                 : function.add_param("p" + std::to_string(i), value.type());
  }
  node.results.clear();
  try {
    complete_relay_call(&function, &node);
    const std::vector<ir::TensorType> types = op::infer_types(function, node);
    for (size_t i = 0; i < types.size() && i < draft_node.node.results.size(); ++i) {
      set(draft_node.node.results[i], types[i].shape, types[i].dtype);
    }
  } catch (const PackError& error) {
    if (!failure_ || draft_node.place < failure_->place) {
      failure_ = DeductionFailure{error.status(), draft_node.place, error.what()};
    }
  }
}

// What the operator and its attributes alone say.
void Deduction::deduce_dtypes(const ir::Node& node) {
  for (size_t i = 0; i < node.operands.size(); ++i) {
    set(node.operands[i], std::nullopt, node.op->operands[i].dtype);
  }
  const op::AttrDef* dtype = op::attr_with(node.op, op::AttrRole::kDtype);
  set(node.results[0], std::nullopt,
      dtype != nullptr ? ir::dtype_from_string(op::attr_string(node, dtype->name)) : node.op->result_dtype);
}

// The first operand from the result, where their shapes are one.
void Deduction::deduce_data(const ir::Node& node) {
  if (!node.op->keeps_shape) return;
  const DraftValue& result = draft_[node.results[0]];
  const auto dtype_of = [&](const DraftValue& value) {
    return node.op->keeps_dtype ? value.dtype : std::nullopt;
  };
  set(node.operands[0], result.shape, dtype_of(result));
  set(node.results[0], operand(node, 0).shape, dtype_of(operand(node, 0)));
}

void Deduction::deduce_weights(const ir::Node& node) {
  const auto pointer = [](const std::optional<ir::Shape>& shape) { return shape ? &*shape : nullptr; };
  if (node.op->weight_shape != nullptr) {
    const op::KnownShapes known{pointer(operand(node, 0).shape), pointer(draft_[node.results[0]].shape)};
    const size_t weight = op::operand_with(*node.op, op::OperandRole::kWeight).value();
    if (const auto shape = node.op->weight_shape(node, known))
      set(node.operands[weight], shape, std::nullopt);
  } else if (op::operand_with(*node.op, op::OperandRole::kPerChannel)) {
    deduce_per_channel(node);
  }
}

// Bias, and the four of a batch norm: one value per channel, of the data's dtype.
void Deduction::deduce_per_channel(const ir::Node& node) {
  const DraftValue& data = operand(node, 0);
  if (!data.shape) return;
  const op::AttrDef* attr = op::attr_with(node.op, op::AttrRole::kAxis);
  const int64_t axis = op::normalized_axis(op::attr_int(node, attr->name), data.shape->size());
  const ir::Shape shape{(*data.shape)[static_cast<size_t>(axis)]};
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (node.op->operands[i].role == op::OperandRole::kPerChannel) {
      set(node.operands[i], shape, draft_[node.operands[0]].dtype);
    }
  }
}

}  // namespace

std::optional<DeductionFailure> deduce_types(Draft* draft, const std::function<void(ir::ValueId)>& typed) {
  return Deduction(draft, typed).run();
}

}  // namespace qplan::text
