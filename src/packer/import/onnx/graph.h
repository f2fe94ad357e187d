// The function that is built, and the map from names of the file to its values. Constants stay outside of the
// function until a node needs them: shape arithmetic is done on them at once, and may be done on tensors
// without elements, which no value of a function may be.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_GRAPH_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_GRAPH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/ir/module.h"

namespace qplan::onnx {

// A constant, a value of the function, or, after an operator that is not imported, nothing.
struct Value {
  ir::ConstantRef constant;
  ir::ValueId id;
  std::string name = {};  // of a constant

  Value() = default;
  Value(ir::ConstantRef c) : constant(std::move(c)) {}  // NOLINT: rows return either kind
  Value(ir::ValueId i) : id(i) {}                       // NOLINT
  bool is_constant() const { return constant != nullptr; }
  bool is_known() const { return is_constant() || id.valid(); }
};

class Graph {
 public:
  Graph(const Model& model, ir::Function& function, const LogFunction& log);

  const Model& model() const { return model_; }
  ir::Function& function() const { return function_; }
  const LogFunction& log() const { return log_; }

  // Names of initializers, whose contents are read when they are used.
  void declare(const Tensor& initializer);
  void declare_sparse(const std::string& name);
  // PackError when the name is taken.
  void define(const std::string& name, Value value);
  bool is_defined(const std::string& name) const { return entries_.contains(name); }
  const Value& value(const std::string& name);
  // Whether a node or an output of the model reads it.
  bool is_read(const std::string& name) const { return read_.contains(name); }

  // Hands the nodes to the importer below.
  void import_nodes(const std::vector<NodeInfo>& nodes) { import_nodes_(nodes); }
  // Reads the nodes of a subgraph as if they were in this graph; their names become names of the graph.
  void import_subgraph(const Subgraph& subgraph);
  void set_node_importer(std::function<void(const std::vector<NodeInfo>&)> import_nodes) {
    import_nodes_ = std::move(import_nodes);
  }

  // The value as an operand; a constant enters the function now.
  ir::ValueId id(const Value& value);
  const ir::TensorType& type(const Value& value) const;
  // The node's results. A node whose operands are all constants is computed at once, if its operator can be.
  std::vector<Value> emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                          const std::string& name);

  // The constant as float32 where it is float16: networks of float16 are computed in float32.
  ir::ConstantRef in_float32(const ir::ConstantRef& constant);

  // Count bytes of constants, and of what is read and written in computing them: a small file could ask for
  // any amount of both.
  void charge(uint64_t bytes);
  void charge_work(uint64_t bytes);

 private:
  struct Entry {
    Value value;
    const Tensor* initializer = nullptr;  // not read yet
    bool is_sparse = false;
  };
  void read_names(const std::vector<NodeInfo>& nodes);
  std::vector<Value> evaluate(const ir::Node& node, const std::vector<ir::ConstantRef>& operands);

  const Model& model_;
  ir::Function& function_;
  const LogFunction& log_;
  std::function<void(const std::vector<NodeInfo>&)> import_nodes_;
  std::unordered_map<std::string, Entry> entries_;
  std::unordered_set<std::string_view> read_;
  uint64_t constant_bytes_ = 0;
  uint64_t work_bytes_ = 0;
};

// Inputs and outputs of the model as parameters and outputs of the function.

// Declares the initializers and defines the inputs: parameters, or constants where they are bound.
void define_inputs(Graph& graph, const ImportOptions& options);
// Sets the function's outputs, and the quantisation of its inputs and outputs as their operators state it.
void define_outputs(Graph& graph);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_GRAPH_H_
