#include "src/packer/text/deduce.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>

#include "src/packer/error.h"
#include "src/packer/ir/limits.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"
#include "src/packer/text/relay_calls.h"

namespace qplan::text {
namespace {

// Operators whose result has the type of their first operand.
constexpr std::string_view kSameType[] = {
    "clip",         "nn.relu",    "nn.leaky_relu", "sigmoid",     "tanh",        "exp",
    "sqrt",         "negative",   "abs",           "round",       "floor",       "ceil",
    "hard_sigmoid", "nn.softmax", "qnn.sigmoid",   "qnn.softmax", "nn.bias_add", "nn.batch_norm",
};

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
  void deduce_conv2d_weight(const ir::Node& node);
  void deduce_per_channel(const ir::Node& node);

  Draft& draft_;
  const std::function<void(ir::ValueId)>& typed_;
  std::vector<std::vector<uint32_t>> users_;  // of each value; a node stands as often as it uses it
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
  // What the text types itself may be waited for too.
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
  std::vector<ir::TensorType> operand_types;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const DraftValue& value = draft_[node.operands[i]];
    operand_types.push_back(value.type());
    node.operands[i] = value.constant != nullptr ? function.add_constant(value.constant)
                                                 : function.add_param("p" + std::to_string(i), value.type());
  }
  node.results.clear();
  try {
    complete_relay_call(&node, operand_types);
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

// What the attributes alone say.
void Deduction::deduce_dtypes(const ir::Node& node) {
  const std::string& name = node.op->name;
  if (name == "qnn.quantize") {
    set(node.operands[0], std::nullopt, ir::kFloat32);
    set(node.results[0], std::nullopt, ir::dtype_from_string(op::attr_string(node, "out_dtype")));
  } else if (name == "qnn.dequantize") {
    set(node.results[0], std::nullopt, ir::kFloat32);
  } else if (name == "qnn.requantize") {
    set(node.results[0], std::nullopt, ir::dtype_from_string(op::attr_string(node, "out_dtype")));
  } else if (name == "nn.conv2d" || name == "nn.dense" || name == "nn.batch_norm") {
    set(node.operands[0], std::nullopt, ir::kFloat32);
    set(node.operands[1], std::nullopt, ir::kFloat32);
  }
}

// The first operand from the result, where their shapes are one.
void Deduction::deduce_data(const ir::Node& node) {
  const DraftValue& result = draft_[node.results[0]];
  const std::string& name = node.op->name;
  if (name == "qnn.quantize" || name == "qnn.dequantize" || name == "qnn.requantize" || name == "cast") {
    set(node.operands[0], result.shape, std::nullopt);
    set(node.results[0], operand(node, 0).shape, std::nullopt);
  } else if (std::ranges::find(kSameType, name) != std::end(kSameType)) {
    set(node.operands[0], result.shape, result.dtype);
    set(node.results[0], operand(node, 0).shape, operand(node, 0).dtype);
  }
}

void Deduction::deduce_weights(const ir::Node& node) {
  const std::string& name = node.op->name;
  if (name == "qnn.conv2d" || name == "nn.conv2d") {
    deduce_conv2d_weight(node);
  } else if (name == "qnn.dense" || name == "nn.dense") {
    const auto& data = operand(node, 0).shape;
    const auto& result = draft_[node.results[0]].shape;
    int64_t units = op::attr_int(node, "units");
    if (units == 0 && result && !result->empty()) units = result->back();
    if (data && !data->empty() && units > 0)
      set(node.operands[1], ir::Shape{units, data->back()}, std::nullopt);
  } else if (name == "nn.bias_add" || name == "nn.batch_norm") {
    deduce_per_channel(node);
  }
}

void Deduction::deduce_conv2d_weight(const ir::Node& node) {
  const auto& data = operand(node, 0).shape;
  const auto& result = draft_[node.results[0]].shape;
  const ir::Ints& kernel_size = op::attr_ints(node, "kernel_size");
  const int64_t groups = op::attr_int(node, "groups");
  if (!data || data->size() != 4 || kernel_size.size() != 2 || groups < 1) return;
  const op::DataLayout d = op::data_layout(op::attr_string(node, "data_layout"));
  const op::WeightLayout w = op::weight_layout(op::attr_string(node, "kernel_layout"));
  int64_t channels = op::attr_int(node, "channels");
  if (channels == 0 && result && result->size() == 4) channels = (*result)[d.c];
  if (channels < 1 || (*data)[d.c] % groups != 0) return;
  ir::Shape shape(4);
  shape[w.o] = channels;
  shape[w.i] = (*data)[d.c] / groups;
  shape[w.h] = kernel_size[0];
  shape[w.w] = kernel_size[1];
  set(node.operands[1], shape, std::nullopt);
}

// Bias, and the four of a batch norm: one value per channel, of the data's dtype.
void Deduction::deduce_per_channel(const ir::Node& node) {
  const DraftValue& data = operand(node, 0);
  if (!data.shape) return;
  const int64_t axis = op::normalized_axis(op::attr_int(node, "axis"), data.shape->size());
  const ir::Shape shape{(*data.shape)[static_cast<size_t>(axis)]};
  for (size_t i = 1; i < node.operands.size(); ++i)
    set(node.operands[i], shape, draft_[node.operands[0]].dtype);
}

}  // namespace

std::optional<DeductionFailure> deduce_types(Draft* draft, const std::function<void(ir::ValueId)>& typed) {
  return Deduction(draft, typed).run();
}

}  // namespace qplan::text
