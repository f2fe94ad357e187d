#include <map>
#include <unordered_set>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"

namespace qplan::ir {
namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function)
      : module_(module), function_(function), defined_(function.num_values(), false) {}

  void run() {
    check_params();
    for (uint32_t i = 0; i < function_.num_values(); ++i) check_value(ValueId{i});
    for (size_t i = 0; i < function_.nodes().size(); ++i) check_node(i);
    check_outputs();
  }

 private:
  [[noreturn]] void fail(qplan_status status, const std::string& text) const {
    throw PackError(status, "function '" + function_.name() + "': " + text);
  }
  // The IR is not what the code around it promises: our bug, not the model's.
  [[noreturn]] void broken(const std::string& text) const { fail(QPLAN_INTERNAL, text); }

  std::string place(size_t index) const {
    const Node& node = function_.nodes()[index];
    const std::string what = node.op != nullptr ? node.op->name : "call of '@" + node.callee + "'";
    return node.name.empty() ? what + " (node " + std::to_string(index) + ")" : what + " '" + node.name + "'";
  }

  bool in_range(ValueId id) const { return id.index < function_.num_values(); }

  void check_params() {
    std::unordered_set<std::string> names;
    for (const ValueId id : function_.params()) {
      if (!in_range(id) || function_.value(id).kind != ValueKind::kParam)
        broken("a parameter is not a value");
      const Value& value = function_.value(id);
      if (defined_[id.index]) broken("parameter '" + value.name + "' is listed twice");
      defined_[id.index] = true;
      if (!names.insert(value.name).second) {
        fail(QPLAN_MODEL_INVALID, "two parameters have the name '" + value.name + "'");
      }
    }
  }

  void check_value(ValueId id) {
    const Value& value = function_.value(id);
    const std::string error = type_error(value.type);
    if (!error.empty()) fail(QPLAN_MODEL_INVALID, "value '" + value.name + "': " + error);
    if (value.kind == ValueKind::kParam && !defined_[id.index]) {
      broken("parameter '" + value.name + "' is not in the list of parameters");
    }
    if (value.kind != ValueKind::kConstant) return;
    if (value.constant == nullptr || value.constant->type() != value.type) {
      broken("constant '" + value.name + "' has no contents of its type " + to_string(value.type));
    }
    defined_[id.index] = true;
  }

  void check_node(size_t index) {
    const Node& node = function_.nodes()[index];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId id = node.operands[i];
      if (!in_range(id))
        broken(place(index) + ": operand " + std::to_string(i) + " is not a value of the function");
      if (!defined_[id.index]) {
        broken(place(index) + ": operand " + std::to_string(i) + " is used before the node that makes it");
      }
    }
    std::vector<TensorType> found;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ValueId id = node.results[i];
      if (!in_range(id))
        broken(place(index) + ": result " + std::to_string(i) + " is not a value of the function");
      const Value& value = function_.value(id);
      if (value.kind != ValueKind::kResult || value.producer != index || value.result_index != i ||
          defined_[id.index]) {
        broken(place(index) + ": result " + std::to_string(i) + " is the value of something else");
      }
      defined_[id.index] = true;
      found.push_back(value.type);
    }
    if (found.empty()) broken(place(index) + ": there are no results");
    if ((node.op != nullptr) == !node.callee.empty()) {
      broken(place(index) + ": expected either an operator or a callee");
    }
    check_types(index, found, node.op != nullptr ? op::infer_types(function_, node) : call_types(index));
  }

  void check_types(size_t index, const std::vector<TensorType>& found,
                   const std::vector<TensorType>& expected) {
    if (found.size() != expected.size()) {
      broken(place(index) + ": there are " + std::to_string(found.size()) + " results, expected " +
             std::to_string(expected.size()));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      broken(place(index) + ": result " + std::to_string(i) + " is " + to_string(found[i]) + ", expected " +
             to_string(expected[i]));
    }
  }

  std::vector<TensorType> call_types(size_t index) const {
    const Node& node = function_.nodes()[index];
    const Function* callee = module_.find(node.callee);
    if (callee == nullptr) fail(QPLAN_MODEL_INVALID, place(index) + ": there is no such function");
    if (node.operands.size() != callee->params().size()) {
      fail(QPLAN_MODEL_INVALID, place(index) + ": there are " + std::to_string(node.operands.size()) +
                                    " operands, expected " + std::to_string(callee->params().size()));
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const TensorType& operand = function_.type(node.operands[i]);
      const TensorType& param = callee->type(callee->params()[i]);
      if (operand != param) {
        fail(QPLAN_MODEL_INVALID, place(index) + ": operand " + std::to_string(i) + " is " +
                                      to_string(operand) + ", expected " + to_string(param));
      }
    }
    std::vector<TensorType> types;
    for (const ValueId output : callee->outputs()) types.push_back(callee->type(output));
    return types;
  }

  void check_outputs() const {
    if (function_.outputs().empty()) fail(QPLAN_MODEL_INVALID, "there are no outputs");
    for (const ValueId id : function_.outputs()) {
      if (!in_range(id) || !defined_[id.index]) broken("an output is not a value of the function");
    }
    const size_t names = function_.output_names().size();
    if (names != 0 && names != function_.outputs().size()) {
      broken("there are " + std::to_string(names) + " output names for " +
             std::to_string(function_.outputs().size()) + " outputs");
    }
    (void)states_of(function_);
  }

  const Module& module_;
  const Function& function_;
  std::vector<bool> defined_;  // by value: made by what was checked so far
};

// Removes functions all of whose callers are removed, until none is left or only circles are.
void check_recursion(const Module& module) {
  std::map<std::string, size_t, std::less<>> calls_of;  // how many nodes call the function
  for (const auto& function : module.functions()) {
    for (const Node& node : function->nodes()) {
      if (node.op == nullptr) ++calls_of[node.callee];
    }
  }
  std::vector<const Function*> open;
  for (const auto& function : module.functions()) {
    if (calls_of[function->name()] == 0) open.push_back(function.get());
  }
  while (!open.empty()) {
    const Function* function = open.back();
    open.pop_back();
    for (const Node& node : function->nodes()) {
      if (node.op == nullptr && --calls_of[node.callee] == 0) open.push_back(module.find(node.callee));
    }
  }
  for (const auto& [name, calls] : calls_of) {
    if (calls == 0) continue;
    throw PackError(QPLAN_MODEL_INVALID,
                    "function '" + name + "': it is part of, or called from, a circle of calls");
  }
}

}  // namespace

void verify(const Module& module) {
  for (const auto& function : module.functions()) FunctionVerifier(module, *function).run();
  check_recursion(module);
}

}  // namespace qplan::ir
