// The IR of a model: functions of flat bodies. A function is a list of nodes in topological order; a node
// calls an operator (op/) or another function of the module on earlier values; values are parameters,
// constants or results. Bodies only grow: a pass that changes something builds a new function from the old
// one (pattern/pattern.h), so no iterator, operand or index of the old one can go stale. Nothing here
// recurses over depth.
#ifndef QPLAN_SRC_PACKER_IR_MODULE_H_
#define QPLAN_SRC_PACKER_IR_MODULE_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "src/packer/ir/types.h"

namespace qplan::op {
struct OpDef;
}

namespace qplan::ir {

// Bytes with a type; immutable and shared between the functions that use it. Little-endian, packed.
class Constant {
 public:
  Constant(TensorType type, std::vector<uint8_t> bytes);  // PackError when the size does not fit the type
  const TensorType& type() const { return type_; }
  std::span<const uint8_t> bytes() const { return bytes_; }
  uint64_t content_hash() const { return hash_; }

  // The elements, in a type as wide as theirs (of bits: a byte), of floats or integers as they are. PackError
  // (QPLAN_INTERNAL) for others, which would make other numbers of the bytes.
  template <typename T>
  std::span<const T> as() const {
    check_read_as(sizeof(T), std::is_floating_point_v<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  void check_read_as(size_t element_bytes, bool is_float) const;

  TensorType type_;
  std::vector<uint8_t> bytes_;
  uint64_t hash_;
};
using ConstantRef = std::shared_ptr<const Constant>;

template <typename T>
ConstantRef make_constant(DType dtype, Shape shape, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::make_shared<const Constant>(TensorType{dtype, std::move(shape)}, std::move(bytes));
}
ConstantRef make_scalar(float value);    // float32, shape []
ConstantRef make_scalar(int32_t value);  // int32, shape []
// A constant of float16 as float32, which qplan computes with. Exact: every float16 is a float32.
ConstantRef widened_halves(const Constant& halves);

// A value of one function. Ids of different functions must not be mixed.
struct ValueId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  bool operator==(const ValueId&) const = default;
};

enum class ValueKind : uint8_t { kParam, kConstant, kResult };

struct Value {
  ValueKind kind = ValueKind::kParam;
  TensorType type;
  std::string name;           // of the source model, may be empty; unique only for parameters
  ConstantRef constant;       // kConstant
  uint32_t producer = 0;      // kResult: index of the node
  uint32_t result_index = 0;  // kResult: which of the node's results
};

struct Node {
  const op::OpDef* op = nullptr;  // or
  std::string callee;             // a function of the module: "qplan_vta_main_0"
  std::vector<ValueId> operands;
  std::vector<ValueId> results;  // one or more
  Attrs attrs;
  std::string name;  // the source operator, for messages: "MobilenetV2/Conv/Relu6"
};

class Function {
 public:
  explicit Function(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Attrs& attrs() { return attrs_; }
  const Attrs& attrs() const { return attrs_; }

  std::span<const ValueId> params() const { return params_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  size_t num_values() const { return values_.size(); }
  const Value& value(ValueId id) const { return values_.at(id.index); }
  const TensorType& type(ValueId id) const { return value(id).type; }
  bool is_constant(ValueId id) const { return value(id).kind == ValueKind::kConstant; }
  // The node that makes the value, null for parameters and constants.
  const Node* producer(ValueId id) const;

  ValueId add_param(std::string name, TensorType type);
  // The same content gives the same value.
  ValueId add_constant(ConstantRef constant, std::string name = "");
  // Operands must be values of this function. The result types come from the operator's inference; its
  // PackError names the node.
  Node& add_node(const op::OpDef& op, std::vector<ValueId> operands, Attrs attrs, std::string name);
  // A call of a function of the module, whose result types the caller knows.
  Node& add_call(std::string callee, std::vector<ValueId> operands, std::vector<TensorType> result_types,
                 std::string name);
  void set_value_name(ValueId id, std::string name) { values_.at(id.index).name = std::move(name); }
  // names: of the model's outputs, or empty.
  void set_outputs(std::vector<ValueId> outputs, std::vector<std::string> names = {});

 private:
  Node& append(Node node, std::vector<TensorType> result_types);

  std::string name_;
  Attrs attrs_;
  std::vector<ValueId> params_;
  std::vector<Node> nodes_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::vector<Value> values_;
  std::unordered_multimap<uint64_t, ValueId> constants_;  // by content hash
};

// What a function keeps from one run to the next: a parameter, which is no input, and the result, which is no
// output, that is the parameter of the next run. They are the function's attributes, so that passes keep
// them:
//   states=[[parameter, result], ...]  positions, of the last parameters and the last results
//   state_bytes=[[0], [1, 2, 3, 4]]    of the first run: one byte that all are, or each
struct State {
  size_t param = 0;
  size_t result = 0;
  std::vector<uint8_t> initial;  // one byte: all of them are
};
// PackError (QPLAN_MODEL_INVALID) where the attributes are not what this text says.
std::vector<State> states_of(const Function& function);
void set_states(Function& function, const std::vector<State>& states);
// The number of parameters, or results, that are no states.
size_t num_inputs(const Function& function);
size_t num_outputs(const Function& function);

// For each value how many operands and outputs name it.
std::vector<uint32_t> count_uses(const Function& function);

class Module {
 public:
  // The functions in the order they were added; "main" is the entry point.
  std::span<const std::unique_ptr<Function>> functions() const { return functions_; }
  Function& add_function(std::string name);                   // PackError when the name is taken
  void replace_function(std::unique_ptr<Function> function);  // the one of the same name
  const Function* find(std::string_view name) const;
  const Function& main() const;

 private:
  std::vector<std::unique_ptr<Function>> functions_;
};

// Whether a module is what module.h promises. Run after every pass: a pass that breaks the IR is caught where
// it did.

// Throws PackError naming function and node. Checked: nodes in topological order; operands, results and
// outputs are values of the function; types within types.h and equal to what inference says; constants
// have contents; parameter names are unique; callees exist, take these operands and return these types; no
// call leads back to its caller.
void verify(const Module& module);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_MODULE_H_
