// Operators on shapes: SHAPE, RANK, FILL, RANGE, ZEROS_LIKE, which are known on import, and RESHAPE,
// EXPAND_DIMS, SQUEEZE, PACK, UNPACK, which give elements another shape; arithmetic on integers that are
// known on import.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/checked.h"
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"

namespace qplan::tfl {
namespace {

void require_shape_output(const TensorInfo& output) {
  if (output.dtype != ir::kInt32 && output.dtype != ir::kInt64) {
    throw Unsupported{type_name(output.file_type) + " output"};
  }
}

// The output is the input in another shape; of complex numbers, which are two tensors, both are.
template <typename Reshape>
void define_reshaped(OpContext& op, const Reshape& reshape) {
  const Graph::Complex* const value = op.graph().find_complex(op.input(0));
  if (value == nullptr) {
    op.require_movable(op.input(0), op.output());
    return op.define(op.output(), reshape(op.value(op.input(0))));
  }
  if (op.output().file_type != op.input(0).file_type)
    invalid("the input is " + type_name(op.input(0).file_type) + ", but the output " +
            type_name(op.output().file_type));
  const Graph::Complex halves = *value;
  op.graph().define_complex(op.output(), {reshape(halves.real), reshape(halves.imaginary)});
}

}  // namespace

void import_shape(OpContext& op) {
  op.expect_counts(1, 1, 1);
  require_shape_output(op.output());
  op.define(op.output(), op.int_vector(op.shape(op.value(op.input(0))), *op.output().dtype));
}

void import_rank(OpContext& op) {
  op.expect_counts(1, 1, 1);
  require_shape_output(op.output());
  const auto rank = static_cast<int64_t>(op.shape(op.value(op.input(0))).size());
  op.define(op.output(), op.constant(integers_as({rank}, {}, *op.output().dtype)));
}

void import_reshape(OpContext& op) {
  op.expect_counts(1, 2, 1);
  // The shape operand counts; models from before it have the option only.
  ir::Ints shape;
  if (const TensorInfo* operand = op.optional_input(1)) {
    shape = op.constant_ints(*operand, "shape values");
  } else if (const auto* options = op.optional_options<tflite::ReshapeOptions>();
             options != nullptr && options->new_shape() != nullptr) {
    shape.assign(options->new_shape()->begin(), options->new_shape()->end());
  } else {
    invalid("there is neither a shape operand nor the option new_shape");
  }
  if (shape == ir::Ints{0}) shape.clear();  // how old models write a scalar
  define_reshaped(op, [&](ir::ValueId data) { return op.emit("reshape", {data}, {{"newshape", shape}}); });
}

void import_expand_dims(OpContext& op) {
  op.expect_counts(2, 2, 1);
  define_reshaped(op, [&](ir::ValueId data) {
    ir::Shape shape = op.shape(data);
    shape.insert(shape.begin() + op.constant_axis(op.input(1), shape.size() + 1), 1);
    return op.reshaped(data, shape);
  });
}

namespace {

ir::Shape squeezed_shape(OpContext& op, const ir::Shape& shape) {
  const auto* options = op.optional_options<tflite::SqueezeOptions>();
  std::vector<bool> named(shape.size());
  const bool all =
      options == nullptr || options->squeeze_dims() == nullptr || options->squeeze_dims()->size() == 0;
  for (size_t i = 0; !all && i < options->squeeze_dims()->size(); ++i) {
    const int32_t axis = options->squeeze_dims()->Get(static_cast<flatbuffers::uoffset_t>(i));
    named[static_cast<size_t>(OpContext::axis_of(axis, shape.size()))] = true;
  }
  ir::Shape squeezed;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (named[i] && shape[i] != 1) {
      invalid("axis " + std::to_string(i) + " of shape " + importer::to_text(shape) +
              " is squeezed, but its extent is not 1");
    }
    if (!(all ? shape[i] == 1 : named[i])) squeezed.push_back(shape[i]);
  }
  return squeezed;
}

}  // namespace

void import_squeeze(OpContext& op) {
  op.expect_counts(1, 1, 1);
  define_reshaped(op,
                  [&](ir::ValueId data) { return op.reshaped(data, squeezed_shape(op, op.shape(data))); });
}

void import_pack(OpContext& op) {
  constexpr size_t kMaxInputs = 4096;
  op.expect_counts(1, kMaxInputs, 1);
  const auto& options = op.options<tflite::PackOptions>();
  std::vector<ir::ValueId> parts;
  ir::Shape shape;
  int64_t axis = 0;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    op.require_movable(op.input(i), op.output());
    op.require_one_quantization(op.input(i), op.output());
    const ir::ValueId part = op.value(op.input(i));
    if (i == 0) {
      shape = op.shape(part);
      axis = OpContext::axis_of(options.axis(), shape.size() + 1);
      shape.insert(shape.begin() + axis, 1);
    }
    parts.push_back(op.reshaped(part, shape));
  }
  op.define(op.output(), parts.size() == 1 ? parts[0] : op.emit("concatenate", parts, {{"axis", axis}}));
}

void import_unpack(OpContext& op) {
  op.expect_counts(1, 1, op.num_outputs());
  const auto& options = op.options<tflite::UnpackOptions>();
  const ir::ValueId data = op.value(op.input(0));
  const int64_t axis = OpContext::axis_of(options.axis(), op.shape(data).size());
  ir::Shape shape = op.shape(data);
  const int64_t extent = shape[static_cast<size_t>(axis)];
  if (extent != static_cast<int64_t>(op.num_outputs()) || extent != options.num()) {
    invalid("there are " + std::to_string(op.num_outputs()) + " outputs and num is " +
            std::to_string(options.num()) + ", but axis " + std::to_string(axis) + " has extent " +
            std::to_string(extent));
  }
  shape.erase(shape.begin() + axis);
  std::vector<ir::ValueId> parts{data};
  if (extent > 1) parts = op.emit_many("split", {data}, {{"indices_or_sections", extent}, {"axis", axis}});
  for (size_t i = 0; i < parts.size(); ++i) {
    op.require_movable(op.input(0), op.output(i));
    op.define(op.output(i), op.reshaped(parts[i], shape));
  }
}

// ---- constants of a computed shape ----

namespace {

// The element, or zero, repeated.
ir::ValueId filled(OpContext& op, std::span<const uint8_t> element, ir::DType dtype, const ir::Shape& shape) {
  const ir::TensorType type{dtype, shape};
  if (const std::string error = ir::type_error(type); !error.empty()) invalid("its result: " + error);
  op.charge(static_cast<uint64_t>(type.size_bytes()));
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  for (size_t at = 0; !element.empty() && at + element.size() <= bytes.size(); at += element.size()) {
    std::memcpy(&bytes[at], element.data(), element.size());
  }
  return op.constant(std::make_shared<const ir::Constant>(type, std::move(bytes)));
}

}  // namespace

void import_fill(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const ir::Shape shape = op.constant_ints(op.input(0), "extents");
  if (std::ranges::find(shape, 0) != shape.end()) throw Unsupported{"a result without elements"};
  const ir::ConstantRef element = op.known_contents(op.input(1));
  if (element == nullptr) throw Unsupported{"a value that is not constant"};
  const ir::TensorType& type = element->type();
  if (type.num_elements() != 1 || (type.dtype.bits < 8 && type.dtype != ir::kBool)) {
    invalid("the value is " + ir::to_string(type) + ", expected one number");
  }
  op.define(op.output(), filled(op, element->bytes(), type.dtype, shape));
}

void import_zeros_like(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.require_movable(op.input(0), op.output());
  const ir::ValueId data = op.value(op.input(0));
  op.define(op.output(), filled(op, {}, op.type(data).dtype, op.shape(data)));
}

void import_range(OpContext& op) {
  op.expect_counts(3, 3, 1);
  require_shape_output(op.output());
  const int64_t start = op.constant_int(op.input(0), "start");
  const int64_t limit = op.constant_int(op.input(1), "limit");
  const int64_t delta = op.constant_int(op.input(2), "delta");
  constexpr int64_t kMaxElements = int64_t{1} << 20;
  int64_t span = 0;
  if (delta == 0 || delta == INT64_MIN || __builtin_sub_overflow(limit, start, &span) || span == INT64_MIN) {
    invalid("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " in steps of " +
            std::to_string(delta));
  }
  if (delta < 0) span = -span;
  if (span <= 0) throw Unsupported{"a result without elements"};
  const int64_t step = delta < 0 ? -delta : delta, count = (span - 1) / step + 1;
  if (count > kMaxElements) invalid("a range of " + std::to_string(count) + " numbers");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + i * delta);
  op.define(op.output(), op.int_vector(values, *op.output().dtype));
}

// ---- integers that are known ----

namespace {

uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }
int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// What wraps in int64 wraps alike in int32. The divisors are neither 0 nor -1.
struct IntegerBinary {
  int32_t code;
  int64_t (*apply)(int64_t a, int64_t b);
  bool divides = false;
};
constexpr IntegerBinary kIntegerBinaries[] = {
    {tflite::BuiltinOperator_ADD, [](int64_t a, int64_t b) { return static_cast<int64_t>(u(a) + u(b)); }},
    {tflite::BuiltinOperator_SUB, [](int64_t a, int64_t b) { return static_cast<int64_t>(u(a) - u(b)); }},
    {tflite::BuiltinOperator_MUL, [](int64_t a, int64_t b) { return static_cast<int64_t>(u(a) * u(b)); }},
    {tflite::BuiltinOperator_DIV, [](int64_t a, int64_t b) { return a / b; }, true},
    {tflite::BuiltinOperator_FLOOR_DIV, floor_div, true},
    {tflite::BuiltinOperator_FLOOR_MOD, [](int64_t a, int64_t b) { return a - floor_div(a, b) * b; }, true},
    {tflite::BuiltinOperator_MAXIMUM, [](int64_t a, int64_t b) { return std::max(a, b); }},
    {tflite::BuiltinOperator_MINIMUM, [](int64_t a, int64_t b) { return std::min(a, b); }},
    {tflite::BuiltinOperator_EQUAL, [](int64_t a, int64_t b) { return int64_t{a == b}; }},
    {tflite::BuiltinOperator_NOT_EQUAL, [](int64_t a, int64_t b) { return int64_t{a != b}; }},
    {tflite::BuiltinOperator_LESS, [](int64_t a, int64_t b) { return int64_t{a < b}; }},
    {tflite::BuiltinOperator_LESS_EQUAL, [](int64_t a, int64_t b) { return int64_t{a <= b}; }},
    {tflite::BuiltinOperator_GREATER, [](int64_t a, int64_t b) { return int64_t{a > b}; }},
    {tflite::BuiltinOperator_GREATER_EQUAL, [](int64_t a, int64_t b) { return int64_t{a >= b}; }},
    {tflite::BuiltinOperator_LOGICAL_AND, [](int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }},
    {tflite::BuiltinOperator_LOGICAL_OR, [](int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }},
};

bool is_integer(const std::optional<ir::DType>& dtype) {
  return dtype == ir::kInt32 || dtype == ir::kInt64 || dtype == ir::kBool;
}

void define_integers(OpContext& op, const std::vector<int64_t>& values, const ir::Shape& shape) {
  op.define(op.output(), op.constant(integers_as(values, shape, *op.output().dtype)));
}

void fold_binary(OpContext& op, const IntegerBinary& binary) {
  op.expect_counts(2, 2, 1);
  const ir::ConstantRef lhs = op.known_contents(op.input(0)), rhs = op.known_contents(op.input(1));
  const ir::Shape shape = op::broadcast_shape(lhs->type().shape, rhs->type().shape);
  const ir::TensorType type{*op.output().dtype, shape};
  if (const std::string error = ir::type_error(type); !error.empty()) invalid("its result: " + error);
  // Results are integers of 64 bits until they are stored, those of comparisons too.
  op.charge(static_cast<uint64_t>(type.num_elements()) * sizeof(int64_t));
  const std::vector<int64_t> a = integers_of(*lhs), b = integers_of(*rhs);
  const std::vector<size_t> at_a = op::broadcast_indices(lhs->type().shape, shape);
  const std::vector<size_t> at_b = op::broadcast_indices(rhs->type().shape, shape);
  std::vector<int64_t> values;
  for (size_t i = 0; i < at_a.size(); ++i) {
    const int64_t x = a[at_a[i]], y = b[at_b[i]];
    if (binary.divides && y == 0) invalid("an integer is divided by 0");
    values.push_back(
        binary.divides && y == -1
            ? (binary.code == tflite::BuiltinOperator_FLOOR_MOD ? 0 : static_cast<int64_t>(-u(x)))
            : binary.apply(x, y));
  }
  if (const auto* options = op.optional_options<tflite::DivOptions>()) {
    const RealRange range = activation_range(options->fused_activation_function());
    for (int64_t& value : values) {
      if (std::isfinite(range.min)) value = std::max(value, static_cast<int64_t>(range.min));
      if (std::isfinite(range.max)) value = std::min(value, static_cast<int64_t>(range.max));
    }
  }
  define_integers(op, values, shape);
}

void fold_cast(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const ir::ConstantRef data = op.known_contents(op.input(0));
  std::vector<int64_t> values = integers_of(*data);
  if (op.output().dtype == ir::kBool) {
    for (int64_t& value : values) value = value != 0;
  }
  define_integers(op, values, data->type().shape);
}

template <typename Options>
bool has_activation(const OpContext& op) {
  const auto* options = op.optional_options<Options>();
  return options != nullptr && options->fused_activation_function() != tflite::ActivationFunctionType_NONE;
}

}  // namespace

bool fold_integers(OpContext& op, int32_t builtin_code) {
  if (op.num_inputs() == 0 || op.num_outputs() != 1 || !is_integer(op.output().dtype)) return false;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    const TensorInfo* input = op.optional_input(i);
    if (input == nullptr || !is_integer(input->dtype) || input->is_empty || !op.is_known(*input))
      return false;
  }
  if (has_activation<tflite::AddOptions>(op) || has_activation<tflite::SubOptions>(op) ||
      has_activation<tflite::MulOptions>(op)) {
    return false;
  }
  for (const IntegerBinary& binary : kIntegerBinaries) {
    if (binary.code == builtin_code) return fold_binary(op, binary), true;
  }
  if (builtin_code == tflite::BuiltinOperator_CAST) return fold_cast(op), true;
  // SELECT has rules of its own for the condition's rank: its row knows them.
  if (builtin_code == tflite::BuiltinOperator_SELECT_V2) {
    op.expect_counts(3, 3, 1);
    op.define(op.output(),
              op.emit("where", {op.value(op.input(0)), op.value(op.input(1)), op.value(op.input(2))}, {}));
    return true;
  }
  return false;
}

}  // namespace qplan::tfl
