#include "src/packer/import/onnx/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

Value real(float value) { return ir::make_scalar(value); }

// Lower than any product, and finite: what is masked for all keys is no NaN.
constexpr float kHidden = std::numeric_limits<float>::lowest();

void check_heads(const OpContext& op, const Value& query, const Value& key, const Value& value) {
  const ir::Shape &q = op.shape(query), &k = op.shape(key), &v = op.shape(value);
  const bool fit = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] && k[0] == v[0] &&
                   k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0 && q[3] == k[3] && k[2] == v[2];
  if (fit) return;
  invalid(cat("queries are ", op.type(query), ", keys ", op.type(key), ", values ", op.type(value),
              "; expected [batch, heads, positions, features] that fit one another"));
}

bool is_true_everywhere(const Value& condition) {
  return condition.is_constant() &&
         std::ranges::all_of(condition.constant->bytes(), [](uint8_t byte) { return byte != 0; });
}

// The weights of the products with the sink's beside them, whose own is dropped.
Value weights_beside(const OpContext& op, const Value& products, const Value& sink) {
  const ir::Shape shape = op.shape(products);
  const Value column =
      op.emit("add", {op.reshape(sink, {1, shape[1], 1, 1}),
                      ir::make_constant(ir::kFloat32, {shape[0], 1, shape[2], 1},
                                        std::vector<float>(static_cast<size_t>(shape[0] * shape[2])))});
  const Value all =
      op.emit("nn.softmax", {op.emit("concatenate", {products, column}, {{"axis", int64_t{3}}})},
              {{"axis", int64_t{3}}});
  return op.emit("strided_slice", {all}, {{"begin", ir::Ints{0, 0, 0, 0}}, {"end", shape}});
}

}  // namespace

Value as_heads(const OpContext& op, const Value& data, int64_t heads, const char* what) {
  const ir::Shape shape = op.shape(data);
  if (shape.size() == 4) return data;
  if (shape.size() != 3) throw Unsupported{cat(what, " of rank ", shape.size(), ", expected 3 or 4")};
  if (heads < 1 || shape[2] % heads != 0)
    invalid(cat(what, " are ", op.type(data), " for ", heads, " heads"));
  const Value split = op.reshape(data, {shape[0], shape[1], heads, shape[2] / heads});
  return op.emit("transpose", {split}, {{"axes", ir::Ints{0, 2, 1, 3}}});
}

Value joined_heads(const OpContext& op, const Value& heads) {
  const Value apart = op.emit("transpose", {heads}, {{"axes", ir::Ints{0, 2, 1, 3}}});
  const ir::Shape shape = op.shape(apart);
  return op.reshape(apart, {shape[0], shape[1], shape[2] * shape[3]});
}

Value after_past(const OpContext& op, size_t past, const Value& now) {
  if (!op.has_input(past) || op.type(op.input(past)).num_elements() == 0) return now;
  const ir::Shape &before = op.shape(op.input(past)), &shape = op.shape(now);
  if (before.size() != 4 || before[0] != shape[0] || before[1] != shape[1] || before[3] != shape[3])
    invalid(cat("the past is ", op.type(op.input(past)), ", but what follows it ", op.type(now)));
  return op.emit("concatenate", {op.input(past), now}, {{"axis", int64_t{2}}});
}

Value addend_where(const OpContext& op, const Value& condition, float masked) {
  return op.emit("where", {condition, real(0), real(masked)});
}

Value as_real(const OpContext& op, const Value& value) {
  return op.emit("cast", {value}, {{"dtype", std::string("float32")}});
}

Value positions_in(const OpContext& op, int64_t count, const ir::Shape& shape) {
  const ir::Ints list = list_of(op, count);
  std::vector<float> positions;
  for (size_t i = 0; i < list.size(); ++i) positions.push_back(static_cast<float>(i));
  return ir::make_constant(ir::kFloat32, shape, positions);
}

Value up_to(const OpContext& op, const Value& last, int64_t keys) {
  return op.emit("less_equal", {positions_in(op, keys, {1, 1, 1, keys}), last});
}

void refuse_unless_zero(const OpContext& op, const char* attribute, const char* what_to_do) {
  if (op.attr_int(attribute, 0) != 0)
    throw Unsupported{cat("attribute ", in_quotes(attribute), "; ", what_to_do)};
}

Attended attended(const OpContext& op, const Scoring& scoring, const Value& query, const Value& key,
                  const Value& value) {
  check_heads(op, query, key, value);
  const ir::Shape q = op.shape(query), k = op.shape(key), v = op.shape(value);
  const ir::Shape shape = {q[0], q[1], q[2], k[2]};
  // Queries of the heads that share one of the keys are rows of one matrix.
  const int64_t rows = q[1] / k[1] * q[2];
  const float scale = scoring.scale != 0 ? scoring.scale : 1 / std::sqrt(static_cast<float>(q[3]));
  Attended a;
  const Value products =
      op.emit("nn.batch_matmul", {op.reshape(query, {q[0], k[1], rows, q[3]}), key}, {{"transpose_b", true}});
  a.products = op.reshape(op.emit("multiply", {products, real(scale)}), shape);
  a.capped = a.products;
  if (scoring.softcap != 0) {
    const Value part = op.emit("multiply", {a.products, real(1 / scoring.softcap)});
    a.capped = op.emit("multiply", {op.emit("tanh", {part}), real(scoring.softcap)});
  }
  a.masked = a.capped;
  std::vector<Value> addends = scoring.addends;
  if (scoring.visible && !is_true_everywhere(*scoring.visible))
    addends.push_back(addend_where(op, *scoring.visible, kHidden));
  for (const Value& addend : addends) {
    a.masked = op.emit("add", {a.masked, addend});
    if (op.shape(a.masked) != shape)
      invalid(cat("the mask or bias of the attention is ", op.type(addend), " for ", to_text(shape)));
  }
  a.weights = scoring.sink ? weights_beside(op, a.masked, *scoring.sink)
                           : op.emit("nn.softmax", {a.masked}, {{"axis", int64_t{3}}});
  if (scoring.nonzero) a.weights = op.emit("where", {*scoring.nonzero, a.weights, real(0)});
  const Value sums = op.emit("nn.batch_matmul", {op.reshape(a.weights, {q[0], k[1], rows, k[2]}), value});
  a.values = op.reshape(sums, {q[0], q[1], q[2], v[3]});
  return a;
}

Rotation rotation_at(const OpContext& op, const Value& cosines, const Value& sines, const Value& positions) {
  const ir::Shape shape = op.shape(cosines);
  if (shape.size() != 2 || op.shape(sines) != shape)
    invalid(cat("the table of cosines is ", op.type(cosines), ", that of sines ", op.type(sines)));
  return {rows_of_table(op, cosines, positions, 0), rows_of_table(op, sines, positions, 0)};
}

namespace {

// Every `step`th of the features from `begin` to before `end`.
Value features_of(const OpContext& op, const Value& data, int64_t begin, int64_t end, int64_t step = 1) {
  return op.emit("strided_slice", {data},
                 {{"begin", ir::Ints{begin}},
                  {"end", ir::Ints{end}},
                  {"strides", ir::Ints{step}},
                  {"axes", ir::Ints{3}}});
}

}  // namespace

Value rotated(const OpContext& op, const Rotation& rotation, const Value& data, size_t axis) {
  const ir::Shape shape = op.shape(data), table = op.shape(rotation.cosine);
  const int64_t pairs = table.size() == 3 ? table[2] : 0;
  if (shape.size() != 4 || pairs < 1 || 2 * pairs > shape[3] || table[1] != shape[axis] ||
      (table[0] != 1 && table[0] != shape[0]) || op.shape(rotation.sine) != table)
    invalid(cat("data ", op.type(data), " with cosines ", op.type(rotation.cosine), " and sines ",
                op.type(rotation.sine)));
  ir::Shape spread = {table[0], 1, 1, pairs};
  spread[axis] = shape[axis];
  const Value cosine = op.reshape(rotation.cosine, spread), sine = op.reshape(rotation.sine, spread);
  const bool inter = rotation.is_interleaved;
  const Value first = inter ? features_of(op, data, 0, 2 * pairs, 2) : features_of(op, data, 0, pairs);
  const Value second =
      inter ? features_of(op, data, 1, 2 * pairs, 2) : features_of(op, data, pairs, 2 * pairs);
  const auto times = [&](const Value& a, const Value& b) { return op.emit("multiply", {a, b}); };
  std::vector<Value> parts = {op.emit("subtract", {times(first, cosine), times(second, sine)}),
                              op.emit("add", {times(second, cosine), times(first, sine)})};
  if (inter) {
    for (Value& part : parts) part = op.reshape(part, {shape[0], shape[1], shape[2], pairs, 1});
    const Value both = op.emit("concatenate", parts, {{"axis", int64_t{4}}});
    parts = {op.reshape(both, {shape[0], shape[1], shape[2], 2 * pairs})};
  }
  if (2 * pairs < shape[3]) parts.push_back(features_of(op, data, 2 * pairs, shape[3]));
  return parts.size() == 1 ? parts[0] : op.emit("concatenate", parts, {{"axis", int64_t{3}}});
}

}  // namespace qplan::onnx
