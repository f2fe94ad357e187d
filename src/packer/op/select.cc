// Parts of a tensor by position, and the opposite: strided_slice, take, nn.pad with a constant value.
#include <cmath>

#include "src/base/checked.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_strided_slice(const InferInput& input) {
  ir::TensorType out = input.type(0);
  const std::vector<SliceRange> ranges = slice_ranges(input.node, out.shape);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].count == 0) {
      invalid(cat("nothing is left of axis ", i, " of ", input.type(0), ": 'begin' ",
                  to_text(attr_ints(input.node, "begin")), ", 'end' ",
                  to_text(attr_ints(input.node, "end"))));
    }
    out.shape[i] = ranges[i].count;
  }
  return {std::move(out)};
}

// The indices' shape takes the place of the axis.
std::vector<ir::TensorType> infer_take(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  check_dtype(input, 1, {ir::kInt32, ir::kInt64});
  const auto axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  ir::TensorType out{data.dtype, {data.shape.begin(), data.shape.begin() + axis}};
  const ir::Shape& indices = input.type(1).shape;
  out.shape.insert(out.shape.end(), indices.begin(), indices.end());
  out.shape.insert(out.shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  return {std::move(out)};
}

// The last axis of the indices counts the first axes of the data that they are of.
std::vector<ir::TensorType> infer_gather_nd(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  check_dtype(input, 1, {ir::kInt32});
  const ir::Shape& indices = input.type(1).shape;
  if (indices.empty() || indices.back() > std::ssize(data.shape))
    invalid(cat("'indices' is ", input.type(1), ", expected as its last extent at most ", data.shape.size()));
  ir::TensorType out{data.dtype, {indices.begin(), indices.end() - 1}};
  out.shape.insert(out.shape.end(), data.shape.begin() + indices.back(), data.shape.end());
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_cumsum(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kFloat32});
  (void)normalized_axis(attr_int(input.node, "axis"), input.type(0).shape.size());
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_topk(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kFloat32});
  ir::TensorType values = input.type(0);
  const int64_t k = attr_int(input.node, "k");
  if (values.shape.empty() || k < 1 || k > values.shape.back())
    invalid(cat("attribute 'k' is ", k, " for rows of ", values));
  values.shape.back() = k;
  return {values, {ir::kInt32, values.shape}};
}

// Relay writes the pad value of integer data as a float literal too: 114f.
void check_pad_value(const InferInput& input) {
  const ir::DType dtype = input.type(0).dtype;
  const ir::TensorType& type = input.type(1);
  const bool integer_as_float = !dtype.is_float() && type.dtype == ir::kFloat32;
  if (!type.shape.empty() || (type.dtype != dtype && type.dtype != ir::kInt32 && !integer_as_float)) {
    invalid(cat("'pad_value' is ", type, ", expected a scalar of dtype ", dtype, " or int32",
                dtype.is_float() ? "" : " or float32"));
  }
  const ir::Constant& constant = constant_operand(input, 1);
  if (dtype.is_float()) return;
  double value = 0;
  if (integer_as_float) {
    value = constant.as<float>()[0];
  } else if (type.dtype == ir::kInt32) {
    value = constant.as<int32_t>()[0];
  } else {
    return;  // of the data's dtype
  }
  if (value != std::nearbyint(value) || value < static_cast<double>(dtype.min()) ||
      value > static_cast<double>(dtype.max())) {
    invalid(cat("'pad_value' is not a value of ", dtype));
  }
}

std::vector<ir::TensorType> infer_pad(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kFloat32});
  check_pad_value(input);
  choice_attr(input.node, "pad_mode", {"constant"});
  const std::vector<ir::Ints>& pad_width = attr_int_lists(input.node, "pad_width");
  ir::TensorType out = input.type(0);
  if (pad_width.size() != out.shape.size()) {
    invalid(cat("attribute 'pad_width' has ", pad_width.size(), " pairs, but 'data' is ", out));
  }
  for (size_t i = 0; i < pad_width.size(); ++i) {
    const ir::Ints& pad = pad_width[i];
    if (pad.size() != 2 || pad[0] < 0 || pad[1] < 0) {
      invalid(cat("attribute 'pad_width' has ", to_text(pad), " for axis ", i,
                  ", expected two values of at least 0"));
    }
    if (!checked_add(out.shape[i], pad[0], &out.shape[i]) ||
        !checked_add(out.shape[i], pad[1], &out.shape[i])) {
      invalid(cat("attribute 'pad_width' ", to_text(pad), " is too large for axis ", i));
    }
  }
  return {std::move(out)};
}

}  // namespace

OpDef list::strided_slice() {
  OpDef op = moving("strided_slice", Movement::kSelect,
                    {{"begin", AttrKind::kInts},
                     {"end", AttrKind::kInts},
                     {"strides", AttrKind::kInts, ir::Ints{}},
                     {"axes", AttrKind::kInts, ir::Ints{}}});
  op.relay_attrs = {{"slice_mode", {"end"}}};
  op.infer = infer_strided_slice;
  op.evaluate = evaluate_strided_slice;
  return op;
}

OpDef list::take() {
  OpDef op = moving("take", Movement::kSelect, {axis_attr(0)});
  op.operands.push_back({"indices", OperandRole::kIndices});
  op.relay_attrs = {{"batch_dims", {"0"}}, {"mode", {"clip", "fast"}}};
  op.follows_layout = true;  // where the indices are a list
  op.infer = infer_take;
  op.evaluate = evaluate_take;
  return op;
}

OpDef list::gather_nd() {
  return {.name = "gather_nd",
          .operands = {{"data"}, {.name = "indices", .role = OperandRole::kIndices, .dtype = ir::kInt32}},
          .quantization = Quantization::kShared,
          .keeps_dtype = true,
          .work = Work::kMove,
          .infer = infer_gather_nd};
}

// Running sums along an axis.
OpDef list::cumsum() {
  return {.name = "cumsum",
          .operands = {{"data"}},
          .attrs = {axis_attr(0), {"exclusive", AttrKind::kBool, false}, {"reverse", AttrKind::kBool, false}},
          .keeps_shape = true,
          .keeps_dtype = true,
          .relay_attrs = {{"dtype", {""}}},
          .infer = infer_cumsum};
}

// The k largest elements along the last axis, in descending order, and their positions; equal ones in theirs.
OpDef list::topk() {
  return {.name = "topk",
          .operands = {{"data"}},
          .attrs = {{"k", AttrKind::kInt}},
          .keeps_dtype = true,
          .relay_attrs = {{"axis", {"-1"}},
                          {"ret_type", {"both"}},
                          {"is_ascend", {"False", "0"}},
                          {"dtype", {"int32"}}},
          .infer = infer_topk,
          .num_results = [](const ir::Node&) -> size_t { return 2; }};
}

OpDef list::nn_pad() {
  OpDef op = moving("nn.pad", Movement::kPad,
                    {with_role(AttrRole::kPerAxis, {"pad_width", AttrKind::kIntLists}),
                     {"pad_mode", AttrKind::kString, "constant"}});
  op.operands.push_back({.name = "pad_value", .role = OperandRole::kDataValue, .may_be_attr = true});
  op.follows_layout = true;
  op.infer = infer_pad;
  return op;
}

}  // namespace qplan::op
