// An ONNX file as structs of its own: only model_file.cc includes protobuf and ONNX's generated classes.
// Nothing is checked here beyond what protobuf checks; names, indices, shapes and sizes are checked where
// they are used.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_FILE_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/import/part.h"
#include "src/packer/ir/module.h"

namespace qplan::onnx {

// TensorProto: its types, and its contents as a constant of the IR.

// The tensor as in the file; the spans point into Model::message. Which of them holds the elements depends on
// the type, unless raw does.
struct Tensor {
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  bool has_raw = false;
  std::span<const uint8_t> raw;
  std::span<const float> floats;
  std::span<const int32_t> int32s;
  std::span<const int64_t> int64s;
  std::span<const double> doubles;
  std::span<const uint64_t> uint64s;
  bool is_external = false;   // the data is in another file,
  std::string external_path;  // this one
  bool is_segment = false;    // a part of a tensor
};

// A tensor without elements may have any other extents. PackError where they are negative or their product
// wraps: what multiplies them later relies on it. Returns the product of those that are not 0.
int64_t check_extents(const std::vector<int64_t>& extents);

// nullopt: a type that the IR does not know.
std::optional<ir::DType> ir_dtype(int32_t data_type);
// TensorProto.DataType of a dtype; 0 (undefined) where the file format has none.
int32_t file_type(ir::DType dtype);
// "float32", "string", "type 99".
std::string type_name(int32_t data_type);

// Throws Unsupported for types, external data and segments; PackError where sizes do not fit. Extents may be
// 0, which no value of a function may have.
ir::ConstantRef read_constant(const Tensor& tensor);

enum class AttributeKind { kFloat, kInt, kString, kTensor, kFloats, kInts, kStrings, kGraph, kOther };

struct Subgraph;

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kOther;  // kOther: lists of graphs, sparse tensors, types, references
  std::string reference;  // in a function's body: the attribute of the function that it stands for
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Tensor tensor;
  std::shared_ptr<const Subgraph> graph;
};

struct NodeInfo {
  std::string op_type;
  std::string domain;                        // "" for ONNX's own, which files also call "ai.onnx"
  std::string name;                          // may be empty
  std::vector<std::string> inputs, outputs;  // "" where an optional one is absent
  std::vector<Attribute> attributes;
};

// The graph in an attribute, such as a branch of If. It reads values of the graphs around it by their names.
struct Subgraph {
  std::vector<std::string> inputs, outputs;
  std::vector<Tensor> initializers;
  std::vector<std::string> sparse_initializers;
  std::vector<NodeInfo> nodes;
};

struct OpsetImport {
  std::string domain;
  int64_t version = 0;
};

// A function of the model. A node with its domain and name as the operator stands for the function's nodes,
// which see no other values than the function's inputs.
struct Function {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // that have no default
  std::vector<Attribute> defaults;
  std::vector<OpsetImport> opsets;
  std::vector<NodeInfo> nodes;
};

// An extent that the file leaves open has a symbol, which may be empty.
struct Dim {
  std::optional<int64_t> extent;
  std::string symbol;
};

struct ValueInfo {
  std::string name;
  bool is_tensor = false;  // else a sequence, a map, an optional or nothing
  int32_t data_type = 0;
  std::optional<std::vector<Dim>> dims;  // nullopt: the rank is unknown too
};

struct Model {
  std::vector<OpsetImport> opsets;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<ValueInfo> values;   // between them, as far as the file says what these are
  std::set<std::string> left_out;  // inputs of the file, where this is a part of it
  std::vector<Tensor> initializers;
  std::vector<std::string> sparse_initializers;  // names only: they are refused where they are used
  std::vector<NodeInfo> nodes;
  std::vector<Function> functions;
  uint64_t size_bytes = 0;              // of the file
  std::shared_ptr<const void> message;  // what the tensors point into
};

// What a part (importer::select_part) needs of a model: its graph. Refers to the model.
importer::PartGraph part_graph(const Model& model);
// Makes the part of the options the graph of the model. PackError of importer::select_part, and where neither
// the file nor the options tell the type of an input that the part begins at.
void select_part(Model* model, const ImportOptions& options);

// PackError when the bytes are not a ModelProto with a graph.
Model read_model(std::span<const uint8_t> bytes);

// A file that holds one TensorProto, as ONNX's test data does.
ir::ConstantRef read_tensor_file(std::span<const uint8_t> bytes);

// import.h under the names of this folder.
using importer::clean_name;
using importer::in_quotes;
using importer::invalid;
using importer::to_text;
using importer::Unsupported;

// Finds out what an ONNX model was made for and how it was quantised. An error states this first, because it
// explains the list of unsupported operators.

// "Conv", "com.microsoft.QGemm".
std::string operator_name(const NodeInfo& node);

// Sentences, the one that explains most first; none for a model that is quantised as qplan wants it, or where
// what is unsupported has nothing to do with how it is quantised.
std::vector<std::string> model_notes(const Model& model, const importer::UnsupportedList& unsupported);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_MODEL_FILE_H_
