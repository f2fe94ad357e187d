// A .tflite file with checked access: after open() every access by index is checked, and returns only bytes
// of the file.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_FILE_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/tflite_subset_generated.h"
#include "src/packer/ir/types.h"

namespace qplan::tfl {

struct TensorInfo {
  int32_t index = 0;
  std::string name;                // may be empty
  tflite::TensorType file_type{};  // as the file says
  std::optional<ir::DType> dtype;  // nullopt: a type that the IR does not know; int8 for constants of int4
  ir::Shape shape;                 // every extent at least 1; open ones are 1
  std::vector<bool> open;          // by axis: the file does not say the extent; empty: it says all
  bool has_shape = true;           // false: a number, or rank unknown; shape is empty
  bool has_open_rank = false;      // shape is empty, but shape_signature is not
  bool is_empty =
      false;  // an extent is 0: an empty list of axes or extents, or of nothing that can be computed
  bool is_variable = false;
  const tflite::QuantizationParameters* quantization = nullptr;  // may be null
  std::span<const uint8_t> data;                                 // empty: not a constant
  std::vector<uint8_t> widened;                                  // what `data` of int4 is, as int8
  std::vector<uint8_t> dense;                                    // what sparse `data` is, with all zeros

  bool is_constant() const { return !data.empty(); }
  // Whether an operator that gives this shape may write the tensor.
  bool may_have(const ir::Shape& found) const;
  size_t num_scales() const {
    return quantization == nullptr || quantization->scale() == nullptr ? 0 : quantization->scale()->size();
  }
};

std::string type_name(tflite::TensorType type);  // "float32", "string"

class ModelFile {
 public:
  // Verifies the flatbuffer; PackError when it is not one, or not a model. bytes must outlive the object.
  explicit ModelFile(std::span<const uint8_t> bytes);
  // Another subgraph of the file, which must outlive the object; the index is in range.
  ModelFile(const ModelFile& file, size_t subgraph);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  uint64_t size_bytes() const { return bytes_.size(); }
  size_t num_subgraphs() const;
  size_t num_operators() const;
  const tflite::Operator& op(size_t index) const;
  size_t num_tensors() const { return tensors_.size(); }
  // The tensor, decoded and checked at its first use: unused ones may be anything.
  const TensorInfo& tensor(int32_t index);
  // Those of the part, once select_part() has chosen one.
  std::span<const int32_t> inputs() const { return inputs_; }
  std::span<const int32_t> outputs() const { return outputs_; }

  // Operators outside of the part are there, but nothing looks at them.
  bool is_in_part(size_t op) const { return part_.empty() || part_[op]; }
  void set_part(std::vector<int32_t> inputs, std::vector<int32_t> outputs, std::vector<bool> operators) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
    part_ = std::move(operators);
  }

  // The number of a builtin operator (CUSTOM included); PackError when the operator's code is out of range.
  int32_t builtin_code(const tflite::Operator& op) const;
  // "CONV_2D", "custom operator 'FlexErf'", "builtin operator 300".
  std::string operator_name(const tflite::Operator& op) const;
  // Empty for a builtin operator.
  std::string_view custom_code(const tflite::Operator& op) const;
  // The bytes of the metadata entry with this name; empty if the model has no such entry.
  std::span<const uint8_t> metadata(std::string_view name) const;
  // Null where the index is out of range. 0 is the one that is imported; operators such as WHILE name others.
  const tflite::SubGraph* subgraph(size_t index) const;

 private:
  void open_subgraph(size_t index);
  std::span<const uint8_t> buffer(uint32_t index) const;
  // Decoded bytes that the file does not have as they are. ExpandsTooMuch beyond the limit.
  void count_expanded(uint64_t bytes);
  const tflite::OperatorCode& operator_code(const tflite::Operator& op) const;

  std::vector<uint64_t> aligned_copy_;  // holds the bytes where the caller's are not aligned
  std::span<const uint8_t> bytes_;
  const tflite::Model* model_ = nullptr;
  const tflite::SubGraph* graph_ = nullptr;
  std::vector<int32_t> inputs_, outputs_;
  std::vector<bool> part_;                                                // by operator; empty: all
  std::vector<std::unique_ptr<TensorInfo>> tensors_;                      // null: not decoded yet
  std::shared_ptr<const std::map<std::string_view, uint32_t>> metadata_;  // buffers by name
  std::shared_ptr<uint64_t> expanded_bytes_;                              // of all subgraphs
};

// Texts that all importers share, under the names that the TFLite importer uses.
using importer::clean_name;
using importer::in_quotes;
using importer::invalid;
using importer::to_text;
using importer::Unsupported;

// The constants that ModelFile has decoded take more memory than a file of its size may ask for. It is an
// error wherever it happens: another error of an operator may follow from one that is not imported, this one
// does not.
class ExpandsTooMuch : public PackError {
 public:
  explicit ExpandsTooMuch(const std::string& text) : PackError(QPLAN_MODEL_INVALID, text) {}
};

// What a .tflite file was made for, and how it was quantised: said first when it cannot be imported, as it
// explains the list of its operators better than the list does.

// Sentences, the one that explains most first; none for a model that is quantised as qplan wants it.
std::vector<std::string> model_notes(ModelFile& file);
// Whether operators of this code multiply an activation with weights.
bool has_weights(int32_t builtin_code);

// Makes the part the graph of the file. PackError of importer::select_part.
void select_part(ModelFile& file, const Part& part, std::set<std::string>* names_of_others);
// Which parts have none of the operators that are refused, by their numbers (importer::parts_without).
// is_known: whether the import has computed the tensor.
std::string parts_without(ModelFile& file, const std::set<size_t>& refused,
                          const std::function<bool(const TensorInfo&)>& is_known);

// Operands of all operators together. Each takes four bytes of a file that does not share vectors among
// operators; one that does could make a small file take for ever.
void check_operand_count(const ModelFile& file);

// Operators in the subgraphs that IF and WHILE run: none is imported, all are listed.

// Adds what subgraph 0 reaches through such operators: "ADD inside WHILE". Each subgraph counts once; those
// that were imported do not.
void list_subgraph_operators(const ModelFile& file, const std::set<size_t>& imported,
                             importer::UnsupportedList* unsupported);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_MODEL_FILE_H_
