// Canonical bodies, and which scale, zero point, attribute or constant of two of them differs.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/listing.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pipeline/stages.h"

namespace qplan::pipeline {
namespace {

bool is(const ir::Node& node, const char* op) { return node.op != nullptr && node.op->name == op; }

ir::Attrs without_contract(const ir::Attrs& attrs) {
  ir::Attrs result;
  for (const auto& [name, value] : attrs) {
    if (name != "contract" && name != "rule" && name != "multiplier") result.set(name, value);
  }
  return result;
}

class BodyBuilder {
 public:
  explicit BodyBuilder(const ir::Function& function)
      : main_(function), body_(is_main() ? "body" : function.name()), map_(function.num_values()) {}

  ir::Function build() {
    if (!is_main()) return copy_all();
    for (const ir::ValueId param : main_.params()) {
      if (!is_float(param)) map_[param.index] = body_.add_param(next_param(), main_.type(param));
    }
    std::vector<bool> is_border(main_.num_values(), false);
    for (const ir::ValueId output : main_.outputs()) {
      const ir::Node* producer = main_.producer(output);
      if (producer != nullptr && is(*producer, "qnn.dequantize")) is_border[output.index] = true;
    }
    // A dequantised output that something else reads too is no border.
    for (const ir::Node& node : main_.nodes()) {
      for (const ir::ValueId operand : node.operands) is_border[operand.index] = false;
    }
    for (const ir::Node& node : main_.nodes()) {
      if (is(node, "qnn.quantize") && main_.value(node.operands[0]).kind == ir::ValueKind::kParam) {
        map_[node.results[0].index] = body_.add_param(next_param(), main_.type(node.results[0]));
      } else if (!is_border[node.results[0].index]) {
        copy(node);
      }
    }
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : main_.outputs()) {
      outputs.push_back(mapped(is_border[output.index] ? main_.producer(output)->operands[0] : output));
    }
    body_.set_outputs(std::move(outputs));
    return std::move(body_);
  }

 private:
  bool is_main() const { return main_.name() == "main"; }

  // A function that main calls has no border.
  ir::Function copy_all() {
    for (const ir::ValueId param : main_.params())
      map_[param.index] = body_.add_param(next_param(), main_.type(param));
    for (const ir::Node& node : main_.nodes()) copy(node);
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : main_.outputs()) outputs.push_back(mapped(output));
    body_.set_outputs(std::move(outputs));
    return std::move(body_);
  }

  bool is_float(ir::ValueId value) const { return main_.type(value).dtype.is_float(); }
  std::string next_param() { return "in" + std::to_string(body_.params().size()); }

  ir::ValueId mapped(ir::ValueId value) {
    ir::ValueId& to = map_[value.index];
    if (!to.valid()) {
      const ir::Value& known = main_.value(value);
      // A float input that something other than qnn.quantize reads.
      to = known.kind == ir::ValueKind::kParam ? body_.add_param(next_param(), known.type)
                                               : body_.add_constant(known.constant);
    }
    return to;
  }

  void copy(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId operand : node.operands) operands.push_back(mapped(operand));
    std::vector<ir::ValueId> results;
    if (node.op != nullptr) {
      results =
          body_.add_node(*node.op, std::move(operands), without_contract(node.attrs), node.name).results;
    } else {
      std::vector<ir::TensorType> types;
      for (const ir::ValueId result : node.results) types.push_back(main_.type(result));
      results = body_.add_call(node.callee, std::move(operands), std::move(types), node.name).results;
    }
    for (size_t i = 0; i < results.size(); ++i) map_[node.results[i].index] = results[i];
  }

  const ir::Function& main_;
  ir::Function body_;
  std::vector<ir::ValueId> map_;
};

}  // namespace

ir::Function canonical_body(const ir::Function& main) { return BodyBuilder(main).build(); }

std::vector<ir::Function> canonical_bodies(const ir::Module& module) {
  std::vector<ir::Function> bodies;
  bodies.push_back(canonical_body(module.main()));
  for (const auto& function : module.functions()) {
    if (function->name() != "main") bodies.push_back(canonical_body(*function));
  }
  std::sort(bodies.begin() + 1, bodies.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return bodies;
}

// Two canonical bodies, node by node: which scale, zero point, attribute or constant differs.
namespace {

// The shortest text that reads back as the same float.
std::string number(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}
std::string number(int32_t value) { return std::to_string(value); }
std::string number(int8_t value) { return std::to_string(value); }
std::string number(uint8_t value) { return std::to_string(value); }

bool same_constant(const ir::Constant& a, const ir::Constant& b) {
  return a.type() == b.type() && a.content_hash() == b.content_hash() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

template <typename T>
std::string values_difference(const ir::Constant& a, const ir::Constant& b) {
  const auto x = a.as<T>(), y = b.as<T>();
  size_t count = 0, at = 0;  // the first that differs
  for (size_t i = x.size(); i-- > 0;) {
    if (std::memcmp(&x[i], &y[i], sizeof(T)) == 0) continue;  // 0 and -0 differ
    ++count;
    at = i;
  }
  const std::string both = cat(number(x[at]), " | ", number(y[at]));
  return x.size() == 1 ? both : cat(both, " at index ", at, " (", count, " of ", x.size(), " values differ)");
}

// "0.5 | 0.25": what differs between two constants.
std::string constants_difference(const ir::Constant& a, const ir::Constant& b) {
  if (a.type() != b.type()) return cat(ir::to_string(a.type()), " | ", ir::to_string(b.type()));
  const ir::DType dtype = a.type().dtype;
  if (dtype == ir::kFloat32) return values_difference<float>(a, b);
  if (dtype == ir::kInt32) return values_difference<int32_t>(a, b);
  if (dtype == ir::kInt8) return values_difference<int8_t>(a, b);
  if (dtype == ir::kUint8) return values_difference<uint8_t>(a, b);
  return "the contents differ";
}

class Comparison {
 public:
  Comparison(const ir::Function& a, const ir::Function& b) : a_(a), b_(b), partner_(a.num_values()) {}

  BodyDifference run() {
    if (compare_params()) {
      const size_t count = std::min(a_.nodes().size(), b_.nodes().size());
      size_t i = 0;
      while (i < count && compare_nodes(i)) ++i;
      if (i == count) compare_ends();
    }
    if (!difference_.lines.empty()) difference_.first = difference_.lines.front();
    return std::move(difference_);
  }

 private:
  void report(std::string line) { difference_.lines.push_back(std::move(line)); }

  bool compare_params() {
    const auto a = a_.params(), b = b_.params();
    if (a.size() != b.size()) {
      report(cat("inputs: ", a.size(), " | ", b.size()));
      return false;
    }
    for (size_t i = 0; i < a.size(); ++i) {
      if (a_.type(a[i]) != b_.type(b[i])) {
        report(cat("input ", i, ": ", ir::to_string(a_.type(a[i])), " | ", ir::to_string(b_.type(b[i]))));
      }
      partner_[a[i].index] = b[i];
    }
    return true;
  }

  // False where the operators are no longer the same ones, so that what follows cannot be compared.
  bool compare_nodes(size_t index) {
    const ir::Node &a = a_.nodes()[index], &b = b_.nodes()[index];
    const std::string where = cat("node ", index, ": ");
    if (a.op != b.op || a.callee != b.callee || a.operands.size() != b.operands.size() ||
        a.results.size() != b.results.size()) {
      report(cat(where, describe(a_, a), " | ", describe(b_, b), ": other operators from here on"));
      return false;
    }
    const std::string label = where + names(a, b);
    compare_attrs(a, b, label);
    for (size_t i = 0; i < a.operands.size(); ++i) {
      if (!compare_operands(a, b, i, label)) return false;
    }
    for (size_t i = 0; i < a.results.size(); ++i) {
      const ir::TensorType &x = a_.type(a.results[i]), &y = b_.type(b.results[i]);
      if (x != y) report(cat(label, ": result ", ir::to_string(x), " | ", ir::to_string(y)));
      if (x.shape != y.shape) return false;
      partner_[a.results[i].index] = b.results[i];
    }
    return true;
  }

  void compare_ends() {
    const size_t a = a_.nodes().size(), b = b_.nodes().size();
    if (a != b) {
      const ir::Function& longer = a > b ? a_ : b_;
      report(cat("operators: ", a, " | ", b, "; the first that only one body has is ",
                 describe(longer, longer.nodes()[std::min(a, b)])));
      return;
    }
    if (a_.outputs().size() != b_.outputs().size()) {
      report(cat("outputs: ", a_.outputs().size(), " | ", b_.outputs().size()));
      return;
    }
    for (size_t i = 0; i < a_.outputs().size(); ++i) {
      const ir::ValueId x = a_.outputs()[i], y = b_.outputs()[i];
      const bool same = a_.is_constant(x) && b_.is_constant(y)
                            ? same_constant(*a_.value(x).constant, *b_.value(y).constant)
                            : !a_.is_constant(x) && partner_[x.index] == y;
      if (!same) report(cat("output ", i, ": another value"));
    }
  }

  void compare_attrs(const ir::Node& a, const ir::Node& b, const std::string& label) {
    if (a.attrs == b.attrs) return;
    std::set<std::string> names;
    for (const auto& [name, value] : a.attrs) names.insert(name);
    for (const auto& [name, value] : b.attrs) names.insert(name);
    for (const std::string& name : names) {
      const ir::AttrValue *x = a.attrs.find(name), *y = b.attrs.find(name);
      if (x != nullptr && y != nullptr && *x == *y) continue;
      report(cat(label, ": ", name, " ", text(x), " | ", text(y)));
    }
  }

  static std::string text(const ir::AttrValue* value) {
    if (value == nullptr) return "not given";
    if (const auto* flag = std::get_if<bool>(value)) return *flag ? "true" : "false";
    if (const auto* integer = std::get_if<int64_t>(value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(value)) return number(static_cast<float>(*real));
    if (const auto* word = std::get_if<std::string>(value)) return *word;
    if (const auto* ints = std::get_if<ir::Ints>(value)) {
      std::string all;
      for (const int64_t i : *ints) all += (all.empty() ? "" : ", ") + std::to_string(i);
      return "[" + all + "]";
    }
    return "another list";
  }

  bool compare_operands(const ir::Node& a, const ir::Node& b, size_t i, const std::string& label) {
    const ir::ValueId x = a.operands[i], y = b.operands[i];
    const std::string operand = a.op != nullptr && i < a.op->operands.size() ? a.op->operands[i].name
                                                                             : "operand " + std::to_string(i);
    if (a_.is_constant(x) != b_.is_constant(y)) {
      report(cat(label, ": ", operand, " is a constant in one body only"));
      return false;
    }
    if (!a_.is_constant(x)) {
      if (partner_[x.index] == y) return true;
      report(cat(label, ": ", operand, " is another value"));
      return false;
    }
    const ir::Constant &first = *a_.value(x).constant, &second = *b_.value(y).constant;
    if (i == 1 && is(a, "nn.bias_add")) {
      compare_biases(first, second, label);
    } else if (!same_constant(first, second)) {
      report(cat(label, ": ", operand, " ", constants_difference(first, second)));
    }
    return true;
  }

  void compare_biases(const ir::Constant& a, const ir::Constant& b, const std::string& label) {
    if (a.type() != b.type() || a.type().dtype != ir::kInt32) {
      if (!same_constant(a, b)) report(cat(label, ": bias ", constants_difference(a, b)));
      return;
    }
    const auto x = a.as<int32_t>(), y = b.as<int32_t>();
    difference_.biases_total += x.size();
    uint64_t near = 0;
    int64_t most = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t distance = std::llabs(int64_t{x[i]} - int64_t{y[i]});
      near += distance == 1 ? 1 : 0;
      most = std::max(most, distance);
    }
    difference_.biases += near;
    if (most > 1) report(cat(label, ": bias ", constants_difference(a, b), ", biases more than 1 apart"));
  }

  static std::string in_quotes(const std::string& name) { return "'" + short_name(name) + "'"; }

  static std::string operator_name(const ir::Node& node) {
    return node.op == nullptr ? node.callee : node.op->name;
  }

  static std::string describe(const ir::Function& body, const ir::Node& node) {
    return cat(operator_name(node), node.name.empty() ? "" : " " + in_quotes(node.name), " of type ",
               ir::to_string(body.type(node.results[0])));
  }

  // Sources name the same operator differently.
  static std::string names(const ir::Node& a, const ir::Node& b) {
    std::string text = operator_name(a);
    if (!a.name.empty()) text += " " + in_quotes(a.name);
    if (a.name != b.name) text += " | " + in_quotes(b.name);
    return text;
  }

  const ir::Function& a_;
  const ir::Function& b_;
  std::vector<ir::ValueId> partner_;  // by value of a
  BodyDifference difference_;
};

}  // namespace

BodyDifference compare_bodies(const ir::Function& a, const ir::Function& b) { return Comparison(a, b).run(); }

BodyDifference compare_bodies(const std::vector<ir::Function>& a, const std::vector<ir::Function>& b) {
  BodyDifference all = compare_bodies(a[0], b[0]);
  for (size_t i = 1, j = 1; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i].name() == b[j].name()) {
      const BodyDifference one = compare_bodies(a[i], b[j]);
      for (const std::string& line : one.lines)
        all.lines.push_back(cat("function '", a[i].name(), "': ", line));
      all.biases += one.biases;
      all.biases_total += one.biases_total;
      ++i, ++j;
      continue;
    }
    const bool is_first = j == b.size() || (i < a.size() && a[i].name() < b[j].name());
    const std::string& name = is_first ? a[i++].name() : b[j++].name();
    all.lines.push_back(cat("function '", name, "': in the ", is_first ? "first" : "second", " model only"));
  }
  if (!all.lines.empty()) all.first = all.lines.front();
  return all;
}

std::string describe(const BodyDifference& difference, size_t num_nodes, const std::string& contracts_a,
                     const std::string& contracts_b) {
  constexpr size_t kMaxLines = 50;
  const size_t count = difference.lines.size();
  std::string text;
  if (count == 0) {
    text = cat("one canonical body: ", num_nodes, num_nodes == 1 ? " operator\n" : " operators\n");
  } else {
    text = cat(count, count == 1 ? " difference" : " differences", " (first model | second model):\n");
  }
  for (size_t i = 0; i < std::min(count, kMaxLines); ++i) text += cat("  ", difference.lines[i], "\n");
  if (count > kMaxLines) text += cat("  and ", count - kMaxLines, " more\n");
  if (difference.biases_total != 0) {
    text += cat("biases: ", difference.biases, " of ", difference.biases_total,
                difference.biases == 1 ? " values is" : " values are", " 1 apart\n");
  }
  text += cat("contracts: ", contracts_a, contracts_a == contracts_b ? "" : " | " + contracts_b, "\n");
  return text;
}

std::string contracts_of(const ir::Module& module) {
  std::set<std::string> found;
  for (const ir::Node& node : module.main().nodes()) {
    if (!op::has_contract(node.op) || node.op->contracts_agree) continue;
    found.insert(op::attr_string(node, "contract"));
  }
  std::string text;
  for (const std::string& name : found) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace qplan::pipeline
