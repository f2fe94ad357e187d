#include "src/packer/import/tflite/op_context.h"

#include <algorithm>
#include <cmath>

#include "src/packer/op/evaluate.h"
#include "src/packer/op/op_def.h"

namespace qplan::tfl {
namespace {

// A file keeps each constant once; some become a second constant in another layout. A larger file is not a
// network.
constexpr uint64_t kConstantBytesPerFileByte = 16;
constexpr uint64_t kConstantBytesAlways = uint64_t{64} << 20;

// What shapes, axes and positions are made of.
bool is_shape_dtype(ir::DType dtype) {
  return dtype == ir::kInt32 || dtype == ir::kInt64 || dtype == ir::kBool;
}

}  // namespace

std::vector<int64_t> integers_of(const ir::Constant& constant) {
  std::vector<int64_t> values;
  const auto append = [&](const auto& elements) { values.assign(elements.begin(), elements.end()); };
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kInt32) append(constant.as<int32_t>());
  if (dtype == ir::kInt64) append(constant.as<int64_t>());
  if (dtype == ir::kBool) append(constant.as<uint8_t>());
  return values;
}

ir::ConstantRef integers_as(const std::vector<int64_t>& values, const ir::Shape& shape, ir::DType dtype) {
  if (dtype == ir::kInt64) return ir::make_constant(dtype, shape, values);
  if (dtype == ir::kInt32)
    return ir::make_constant(dtype, shape, std::vector<int32_t>(values.begin(), values.end()));
  return ir::make_constant(dtype, shape, std::vector<uint8_t>(values.begin(), values.end()));
}

void Graph::charge(uint64_t bytes) {
  if (caller_ != nullptr) return caller_->charge(bytes);
  constant_bytes_ += bytes;  // each addend is at most the size of a buffer: 2^64 is out of reach
  if (constant_bytes_ <= kConstantBytesAlways ||
      constant_bytes_ / kConstantBytesPerFileByte <= file_.size_bytes()) {
    return;
  }
  invalid("the model's constants take more than " + std::to_string(kConstantBytesPerFileByte) +
          " times the file's size: too many tensors share one buffer");
}

ir::ValueId Graph::value(const TensorInfo& tensor) {
  ir::ValueId& value = values_[static_cast<size_t>(tensor.index)];
  if (tensor.is_variable) return variable_tensor(tensor);
  if (value.valid()) return value;
  if (is_empty(tensor)) throw Unsupported{"a tensor without elements"};
  if (find_complex(tensor) != nullptr) throw Unsupported{type_name(tensor.file_type) + " input"};
  if (!tensor.is_constant()) {
    invalid("tensor " + std::to_string(tensor.index) + " " + in_quotes(tensor.name) +
            " is read before any operator writes it");
  }
  if (!tensor.dtype) throw Unsupported{type_name(tensor.file_type) + " constant"};
  charge(tensor.data.size());
  value = function_.add_constant(
      std::make_shared<const ir::Constant>(ir::TensorType{*tensor.dtype, tensor.shape},
                                           std::vector<uint8_t>(tensor.data.begin(), tensor.data.end())),
      tensor.name);
  return value;
}

ir::ConstantRef Graph::known_contents(const TensorInfo& tensor) {
  if (tensor.is_variable) return nullptr;
  if (is_defined(tensor)) return function_.value(value(tensor)).constant;
  if (tensor.is_empty)
    return std::make_shared<const ir::Constant>(ir::TensorType{*tensor.dtype, tensor.shape},
                                                std::vector<uint8_t>());
  if (!tensor.is_constant() || !tensor.dtype) return nullptr;
  charge(tensor.data.size());  // each look at it is a copy
  return std::make_shared<const ir::Constant>(ir::TensorType{*tensor.dtype, tensor.shape},
                                              std::vector<uint8_t>(tensor.data.begin(), tensor.data.end()));
}

void Graph::define(const TensorInfo& tensor, ir::ValueId value) {
  if (tensor.is_variable) return set_variable_tensor(tensor, value);
  const std::string place = "tensor " + std::to_string(tensor.index) + " " + in_quotes(tensor.name);
  if (is_defined(tensor)) invalid(place + " is written twice, or is an input that an operator writes");
  if (tensor.is_constant()) invalid(place + " is a constant and is written");
  values_[static_cast<size_t>(tensor.index)] = value;
}

OpContext::OpContext(Graph& graph, const tflite::Operator& op, std::string op_name, size_t index)
    : graph_(graph), op_(op), op_name_(std::move(op_name)) {
  if (num_outputs() > 0) name_ = output(0).name;
  if (name_.empty()) name_ = op_name_ + "_" + std::to_string(index);
}

void OpContext::warn(const std::string& text) const {
  if (graph_.log())
    graph_.log()(QPLAN_LOG_WARNING, "tflite: " + op_name_ + " " + in_quotes(name_) + ": " + text);
}

void OpContext::expect_counts(size_t min_inputs, size_t max_inputs, size_t outputs) const {
  if (num_inputs() < min_inputs || num_inputs() > max_inputs) {
    invalid("there are " + std::to_string(num_inputs()) + " inputs, expected " + std::to_string(min_inputs) +
            (max_inputs > min_inputs ? " to " + std::to_string(max_inputs) : ""));
  }
  if (num_outputs() != outputs) {
    invalid("there are " + std::to_string(num_outputs()) + " outputs, expected " + std::to_string(outputs));
  }
}

void OpContext::missing_options(tflite::BuiltinOptions kind) {
  invalid(std::string("the operator has no ") + tflite::EnumNameBuiltinOptions(kind));
}

const TensorInfo* OpContext::optional_input(size_t i) const {
  if (i >= num_inputs()) return nullptr;
  const int32_t index = op_.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
  if (index == -1) return nullptr;
  return &graph_.file().tensor(index);
}

const TensorInfo& OpContext::input(size_t i) const {
  const TensorInfo* found = optional_input(i);
  if (found == nullptr) invalid("input " + std::to_string(i) + " is absent");
  return *found;
}

const TensorInfo& OpContext::output(size_t i) const {
  if (i >= num_outputs()) invalid("output " + std::to_string(i) + " is absent");
  return graph_.file().tensor(op_.outputs()->Get(static_cast<flatbuffers::uoffset_t>(i)));
}

const TensorInfo* OpContext::intermediate(size_t i) const {
  if (op_.intermediates() == nullptr || i >= op_.intermediates()->size()) return nullptr;
  const int32_t index = op_.intermediates()->Get(static_cast<flatbuffers::uoffset_t>(i));
  return index == -1 ? nullptr : &graph_.file().tensor(index);
}

std::vector<int64_t> OpContext::constant_ints(const TensorInfo& tensor, const std::string& what,
                                              size_t limit) const {
  const ir::ConstantRef known = graph_.known_contents(tensor);
  if (known == nullptr) throw Unsupported{what + " that are not constant"};
  if (tensor.dtype != ir::kInt32 && tensor.dtype != ir::kInt64) {
    invalid(what + " are " + type_name(tensor.file_type) + ", expected int32 or int64");
  }
  std::vector<int64_t> values = integers_of(*known);
  if (values.size() > limit) invalid(what + " are " + std::to_string(values.size()) + " values");
  return values;
}

int64_t OpContext::constant_int(const TensorInfo& tensor, const std::string& what) const {
  const std::vector<int64_t> values = constant_ints(tensor, what);
  if (values.size() != 1) invalid(what + " are " + std::to_string(values.size()) + " values, expected 1");
  return values[0];
}

int64_t OpContext::constant_axis(const TensorInfo& tensor, size_t rank) const {
  const std::vector<int64_t> axis = constant_ints(tensor, "axis");
  if (axis.size() != 1) invalid("there are " + std::to_string(axis.size()) + " axes, expected 1");
  return axis_of(axis[0], rank);
}

int64_t OpContext::axis_of(int64_t axis, size_t rank) {
  const auto extent = static_cast<int64_t>(rank);
  if (axis < -extent || axis >= extent) {
    invalid("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return axis < 0 ? axis + extent : axis;
}

void OpContext::require_8bit(const TensorInfo& tensor, const std::string& what) const {
  if (tensor.dtype == ir::kInt8 || tensor.dtype == ir::kUint8) return;
  throw Unsupported{type_name(tensor.file_type) + " " + what};
}

void OpContext::require_movable(const TensorInfo& from, const TensorInfo& to) const {
  const bool is_byte = from.dtype && (from.dtype->bits >= 8 || from.dtype == ir::kBool);
  if (!is_byte || from.dtype->lanes != 1) throw Unsupported{type_name(from.file_type) + " input"};
  if (from.dtype != to.dtype) {
    invalid("the input is " + type_name(from.file_type) + ", but the output " + type_name(to.file_type));
  }
}

void OpContext::require_one_quantization(const TensorInfo& a, const TensorInfo& b) const {
  const auto is_quantized = [](const TensorInfo& tensor) {
    return tensor.num_scales() == 1 && tensor.dtype && !tensor.dtype->is_float() && tensor.dtype->bits <= 16;
  };
  if (!is_quantized(a) || !is_quantized(b) || quantization(a) == quantization(b)) return;
  throw Unsupported{type_name(a.file_type) + " inputs of different quantisation"};
}

void OpContext::require_same_8bit(std::initializer_list<const TensorInfo*> tensors) const {
  const TensorInfo& first = **tensors.begin();
  require_8bit(first, "input");
  for (const TensorInfo* tensor : tensors) {
    require_8bit(*tensor, tensor == &output() ? "output" : "input");
    if (tensor->dtype != first.dtype) {
      throw Unsupported{type_name(first.file_type) + " and " + type_name(tensor->file_type) +
                        " tensors together"};
    }
  }
}

void OpContext::require_same_quantized(std::initializer_list<const TensorInfo*> tensors) const {
  if ((*tensors.begin())->dtype != ir::kInt16) return require_same_8bit(tensors);
  for (const TensorInfo* tensor : tensors) {
    if (tensor->dtype != ir::kInt16) {
      throw Unsupported{"int16 and " + type_name(tensor->file_type) + " tensors together"};
    }
    if (quantization(*tensor).zero_point != 0) throw Unsupported{"int16 tensors whose zero point is not 0"};
  }
}

QuantParams checked_quantization(const TensorInfo& tensor) {
  const auto place = [&] { return "tensor " + std::to_string(tensor.index) + " " + in_quotes(tensor.name); };
  const float scale = tensor.quantization->scale()->Get(0);
  if (!std::isfinite(scale) || scale <= 0) {
    invalid(place() + " has scale " + to_text(scale) + ", expected a positive finite number");
  }
  const auto* zero_points = tensor.quantization->zero_point();
  const int64_t zero_point = zero_points == nullptr || zero_points->size() == 0 ? 0 : zero_points->Get(0);
  if (zero_point < tensor.dtype->min() || zero_point > tensor.dtype->max()) {
    invalid(place() + " has zero point " + std::to_string(zero_point) + ", outside of " +
            ir::to_string(*tensor.dtype));
  }
  return {scale, static_cast<int32_t>(zero_point)};
}

QuantParams OpContext::quantization(const TensorInfo& tensor) const {
  const tflite::QuantizationParameters* q = tensor.quantization;
  if (q != nullptr && q->details_type() != tflite::QuantizationDetails_NONE) {
    throw Unsupported{"custom quantisation"};
  }
  if (tensor.num_scales() == 0)
    throw Unsupported{type_name(tensor.file_type) + " tensors without quantisation"};
  if (tensor.num_scales() > 1) throw Unsupported{"per-channel quantisation of activations"};
  return checked_quantization(tensor);
}

ir::ValueId OpContext::value(const TensorInfo& tensor) const { return graph_.value(tensor); }

ir::ValueId OpContext::constant(ir::ConstantRef constant, const std::string& name) {
  graph_.charge(constant->bytes().size());
  return graph_.function().add_constant(std::move(constant), name);
}

std::vector<ir::ValueId> OpContext::emit_many(std::string_view op, std::vector<ir::ValueId> operands,
                                              ir::Attrs attrs) {
  ir::Function& function = graph_.function();
  const op::OpDef& def = op::get_op(op);
  const bool moves = op == "transpose" || op == "reshape";
  const auto is_known = [&](ir::ValueId operand) {
    if (!function.is_constant(operand)) return false;
    return is_shape_dtype(type(operand).dtype) ||
           (moves && type(operand).size_bytes() <= op::kMaxEvaluatedBytes);
  };
  if (def.evaluate != nullptr && std::ranges::all_of(operands, is_known)) {
    return evaluated(def, operands, attrs);
  }
  return function.add_node(def, std::move(operands), std::move(attrs), name_).results;
}

// Shape arithmetic is done at once: shapes and axes of later operators are made of it. So is moving
// constants: layers take weights only as constants.
std::vector<ir::ValueId> OpContext::evaluated(const op::OpDef& def, const std::vector<ir::ValueId>& operands,
                                              const ir::Attrs& attrs) {
  ir::Node node;
  node.op = &def;
  node.attrs = attrs;
  node.name = name_;
  std::vector<ir::ConstantRef> constants;
  for (const ir::ValueId operand : operands) {
    constants.push_back(graph_.function().value(operand).constant);
    graph_.charge(constants.back()->bytes().size());  // that are read
  }
  for (const ir::TensorType& result : op::result_types(node, constants)) {
    graph_.charge(static_cast<uint64_t>(result.size_bytes()));
  }
  const auto results = op::evaluate(node, constants);
  if (!results) invalid("its result is too large to compute on import");
  std::vector<ir::ValueId> values;
  const std::string name = operands.size() == 1 ? graph_.function().value(operands[0]).name : "";
  for (const ir::ConstantRef& result : *results) {
    values.push_back(graph_.function().add_constant(result, name));
  }
  return values;
}

ir::ValueId OpContext::int_vector(const std::vector<int64_t>& values, ir::DType dtype) {
  return constant(integers_as(values, {static_cast<int64_t>(values.size())}, dtype));
}

ir::ValueId OpContext::emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs) {
  return emit_many(op, std::move(operands), std::move(attrs)).front();
}

void OpContext::define(const TensorInfo& tensor, ir::ValueId value) {
  const ir::TensorType& found = type(value);
  if (tensor.dtype != found.dtype || !tensor.may_have(found.shape)) {
    invalid("output " + in_quotes(tensor.name) + " is declared as " + type_name(tensor.file_type) + " " +
            to_text(tensor.shape) + ", but the operator gives " + ir::to_string(found.dtype) + " " +
            to_text(found.shape));
  }
  graph_.define(tensor, value);
  const ir::Value& known = graph_.function().value(value);
  if (known.kind == ir::ValueKind::kResult && known.name.empty())
    graph_.function().set_value_name(value, tensor.name);
}

namespace {

#define QPLAN_TFLITE_OP(number, name, function) \
  static_assert(number == tflite::BuiltinOperator_##name, "the number is the format's");
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP

constexpr ImportRow kRows[] = {
#define QPLAN_TFLITE_OP(number, name, function) {number, #name, function},
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP
};

}  // namespace

const ImportRow* find_row(int32_t builtin_code) {
  for (const ImportRow& row : kRows) {
    if (row.builtin_code == builtin_code) return &row;
  }
  return nullptr;
}

}  // namespace qplan::tfl
