#include "src/packer/import/pytorch/op_context.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::pt {
namespace {

// The part of the text before the separator, which is taken off it.
std::string_view take_part(std::string_view* text, char separator) {
  const size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  *text = end == std::string_view::npos ? std::string_view() : text->substr(end + 1);
  return part;
}

// names: what the overloads of an operator call one argument, "self/input".
bool is_called(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    if (take_part(&names, '/') == name) return true;
  }
  return false;
}

// Where the row's argument names put the arguments of a call.
std::vector<Ref> in_order(const ImportRow& row, const std::vector<Argument>& arguments) {
  std::vector<Ref> ordered;
  std::string_view names = row.arguments;
  size_t next = 0;  // positional argument
  while (!names.empty()) {
    const std::string_view name = take_part(&names, ' ');
    Ref found;
    if (next < arguments.size() && arguments[next].name.empty()) {
      found = arguments[next++].value;
    } else {
      for (const Argument& argument : arguments) {
        if (is_called(name, argument.name)) found = argument.value;
      }
    }
    ordered.push_back(found);
  }
  size_t used = 0;
  for (const Ref ref : ordered) used += ref.valid() ? 1 : 0;
  if (used != arguments.size())
    throw Unsupported{"arguments other than (" + std::string(row.arguments) + ")"};
  return ordered;
}

}  // namespace

bool is_in_place(std::string_view name) { return name.ends_with('_') && !name.ends_with("__"); }

void OperatorCalls::charge(size_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps) invalid(cat("the code takes more than ", kMaxSteps, " steps: it is no network"));
}

bool OperatorCalls::mentions_unknown(const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    if (values_.get<Unknown>(argument.value) != nullptr) return true;
    const std::vector<Ref>* items = items_of(values_, argument.value);
    if (items == nullptr) continue;
    charge(items->size());
    for (const Ref item : *items) {
      if (values_.get<Unknown>(item) != nullptr) return true;
    }
  }
  return false;
}

Ref OperatorCalls::operand_of(std::string_view name, const std::vector<Argument>& arguments) {
  const ImportRow* row = find_row(name);
  if (row == nullptr || arguments.empty()) return {};
  if (arguments[0].name.empty()) return arguments[0].value;
  std::string_view names = row->arguments;
  const std::string_view first = take_part(&names, ' ');
  for (const Argument& argument : arguments) {
    if (is_called(first, argument.name)) return argument.value;
  }
  return {};
}

Ref OperatorCalls::not_imported(const std::string& what, const std::string& node_name) {
  unsupported_.add(what, in_quotes(node_name));
  last_missing_ = what;
  return values_.add(Unknown{});
}

Ref OperatorCalls::call(const std::string& name, const std::vector<Argument>& arguments,
                        const std::string& node_name) {
  const ImportRow* row = find_row(name);
  if (row == nullptr) return not_imported(name, node_name);
  if (mentions_unknown(arguments)) return values_.add(Unknown{});
  try {
    OpContext op(*this, name, node_name, in_order(*row, arguments));
    const Ref result = row->import_op(op);
    return is_in_place(name) ? op.write_back(result) : result;
  } catch (const Unsupported& use) {
    return not_imported(name + " with " + use.reason, node_name);
  } catch (const PackError& error) {
    throw PackError(error.status(), name + " " + in_quotes(node_name) + ": " + error.what());
  }
}

// What a row sees of one call.

std::string_view OpContext::short_name() const {
  return std::string_view(op_name_).substr(op_name_.rfind(':') + 1);
}

void OpContext::warn(const std::string& text) const {
  if (calls_.log()) {
    calls_.log()(QPLAN_LOG_WARNING, "pytorch: " + op_name_ + " " + in_quotes(node_name_) + ": " + text);
  }
}

// -- arguments

bool OpContext::has(size_t i) const {
  const Ref ref = arguments_.at(i);
  return ref.valid() && calls_.values().get<None>(ref) == nullptr;
}

Ref OpContext::ref(size_t i) const {
  if (!arguments_.at(i).valid()) invalid(cat("argument ", i, " is missing"));
  return arguments_[i];
}

std::optional<double> OpContext::as_number(Ref ref) {
  if (const auto* integer = values().get<int64_t>(ref)) return static_cast<double>(*integer);
  if (const auto* number = values().get<double>(ref)) return *number;
  if (const auto* boolean = values().get<bool>(ref)) return *boolean ? 1.0 : 0.0;
  const Tensor* tensor = values().get<Tensor>(ref);
  if (tensor == nullptr || tensor->quantizer.valid()) return std::nullopt;
  int64_t count = 1;
  for (const int64_t size : tensor->sizes) count = size == 1 ? count : 0;
  if (count != 1) return std::nullopt;
  return tensors().read_numbers(*tensor, "a constant")[0];
}

std::optional<PlainNumber> OpContext::as_plain_number(Ref ref) {
  if (const auto* integer = values().get<int64_t>(ref)) return *integer;
  if (const auto* number = values().get<double>(ref)) return *number;
  if (const Tensor* tensor = values().get<Tensor>(ref)) {
    const ScalarType type = tensors().type(*tensor);
    const bool is_double = type == ScalarType::kFloat64 && tensor->sizes.empty();
    if (!is_double && dtype_of(type).is_float()) return std::nullopt;
    const std::optional<double> number = as_number(ref);
    if (!number || is_double) return number;
    return static_cast<int64_t>(*number);
  }
  const std::optional<double> boolean = as_number(ref);
  if (!boolean) return std::nullopt;
  return static_cast<int64_t>(*boolean);
}

std::optional<ir::Shape> OpContext::shape_of(Ref ref) const {
  if (const auto* flow = calls_.values().get<Flow>(ref)) return shape(*flow);
  if (const auto* tensor = calls_.values().get<Tensor>(ref)) return tensor->sizes;
  return std::nullopt;
}

std::optional<double> OpContext::scalar_beside(size_t i, size_t other) {
  if (is_flow(i)) return std::nullopt;
  const size_t rank = shape_of(ref(i)).value_or(ir::Shape{}).size();
  const Tensor* tensor = values().get<Tensor>(ref(i));
  // A tensor with axes makes the result float64, which flow() refuses.
  if (rank > 0 && tensor != nullptr && tensors().type(*tensor) == ScalarType::kFloat64) return std::nullopt;
  const size_t other_rank = shape_of(ref(other)).value_or(ir::Shape{}).size();
  if (rank > 0 && (rank > other_rank || (rank == other_rank && !is_flow(other)))) return std::nullopt;
  return as_number(ref(i));
}

void OpContext::expect_float_result(size_t dtype) {
  constexpr auto kFloat32 = static_cast<int64_t>(ScalarType::kFloat32);
  if (integer(dtype, kFloat32) != kFloat32) throw Unsupported{"a result other than float32"};
}

double OpContext::number(size_t i, std::optional<double> fallback) {
  if (fallback && !has(i)) return *fallback;
  const std::optional<double> found = as_number(ref(i));
  const bool is_tensor = is_flow(i) || values().get<Tensor>(ref(i)) != nullptr;
  if (!found && is_tensor) throw Unsupported{"a tensor in the place of a number"};
  if (!found) invalid(cat("argument ", i, " is ", kind_name(values().at(ref(i))), ", expected a number"));
  return *found;
}

int64_t OpContext::integer(size_t i, std::optional<int64_t> fallback) {
  if (fallback && !has(i)) return *fallback;
  if (const auto* value = values().get<int64_t>(ref(i))) return *value;
  const double found = number(i);
  if (!(std::fabs(found) < 9007199254740992.0) || found != std::trunc(found)) {
    invalid(cat("argument ", i, " is ", to_text(static_cast<float>(found)), ", expected an integer"));
  }
  return static_cast<int64_t>(found);
}

bool OpContext::boolean(size_t i, std::optional<bool> fallback) {
  if (fallback && !has(i)) return *fallback;
  if (const auto* value = values().get<bool>(ref(i))) return *value;
  invalid(cat("argument ", i, " is ", kind_name(values().at(ref(i))), ", expected a boolean"));
}

std::vector<int64_t> OpContext::integers(size_t i) {
  constexpr size_t kMost = 16;  // axes, extents and the like: one per dimension, or two
  const std::vector<Ref>* items = items_of(values(), ref(i));
  if (items == nullptr) return {integer(i)};
  if (items->size() > kMost) invalid(cat("argument ", i, " has ", items->size(), " items"));
  std::vector<int64_t> numbers;
  for (const Ref item : *items) {
    const auto* value = values().get<int64_t>(item);
    if (value == nullptr) {
      if (values().get<Flow>(item) != nullptr) throw Unsupported{"extents that the model computes"};
      invalid(cat("argument ", i, " holds ", kind_name(values().at(item)), ", expected integers"));
    }
    numbers.push_back(*value);
  }
  return numbers;
}

std::string OpContext::text(size_t i, std::string_view fallback) {
  if (!has(i)) return std::string(fallback);
  if (const auto* value = values().get<std::string>(ref(i))) return *value;
  invalid(cat("argument ", i, " is ", kind_name(values().at(ref(i))), ", expected a string"));
}

std::vector<int64_t> OpContext::pair(size_t i, std::optional<std::vector<int64_t>> fallback) {
  std::vector<int64_t> numbers;
  if (has(i)) numbers = integers(i);
  if (numbers.empty() && fallback) numbers = *fallback;  // an empty list stands for the fallback, too
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  if (numbers.size() != 2) invalid(cat("argument ", i, " has ", numbers.size(), " items, expected 2"));
  return numbers;
}

bool OpContext::is_flow(size_t i) const { return calls_.values().get<Flow>(ref(i)) != nullptr; }

Flow OpContext::as_flow(Ref ref) {
  if (const auto* flow = values().get<Flow>(ref)) return *flow;
  const Tensor* tensor = values().get<Tensor>(ref);
  if (tensor == nullptr && as_number(ref)) throw Unsupported{"a number in the place of a tensor"};
  if (tensor == nullptr) invalid(cat("found ", kind_name(values().at(ref)), ", expected a tensor"));
  if (tensor->quantizer.valid()) {
    const TensorScales scales = tensors().read_scales(*tensor);
    if (scales.axis) throw Unsupported{"a constant with one scale per channel"};
    return {constant(tensors().read(*tensor)), QuantParams{scales.scales[0], scales.zero_points[0]}};
  }
  const ir::ConstantRef data = tensors().read(*tensor);
  return {constant(data->type().dtype == ir::kFloat16 ? ir::widened_halves(*data) : data)};
}

Flow OpContext::quantized_flow(size_t i) {
  const Flow found = flow(i);
  const ir::DType found_dtype = dtype(found);
  if (!found.quantization || (found_dtype != ir::kInt8 && found_dtype != ir::kUint8)) {
    throw Unsupported{"a " + ir::to_string(found_dtype) + " tensor that is not quantised"};
  }
  return found;
}

Flow OpContext::float_flow(size_t i) {
  const Flow found = flow(i);
  if (dtype(found) != ir::kFloat32) throw Unsupported{"a " + ir::to_string(dtype(found)) + " tensor"};
  return found;
}

bool OpContext::is_constant(const Flow& flow) const {
  const ir::Function& function = calls_.function();
  ir::ValueId value = flow.value;
  for (const ir::Node* node = function.producer(value); node != nullptr; node = function.producer(value)) {
    const bool follows = node->op != nullptr &&
                         (node->op->movement != op::Movement::kNone || node->op->name == "qnn.dequantize" ||
                          node->op->name == "qnn.quantize" || node->op->name == "clip");
    if (!follows) return false;
    value = node->operands[0];
  }
  return function.is_constant(value);
}

std::vector<Flow> OpContext::flows(size_t i) {
  const std::vector<Ref>* items = items_of(values(), ref(i));
  if (items == nullptr)
    invalid(cat("argument ", i, " is ", kind_name(values().at(ref(i))), ", expected a list"));
  const std::vector<Ref> refs = *items;  // a constant may add values
  std::vector<Flow> flows;
  flows.reserve(refs.size());
  for (const Ref item : refs) flows.push_back(as_flow(item));
  if (flows.empty()) invalid(cat("argument ", i, " is an empty list"));
  return flows;
}

QuantParams OpContext::quantization(size_t scale, size_t zero_point, ir::DType dtype) {
  return checked_quantization(number(scale), integer(zero_point), dtype);
}

int64_t OpContext::axis_of(int64_t axis, size_t rank) {
  const auto extent = static_cast<int64_t>(rank);
  if (axis < -extent || axis >= extent) invalid(cat("axis ", axis, " is out of range for rank ", rank));
  return axis < 0 ? axis + extent : axis;
}

// -- writing the IR

ir::ValueId OpContext::emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs) {
  return emit_many(op, std::move(operands), std::move(attrs)).front();
}

std::vector<ir::ValueId> OpContext::emit_many(std::string_view op, std::vector<ir::ValueId> operands,
                                              ir::Attrs attrs) {
  ir::Function& function = calls_.function();
  return function.add_node(op::get_op(op), std::move(operands), std::move(attrs), node_name_).results;
}

ir::ValueId OpContext::emit_quantized(std::string_view op, std::vector<ir::ValueId> operands,
                                      const std::vector<QuantParams>& params, ir::Attrs attrs) {
  for (const QuantParams& p : params) {
    operands.push_back(scale(p.scale));
    operands.push_back(zero_point(p.zero_point));
  }
  attrs.set("contract", std::string("f32e"));
  return emit(op, std::move(operands), std::move(attrs));
}

Ref OpContext::write_back(Ref result) {
  const auto* flow = values().get<Flow>(result);
  if (const std::optional<ir::Shape> before = shape_of(ref(0)); flow != nullptr && before) {
    const ir::Shape& after = shape(*flow);
    if (after != *before)
      invalid("the result has shape " + to_text(after) + ", which an operand of " + to_text(*before) +
              " has no place for");
  }
  const Value written = values().at(result);
  values().at(ref(0)) = written;
  return ref(0);
}

Ref OpContext::result(ir::ValueId value, std::optional<QuantParams> quantization) {
  return add(Flow{value, quantization});
}

namespace {

constexpr ImportRow kRows[] = {
#define QPLAN_PYTORCH_OP(name, function, arguments) {name, arguments, function},
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP
};

}  // namespace

const ImportRow* find_row(std::string_view name) {
  for (const ImportRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Plane::Plane(OpContext& op, const Flow& input, size_t spatial_axes)
    : input_(input), is_sequence_(spatial_axes == 1), has_batch_(op.shape(input).size() == spatial_axes + 2) {
  ir::Shape shape = op.shape(input);
  const size_t rank = shape.size();
  if (!has_batch_ && rank != spatial_axes + 1) throw Unsupported{cat("a tensor of rank ", rank)};
  if (!has_batch_) shape.insert(shape.begin(), 1);
  if (is_sequence_) shape.insert(shape.begin() + 2, 1);
  if (shape.size() == rank) return;
  input_.value = op.reshape(input_.value, shape);
  if (input_.source) input_.source->integers = op.reshape(input_.source->integers, shape);
}

std::vector<int64_t> Plane::numbers(OpContext& op, size_t argument,
                                    const std::vector<int64_t>& fallback) const {
  if (!is_sequence_) return op.pair(argument, fallback);
  std::vector<int64_t> found;
  if (op.has(argument)) found = op.integers(argument);
  if (found.empty()) return fallback;
  if (found.size() != 1) invalid(cat("argument ", argument, " has ", found.size(), " items, expected 1"));
  return {fallback[0], found[0]};
}

Ref Plane::result(OpContext& op, ir::ValueId value, std::optional<QuantParams> quantization) const {
  ir::Shape shape = op.shape(Flow{value});
  if (is_sequence_) shape.erase(shape.begin() + 2);
  if (!has_batch_) shape.erase(shape.begin());
  if (shape.size() != op.shape(Flow{value}).size()) value = op.reshape(value, shape);
  return op.result(value, quantization);
}

int64_t round_half_even(double value) {
  const auto whole = static_cast<int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  const bool odd = whole % 2 != 0;
  if (rest > 0.5 || (rest == 0.5 && odd)) return whole + 1;
  if (rest < -0.5 || (rest == -0.5 && odd)) return whole - 1;
  return whole;
}

int64_t quantize_value(double value, QuantParams quantization, ir::DType dtype) {
  const float product = static_cast<float>(value) * (1.0f / quantization.scale);
  if (std::isnan(product)) importer::invalid("a bound is not a number");
  constexpr double kMost = 1e15;  // beyond every dtype; exact in int64_t
  const int64_t rounded = round_half_even(std::clamp(static_cast<double>(product), -kMost, kMost));
  return std::clamp(quantization.zero_point + rounded, dtype.min(), dtype.max());
}

QuantParams checked_quantization(double scale, int64_t zero_point, ir::DType dtype) {
  const auto narrow = static_cast<float>(scale);
  if (!std::isfinite(narrow) || narrow <= 0) {
    importer::invalid("the scale is " + importer::to_text(narrow) + ", expected a positive finite number");
  }
  if (zero_point < dtype.min() || zero_point > dtype.max()) {
    importer::invalid(cat("zero point ", zero_point, " is outside of ", dtype));
  }
  const bool is_exact = static_cast<double>(narrow) == scale;
  return {narrow, static_cast<int32_t>(zero_point), is_exact ? 0.0 : scale};
}

}  // namespace qplan::pt
