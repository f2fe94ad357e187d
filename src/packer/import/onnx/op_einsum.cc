// Einsum of one operand or two, by operators that there are: sums along axes, a transpose, and of two
// operands their elements multiplied or a product of matrices.
#include <algorithm>
#include <map>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// A tensor with a label for each axis; those of an ellipsis are digits.
struct Labelled {
  Value value;
  std::string labels;
};

bool has_label(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The equation without blanks: its operands, and the result where it is stated.
struct Equation {
  std::vector<std::string> operands;
  std::optional<std::string> result;
};

Equation read_equation(const OpContext& op) {
  std::string text = op.attr_string("equation", "");
  std::erase(text, ' ');
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) equation.result = text.substr(arrow + 2);
  const std::string left = text.substr(0, arrow);
  if (static_cast<size_t>(std::ranges::count(left, ',')) + 1 != op.num_inputs())
    invalid(cat("attribute 'equation' is ", in_quotes(text), " for ", op.num_inputs(), " operands"));
  for (size_t begin = 0; equation.operands.size() < op.num_inputs();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    equation.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  return equation;
}

constexpr std::string_view kEllipsis = "...";

// The letters of a term, with `in_place` for the ellipsis.
std::string with_ellipsis(std::string term, const std::string& in_place) {
  if (const size_t at = term.find(kEllipsis); at != std::string::npos)
    term.replace(at, kEllipsis.size(), in_place);
  for (size_t i = 0; i < term.size(); ++i) {
    const bool is_letter = (term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z');
    if (!is_letter && !has_label(in_place, term[i])) invalid("attribute 'equation' has " + in_quotes(term));
  }
  return term;
}

// Labels of the operands and of the result.
std::string label_axes(const OpContext& op, std::vector<Labelled>* operands) {
  const Equation equation = read_equation(op);
  constexpr size_t kMaxEllipsis = 8;
  std::vector<size_t> hidden;  // axes of the ellipsis
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& term = equation.operands[i];
    const size_t rank = op.shape(op.input(i)).size();
    const bool has_some = term.find(kEllipsis) != std::string::npos;
    const size_t letters = term.size() - (has_some ? kEllipsis.size() : 0);
    if (has_some ? letters > rank : letters != rank)
      invalid(cat("the term ", in_quotes(term), " is of an operand of rank ", rank));
    hidden.push_back(rank - letters);
  }
  const size_t most = std::min(*std::ranges::max_element(hidden), kMaxEllipsis);
  const std::string digits = std::string("01234567").substr(0, most);
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string own = digits.substr(most - std::min(hidden[i], most));
    operands->push_back({op.input(i), with_ellipsis(equation.operands[i], own)});
  }
  std::map<char, int> counts;
  for (const Labelled& operand : *operands) {
    for (const char c : operand.labels) {
      if (std::ranges::count(operand.labels, c) > 1) throw Unsupported{"a label twice for one operand"};
      ++counts[c];
    }
  }
  std::string implied = digits;
  for (const auto& [c, count] : counts) {
    if (count == 1 && !has_label(digits, c)) implied += c;
  }
  if (!equation.result) return implied;
  if (most > 0 && equation.result->find(kEllipsis) == std::string::npos)
    throw Unsupported{"an ellipsis that the result does not have"};
  std::string result = with_ellipsis(*equation.result, digits);
  for (const char c : result) {
    if (!counts.contains(c) || std::ranges::count(result, c) > 1)
      invalid("attribute 'equation' has the result " + in_quotes(*equation.result));
  }
  return result;
}

int64_t extent_of(const OpContext& op, const Labelled& tensor, char label) {
  return op.shape(tensor.value)[tensor.labels.find(label)];
}

int64_t extent_of(const OpContext& op, const Labelled& tensor, const std::string& labels) {
  int64_t product = 1;
  for (const char c : labels) product *= extent_of(op, tensor, c);
  return product;
}

// Without the axes of labels that nothing else has.
Labelled summed(const OpContext& op, const Labelled& operand, const std::string& others) {
  ir::Ints axes;
  Labelled result{operand.value, ""};
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    if (has_label(others, operand.labels[i])) {
      result.labels += operand.labels[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (!axes.empty()) result.value = op.emit("sum", {operand.value}, {{"axis", axes}, {"keepdims", false}});
  return result;
}

// The same tensor with its axes in the order of these labels, which are all that it has.
Value ordered(const OpContext& op, const Labelled& tensor, const std::string& labels) {
  if (tensor.labels == labels) return tensor.value;
  ir::Ints axes;
  for (const char c : labels) axes.push_back(static_cast<int64_t>(tensor.labels.find(c)));
  return op.emit("transpose", {tensor.value}, {{"axes", axes}});
}

// The labels of `from` that pass, in their order.
template <typename Pass>
std::string those_of(const std::string& from, const Pass& pass) {
  std::string labels;
  std::ranges::copy_if(from, std::back_inserter(labels), pass);
  return labels;
}

// No axis is summed: the elements, side by side.
Value multiplied(const OpContext& op, const Labelled& a, const Labelled& b, const std::string& result) {
  const auto beside = [&](const Labelled& tensor) {
    const std::string own = those_of(result, [&](char c) { return has_label(tensor.labels, c); });
    ir::Shape shape;
    for (const char c : result) shape.push_back(has_label(own, c) ? extent_of(op, tensor, c) : 1);
    return op.reshape(ordered(op, tensor, own), shape);
  };
  return op.emit("multiply", {beside(a), beside(b)});
}

// The product of matrices [batch, rows, summed] and [batch, summed, columns].
Value multiplied_matrices(const OpContext& op, const Labelled& a, const Labelled& b,
                          const std::string& result) {
  const auto is_in = [](const std::string& labels) { return [&](char c) { return has_label(labels, c); }; };
  const std::string common = those_of(a.labels, is_in(b.labels));
  for (const char c : common) {
    if (extent_of(op, a, c) != extent_of(op, b, c))
      throw Unsupported{cat("label '", std::string(1, c), "' of extents ", extent_of(op, a, c), " and ",
                            extent_of(op, b, c))};
  }
  const std::string sums = those_of(common, [&](char c) { return !has_label(result, c); });
  const std::string batch = those_of(result, is_in(common));
  const std::string rows = those_of(result, [&](char c) { return !has_label(b.labels, c); });
  const std::string columns = those_of(result, [&](char c) { return !has_label(a.labels, c); });
  ir::Shape batches, whole;
  for (const char c : batch) batches.push_back(extent_of(op, a, c));
  const auto matrices = [&](const Value& value, int64_t height, int64_t width) {
    ir::Shape shape = batches;
    shape.insert(shape.end(), {height, width});
    return op.reshape(value, shape);
  };
  const int64_t count = extent_of(op, a, sums);
  const Value product =
      matrix_product(op, matrices(ordered(op, a, batch + rows + sums), extent_of(op, a, rows), count),
                     matrices(ordered(op, b, batch + sums + columns), count, extent_of(op, b, columns)));
  whole = batches;
  for (const char c : rows) whole.push_back(extent_of(op, a, c));
  for (const char c : columns) whole.push_back(extent_of(op, b, c));
  return ordered(op, {op.reshape(product, whole), batch + rows + columns}, result);
}

}  // namespace

void import_einsum(const OpContext& op) {
  op.expect_counts(1, OpContext::kMaxOperands);
  if (op.num_inputs() > 2) throw Unsupported{cat(op.num_inputs(), " operands; use several of two")};
  std::vector<Labelled> operands;
  const std::string result = label_axes(op, &operands);
  if (operands.size() == 1) return op.define(0, ordered(op, summed(op, operands[0], result), result));
  Labelled a = summed(op, operands[0], result + operands[1].labels);
  Labelled b = summed(op, operands[1], result + operands[0].labels);
  if (depends_on_constants(op, a.value) && !depends_on_constants(op, b.value)) std::swap(a, b);
  const bool has_sums = std::ranges::any_of(a.labels, [&](char c) { return !has_label(result, c); });
  op.define(0, has_sums ? multiplied_matrices(op, a, b, result) : multiplied(op, a, b, result));
}

}  // namespace qplan::onnx
