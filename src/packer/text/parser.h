// The parser of Relay text: functions into drafts, drafts into the module. parser.cc handles the top level of
// a text, expression.cc bodies.
#ifndef QPLAN_SRC_PACKER_TEXT_PARSER_H_
#define QPLAN_SRC_PACKER_TEXT_PARSER_H_

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/draft.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"

namespace qplan::text {

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
  void parse_node_attr(std::string_view callee, const op::OpDef* op, ir::Node* node);
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
