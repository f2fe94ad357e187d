// The parser of Relay text: functions into drafts, drafts into the module. parser.cc handles the top level of
// a text, expression.cc bodies, deduce.cc and build.cc drafts.
#ifndef QPLAN_SRC_PACKER_TEXT_PARSER_H_
#define QPLAN_SRC_PACKER_TEXT_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "qplan/qplan.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"

namespace qplan::text {

// A function as its text says it, before its types are known: what the parser fills, type deduction
// completes, and build_function turns into the IR. Values and nodes are numbered in the order of the text.

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

// The parser.

// The values of the draft that a name or expression means. A node of several results and a written tuple are
// tuples.
struct Binding {
  std::vector<ir::ValueId> values;
  bool tuple = false;
};

inline Binding single(ir::ValueId value) { return Binding{std::vector<ir::ValueId>{value}, false}; }

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, const ParseOptions& options)
      : tokens_(text, name),
        options_(options),
        resolution_(options, [this](qplan_status status, size_t place, const std::string& message) {
          throw PackError(status, tokens_.locate(place, message));
        }) {}

  ir::Module run();

 private:
  void scan();
  void skip_group(std::string_view open, std::string_view close);
  void parse_version_or_metadata();
  void parse_function();
  void parse_header_item();
  void parse_free_main();
  bool parse_statement();
  void begin_function(const Token& place, std::string name);
  std::vector<ir::ValueId> finish_function();
  void check_result(const Token& place, const ResultType& declared) const;
  void check_options() const;
  void log_constants() const;
  void bind(const Token& name, Binding binding);
  void charge(const Token& place, size_t values);

  Binding parse_expression(size_t depth);
  Binding parse_primary(size_t depth);
  Binding parse_tuple(size_t depth);
  Binding parse_local(const Token& name);
  Binding parse_call(const Token& callee, size_t depth);
  Binding parse_qnn_concatenate(const Token& callee, size_t depth);
  void parse_argument(const op::OpDef* op, size_t depth, ir::Node* node, size_t* num_args);
  std::string parse_node_attr(std::string_view callee, const op::OpDef* op, ir::Node* node);
  Binding add_node(const Token& callee, ir::Node node, size_t num_results, bool tuple);
  Binding add_operator(const Token& callee, ir::Node node);
  Binding add_call(const Token& callee, ir::Node node);
  ir::ValueId add_param(const Token& name);
  ir::ValueId add_constant(ir::ConstantRef constant);
  ir::ValueId parse_scalar();
  ir::ValueId parse_meta();
  ir::ValueId parse_const();

  TokenStream tokens_;
  const ParseOptions& options_;
  ir::Module module_;
  size_t charged_values_ = 0;
  std::vector<ir::ConstantRef> meta_;
  bool has_metadata_ = false;
  std::map<std::string, ResultType> signatures_;  // of functions that declare what they return
  Resolution resolution_;
  // The function whose body is being parsed.
  ir::Function* function_ = nullptr;
  Draft draft_;
  std::unordered_map<std::string, Binding> names_;         // by key_of
  std::unordered_map<int64_t, ir::ValueId> placeholders_;  // by index of the metadata
  bool has_free_variables_ = false;                        // undefined names are parameters
  std::vector<ir::ValueId> results_;                       // what the body gives
};

// The token for messages, cut to what one can carry: 'qnn.conv2d'.
inline std::string excerpt(const Token& token) {
  constexpr size_t kMost = 120;
  return "'" + std::string(token.text.substr(0, kMost)) + (token.text.size() > kMost ? "...'" : "'");
}
// Nodes are numbered, so a quoted name that begins with a digit is another name than the number.
std::string key_of(const Token& name);
// Whether the attribute may be added.
void check_attr(const TokenStream& tokens, const Token& place, const ir::Attrs& attrs,
                const std::string& name);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_PARSER_H_
