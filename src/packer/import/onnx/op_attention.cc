// com.microsoft: attention and the embeddings before it, as ONNX Runtime's optimiser fuses them in
// transformers, by the arithmetic that its documentation defines them with.
#include <limits>

#include "src/packer/import/onnx/attention.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// What the attributes of com.microsoft's attention say of all heads.
struct HeadAttributes {
  int64_t count;
  bool is_causal;
  float scale;
  float masked;  // what is added where a mask is 0
};
HeadAttributes head_attributes(const OpContext& op) {
  const HeadAttributes heads = {.count = op.attr_int("num_heads", 0),
                                .is_causal = op.attr_int("unidirectional", 0) != 0,
                                .scale = op.attr_float("scale", 0),
                                .masked = op.attr_float("mask_filter_value", -10000)};
  if (heads.count < 1 || heads.count > kMaxPositions) invalid(cat("attribute 'num_heads' is ", heads.count));
  refuse_unless_zero(op, "past_present_share_buffer",
                     "export without it: the present is the past and what follows");
  refuse_unless_zero(op, "do_rotary", "export with RotaryEmbedding nodes before the attention");
  return heads;
}

// The addend of [batch, 1, queries or 1, keys] that the mask at input i stands for: of 0 and 1 for each key,
// for each pair; or the length of each sequence, and then perhaps how many words it begins without.
Value mask_addend(const OpContext& op, size_t i, const ir::Shape& products, float masked) {
  const ir::Shape shape = op.shape(op.input(i));
  const int64_t batch = products[0], queries = products[2], keys = products[3];
  const Value mask = as_real(op, op.input(i));
  if (shape == ir::Shape{batch, keys} || shape == ir::Shape{batch, queries, keys}) {
    const Value all = op.reshape(mask, {batch, 1, shape.size() == 2 ? 1 : queries, keys});
    return addend_where(op, op.emit("less", {ir::make_scalar(0.0f), all}), masked);
  }
  if (shape != ir::Shape{batch} && shape != ir::Shape{2 * batch})
    throw Unsupported{cat("a mask that is ", op.type(op.input(i)), "; expected one value for each of ", keys,
                          " keys, for each pair of a query and a key, or the end of each sequence")};
  const Value positions = positions_in(op, keys, {1, 1, 1, keys});
  const auto of_sequences = [&](int64_t first) {
    const Value part = shape[0] == batch
                           ? mask
                           : op.emit("strided_slice", {mask},
                                     {{"begin", ir::Ints{first}}, {"end", ir::Ints{first + batch}}});
    return op.reshape(part, {batch, 1, 1, 1});
  };
  const Value before_end = op.emit("less", {positions, of_sequences(0)});
  const Value addend = addend_where(op, before_end, masked);
  if (shape[0] == batch) return addend;
  const Value after_start = op.emit("less_equal", {of_sequences(batch), positions});
  return op.emit("where", {after_start, addend, ir::make_scalar(masked)});
}

// What keeps queries from later keys, [1, 1, queries, keys]. The last query sees all of them.
Value earlier_keys(const OpContext& op, int64_t past, int64_t queries, int64_t keys) {
  const ir::Ints list = list_of(op, queries);
  std::vector<float> last;
  for (int64_t i = 0; i < std::ssize(list); ++i) last.push_back(static_cast<float>(past + i));
  last.back() = static_cast<float>(keys - 1);
  return up_to(op, ir::make_constant(ir::kFloat32, {1, 1, queries, 1}, last), keys);
}

// Which inputs these are; kNoInput where the operator has none.
struct AttentionInputs {
  size_t mask, bias;
};

// The attention of heads; `past` positions of the keys and values are older than the queries.
void define_attention(const OpContext& op, const HeadAttributes& heads, const AttentionInputs& at,
                      int64_t past, const Value& q, const Value& k, const Value& v) {
  const ir::Shape &queries = op.shape(q), &keys = op.shape(k);
  if (queries.size() != 4 || keys.size() != 4)
    invalid(cat("queries are ", op.type(q), ", keys ", op.type(k)));
  const ir::Shape shape = {queries[0], queries[1], queries[2], keys[2]};
  Scoring scoring = {.scale = heads.scale};
  std::optional<Value> mask;
  if (op.has_input(at.mask)) mask = mask_addend(op, at.mask, shape, heads.masked);
  if (heads.is_causal && shape[2] > 1) {
    // In the place of the mask's number, and not beside it: a query that sees no key weighs earlier keys
    // alone.
    mask = op.emit("where", {earlier_keys(op, past, shape[2], shape[3]), mask.value_or(ir::make_scalar(0.0f)),
                             ir::make_scalar(std::numeric_limits<float>::lowest())});
  }
  if (mask) scoring.addends.push_back(*mask);
  if (op.has_input(at.bias)) scoring.addends.push_back(op.input(at.bias));
  op.define(0, joined_heads(op, attended(op, scoring, q, k, v).values));
}

// Element i of the first axis, without it.
Value element(const OpContext& op, const Value& data, int64_t i) {
  const ir::Shape shape = op.shape(data);
  const Value row = op.emit("strided_slice", {data}, {{"begin", ir::Ints{i}}, {"end", ir::Ints{i + 1}}});
  return op.reshape(row, {shape.begin() + 1, shape.end()});
}

// Keys or values with those of the past before them, which is the half of one tensor.
Value after_half(const OpContext& op, size_t past, int64_t half, const Value& now) {
  const ir::Shape of_past = op.shape(op.input(past)), shape = op.shape(now);
  if (of_past.size() != 5 || of_past[0] != 2 || of_past[1] != shape[0] || of_past[2] != shape[1] ||
      of_past[4] != shape[3])
    invalid(
        cat("the past is ", op.type(op.input(past)), ", but the keys or values after it are ", op.type(now)));
  return op.emit("concatenate", {element(op, op.input(past), half), now}, {{"axis", int64_t{2}}});
}

// The attention of data with queries, keys and values side by side. The past and the present have keys and
// values in one tensor: [2, batch, heads, positions, features].
void attention_of_packed(const OpContext& op, const Value& packed, const AttentionInputs& at, size_t past) {
  const HeadAttributes heads = head_attributes(op);
  const ir::Shape shape = op.shape(packed);
  if (shape.size() != 3) throw Unsupported{cat("data of rank ", shape.size(), ", expected 3")};
  const int64_t features = shape[2];
  ir::Ints sizes = op.attr_ints("qkv_hidden_sizes").value_or(ir::Ints{});
  if (sizes.empty()) sizes = {features / 3, features / 3, features / 3};
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] != sizes[0] || sizes[2] < 1 || sizes[0] > features ||
      sizes[2] > features || sizes[0] + sizes[1] + sizes[2] != features)
    invalid(cat("queries, keys and values of ", to_text(sizes), " features of ", features));
  const std::vector<Value> parts =
      op.emit_many("split", {packed},
                   {{"indices_or_sections", ir::Ints{sizes[0], sizes[0] + sizes[1]}}, {"axis", int64_t{2}}});
  const Value q = as_heads(op, parts[0], heads.count, "queries");
  Value k = as_heads(op, parts[1], heads.count, "keys"), v = as_heads(op, parts[2], heads.count, "values");
  const int64_t now = op.shape(k)[2];
  if (op.has_input(past) && op.type(op.input(past)).num_elements() > 0) {
    k = after_half(op, past, 0, k);
    v = after_half(op, past, 1, v);
  }
  if (op.has_output(1)) {
    ir::Shape one = op.shape(k);
    if (op.shape(v) != one) throw Unsupported{"a present of keys and values of different extents"};
    one.insert(one.begin(), 1);
    op.define(1, op.emit("concatenate", {op.reshape(k, one), op.reshape(v, one)}, {{"axis", int64_t{0}}}));
  }
  define_attention(op, heads, at, op.shape(k)[2] - now, q, k, v);
}

void refuse_input(const OpContext& op, size_t i, const char* what, const char* what_to_do) {
  if (op.has_input(i)) throw Unsupported{cat("input ", in_quotes(what), "; ", what_to_do)};
}
constexpr char kConcatenated[] = "export without a buffer that past and present share";

}  // namespace

// Data, weights, bias, mask, past, bias of the attention, length of the past.
void import_attention(const OpContext& op) {
  op.expect_counts(2, 7, 2);
  refuse_input(op, 6, "past_sequence_length", kConcatenated);
  const Value product = matrix_product(op, op.input(0), op.input(1));
  attention_of_packed(op, with_addend(op, product, 2), {.mask = 3, .bias = 5}, 4);
}

// Data, weights, bias, their scales, mask, their zero points, past.
void import_qattention(const OpContext& op) {
  op.expect_counts(5, 9, 2);
  const Value product = integer_product_to_float(
      op, {.scale = 3, .weights_scale = 4, .zero_point = 6, .weights_zero_point = 7, .bias = 2});
  attention_of_packed(op, product, {.mask = 5, .bias = kNoInput}, 8);
}

// MultiHeadAttention has queries, keys and values in three tensors, in two or in one.
namespace {

// Data [batch, positions, heads, count, features] as `count` times [batch, positions, heads * features].
std::vector<Value> unpacked(const OpContext& op, size_t i, int64_t count) {
  const ir::Shape shape = op.shape(op.input(i));
  if (shape.size() != 5 || shape[3] != count)
    throw Unsupported{cat("input ", i, " that is ", op.type(op.input(i)), " and ",
                          count == 3 ? "no keys" : "no values", "; expected [batch, positions, heads, ",
                          count, ", features]")};
  std::vector<Value> parts =
      op.emit_many("split", {op.input(i)}, {{"indices_or_sections", count}, {"axis", int64_t{3}}});
  for (Value& part : parts) part = op.reshape(part, {shape[0], shape[1], shape[2] * shape[4]});
  return parts;
}

std::vector<Value> three_parts(const OpContext& op) {
  if (op.has_input(2)) return {op.input(0), op.input(1), op.input(2)};
  if (!op.has_input(1)) return unpacked(op, 0, 3);
  std::vector<Value> parts = unpacked(op, 1, 2);
  parts.insert(parts.begin(), op.input(0));
  return parts;
}

// The parts of a bias of all three, added to those that are no heads yet.
void add_biases(const OpContext& op, int64_t heads, std::vector<Value>* parts) {
  if (!op.has_input(3)) return;
  ir::Ints ends;
  for (const Value& part : *parts) {
    const ir::Shape& shape = op.shape(part);
    if (shape.size() != 3 && shape.size() != 4)
      throw Unsupported{cat("data of rank ", shape.size(), ", expected 3 or 4")};
    const int64_t features = shape.size() == 4 ? shape[3] * heads : shape[2];
    ends.push_back((ends.empty() ? 0 : ends.back()) + features);
  }
  if (op.shape(op.input(3)) != ir::Shape{ends[2]})
    invalid(cat("the bias is ", op.type(op.input(3)), ", expected ", ends[2], " values"));
  const std::vector<Value> biases = op.emit_many(
      "split", {op.input(3)}, {{"indices_or_sections", ir::Ints{ends[0], ends[1]}}, {"axis", int64_t{0}}});
  for (size_t i = 0; i < 3; ++i) {
    if (op.shape((*parts)[i]).size() == 3) (*parts)[i] = op.emit("add", {(*parts)[i], biases[i]});
  }
}

}  // namespace

// Query, key, value, bias of all three, mask of keys, bias of the attention, past keys, past values, length
// of the past, how beams follow one another. Keys and values of rank 4 are those of another sequence.
void import_multi_head_attention(const OpContext& op) {
  op.expect_counts(1, 10, 3);
  refuse_input(op, 8, "past_sequence_length", kConcatenated);
  refuse_input(op, 9, "cache_indirection", "choose beams outside of the network");
  const HeadAttributes heads = head_attributes(op);
  std::vector<Value> parts = three_parts(op);
  add_biases(op, heads.count, &parts);
  const Value q = as_heads(op, parts[0], heads.count, "queries");
  Value k = as_heads(op, parts[1], heads.count, "keys"), v = as_heads(op, parts[2], heads.count, "values");
  const int64_t now = op.shape(k)[2];
  k = after_past(op, 6, k);
  v = after_past(op, 7, v);
  op.define(1, k);
  op.define(2, v);
  define_attention(op, heads, {.mask = 4, .bias = 5}, op.shape(k)[2] - now, q, k, v);
}

// Ids of words and segments, tables of words, positions and segments, scale and bias of the normalisation,
// mask, ids of positions.
void import_embed_layer_normalization(const OpContext& op) {
  op.expect_counts(1, 9, 3);
  const ir::Shape ids = op.shape(op.input(0));
  if (ids.size() != 2) invalid(cat("the ids are ", op.type(op.input(0)), ", expected rank 2"));
  const auto rows = [&](size_t table, size_t i) {
    return rows_of_table(op, op.input(table), op.input(i), 0);
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
