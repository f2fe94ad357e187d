// com.microsoft: attention and the embeddings before it, as ONNX Runtime's optimiser fuses them in
// transformers, by the arithmetic that its documentation defines them with.
#include <cmath>
#include <limits>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// Data of [batch, length, features], features being those of all heads.
const ir::Shape& sequence_shape(const OpContext& op, const Value& value, const char* what) {
  const ir::Shape& shape = op.shape(value);
  if (shape.size() != 3) throw Unsupported{cat(what, " of rank ", shape.size(), ", expected 3")};
  return shape;
}

// What all heads of an attention have in common.
struct Heads {
  int64_t count;
  bool is_unidirectional;
  float scale;   // of products of queries and keys; 0: 1 / sqrt(features of a head)
  float masked;  // what is added where a mask is 0
};
Heads heads_of(const OpContext& op) {
  const Heads heads = {.count = op.attr_int("num_heads", 0),
                       .is_unidirectional = op.attr_int("unidirectional", 0) != 0,
                       .scale = op.attr_float("scale", 0),
                       .masked = op.attr_float("mask_filter_value", -10000)};
  if (heads.count < 1) invalid(cat("attribute 'num_heads' is ", heads.count));
  return heads;
}

// [batch, length, heads * features] as [batch, heads, length, features].
Value split_heads(const OpContext& op, const Value& value, int64_t heads, const char* what) {
  const ir::Shape shape = sequence_shape(op, value, what);
  if (shape[2] % heads != 0)
    invalid(cat("attribute 'num_heads' is ", heads, ", but ", what, " are ", op.type(value)));
  const Value split = op.reshape(value, {shape[0], shape[1], heads, shape[2] / heads});
  return op.emit("transpose", {split}, {{"axes", ir::Ints{0, 2, 1, 3}}});
}

Value number(float value) { return ir::make_scalar(value); }

// 0 where the condition holds, `masked` elsewhere.
Value addend_where(const OpContext& op, const Value& condition, float masked) {
  return op.emit("where", {condition, number(0), number(masked)});
}

// The positions 0 to before `count` in this shape, as float32.
Value positions_in(const OpContext& op, int64_t count, const ir::Shape& shape) {
  const ir::Ints list = list_of(op, count);
  std::vector<float> positions;
  for (size_t i = 0; i < list.size(); ++i) positions.push_back(static_cast<float>(i));
  return ir::make_constant(ir::kFloat32, shape, positions);
}

Value as_real(const OpContext& op, const Value& value) {
  return op.emit("cast", {value}, {{"dtype", std::string("float32")}});
}

// The addend of [batch, 1, queries or 1, keys] that the mask at input i stands for: of 0 and 1 for each key,
// for each pair, or the length of each sequence.
Value mask_addend(const OpContext& op, size_t i, const ir::Shape& products, float masked) {
  const ir::Shape shape = op.shape(op.input(i));
  const int64_t batch = products[0], queries = products[2], keys = products[3];
  const Value mask = as_real(op, op.input(i));
  if (shape == ir::Shape{batch, keys} || shape == ir::Shape{batch, queries, keys}) {
    const Value all = op.reshape(mask, {batch, 1, shape.size() == 2 ? 1 : queries, keys});
    return addend_where(op, op.emit("less", {number(0), all}), masked);
  }
  if (shape == ir::Shape{batch}) {
    const Value positions = positions_in(op, keys, {1, 1, 1, keys});
    return addend_where(op, op.emit("less", {positions, op.reshape(mask, {batch, 1, 1, 1})}), masked);
  }
  throw Unsupported{cat("a mask that is ", op.type(op.input(i)))};
}

// What keeps queries from later keys.
Value causal_addend(const OpContext& op, int64_t queries, int64_t keys) {
  op.graph().charge(static_cast<uint64_t>(queries) * static_cast<uint64_t>(keys) * sizeof(float));
  std::vector<float> addend;
  for (int64_t q = 0; q < queries; ++q) {
    for (int64_t k = 0; k < keys; ++k) addend.push_back(k <= q ? 0 : std::numeric_limits<float>::lowest());
  }
  return ir::make_constant(ir::kFloat32, {1, 1, queries, keys}, addend);
}

// softmax(scale * Q K^T + mask + bias) V. mask, bias: the inputs that have them.
Value attention(const OpContext& op, const Heads& heads, const Value& query, const Value& key,
                const Value& value, size_t mask, size_t bias) {
  const Value q = split_heads(op, query, heads.count, "queries"),
              k = split_heads(op, key, heads.count, "keys"),
              v = split_heads(op, value, heads.count, "values");
  const auto features = static_cast<float>(op.shape(q)[3]);
  const float scale = heads.scale != 0 ? heads.scale : 1 / std::sqrt(features);
  Value products = op.emit("nn.batch_matmul", {q, k}, {{"transpose_b", true}});
  products = op.emit("multiply", {products, number(scale)});
  const ir::Shape shape = op.shape(products);
  if (heads.is_unidirectional) products = op.emit("add", {products, causal_addend(op, shape[2], shape[3])});
  if (op.has_input(mask)) products = op.emit("add", {products, mask_addend(op, mask, shape, heads.masked)});
  if (op.has_input(bias)) products = op.emit("add", {products, op.input(bias)});
  if (op.shape(products) != shape)
    invalid(cat("the bias of the attention is ", op.type(op.input(bias)), " for ", to_text(shape)));
  const Value weights = op.emit("nn.softmax", {products}, {{"axis", int64_t{3}}});
  const Value all =
      op.emit("transpose", {op.emit("nn.batch_matmul", {weights, v})}, {{"axes", ir::Ints{0, 2, 1, 3}}});
  const ir::Shape& out = op.shape(all);
  return op.reshape(all, {out[0], out[1], out[2] * out[3]});
}

// The attention of data with queries, keys and values side by side.
void attention_of_packed(const OpContext& op, const Value& packed, size_t mask, size_t bias) {
  const Heads heads = heads_of(op);
  const int64_t features = sequence_shape(op, packed, "data")[2];
  ir::Ints sizes = op.attr_ints("qkv_hidden_sizes").value_or(ir::Ints{});
  if (sizes.empty()) sizes = {features / 3, features / 3, features / 3};
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] != sizes[0] || sizes[2] < 1 || sizes[0] > features ||
      sizes[2] > features || sizes[0] + sizes[1] + sizes[2] != features)
    invalid(cat("queries, keys and values of ", to_text(sizes), " features of ", features));
  const std::vector<Value> parts =
      op.emit_many("split", {packed},
                   {{"indices_or_sections", ir::Ints{sizes[0], sizes[0] + sizes[1]}}, {"axis", int64_t{2}}});
  op.define(0, attention(op, heads, parts[0], parts[1], parts[2], mask, bias));
}

void refuse_input(const OpContext& op, size_t i, const char* what) {
  if (op.has_input(i)) throw Unsupported{cat("input '", what, "'")};
}

}  // namespace

// Data, weights, bias, mask, past, bias of the attention, length of the past.
void import_attention(const OpContext& op) {
  op.expect_counts(2, 7);
  refuse_input(op, 4, "past");
  refuse_input(op, 6, "past_sequence_length");
  const Value product = matrix_product(op, op.input(0), op.input(1));
  attention_of_packed(op, with_addend(op, product, 2), 3, 5);
}

// Data, weights, bias, their scales, mask, their zero points, past.
void import_qattention(const OpContext& op) {
  op.expect_counts(5, 9);
  refuse_input(op, 8, "past");
  const Value product = integer_product_to_float(
      op, {.scale = 3, .weights_scale = 4, .zero_point = 6, .weights_zero_point = 7, .bias = 2});
  attention_of_packed(op, product, 5, kNoInput);
}

// Query, key, value, bias of all three, mask of keys, bias of the attention, past.
void import_multi_head_attention(const OpContext& op) {
  op.expect_counts(1, 10);
  for (size_t i = 1; i < 3; ++i) {
    if (!op.has_input(i)) throw Unsupported{"queries, keys and values in one tensor"};
  }
  for (size_t i = 6; i < 10; ++i) refuse_input(op, i, "past");
  Value parts[3];
  ir::Ints ends;
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = op.input(i);
    ends.push_back((i == 0 ? 0 : ends[i - 1]) + sequence_shape(op, parts[i], "data")[2]);
  }
  if (op.has_input(3)) {
    if (op.shape(op.input(3)) != ir::Shape{ends[2]})
      invalid(cat("the bias is ", op.type(op.input(3)), ", expected ", ends[2], " values"));
    const std::vector<Value> biases = op.emit_many(
        "split", {op.input(3)}, {{"indices_or_sections", ir::Ints{ends[0], ends[1]}}, {"axis", int64_t{0}}});
    for (size_t i = 0; i < 3; ++i) parts[i] = op.emit("add", {parts[i], biases[i]});
  }
  op.define(0, attention(op, heads_of(op), parts[0], parts[1], parts[2], 4, 5));
}

// Ids of words and segments, tables of words, positions and segments, scale and bias of the normalisation,
// mask, ids of positions.
void import_embed_layer_normalization(const OpContext& op) {
  op.expect_counts(1, 9, 3);
  const ir::Shape ids = op.shape(op.input(0));
  if (ids.size() != 2) invalid(cat("the ids are ", op.type(op.input(0)), ", expected rank 2"));
  const auto rows = [&](size_t table, size_t i) {
    return op.emit("take", {op.input(table), op.input(i)}, {{"axis", int64_t{0}}});
  };
  Value sum = rows(2, 0);
  if (op.has_input(8)) {
    sum = op.emit("add", {sum, rows(3, 8)});
  } else {
    ir::Ints positions = list_of(op, ids[1]);
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    if (op.shape(op.input(3)).empty() || op.shape(op.input(3))[0] < ids[1])
      invalid(cat("the table of positions is ", op.type(op.input(3)), " for ", ids[1], " words"));
    sum = op.emit("add", {sum, taken(op, op.input(3), 0, positions)});
  }
  if (op.has_input(1)) {
    if (!op.has_input(4)) invalid("there are ids of segments, but no table of them");
    sum = op.emit("add", {sum, rows(4, 1)});
  }
  const Value normal = normalized_rows(op, sum, op.attr_float("epsilon", 1e-12f));
  op.define(0, op.emit("add", {op.emit("multiply", {normal, op.input(5)}), op.input(6)}));
  if (op.has_output(1)) {
    // How many words of each sequence the mask has.
    if (op.has_input(7)) {
      const Value count = op.emit("sum", {as_real(op, op.input(7))}, {{"axis", ir::Ints{1}}});
      op.define(1, op.emit("cast", {count}, {{"dtype", std::string("int32")}}));
    } else {
      op.define(1,
                ir::make_constant(ir::kInt32, {ids[0]}, std::vector<int32_t>(static_cast<size_t>(ids[0]))));
    }
  }
  op.attr_int("mask_index_type", 0);  // whether there is a second output
  if (op.has_output(2)) op.define(2, sum);
}

}  // namespace qplan::onnx
