#include "src/packer/text/parser.h"

#include <algorithm>

#include "src/packer/ir/cat.h"
#include "src/packer/ir/module.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

// The limit for one function or node, because attributes are searched linearly.
constexpr size_t kMaxAttrs = 1000;

// "'a', 'b'", at most so many.
std::string list_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kShown) text += cat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

void check_attr(const TokenStream& tokens, const Token& place, const ir::Attrs& attrs,
                const std::string& name) {
  if (attrs.has(name)) tokens.fail_at(place, "attribute '" + name + "' is there twice");
  if (attrs.size() == kMaxAttrs)
    tokens.fail_at(place, "more than " + std::to_string(kMaxAttrs) + " attributes");
}

std::string key_of(const Token& name) {
  const bool like_number = !name.value.empty() && name.value[0] >= '0' && name.value[0] <= '9';
  return name.quoted && like_number ? "\"" + name.value : name.value;
}

// ---- module and functions

ir::Module Parser::run() {
  scan();
  tokens_.rewind();
  while (!tokens_.at_end()) {
    if (tokens_.is("#")) {
      parse_version_or_metadata();
    } else if (tokens_.is_word("def") || tokens_.is_word("fn")) {
      parse_function();
    } else {
      parse_free_main();
    }
  }
  if (module_.functions().empty()) tokens_.fail("there is no function, expected 'def @main(...) { ... }'");
  check_options();
  ir::verify(module_);
  log_constants();
  return std::move(module_);
}

// The first pass finds the result types of functions, and the metadata after all of them; it skips bodies.
void Parser::scan() {
  while (!tokens_.at_end()) {
    if (tokens_.is("#")) {
      parse_version_or_metadata();
      continue;
    }
    if (tokens_.is_word("def")) {
      tokens_.advance();
      const Token name = tokens_.take(TokenKind::kGlobal, "a function's name like @main");
      skip_group("(", ")");
      if (tokens_.accept("->")) signatures_.emplace(name.value, parse_result_type(&tokens_));
      skip_group("{", "}");
    } else if (tokens_.is_word("fn")) {
      tokens_.advance();
      skip_group("(", ")");
      if (tokens_.accept("->")) parse_result_type(&tokens_);
      skip_group("{", "}");
    } else {  // a body without a header
      while (!tokens_.at_end() && !tokens_.is("#") && !tokens_.is_word("def")) tokens_.advance();
    }
  }
}

void Parser::skip_group(std::string_view open, std::string_view close) {
  if (!tokens_.is(open)) tokens_.unexpected("'" + std::string(open) + "'");
  size_t depth = 0;
  do {
    if (tokens_.at_end()) tokens_.unexpected("'" + std::string(close) + "'");
    if (tokens_.is(open)) ++depth;
    if (tokens_.is(close)) --depth;
    tokens_.advance();
  } while (depth > 0);
}

// Read by both passes, metadata in the first.
void Parser::parse_version_or_metadata() {
  tokens_.expect("#");
  tokens_.expect("[");
  if (tokens_.is_word("version")) {
    tokens_.advance();
    tokens_.expect("=");
    const Token version = tokens_.take(TokenKind::kString, "a version like \"0.0.5\"");
    if (version.value != "0.0.5") {
      tokens_.fail_at(version,
                      "unknown version " + excerpt(version) + " of the text format, expected \"0.0.5\"");
    }
    tokens_.expect("]");
    return;
  }
  if (!tokens_.is_word("metadata")) tokens_.unexpected("'version' or 'metadata'");
  const Token place = tokens_.take();
  if (!tokens_.is("]")) tokens_.unexpected("']'");
  const std::string_view json = tokens_.take_rest();
  if (has_metadata_) return;
  try {
    meta_ = read_metadata(json);
  } catch (const PackError& error) {
    tokens_.fail_at(place, error.what());
  }
  has_metadata_ = true;
}

void Parser::begin_function(const Token& place, std::string name) {
  if (module_.find(name) != nullptr) tokens_.fail_at(place, "function '@" + name + "' is defined twice");
  function_ = &module_.add_function(std::move(name));
  draft_ = Draft();
  names_.clear();
  placeholders_.clear();
  results_.clear();
}

// The results as values of the function.
std::vector<ir::ValueId> Parser::finish_function() {
  resolve(&draft_, function_->name() == "main", &resolution_);
  const std::vector<ir::ValueId> built = build_function(draft_, function_, resolution_.fail_at);
  std::vector<ir::ValueId> outputs;
  for (const ir::ValueId id : results_) outputs.push_back(built[id.index]);
  return outputs;
}

// `def @name(parameters, attributes) -> type { body }`; `fn (...)` is how Relay prints a function without its
// module.
void Parser::parse_function() {
  Token name = tokens_.take();
  if (name.text == "def") {
    name = tokens_.take(TokenKind::kGlobal, "a function's name like @main");
  } else {
    name.value = "main";
  }
  begin_function(name, name.value);
  has_free_variables_ = false;
  std::vector<std::string> output_names;
  tokens_.expect("(");
  while (!tokens_.is(")")) {
    if (tokens_.is_word("output_names") && tokens_.at_attr()) {
      parse_attr_name(&tokens_);
      output_names = parse_strings(&tokens_);
    } else {
      parse_header_item();
    }
    if (!tokens_.accept(",")) break;
  }
  tokens_.expect(")");
  std::optional<ResultType> declared;
  if (tokens_.accept("->")) declared = parse_result_type(&tokens_);
  tokens_.expect("{");
  while (parse_statement()) {
  }
  const Token result = tokens_.token();
  results_ = parse_expression(0).values;
  tokens_.expect("}");
  std::vector<ir::ValueId> outputs = finish_function();
  if (!output_names.empty() && output_names.size() != outputs.size()) {
    tokens_.fail_at(name, "there are " + std::to_string(output_names.size()) + " output names for " +
                              std::to_string(outputs.size()) + " outputs");
  }
  function_->set_outputs(std::move(outputs), std::move(output_names));
  if (declared) check_result(result, *declared);
}

// Statements alone are @main: its parameters are the free variables in the order of their use, its result the
// last expression, or what the last statement defines.
void Parser::parse_free_main() {
  begin_function(tokens_.token(), "main");
  has_free_variables_ = true;
  while (parse_statement()) {
  }
  const bool ends = tokens_.at_end() || tokens_.is("#") || tokens_.is_word("def");
  if (!ends) {
    results_ = parse_expression(0).values;
    tokens_.accept(";");
  }
  if (!tokens_.at_end() && !tokens_.is("#") && !tokens_.is_word("def")) {
    tokens_.unexpected("the end of the text after the result");
  }
  if (results_.empty()) tokens_.fail("there is no statement and no result");
  function_->set_outputs(finish_function());
}

void Parser::parse_header_item() {
  const Token place = tokens_.token();
  if (place.kind == TokenKind::kLocal) {
    tokens_.advance();
    const ir::ValueId param = add_param(place);
    if (tokens_.accept(":")) draft_[param].set_type(parse_tensor_type(&tokens_));
    bind(place, single(param));
    return;
  }
  if (!tokens_.at_attr()) {
    tokens_.unexpected("a parameter like %x: Tensor[(1, 3), int8], or an attribute like Compiler=\"vta\"");
  }
  const AttrName name = parse_attr_name(&tokens_);
  check_attr(tokens_, place, function_->attrs(), name.text);
  std::optional<ir::AttrValue> value = parse_attr_value(&tokens_);
  if (value) function_->attrs().set(name.text, std::move(*value));
}

void Parser::bind(const Token& name, Binding binding) {
  if (!names_.emplace(key_of(name), std::move(binding)).second) {
    tokens_.fail_at(name, excerpt(name) + " is defined twice");
  }
}

// `%0 = expression;`, `let %x = expression;`, `free_var %x: type;`. False where there is no statement.
bool Parser::parse_statement() {
  if (tokens_.is_word("free_var") && has_free_variables_) {
    tokens_.advance();
    const Token name = tokens_.take(TokenKind::kLocal, "a name like %x");
    tokens_.expect(":");
    const ir::ValueId param = add_param(name);
    draft_[param].set_type(parse_tensor_type(&tokens_));
    bind(name, single(param));
    tokens_.expect(";");
    return true;
  }
  const bool let = tokens_.is_word("let");
  if (let) tokens_.advance();
  const Token place = tokens_.token();
  if (place.kind != TokenKind::kLocal || !tokens_.next_is("=")) {
    if (let) tokens_.unexpected("a name like %x and '='");
    return false;
  }
  tokens_.advance();
  tokens_.expect("=");
  Binding value = parse_expression(0);
  tokens_.expect(";");
  if (has_free_variables_) results_ = value.values;
  bind(place, std::move(value));
  return true;
}

void Parser::check_result(const Token& place, const ResultType& declared) const {
  std::vector<ir::TensorType> found;
  for (const ir::ValueId id : function_->outputs()) found.push_back(function_->type(id));
  if (found == declared.types) return;
  std::string types;
  for (const ir::TensorType& type : found) types += (types.empty() ? "" : ", ") + ir::to_string(type);
  tokens_.fail_at(place, "the result is " + types + ", which is not the type that '->' declares");
}

// Names in the options that nothing in main has.
void Parser::check_options() const {
  const auto check = [&](const std::string& name, const char* option) {
    const std::vector<std::string>& inputs = resolution_.inputs;
    if (std::ranges::find(inputs, name) != inputs.end()) return;
    if (options_.names_of_others != nullptr) {
      options_.names_of_others->insert(name);
      return;
    }
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    cat(tokens_.name(), ": ", option, ": there is no input or free variable '", name,
                        "'; there ", inputs.empty() ? "are none" : "are " + list_names(inputs)));
  };
  for (const auto& [name, type] : options_.input_types) check(name, "--input-shape");
  for (const auto& [name, constant] : options_.bindings) check(name, "--bind");
}

void Parser::log_constants() const {
  if (!options_.log) return;
  if (!resolution_.unbound.empty()) {
    options_.log(QPLAN_LOG_WARNING,
                 cat(tokens_.name(), ": parameters that are weights by their use, without data: ",
                     list_names(resolution_.unbound),
                     "; --bind NAME=FILE gives them data, --synthesize-constants=SEED makes it up"));
  }
  if (!resolution_.synthesised.empty()) {
    options_.log(QPLAN_LOG_WARNING, cat(tokens_.name(), ": ", resolution_.synthesised.size(),
                                        resolution_.synthesised.size() == 1 ? " constant, " : " constants, ",
                                        resolution_.synthesised_bytes, " bytes, synthesised, the first is '",
                                        resolution_.synthesised[0], "': results mean nothing"));
  }
}

ir::Module parse(std::string_view text, std::string_view name, const ParseOptions& options) {
  return Parser(text, name, options).run();
}

}  // namespace qplan::text
