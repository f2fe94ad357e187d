// A function as its text says it, before its types are known: what the parser fills, type deduction
// completes, and build_function turns into the IR. Values and nodes are numbered in the order of the text.
#ifndef QPLAN_SRC_PACKER_TEXT_DRAFT_H_
#define QPLAN_SRC_PACKER_TEXT_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/qplan.h"
#include "src/packer/ir/module.h"
#include "src/packer/text/text.h"

namespace qplan::text {

struct DraftValue {
  enum class Kind : uint8_t {
    kParam,
    kConstant,
    kPlaceholder,  // a constant without data
    kResult,
  };
  Kind kind = Kind::kParam;
  std::string name;  // of a parameter or placeholder
  size_t place = 0;  // offset in the text
  // Shape and dtype are known separately: qnn.quantize states its result's dtype, whatever the shape is.
  std::optional<ir::Shape> shape;
  std::optional<ir::DType> dtype;
  ir::ConstantRef constant;  // kConstant; later also of what is bound or synthesised
  uint32_t node = 0;         // kResult: which node's, which of its results
  uint32_t result_index = 0;
  std::string_view comment;  // "ty=Tensor[(1, 3), int8] " after it, not parsed

  bool known() const { return shape && dtype; }
  ir::TensorType type() const { return {*dtype, *shape}; }
  void set_type(const ir::TensorType& type) {
    shape = type.shape;
    dtype = type.dtype;
  }
};

struct DraftNode {
  ir::Node node;  // operands and results are ids of the draft's values
  size_t place = 0;
  std::vector<ir::TensorType> call_types;  // of a function's results
};

struct Draft {
  std::vector<DraftValue> values;
  std::vector<DraftNode> nodes;

  DraftValue& operator[](ir::ValueId id) { return values[id.index]; }
  const DraftValue& operator[](ir::ValueId id) const { return values[id.index]; }
  ir::ValueId add(DraftValue value) {
    values.push_back(std::move(value));
    return {static_cast<uint32_t>(values.size() - 1)};
  }
};

// Throws the PackError of a refusal at an offset in the text.
using FailAt = std::function<void(qplan_status status, size_t place, const std::string& text)>;

// From a draft to a function of the IR.

// The options that the text used; shared by all functions of a module.
struct Resolution {
  Resolution(const ParseOptions& parse_options, FailAt fail)
      : options(parse_options), fail_at(std::move(fail)) {}

  const ParseOptions& options;
  FailAt fail_at;
  std::vector<std::string> inputs;       // names of main's parameters, for refusals
  std::vector<std::string> synthesised;  // names
  std::vector<std::string> unbound;      // parameters of main that are weights by their use
  int64_t synthesised_bytes = 0;
};

// Gives every parameter and placeholder its type, and contents where they are bound (is_main) or synthesised.
// Refuses what stays unknown.
void resolve(Draft* draft, bool is_main, Resolution* resolution);

// Adds parameters, nodes and constants to the function, and gives its value for each of the draft.
std::vector<ir::ValueId> build_function(const Draft& draft, ir::Function* function, const FailAt& fail_at);

// Types of what a text leaves untyped: free variables, parameters without a type, constants without data.

// Inference failed although its operands were known; unknown types after it are consequences.
struct DeductionFailure {
  qplan_status status = QPLAN_OK;
  size_t place = 0;
  std::string text;
};

// Fills in shapes and dtypes of values, forwards by inference and backwards where an operator leaves one
// choice: data of element-wise operators, weights and bias of layers whose attributes say their extents.
// Linear in the size of the draft. typed is called for each untyped parameter or placeholder whose type
// became known; it may give the value contents.
std::optional<DeductionFailure> deduce_types(Draft* draft, const std::function<void(ir::ValueId)>& typed);

// Data for constants that a text names without giving them, so that a network can be packed and measured by
// its shape.

// The use of a value, and the range in which its elements make sense.
struct Recipe {
  enum class Kind : uint8_t { kData, kWeight, kScale, kZeroPoint, kVariance } kind = Kind::kData;
  double amplitude = 0.1;  // of float weights: elements from -amplitude to amplitude
};

// For each value of the draft: the recipe where every use is as a constant of a layer, maybe through
// qnn.quantize and movement; else kData. Float weights that are quantised stay within about 100 steps,
// so that they do not saturate.
std::vector<Recipe> find_recipes(const Draft& draft);

// The same elements for the same seed and name on every host.
ir::ConstantRef synthesize(const ir::TensorType& type, const Recipe& recipe, uint64_t seed,
                           std::string_view name);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_DRAFT_H_
