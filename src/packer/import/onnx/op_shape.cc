// Shapes: operators whose result is known on import, those that leave their operand as it is, those that
// change the shape and not the order of elements, and Transpose.
#include <algorithm>
#include <cstring>

#include "src/base/checked.h"
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
  if (dtype == ir::kFloat16) dtype = ir::kFloat32;  // as whatever computes with it
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
  const std::vector<Value> values = op.graph().import_subgraph(branch);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_known()) op.define(i, values[i]);
  }
}

// Operators that change the shape and not the order of elements, and Transpose.
namespace {

// The extents that Reshape means: 0 keeps the one of the same axis, -1 is what is left.
ir::Shape resolved(const ir::Shape& from, const ir::Ints& wanted, bool allow_zero, int64_t total) {
  ir::Shape shape = wanted;
  const auto refuse = [&](const std::string& why) {
    invalid(cat("shape ", to_text(wanted), " for data of shape ", to_text(from), ": ", why));
  };
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (open) refuse("-1 is given twice");
      open = i;
      continue;
    }
    if (shape[i] == 0 && !allow_zero) {
      if (i >= from.size()) refuse("0 is given for an axis that the data does not have");
      shape[i] = from[i];
    }
    if (shape[i] < 0) refuse("a negative extent");
    if (!checked_mul(known, shape[i], &known)) refuse("too many elements");
  }
  if (open) {
    if (known == 0 || total % known != 0) refuse("-1 would not be a whole number");
    shape[*open] = total / known;
    known = total;
  }
  if (known != total) refuse(cat(total, " elements become ", known));
  return shape;
}

Value reshaped(const OpContext& op, const Value& data, const ir::Shape& shape) {
  if (!data.is_constant() || op.type(data).num_elements() > 0) {
    if (std::ranges::find(shape, 0) != shape.end()) throw Unsupported{"a result without elements"};
    return op.emit("reshape", {data}, {{"newshape", shape}});
  }
  check_extents(shape);
  return ir::make_constant(op.type(data).dtype, shape, std::vector<uint8_t>());
}

// Axes of Squeeze and Unsqueeze: an attribute before opset 13, then an input. nullopt: absent.
std::optional<ir::Ints> axes_of(const OpContext& op) {
  if (op.opset() < 13) return op.attr_ints("axes");
  if (!op.has_input(1)) return std::nullopt;
  return op.ints(1, "axes");
}

std::vector<bool> marked(const ir::Ints& axes, size_t rank) {
  std::vector<bool> marks(rank, false);
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(OpContext::axis_of(axis, rank));
    if (marks[at]) invalid(cat("axis ", axis, " is listed twice in ", to_text(axes)));
    marks[at] = true;
  }
  return marks;
}

}  // namespace

void import_reshape(const OpContext& op) {
  ir::Ints wanted;
  if (op.opset() < 5) {
    op.expect_counts(1, 1);
    wanted = op.attr_ints("shape").value_or(ir::Ints{});
  } else {
    op.expect_counts(2, 2);
    wanted = op.ints(1, "shape values");
  }
  const bool allow_zero = op.attr_int("allowzero", 0) != 0;
  const Value& data = op.input(0);
  const int64_t total = op.type(data).num_elements();
  op.define(0, reshaped(op, data, resolved(op.shape(data), wanted, allow_zero, total)));
}

void import_flatten(const OpContext& op) {
  op.expect_counts(1, 1);
  const ir::Shape& shape = op.shape(op.input(0));
  const int64_t axis = op.attr_int("axis", 1);
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis > rank) invalid(cat("axis ", axis, " is out of range for rank ", rank));
  ir::Shape flat{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    flat[i < (axis < 0 ? axis + rank : axis) ? 0 : 1] *= shape[static_cast<size_t>(i)];
  }
  op.define(0, reshaped(op, op.input(0), flat));
}

void import_squeeze(const OpContext& op) {
  op.expect_counts(1, op.opset() < 13 ? 1 : 2);
  const ir::Shape& shape = op.shape(op.input(0));
  const std::optional<ir::Ints> axes = axes_of(op);
  std::vector<bool> removed(shape.size(), false);
  if (axes) {
    removed = marked(*axes, shape.size());
  } else {
    for (size_t i = 0; i < shape.size(); ++i) removed[i] = shape[i] == 1;
  }
  ir::Shape squeezed;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!removed[i]) squeezed.push_back(shape[i]);
    if (removed[i] && shape[i] != 1) {
      invalid(cat("axis ", i, " of ", op.type(op.input(0)), " is squeezed, but its extent is not 1"));
    }
  }
  op.define(0, reshaped(op, op.input(0), squeezed));
}

void import_unsqueeze(const OpContext& op) {
  op.expect_counts(op.opset() < 13 ? 1 : 2, op.opset() < 13 ? 1 : 2);
  const std::optional<ir::Ints> axes = axes_of(op);
  if (!axes) invalid("the axes are missing");
  const ir::Shape& shape = op.shape(op.input(0));
  const std::vector<bool> added = marked(*axes, shape.size() + axes->size());
  ir::Shape unsqueezed;
  size_t from = 0;
  for (const bool is_new : added) unsqueezed.push_back(is_new ? 1 : shape[from++]);
  op.define(0, reshaped(op, op.input(0), unsqueezed));
}

void import_transpose(const OpContext& op) {
  op.expect_counts(1, 1);
  const size_t rank = op.shape(op.input(0)).size();
  ir::Ints reversed;
  for (size_t i = rank; i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  ir::Ints axes = op.attr_ints("perm").value_or(reversed);
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  op.define(0, op.emit("transpose", {op.input(0)}, {{"axes", axes}}));
}

}  // namespace qplan::onnx
