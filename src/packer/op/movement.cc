// Elements move and none is computed: reshape and its kin, transpose, concatenate, split; parts of a tensor
// by position and the opposite: strided_slice, take, nn.pad with a constant value.
#include <algorithm>
#include <cmath>

#include "src/base/checked.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

// Far beyond what networks do; a hostile model could ask for 2^31 results with one number.
constexpr int64_t kMaxSplitResults = 4096;

std::vector<ir::TensorType> infer_reshape(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  ir::TensorType out{data.dtype, attr_ints(input.node, "newshape")};
  if (out.shape.size() > 64) invalid(cat("attribute 'newshape' has ", out.shape.size(), " extents"));
  const auto describe = [&] {
    return cat(data, " cannot be reshaped to ", to_text(attr_ints(input.node, "newshape")));
  };
  const auto open = std::ranges::find(out.shape, -1);
  int64_t known = 1;
  for (auto it = out.shape.begin(); it != out.shape.end(); ++it) {
    if (it == open) continue;
    if (*it < 1) {
      invalid(cat("attribute 'newshape' is ", to_text(out.shape),
                  ", expected extents of at least 1 and -1 once"));
    }
    if (!checked_mul(known, *it, &known)) invalid(describe());
  }
  const int64_t total = data.num_elements();
  if (open != out.shape.end()) {
    if (total % known != 0) invalid(describe());
    *open = total / known;
  } else if (known != total) {
    invalid(describe());
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_squeeze(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  const ir::Ints& named = attr_ints(input.node, "axis");
  const ir::Ints axes = normalized_axes(named, data.shape.size());
  ir::TensorType out{data.dtype, {}};
  for (size_t i = 0; i < data.shape.size(); ++i) {
    const bool chosen = std::ranges::binary_search(axes, static_cast<int64_t>(i));
    if (chosen && !named.empty() && data.shape[i] != 1) {
      invalid(cat("axis ", i, " of ", data, " cannot be squeezed: its extent is not 1"));
    }
    if (!chosen || data.shape[i] != 1) out.shape.push_back(data.shape[i]);
  }
  return {std::move(out)};
}

// axis is where the first new axis stands in the result.
std::vector<ir::TensorType> infer_expand_dims(const InferInput& input) {
  ir::TensorType out = input.type(0);
  const int64_t count = attr_int(input.node, "num_newaxis");
  if (count < 0 || count > static_cast<int64_t>(ir::kMaxRank)) {
    invalid(cat("attribute 'num_newaxis' is ", count, ", expected 0 to ", ir::kMaxRank));
  }
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), out.shape.size() + 1);
  out.shape.insert(out.shape.begin() + axis, static_cast<size_t>(count), 1);
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_batch_flatten(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  if (data.shape.empty()) invalid(cat("'data' is ", data, ", expected rank 1 or more"));
  return {{data.dtype, {data.shape[0], data.num_elements() / data.shape[0]}}};
}

std::vector<ir::TensorType> infer_transpose(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  const ir::Ints& axes = attr_ints(input.node, "axes");
  const auto rank = static_cast<int64_t>(data.shape.size());
  ir::TensorType out{data.dtype, {}};
  std::vector<bool> seen(data.shape.size());
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)]) break;
    seen[static_cast<size_t>(axis)] = true;
    out.shape.push_back(data.shape[static_cast<size_t>(axis)]);
  }
  if (out.shape.size() != data.shape.size() || axes.size() != data.shape.size()) {
    invalid(cat("attribute 'axes' is ", to_text(axes), ", expected a permutation of 0 to ", rank - 1));
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_concatenate(const InferInput& input) {
  ir::TensorType out = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), out.shape.size()));
  for (size_t i = 1; i < input.node.operands.size(); ++i) {
    const ir::TensorType& part = input.type(i);
    ir::TensorType expected = input.type(0);
    if (part.shape.size() == expected.shape.size()) expected.shape[axis] = part.shape[axis];
    if (part != expected) {
      invalid(cat("operand ", i, " is ", part, ", but operand 0 is ", input.type(0),
                  ": they may differ along axis ", axis, " only"));
    }
    if (!checked_add(out.shape[axis], part.shape[axis], &out.shape[axis])) {
      invalid(cat("the extents along axis ", axis, " are too large"));
    }
  }
  return {std::move(out)};
}

std::vector<ir::TensorType> infer_split(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), data.shape.size()));
  const int64_t extent = data.shape[axis];
  std::vector<ir::TensorType> results;
  const auto add = [&](int64_t part) {
    results.push_back(data);
    results.back().shape[axis] = part;
  };
  const ir::AttrValue& how = attr(input.node, "indices_or_sections");
  if (const auto* sections = std::get_if<int64_t>(&how)) {
    if (*sections < 1 || extent % *sections != 0) {
      invalid(
          cat("extent ", extent, " of axis ", axis, " does not split into ", *sections, " equal sections"));
    }
    if (*sections > kMaxSplitResults) invalid(cat(*sections, " results are more than ", kMaxSplitResults));
    for (int64_t i = 0; i < *sections; ++i) add(extent / *sections);
    return results;
  }
  const ir::Ints& indices = std::get<ir::Ints>(how);
  if (static_cast<int64_t>(indices.size()) >= kMaxSplitResults) {
    invalid(cat(indices.size() + 1, " results are more than ", kMaxSplitResults));
  }
  int64_t begin = 0;
  for (const int64_t index : indices) {
    if (index <= begin || index >= extent) {
      invalid(cat("attribute 'indices_or_sections' is ", to_text(indices),
                  ", expected increasing indices from 1 to ", extent - 1));
    }
    add(index - begin);
    begin = index;
  }
  add(extent - begin);
  return results;
}

// ---- calls as Relay means them ----

// 0 in a new shape: the extent that the operand has there.
void complete_reshape(ir::Function* function, ir::Node* node) {
  const ir::Shape& shape = function->type(node->operands[0]).shape;
  const ir::AttrValue* value = node->attrs.find("newshape");
  const auto* given = value != nullptr ? std::get_if<ir::Ints>(value) : nullptr;
  if (given == nullptr || std::ranges::find(*given, 0) == given->end()) return;
  ir::Ints newshape = *given;
  for (size_t i = 0; i < newshape.size() && i < shape.size(); ++i) {
    if (newshape[i] == 0) newshape[i] = shape[i];
  }
  node->attrs.set("newshape", std::move(newshape));
}

// No axes: all reversed; negative ones count from behind.
void complete_transpose(ir::Function* function, ir::Node* node) {
  const auto rank = std::ssize(function->type(node->operands[0]).shape);
  ir::Ints axes;
  const ir::AttrValue* value = node->attrs.find("axes");
  if (const auto* given = value != nullptr ? std::get_if<ir::Ints>(value) : nullptr) {
    axes = *given;
  } else if (value == nullptr) {
    for (int64_t axis = rank; axis-- > 0;) axes.push_back(axis);
  } else {
    return;
  }
  for (int64_t& axis : axes) axis += axis < 0 && axis >= -rank ? rank : 0;
  node->attrs.set("axes", std::move(axes));
}

// Here it must only not take memory: inference refuses a split into more.
size_t num_split_results(const ir::Node& node) {
  const ir::AttrValue* how = node.attrs.find("indices_or_sections");
  if (how == nullptr) return 1;
  if (const auto* sections = std::get_if<int64_t>(how)) {
    return static_cast<size_t>(std::clamp<int64_t>(*sections, 1, kMaxSplitResults));
  }
  const auto* indices = std::get_if<ir::Ints>(how);
  return indices == nullptr ? 1 : std::min<size_t>(indices->size() + 1, kMaxSplitResults);
}

// Without an axis Relay goes along all the data, in row-major order.
void flatten_without_axis(ir::Function* function, ir::Node* node) {
  if (node->attrs.has("axis")) return;
  ir::ValueId& data = node->operands[0];
  if (function->type(data).shape.size() != 1) {
    data = function->add_node(get_op("reshape"), {data}, {{"newshape", ir::Ints{-1}}}, "").results[0];
  }
  node->attrs.set("axis", int64_t{0});
}

// ---- rows ----

OpDef reshaping(std::string name, std::vector<AttrDef> attrs,
                std::vector<ir::TensorType> (*infer)(const InferInput&)) {
  OpDef op = moving(std::move(name), Movement::kReshape, std::move(attrs));
  op.infer = infer;
  op.evaluate = evaluate_reshape;
  return op;
}

}  // namespace

OpDef list::reshape() {
  OpDef op = reshaping("reshape", {{"newshape", AttrKind::kInts}}, infer_reshape);
  op.relay_attrs = {{"allowzero", {"False", "0"}}, {"reverse", {"False", "0"}}};
  op.complete = complete_reshape;
  return op;
}

// `axis` has no AttrRole::kAxis: an empty list means the axes of extent 1, not all.
OpDef list::squeeze() { return reshaping("squeeze", {{"axis", AttrKind::kInts, ir::Ints{}}}, infer_squeeze); }

// `axis` is an axis of the result.
OpDef list::expand_dims() {
  return reshaping("expand_dims", {{"axis", AttrKind::kInt}, {"num_newaxis", AttrKind::kInt, 1}},
                   infer_expand_dims);
}

OpDef list::nn_batch_flatten() { return reshaping("nn.batch_flatten", {}, infer_batch_flatten); }

OpDef list::transpose() {
  OpDef op = moving("transpose", Movement::kPermute, {{"axes", AttrKind::kInts}});
  op.infer = infer_transpose;
  op.evaluate = evaluate_transpose;
  op.complete = complete_transpose;
  return op;
}

OpDef list::concatenate() {
  OpDef op = moving("concatenate", Movement::kJoin, {axis_attr(0)});
  op.variadic = true;
  op.follows_layout = true;
  op.infer = infer_concatenate;
  op.evaluate = evaluate_concatenate;
  return op;
}

OpDef list::split() {
  OpDef op =
      moving("split", Movement::kSelect, {{"indices_or_sections", AttrKind::kIntOrInts}, axis_attr(0)});
  op.follows_layout = true;
  op.infer = infer_split;
  op.evaluate = evaluate_split;
  op.num_results = num_split_results;
  return op;
}

// Parts of a tensor by position.

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

// How the text says that a take is the IR's: indices in range, negative ones from the axis' end. Relay itself
// does not say what happens to others where its attribute `mode` is "fast".
constexpr char kFast[] = "fast";

RelayAttr read_take_mode(const std::string& value) {
  if (value == "clip") return {.kind = RelayAttr::Kind::kDrop, .name = "", .value = {}, .reason = ""};
  if (value == kFast) return {.kind = RelayAttr::Kind::kKeep, .name = "mode", .value = kFast, .reason = ""};
  return {.kind = RelayAttr::Kind::kRefuse,
          .name = "",
          .value = {},
          .reason = cat("attribute 'mode' is ", value, ", which is not supported, expected clip or ", kFast)};
}

// Where Relay's "clip" and the IR mean the same.
bool are_within(const ir::Constant& indices, int64_t extent) {
  const auto is_within = [&](int64_t index) { return index >= 0 && index < extent; };
  return indices.type().dtype == ir::kInt32 ? std::ranges::all_of(indices.as<int32_t>(), is_within)
                                            : std::ranges::all_of(indices.as<int64_t>(), is_within);
}

template <typename T>
ir::ConstantRef held_indices(const ir::Constant& indices, int64_t extent) {
  std::vector<T> held(indices.as<T>().begin(), indices.as<T>().end());
  for (T& index : held) index = static_cast<T>(std::clamp<int64_t>(index, 0, extent - 1));
  return ir::make_constant(indices.type().dtype, indices.type().shape, held);
}

// Relay's mode "clip", which is its default, holds indices within the axis. The kernel holds those that the
// network computes below the axis' end, so that only negative ones are left to do.
void complete_take(ir::Function* function, ir::Node* node) {
  if (node->operands.size() != 2) return;
  flatten_without_axis(function, node);
  if (node->attrs.has("mode")) {
    node->attrs.erase("mode");
    return;
  }
  const ir::Shape& shape = function->type(node->operands[0]).shape;
  ir::ValueId& indices = node->operands[1];
  const ir::DType dtype = function->type(indices).dtype;
  const auto* axis = std::get_if<int64_t>(node->attrs.find("axis"));
  const bool is_valid = axis != nullptr && *axis >= -std::ssize(shape) && *axis < std::ssize(shape) &&
                        (dtype == ir::kInt32 || dtype == ir::kInt64);
  if (!is_valid) return;  // inference refuses it
  if (function->is_constant(indices)) {
    const ir::Constant& given = *function->value(indices).constant;
    const int64_t extent = shape[static_cast<size_t>(normalized_axis(*axis, shape.size()))];
    if (are_within(given, extent)) return;
    indices = function->add_constant(dtype == ir::kInt32 ? held_indices<int32_t>(given, extent)
                                                         : held_indices<int64_t>(given, extent));
    return;
  }
  const ir::ValueId zero = function->add_constant(
      dtype == ir::kInt32 ? ir::make_scalar(int32_t{0}) : ir::make_constant<int64_t>(dtype, {}, {0}));
  indices = function->add_node(get_op("maximum"), {indices, zero}, {}, "").results[0];
}

ir::Attrs text_attrs_of_take(const ir::Function& function, const ir::Node& node) {
  const ir::ValueId indices = node.operands[1];
  if (function.is_constant(indices)) {
    const ir::Shape& shape = function.type(node.operands[0]).shape;
    const int64_t extent = shape[static_cast<size_t>(normalized_axis(attr_int(node, "axis"), shape.size()))];
    if (are_within(*function.value(indices).constant, extent)) return {};
  }
  return {{"mode", kFast}};
}

// The axis of a gather_nd's indices that counts the data's axes: Relay's is the first one, the IR's the last.
RelayAttr read_index_axis(const std::string& value) {
  if (value == "0") return {.kind = RelayAttr::Kind::kDrop, .name = "", .value = {}, .reason = ""};
  if (value == "-1") return {.kind = RelayAttr::Kind::kKeep, .name = "index_axis", .value = -1, .reason = ""};
  return {.kind = RelayAttr::Kind::kRefuse,
          .name = "",
          .value = {},
          .reason = cat("attribute 'index_axis' is ", value, ", which is not supported, expected 0 or -1")};
}

void complete_gather_nd(ir::Function* function, ir::Node* node) {
  if (node->operands.size() != 2) return;
  if (node->attrs.has("index_axis")) {
    node->attrs.erase("index_axis");
    return;
  }
  ir::ValueId& indices = node->operands[1];
  const ir::TensorType& type = function->type(indices);
  const size_t rank = function->type(node->operands[0]).shape.size();
  if (type.shape.empty() || type.shape[0] > static_cast<int64_t>(rank)) {
    invalid(cat("gather_nd: 'indices' is ", type, ", expected as its first extent at most ", rank));
  }
  if (type.shape.size() == 1) return;
  ir::Ints axes;
  for (size_t i = 1; i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  axes.push_back(0);
  indices = function->add_node(get_op("transpose"), {indices}, {{"axes", axes}}, "").results[0];
}

ir::Attrs text_attrs_of_gather_nd(const ir::Function&, const ir::Node&) { return {{"index_axis", -1}}; }

std::vector<ir::TensorType> infer_cumsum(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt64, ir::kFloat32});
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
  OpDef op = moving("take", Movement::kSelect, {with_role(AttrRole::kAxis, {"axis", AttrKind::kInt})});
  op.operands.push_back({"indices", OperandRole::kIndices});
  op.relay_attrs = {{"batch_dims", {"0"}}, {.name = "mode", .read = read_take_mode}};
  op.follows_layout = true;  // where the indices are a list
  op.infer = infer_take;
  op.evaluate = evaluate_take;
  op.complete = complete_take;
  op.text_attrs = text_attrs_of_take;
  return op;
}

OpDef list::gather_nd() {
  return {.name = "gather_nd",
          .operands = {{"data"}, {.name = "indices", .role = OperandRole::kIndices, .dtype = ir::kInt32}},
          .quantization = Quantization::kShared,
          .keeps_dtype = true,
          .work = Work::kMove,
          .relay_attrs = {{"batch_dims", {"0"}},
                          {"index_rank", {"*"}},  // an extent of the indices
                          {.name = "index_axis", .read = read_index_axis}},
          .infer = infer_gather_nd,
          .complete = complete_gather_nd,
          .text_attrs = text_attrs_of_gather_nd};
}

// Running sums along an axis.
OpDef list::cumsum() {
  return {.name = "cumsum",
          .operands = {{"data"}},
          .attrs = {with_role(AttrRole::kAxis, {"axis", AttrKind::kInt}),
                    {"exclusive", AttrKind::kBool, false},
                    {"reverse", AttrKind::kBool, false}},
          .keeps_shape = true,
          .keeps_dtype = true,
          .relay_attrs = {{"dtype", {""}}},
          .infer = infer_cumsum,
          .complete = flatten_without_axis};
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
