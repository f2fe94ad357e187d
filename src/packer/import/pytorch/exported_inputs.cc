// The inputs of an exported program: tensors of the archive, which are constants, and the inputs of the
// model, whose types the program records. Extents may be symbols, and arithmetic on them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/exported_program.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;
using importer::Unsupported;

using Number = std::optional<int64_t>;

constexpr int64_t kMostNumber = int64_t{1} << 40;

Number plus(Number a, Number b) {
  if (!a || !b || std::abs(*a + *b) > kMostNumber) return std::nullopt;
  return *a + *b;
}
Number times(Number a, Number b) {
  if (!a || !b || std::fabs(static_cast<double>(*a) * static_cast<double>(*b)) > double{kMostNumber})
    return std::nullopt;
  return *a * *b;
}
Number quotient(Number a, Number b) {
  if (!a || !b || *b == 0) return std::nullopt;
  const int64_t towards_zero = *a / *b;
  return *a % *b != 0 && (*a < 0) != (*b < 0) ? towards_zero - 1 : towards_zero;
}

class ExtentReader {
 public:
  ExtentReader(std::string_view text, const FindSymbol& find) : text_(text), find_(find) {}

  Number read() {
    const Number value = sum();
    return is_broken_ || !text_.empty() ? std::nullopt : value;
  }

 private:
  void skip_spaces() {
    while (text_.starts_with(' ')) text_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  Number broken() {
    is_broken_ = true;
    text_ = {};
    return std::nullopt;
  }
  std::string_view take_while(bool (*holds)(char c)) {
    size_t size = 0;
    while (size < text_.size() && holds(text_[size])) ++size;
    const std::string_view taken = text_.substr(0, size);
    text_.remove_prefix(size);
    skip_spaces();
    return taken;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_of_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  Number sum() {
    Number value = product();
    for (;;) {
      if (take("+")) {
        value = plus(value, product());
      } else if (take("-")) {
        value = plus(value, times(-1, product()));
      } else {
        return value;
      }
    }
  }
  Number product() {
    Number value = atom();
    for (;;) {
      if (take("//")) {
        value = quotient(value, atom());
      } else if (take("*")) {
        value = times(value, atom());
      } else {
        return value;
      }
    }
  }
  Number atom() {
    if (++depth_ > kMaxExpressionDepth) return broken();
    const Number value = take("-") ? times(-1, atom()) : part();
    --depth_;
    return value;
  }
  Number part() {
    if (take("(")) {
      const Number value = sum();
      return take(")") ? value : broken();
    }
    skip_spaces();
    const bool is_number = !text_.empty() && is_digit(text_.front());
    const std::string name(take_while(is_of_name));
    if (name.empty()) return broken();
    if (is_number) return integer(name);
    return take("(") ? call(name) : find_(name);
  }
  Number integer(const std::string& digits) {
    Number value = 0;
    for (const char c : digits) {
      if (!is_digit(c)) return broken();
      value = plus(times(value, 10), c - '0');
    }
    return value;
  }
  // What follows the bracket that is open.
  Number call(const std::string& name) {
    if (name == "Symbol") return symbol();
    std::vector<Number> operands;
    do {
      operands.push_back(sum());
    } while (take(","));
    if (!take(")")) return broken();
    if (name == "Integer" && operands.size() == 1) return operands[0];
    if (name == "FloorDiv" && operands.size() == 2) return quotient(operands[0], operands[1]);
    const bool is_sum = name == "Add";
    if (!is_sum && name != "Mul") return broken();
    Number value = is_sum ? 0 : 1;
    for (const Number& operand : operands) value = is_sum ? plus(value, operand) : times(value, operand);
    return value;
  }
  // "'s0', positive=True, integer=True)"
  Number symbol() {
    if (!take("'")) return broken();
    const std::string name(take_while(is_of_name));
    const size_t end = text_.find(')');
    if (!text_.starts_with('\'') || end == std::string_view::npos) return broken();
    text_.remove_prefix(end + 1);
    skip_spaces();
    return find_(name);
  }

  std::string_view text_;  // what is left
  const FindSymbol& find_;
  size_t depth_ = 0;
  bool is_broken_ = false;
};

}  // namespace

Number evaluate_extent(std::string_view expression, const FindSymbol& find) {
  return ExtentReader(expression, find).read();
}

namespace {

[[noreturn]] void bad_option(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

struct Extent {
  std::optional<int64_t> known;
  std::string symbol;           // of one that is not known; empty where it is arithmetic on symbols,
  std::string expression;       // which is this
  std::optional<int64_t> hint;  // of the example that the model was exported with
};

// The members of a large object, which finds one in time in proportion to their number.
using Members = std::map<std::string_view, const ir::Json*>;

Members members_of(const ir::Json& object) {
  Members members;
  for (const auto& [name, value] : object.items()) members.emplace(name, &value);
  return members;
}

struct Input {
  std::string name;
  ir::DType dtype;
  std::vector<Extent> extents;
};

// "s0" of "s0" and "Symbol('s0', positive=True, integer=True)"; empty for other expressions.
std::string symbol_of(std::string_view expression) {
  constexpr std::string_view kBegin = "Symbol('";
  if (expression.starts_with(kBegin)) {
    expression.remove_prefix(kBegin.size());
    const size_t end = expression.find('\'');
    if (end == std::string_view::npos || expression.find("Symbol(", end) != std::string_view::npos) return "";
    expression = expression.substr(0, end);
  }
  const bool is_name = !expression.empty() && std::ranges::all_of(expression, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_name ? std::string(expression) : "";
}

Extent read_extent(const ir::Json& json) {
  const auto [kind, value] = union_member(json);
  Extent extent;
  if (kind == "as_int") {
    extent.known = as_integer(value);
    return extent;
  }
  extent.expression = text_member(value, "expr_str");
  extent.symbol = symbol_of(extent.expression);
  const auto hint = value.find("hint");
  if (hint == value.end() || !hint->is_object()) return extent;
  if (const UnionMember number = union_member(*hint); number.kind == "as_int")
    extent.hint = as_integer(number.value);
  return extent;
}

Input read_input(const Members& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) invalid("the program lacks the type of input " + in_quotes(name));
  const ir::Json& meta = *found->second;
  Input input{
      .name = name, .dtype = dtype_of(exported_scalar_type(integer_member(meta, "dtype"))), .extents = {}};
  const ir::Json& sizes = list_member(meta, "sizes");
  if (sizes.size() > ir::kMaxRank) invalid(cat("input ", in_quotes(name), " has rank ", sizes.size()));
  for (const ir::Json& size : sizes) input.extents.push_back(read_extent(size));
  return input;
}

// "1x3x?x?", or with the example's extents in the place of open ones.
std::string shape_text(const Input& input, bool examples) {
  std::string text;
  for (size_t i = 0; i < input.extents.size(); ++i) {
    const Extent& extent = input.extents[i];
    const std::optional<int64_t> number = extent.known || !examples ? extent.known
                                          : i == 0                  ? std::optional<int64_t>(1)
                                                                    : extent.hint;
    text += (i == 0 ? "" : "x") + (number ? std::to_string(*number) : "?");
  }
  return text;
}

// Extents by symbol.
class Symbols {
 public:
  // constraints: {"s0": {"min_val": 0, "max_val": null}}
  explicit Symbols(const ir::Json& constraints) : constraints_(members_of(constraints)) {}

  // What an extent is that is not known by itself, as far as the symbols are.
  std::optional<int64_t> find(const Extent& extent) const {
    const auto find_symbol = [this](const std::string& symbol) {
      const auto it = extents_.find(symbol);
      return it == extents_.end() ? std::nullopt : std::optional<int64_t>(it->second);
    };
    return extent.symbol.empty() ? evaluate_extent(extent.expression, find_symbol)
                                 : find_symbol(extent.symbol);
  }
  void set(const Input& input, const std::string& symbol, int64_t extent) {
    const auto [min, max] = range(symbol);
    if (extent < min || extent > max)
      bad_option(cat("input ", in_quotes(input.name), " is given with extent ", extent,
                     ", but the program was exported for ", min, " to ", max));
    const auto [it, is_new] = extents_.emplace(symbol, extent);
    if (is_new || it->second == extent) return;
    bad_option(cat("input ", in_quotes(input.name), " is given with extent ", extent,
                   ", but the program has ", it->second, " in its place"));
  }
  // The least batch from 1 on.
  int64_t least(const std::string& symbol) const { return range(symbol).first; }

 private:
  // PyTorch says at least 2 where an extent of 1 would be exported as a constant: 1 computes the same.
  std::pair<int64_t, int64_t> range(const std::string& symbol) const {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    const auto it = constraints_.find(symbol);
    if (it == constraints_.end()) return {1, kMost};
    const auto bound = [&](const char* name, int64_t fallback) {
      const auto value = it->second->find(name);
      return value == it->second->end() || !value->is_number_integer() ? fallback : as_integer(*value);
    };
    const int64_t min = bound("min_val", 1);
    return {min <= 2 ? 1 : min, bound("max_val", kMost)};
  }

  const Members constraints_;
  std::map<std::string, int64_t, std::less<>> extents_;
};

// The caller's type, or that of a binding, against the program's; symbols take its extents.
void take_given(const Input& input, const ir::TensorType& given, Symbols* symbols) {
  // Integers of the program are indices, which int32 holds, too.
  const bool is_narrowed = input.dtype == ir::kInt64 && given.dtype == ir::kInt32;
  bool agrees = (given.dtype == input.dtype || is_narrowed) && given.shape.size() == input.extents.size();
  for (size_t i = 0; agrees && i < given.shape.size(); ++i) {
    const Extent& extent = input.extents[i];
    agrees = !extent.known || *extent.known == given.shape[i];
    if (agrees && !extent.symbol.empty()) symbols->set(input, extent.symbol, given.shape[i]);
  }
  if (agrees) return;
  bad_option(cat("input ", in_quotes(input.name), " is given as ", given, ", but the program declares ",
                 input.dtype, " ", shape_text(input, false)));
}

ir::TensorType declared_type(const Input& input, Symbols* symbols, const LogFunction& log) {
  ir::TensorType type{input.dtype, {}};
  for (size_t i = 0; i < input.extents.size(); ++i) {
    const Extent& extent = input.extents[i];
    std::optional<int64_t> number = extent.known ? extent.known : symbols->find(extent);
    if (!number && i == 0 && !extent.symbol.empty()) {
      number = symbols->least(extent.symbol);
      symbols->set(input, extent.symbol, *number);
      if (log) {
        log(QPLAN_LOG_INFO, cat("pytorch: input ", in_quotes(input.name),
                                " has an open batch extent: ", *number, " is taken"));
      }
    }
    if (!number) {
      bad_option(cat("input ", in_quotes(input.name), " has shape ", shape_text(input, false), ": extent ", i,
                     " is open; give it, for example: --input-shape ", input.name, "=",
                     shape_text(input, true), ":", input.dtype));
    }
    type.shape.push_back(*number);
  }
  return type;
}

// Extents that the program derives from symbols, once all symbols are set.
void check_derived(const Input& input, const ir::Shape& shape, const Symbols& symbols) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const Extent& extent = input.extents[i];
    if (extent.known || !extent.symbol.empty()) continue;
    const std::optional<int64_t> derived = symbols.find(extent);
    if (!derived || *derived == shape[i]) continue;
    bad_option(cat("input ", in_quotes(input.name), " is given with extent ", shape[i],
                   ", but the program has ", *derived,
                   " in its place: ", importer::clean_name(extent.expression)));
  }
}

void check_names(const std::vector<Input>& inputs, const std::set<std::string>& left_out,
                 const ImportOptions& options) {
  const auto check = [&](const std::string& name, const char* what) {
    if (std::ranges::find(inputs, name, &Input::name) != inputs.end() || left_out.contains(name)) return;
    if (options.names_of_others != nullptr) {
      options.names_of_others->insert(name);
      return;
    }
    std::string known;
    constexpr size_t kShown = 16;
    for (size_t i = 0; i < inputs.size() && i < kShown; ++i)
      known += (known.empty() ? "" : ", ") + in_quotes(inputs[i].name);
    bad_option(cat(what, " for ", in_quotes(name), ", which is no input; inputs are ", known,
                   inputs.size() > kShown ? ", ..." : ""));
  };
  for (const auto& [name, type] : options.input_types) check(name, "a type is given");
  for (const auto& [name, constant] : options.bindings) check(name, "a constant is given");
}

// The value of an input that is no tensor: {"as_int": 3}.
Ref known_value(ValueTable& values, const ir::Json& json) {
  const auto [kind, value] = union_member(json);
  if (kind == "as_none") return values.add(None{});
  if (kind == "as_int") return values.add(as_integer(value));
  if (kind == "as_float") return values.add(as_double(value));
  if (kind == "as_string") return values.add(as_text(value));
  if (kind == "as_bool" && value.is_boolean()) return values.add(value.get<bool>());
  throw Unsupported{"an input of kind " + in_quotes(kind)};
}

}  // namespace

ExportedNames exported_inputs(ExportedArchive& archive, OperatorCalls& calls, const ImportOptions& options) {
  const ir::Json& module = object_member(archive.program(), "graph_module");
  const ir::Json& graph = object_member(module, "graph");
  const Members tensors = members_of(object_member(graph, "tensor_values"));
  ExportedNames names;
  std::vector<Input> inputs;
  for (const ir::Json& spec : list_member(object_member(module, "signature"), "input_specs")) {
    const auto [kind, input] = union_member(spec);
    const auto name = [&, &spec = input] { return text_member(object_member(spec, "arg"), "name"); };
    calls.charge(1);
    if (kind == "parameter") {
      names[name()] = archive.weight(text_member(input, "parameter_name"));
    } else if (kind == "buffer") {
      const std::string buffer = text_member(input, "buffer_name");
      names[name()] = boolean_member(input, "persistent") ? archive.weight(buffer) : archive.constant(buffer);
    } else if (kind == "tensor_constant") {
      names[name()] = archive.constant(text_member(input, "tensor_constant_name"));
    } else if (kind == "constant_input") {
      names[text_member(input, "name")] = known_value(calls.values(), object_member(input, "value"));
    } else if (kind == "user_input") {
      const UnionMember argument = union_member(object_member(input, "arg"));
      if (argument.kind == "as_tensor") {
        inputs.push_back(read_input(tensors, text_member(argument.value, "name")));
      } else if (argument.kind.starts_with("as_sym_")) {
        throw Unsupported{"an input that is a number"};
      }
      // Other inputs are values that the graph does not read by name.
    } else {
      throw Unsupported{"an input of kind " + in_quotes(kind)};
    }
  }
  check_names(inputs, archive.left_out(), options);
  Symbols symbols(object_member(archive.program(), "range_constraints"));
  for (const Input& input : inputs) {
    if (const auto bound = options.bindings.find(input.name); bound != options.bindings.end())
      take_given(input, bound->second->type(), &symbols);
    if (const auto typed = options.input_types.find(input.name); typed != options.input_types.end())
      take_given(input, typed->second, &symbols);
  }
  std::vector<ir::ValueId> given;
  for (const Input& input : inputs) {
    Flow flow;
    if (const auto bound = options.bindings.find(input.name); bound != options.bindings.end()) {
      flow.value = calls.function().add_constant(bound->second, importer::clean_name(input.name));
    } else {
      const auto typed = options.input_types.find(input.name);
      ir::TensorType type =
          typed != options.input_types.end() ? typed->second : declared_type(input, &symbols, calls.log());
      if (std::ranges::find(type.shape, 0) != type.shape.end())
        throw Unsupported{"an input without elements: " + in_quotes(input.name)};
      if (const std::string error = ir::type_error(type); !error.empty())
        invalid("input " + in_quotes(input.name) + ": " + error);
      flow.value = calls.function().add_param(importer::clean_name(input.name), std::move(type));
    }
    given.push_back(flow.value);
    if (!names.emplace(input.name, calls.values().add(flow)).second)
      invalid("two inputs are called " + in_quotes(input.name));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    check_derived(inputs[i], calls.function().type(given[i]).shape, symbols);
  return names;
}

}  // namespace qplan::pt
