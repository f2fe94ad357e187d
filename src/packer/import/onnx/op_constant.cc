// Operators whose result is known on import, and those that leave their operand as it is.
#include <algorithm>
#include <cstring>

#include "src/base/checked.h"
#include "src/packer/import/halves.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::onnx {
namespace {

Value cast(const OpContext& op, const Value& data, ir::DType dtype) {
  if (op.type(data).dtype == dtype) return data;
  if (data.is_constant() && op.type(data).num_elements() == 0) {
    return ir::make_constant(dtype, op.shape(data), std::vector<uint8_t>());
  }
  return op.emit("cast", {data}, {{"dtype", ir::to_string(dtype)}});
}

// The element, repeated.
ir::ConstantRef filled(const OpContext& op, const ir::Constant& element, const ir::Shape& shape) {
  const ir::DType dtype = element.type().dtype;
  if (dtype.bits < 8 && dtype != ir::kBool) throw Unsupported{ir::to_string(dtype) + " output"};
  const ir::TensorType type{dtype, shape};
  if (type.num_elements() > 0) {
    const std::string error = ir::type_error(type);
    if (!error.empty()) invalid("result: " + error);
  } else if (shape.size() > ir::kMaxRank) {
    invalid(cat("result: rank ", shape.size(), " is larger than ", ir::kMaxRank));
  }
  const auto size = static_cast<uint64_t>(type.size_bytes());
  op.graph().charge(size);
  std::vector<uint8_t> bytes(size);
  const auto one = element.bytes();
  for (size_t at = 0; at < bytes.size(); at += one.size()) std::memcpy(&bytes[at], one.data(), one.size());
  return std::make_shared<const ir::Constant>(type, std::move(bytes));
}

}  // namespace

void import_constant(const OpContext& op) {
  op.expect_counts(0, 0);
  if (const Attribute* value = op.find_attr("value", AttributeKind::kTensor)) {
    const ir::ConstantRef constant = op.graph().in_float32(read_constant(value->tensor));
    op.graph().charge(constant->bytes().size());
    op.define(0, constant);
  } else if (const Attribute* f = op.find_attr("value_float", AttributeKind::kFloat)) {
    op.define(0, ir::make_scalar(f->f));
  } else if (const Attribute* floats = op.find_attr("value_floats", AttributeKind::kFloats)) {
    op.define(0, make_vector(ir::kFloat32, floats->floats));
  } else if (const Attribute* i = op.find_attr("value_int", AttributeKind::kInt)) {
    op.define(0, ir::make_constant<int64_t>(ir::kInt64, {}, {i->i}));
  } else if (const Attribute* ints = op.find_attr("value_ints", AttributeKind::kInts)) {
    op.define(0, make_vector(ir::kInt64, ints->ints));
  } else {
    throw Unsupported{"a value that is neither a tensor nor numbers"};
  }
}

void import_constant_of_shape(const OpContext& op) {
  op.expect_counts(1, 1);
  ir::ConstantRef element = ir::make_scalar(0.0f);
  if (const Attribute* value = op.find_attr("value", AttributeKind::kTensor)) {
    element = op.graph().in_float32(read_constant(value->tensor));
    if (element->type().num_elements() != 1) {
      invalid(cat("attribute 'value' is ", element->type(), ", expected one element"));
    }
  }
  const ir::Shape shape = op.ints(0, "extents");
  check_extents(shape);
  op.define(0, filled(op, *element, shape));
}

void import_shape(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::Shape& shape = op.shape(op.input(0));
  const auto rank = static_cast<int64_t>(shape.size());
  const auto position = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const int64_t start = position(op.attr_int("start", 0)), end = position(op.attr_int("end", rank));
  std::vector<int64_t> part;
  if (start < end) part.assign(shape.begin() + start, shape.begin() + end);
  op.define(0, make_vector(ir::kInt64, part));
}

void import_identity(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.input(0));
}

// Inference leaves the data as it is.
void import_dropout(const OpContext& op) {
  op.expect_counts(1, op.opset() < 12 ? 1 : 3, 1);
  op.attr_float("ratio", 0.5f);
  op.attr_int("seed", 0);
  if (op.has_input(2)) {
    const ir::ConstantRef mode = op.constant(2, "training modes");
    if (mode->type().num_elements() != 1)
      invalid(cat("the training mode is ", mode->type(), ", expected a scalar"));
    if (numbers_of(*mode)[0] != 0) throw Unsupported{"training_mode"};
  }
  op.define(0, op.input(0));
}

void import_cast(const OpContext& op) {
  op.expect_counts(1, 1);
  const Attribute* to = op.find_attr("to", AttributeKind::kInt);
  if (to == nullptr) invalid("attribute 'to' is missing");
  op.attr_int("saturate", 1);          // means something for float8 only
  op.attr_string("round_mode", "up");  // likewise
  if (to->i < 0 || to->i > INT32_MAX) invalid(cat("attribute 'to' is ", to->i));
  const auto data_type = static_cast<int32_t>(to->i);
  std::optional<ir::DType> dtype = ir_dtype(data_type);
  if (!dtype) throw Unsupported{type_name(data_type) + " output"};
  if (dtype == importer::kFloat16) dtype = ir::kFloat32;  // as whatever computes with it
  const Value& data = op.input(0);
  op.define(0, cast(op, data.is_constant() ? Value(op.widened(data.constant)) : data, *dtype));
}

void import_cast_like(const OpContext& op) {
  op.expect_counts(2, 2);
  op.attr_int("saturate", 1);
  op.attr_string("round_mode", "up");
  op.define(0, cast(op, op.input(0), op.type(op.input(1)).dtype));
}

// If with a known condition: the branch that it chooses replaces it.
void import_if(const OpContext& op) {
  constexpr size_t kMaxOutputs = 4096;
  op.expect_counts(1, 1, kMaxOutputs);
  const Attribute* then_branch = op.find_attr("then_branch", AttributeKind::kGraph);
  const Attribute* else_branch = op.find_attr("else_branch", AttributeKind::kGraph);
  if (then_branch == nullptr || else_branch == nullptr) invalid("a branch is missing");
  const ir::ConstantRef condition = op.constant(0, "conditions");
  if (condition->type().dtype != ir::kBool || condition->type().num_elements() != 1) {
    invalid(cat("the condition is ", condition->type(), ", expected one bool"));
  }
  const Subgraph& branch = *(condition->bytes()[0] != 0 ? then_branch : else_branch)->graph;
  if (branch.outputs.size() != op.num_outputs()) {
    invalid(cat("the number of outputs of the branch is ", branch.outputs.size(), ", expected ",
                op.num_outputs()));
  }
  op.graph().import_subgraph(branch);
  for (size_t i = 0; i < branch.outputs.size(); ++i) {
    const Value& value = op.graph().value(branch.outputs[i]);
    if (value.is_known()) op.define(i, value);
  }
}

}  // namespace qplan::onnx
