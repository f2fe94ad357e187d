#include "src/packer/import/tflite/op_context.h"

#include <cmath>
#include <cstring>

#include "src/packer/op/op_def.h"

namespace qplan::tfl {
namespace {

// A file keeps each constant once; some become a second constant in another layout. A larger file is not a
// network.
constexpr uint64_t kConstantBytesPerFileByte = 16;
constexpr uint64_t kConstantBytesAlways = uint64_t{64} << 20;

}  // namespace

void Graph::charge(uint64_t bytes) {
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
  if (value.valid()) return value;
  if (tensor.is_variable) throw Unsupported{"variable tensor " + quoted(tensor.name)};
  if (!tensor.is_constant()) {
    invalid("tensor " + std::to_string(tensor.index) + " " + quoted(tensor.name) +
            " is read before any operator writes it");
  }
  if (!tensor.dtype) throw Unsupported{type_name(tensor.file_type) + " constant"};
  if (tensor.is_sparse) throw Unsupported{"a sparse constant"};
  charge(tensor.data.size());
  value = function_.add_constant(
      std::make_shared<const ir::Constant>(ir::TensorType{*tensor.dtype, tensor.shape},
                                           std::vector<uint8_t>(tensor.data.begin(), tensor.data.end())),
      tensor.name);
  return value;
}

void Graph::define(const TensorInfo& tensor, ir::ValueId value) {
  if (tensor.is_variable) throw Unsupported{"variable tensor " + quoted(tensor.name)};
  const std::string place = "tensor " + std::to_string(tensor.index) + " " + quoted(tensor.name);
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
    graph_.log()(QPLAN_LOG_WARNING, "tflite: " + op_name_ + " " + quoted(name_) + ": " + text);
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
  const TensorInfo& tensor = graph_.file().tensor(index);
  // Its buffer is not as long as its shape says, so that no row may look into it.
  if (tensor.is_sparse) throw Unsupported{"a sparse constant"};
  return &tensor;
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

std::vector<int64_t> OpContext::constant_ints(const TensorInfo& tensor, const std::string& what) const {
  if (!tensor.is_constant()) throw Unsupported{what + " that are not constant"};
  if (tensor.dtype != ir::kInt32 && tensor.dtype != ir::kInt64) {
    invalid(what + " are " + type_name(tensor.file_type) + ", expected int32 or int64");
  }
  const size_t width = tensor.dtype == ir::kInt32 ? 4 : 8;
  std::vector<int64_t> values(tensor.data.size() / width);
  // Axes, extents and the like: one per dimension, or two.
  if (values.size() > 16) invalid(what + " are " + std::to_string(values.size()) + " values");
  for (size_t i = 0; i < values.size(); ++i) {
    if (width == 8) {
      std::memcpy(&values[i], tensor.data.data() + i * 8, 8);
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, tensor.data.data() + i * 4, 4);
      values[i] = narrow;
    }
  }
  return values;
}

int64_t OpContext::axis_of(int64_t axis, size_t rank) {
  const auto extent = static_cast<int64_t>(rank);
  if (axis < -extent || axis >= extent) {
    invalid("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return axis < 0 ? axis + extent : axis;
}

void OpContext::require_8bit(const TensorInfo& tensor, const std::string& what) const {
  if (tensor.is_variable) throw Unsupported{"variable tensor " + quoted(tensor.name)};
  if (tensor.dtype == ir::kInt8 || tensor.dtype == ir::kUint8) return;
  throw Unsupported{type_name(tensor.file_type) + " " + what};
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
    if (tensor->is_variable) throw Unsupported{"variable tensor " + quoted(tensor->name)};
    if (tensor->dtype != ir::kInt16) {
      throw Unsupported{"int16 and " + type_name(tensor->file_type) + " tensors together"};
    }
    if (quantization(*tensor).zero_point != 0) throw Unsupported{"int16 tensors whose zero point is not 0"};
  }
}

QuantParams checked_quantization(const TensorInfo& tensor) {
  const auto place = [&] { return "tensor " + std::to_string(tensor.index) + " " + quoted(tensor.name); };
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
  return graph_.function().add_node(op::get_op(op), std::move(operands), std::move(attrs), name_).results;
}

ir::ValueId OpContext::emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs) {
  return emit_many(op, std::move(operands), std::move(attrs)).front();
}

void OpContext::define(const TensorInfo& tensor, ir::ValueId value) {
  const ir::TensorType& found = type(value);
  if (tensor.dtype != found.dtype || (tensor.has_shape && tensor.shape != found.shape)) {
    invalid("output " + quoted(tensor.name) + " is declared as " + type_name(tensor.file_type) + " " +
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
