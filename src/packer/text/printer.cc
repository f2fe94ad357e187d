#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "src/base/sha256.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/syntax.h"
#include "src/packer/text/text.h"

namespace qplan::text {
namespace {

std::string name_text(std::string_view name) { return is_plain_name(name) ? std::string(name) : quote(name); }

std::string ints_text(const ir::Ints& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "]";
}

std::string attr_text(const ir::AttrValue& value, bool as_float) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return as_float ? float_literal(static_cast<double>(*integer)) : std::to_string(*integer);
  }
  if (const auto* number = std::get_if<double>(&value)) return float_literal(*number);
  if (const auto* string = std::get_if<std::string>(&value)) return quote(*string);
  if (const auto* ints = std::get_if<ir::Ints>(&value)) return ints_text(*ints);
  std::string text = "[";
  for (const ir::Ints& ints : std::get<std::vector<ir::Ints>>(value)) {
    if (text.size() > 1) text += ", ";
    text += ints_text(ints);
  }
  return text + "]";
}

// `name` and `output_names` without quotes are not attributes: README.md.
std::string attr_name(std::string_view name) {
  const bool reserved = name == "name" || name == "output_names";
  return is_plain_identifier(name) && !reserved ? std::string(name) : quote(name);
}

std::string types_text(const ir::Function& function, std::span<const ir::ValueId> values) {
  if (values.size() == 1) return ir::to_string(function.type(values[0]));
  std::string text = "(";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : ", ") + ir::to_string(function.type(values[i]));
  return text + ")";
}

// "digest=0123456789abcdef min=-127 max=127 first=[3, -5, 0, 8]", the last three where the elements can be
// written.
std::string summary(const ir::Constant& constant) {
  Sha256 sha;
  sha.update(constant.bytes().data(), constant.bytes().size());
  std::array<uint8_t, Sha256::kDigestBytes> digest;
  sha.finish(digest.data());
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "digest=";
  for (size_t i = 0; i < 8; ++i) {
    text += kHex[digest[i] / 16];
    text += kHex[digest[i] % 16];
  }
  const auto count = static_cast<size_t>(constant.type().num_elements());
  if (const auto range = value_range(constant)) text += " min=" + range->first + " max=" + range->second;
  std::string first;
  for (size_t i = 0; i < std::min<size_t>(count, 4); ++i) {
    const std::optional<std::string> element = element_text(constant, i);
    if (!element) return text;
    first += (i == 0 ? "" : ", ") + *element;
  }
  return text + " first=[" + first + (count > 4 ? ", ...]" : "]");
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void print(const ir::Function& function);
  std::string finish();

 private:
  void print_header(const ir::Function& function);
  void print_node(const ir::Function& function, size_t index);
  void name_params(const ir::Function& function);
  std::string value_text(const ir::Function& function, ir::ValueId id);
  std::string constant_text(const ir::ConstantRef& constant);
  size_t meta_index(const ir::ConstantRef& constant);
  std::string tuple_text(const ir::Function& function, std::span<const ir::ValueId> values);

  PrintOptions options_;
  std::string text_ = "#[version = \"0.0.5\"]\n";
  bool first_function_ = true;
  std::vector<std::string> param_names_;  // of the function being printed, by value index
  std::vector<ir::ConstantRef> meta_;
  std::unordered_multimap<uint64_t, size_t> meta_by_hash_;
  std::unordered_map<const ir::Constant*, std::string> meta_texts_;
};

// Names that are missing or taken are made up, so that every module prints.
void Printer::name_params(const ir::Function& function) {
  param_names_.assign(function.num_values(), "");
  std::unordered_set<std::string> taken;
  for (const ir::ValueId id : function.params()) taken.insert(function.value(id).name);
  std::unordered_set<std::string> given;
  for (size_t i = 0; i < function.params().size(); ++i) {
    const ir::ValueId id = function.params()[i];
    std::string name = function.value(id).name;
    if (name.empty() || given.contains(name)) {
      const std::string base = name.empty() ? "p" + std::to_string(i) : name;
      name = base;
      for (size_t k = 1; taken.contains(name); ++k) name = base + "_" + std::to_string(k);
      taken.insert(name);
    }
    given.insert(name);
    param_names_[id.index] = name_text(name);
  }
}

size_t Printer::meta_index(const ir::ConstantRef& constant) {
  const auto [first, last] = meta_by_hash_.equal_range(constant->content_hash());
  for (auto it = first; it != last; ++it) {
    const ir::Constant& known = *meta_[it->second];
    if (known.type() == constant->type() && std::ranges::equal(known.bytes(), constant->bytes()))
      return it->second;
  }
  meta_by_hash_.emplace(constant->content_hash(), meta_.size());
  meta_.push_back(constant);
  return meta_.size() - 1;
}

std::string Printer::constant_text(const ir::ConstantRef& constant) {
  const ir::TensorType& type = constant->type();
  if (type.shape.empty()) {
    if (const auto element = element_text(*constant, 0))
      return *element + std::string(scalar_suffix(type.dtype));
  }
  const auto count = static_cast<size_t>(type.num_elements());
  if (count <= options_.inline_elements) {
    std::string text = "const(" + ir::to_string(type) + ", [";
    bool complete = true;
    for (size_t i = 0; i < count && complete; ++i) {
      const std::optional<std::string> element = element_text(*constant, i);
      complete = element.has_value();
      if (complete) text += (i == 0 ? "" : ", ") + *element;
    }
    if (complete) return text + "])";
  }
  std::string& text = meta_texts_[constant.get()];
  if (text.empty()) {
    text = "meta[relay.Constant][" + std::to_string(meta_index(constant)) + "] /* ty=" + ir::to_string(type) +
           " " + summary(*constant) + " */";
  }
  return text;
}

std::string Printer::value_text(const ir::Function& function, ir::ValueId id) {
  const ir::Value& value = function.value(id);
  switch (value.kind) {
    case ir::ValueKind::kParam:
      return "%" + param_names_[id.index];
    case ir::ValueKind::kConstant:
      return constant_text(value.constant);
    case ir::ValueKind::kResult:
      break;
  }
  std::string text = "%" + std::to_string(value.producer);
  const ir::Node& producer = function.nodes()[value.producer];
  if (producer.results.size() > 1) text += "." + std::to_string(value.result_index);
  return text;
}

std::string Printer::tuple_text(const ir::Function& function, std::span<const ir::ValueId> values) {
  std::string text = "(";
  for (size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + value_text(function, values[i]);
  return text + (values.size() == 1 ? ",)" : ")");
}

void Printer::print_header(const ir::Function& function) {
  text_ += "def @" + name_text(function.name()) + "(";
  const char* separator = "";
  for (const ir::ValueId id : function.params()) {
    text_ += separator + ("%" + param_names_[id.index]) + ": " + ir::to_string(function.type(id));
    separator = ", ";
  }
  for (const auto& [name, value] : function.attrs()) {
    text_ += separator + attr_name(name) + "=" + attr_text(value, false);
    separator = ", ";
  }
  if (options_.names && !function.output_names().empty()) {
    text_ += std::string(separator) + "output_names=[";
    for (size_t i = 0; i < function.output_names().size(); ++i) {
      text_ += (i == 0 ? "" : ", ") + quote(function.output_names()[i]);
    }
    text_ += "]";
  }
  text_ += ") -> " + types_text(function, function.outputs()) + " {\n";
}

void Printer::print_node(const ir::Function& function, size_t index) {
  const ir::Node& node = function.nodes()[index];
  text_ += "  %" + std::to_string(index) + " = ";
  text_ += node.op != nullptr ? node.op->name : "@" + name_text(node.callee);
  text_ += "(";
  const char* separator = "";
  if (node.op != nullptr && node.op->variadic) {
    text_ += tuple_text(function, node.operands);
    separator = ", ";
  } else {
    for (const ir::ValueId id : node.operands) {
      text_ += separator + value_text(function, id);
      separator = ", ";
    }
  }
  const auto print_attr = [&](const std::string& name, const ir::AttrValue& value, bool as_float) {
    text_ += separator + attr_name(name) + "=" + attr_text(value, as_float);
    separator = ", ";
  };
  std::unordered_set<std::string_view> known;
  if (node.op != nullptr) {
    for (const op::AttrDef& def : node.op->attrs) {
      known.insert(def.name);
      const ir::AttrValue* value = node.attrs.find(def.name);
      if (value == nullptr) continue;
      const bool as_float = def.kind == op::AttrKind::kFloat;
      if (def.fallback && attr_text(*value, as_float) == attr_text(*def.fallback, as_float)) continue;
      print_attr(def.name, *value, as_float);
    }
  }
  for (const auto& [name, value] : node.attrs) {
    if (!known.contains(name)) print_attr(name, value, false);
  }
  if (node.op != nullptr && node.op->text_attrs != nullptr) {
    for (const auto& [name, value] : node.op->text_attrs(function, node)) print_attr(name, value, false);
  }
  if (options_.names && !node.name.empty()) text_ += separator + ("name=" + quote(node.name));
  text_ += ") /* ty=" + types_text(function, node.results) + " */;\n";
}

void Printer::print(const ir::Function& function) {
  if (!first_function_) text_ += "\n";
  first_function_ = false;
  name_params(function);
  print_header(function);
  for (size_t i = 0; i < function.nodes().size(); ++i) print_node(function, i);
  const std::span<const ir::ValueId> outputs = function.outputs();
  text_ += "  " + (outputs.size() == 1 ? value_text(function, outputs[0]) : tuple_text(function, outputs)) +
           "\n}\n";
}

std::string Printer::finish() {
  if (options_.metadata && !meta_.empty()) text_ += "\n#[metadata]\n" + write_metadata(meta_);
  return std::move(text_);
}

}  // namespace

std::string print(const ir::Module& module, const PrintOptions& options) {
  Printer printer(options);
  for (const auto& function : module.functions()) printer.print(*function);
  return printer.finish();
}

std::string print(const ir::Function& function, const PrintOptions& options) {
  Printer printer(options);
  printer.print(function);
  return printer.finish();
}

}  // namespace qplan::text
