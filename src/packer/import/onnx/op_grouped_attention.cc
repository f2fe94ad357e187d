// Attention whose queries may have more heads than keys and values: ONNX's own, and GroupQueryAttention of
// com.microsoft.
#include <algorithm>
#include <limits>

#include "src/packer/import/onnx/attention.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

int64_t attr_heads(const OpContext& op, const char* name) {
  const int64_t heads = op.attr_int(name, 0);
  if (heads < 0 || heads > kMaxPositions) invalid(cat("attribute ", in_quotes(name), " is ", heads));
  return heads;
}

// Both conditions, of which the first may not be there.
Value both(const OpContext& op, const std::optional<Value>& a, const Value& b) {
  if (!a) return b;
  return op.emit("where", {*a, b, ir::make_constant(ir::kBool, {}, std::vector<uint8_t>{0})});
}

// first + 0, first + 1, ... in float32, [1 or batch, 1, count, 1]. first: [1 or batch, 1, 1, 1].
Value positions_from(const OpContext& op, const Value& first, int64_t count) {
  return op.emit("add", {first, positions_in(op, count, {1, 1, count, 1})});
}
Value one_position(float value) { return ir::make_constant<float>(ir::kFloat32, {1, 1, 1, 1}, {value}); }

// Whether some query sees no key. Of a mask that the network computes nobody knows.
bool may_hide_all(const OpContext& op, const Value& visible) {
  if (!visible.is_constant()) return true;
  const ir::Shape& shape = op.shape(visible);
  const auto keys = static_cast<std::ptrdiff_t>(shape.empty() ? 1 : shape.back());
  const auto bytes = visible.constant->bytes();
  for (auto row = bytes.begin(); row != bytes.end(); row += keys) {
    if (std::all_of(row, row + keys, [](uint8_t byte) { return byte == 0; })) return true;
  }
  return false;
}

// The mask at input 3: of booleans, or of addends, which hide a key by -inf. A query that sees no key has
// weights of 0.
void add_mask(const OpContext& op, Scoring* scoring) {
  if (op.has_input(3)) {
    const Value& mask = op.input(3);
    const ir::DType dtype = op.type(mask).dtype;
    if (dtype != ir::kBool && dtype != ir::kFloat32)
      throw Unsupported{cat("a mask of ", dtype, ", expected bool or float32")};
    if (dtype == ir::kBool) {
      scoring->visible = both(op, scoring->visible, mask);
      scoring->nonzero = scoring->visible;
    } else {
      scoring->addends.push_back(mask);
      const Value lowest = ir::make_scalar(std::numeric_limits<float>::lowest());
      scoring->nonzero = both(op, scoring->visible, op.emit("less_equal", {lowest, mask}));
    }
  } else {
    scoring->nonzero = scoring->visible;
  }
  if (scoring->nonzero && !may_hide_all(op, *scoring->nonzero)) scoring->nonzero.reset();
}

}  // namespace

// Queries, keys, values, mask, past keys, past values, how many keys of each sequence there are.
void import_onnx_attention(const OpContext& op) {
  op.expect_counts(3, op.opset() < 24 ? 6 : 7, 4);
  const int64_t heads = attr_heads(op, "q_num_heads"), kv_heads = attr_heads(op, "kv_num_heads");
  const bool is_flat = op.shape(op.input(0)).size() == 3;
  const Value q = as_heads(op, op.input(0), heads, "queries");
  const Value now = as_heads(op, op.input(1), kv_heads, "keys");
  const Value k = after_past(op, 4, now);
  const Value v = after_past(op, 5, as_heads(op, op.input(2), kv_heads, "values"));
  op.define(1, k);
  op.define(2, v);
  const int64_t queries = op.shape(q)[2], keys = op.shape(k)[2], batch = op.shape(q)[0];
  Scoring scoring = {.scale = op.attr_float("scale", 0), .softcap = op.attr_float("softcap", 0)};
  op.attr_int("softmax_precision", 0);  // the least that the softmax is computed in
  Value first = one_position(static_cast<float>(keys - op.shape(now)[2]));
  if (op.has_input(6)) {
    if (op.shape(op.input(6)) != ir::Shape{batch})
      invalid(cat("the numbers of keys are ", op.type(op.input(6)), ", expected ", batch));
    const Value counts = op.reshape(as_real(op, op.input(6)), {batch, 1, 1, 1});
    first = op.emit("subtract", {counts, one_position(static_cast<float>(queries))});
    scoring.visible = op.emit("less", {positions_in(op, keys, {1, 1, 1, keys}), counts});
  }
  if (op.attr_int("is_causal", 0) != 0)
    scoring.visible = both(op, scoring.visible, up_to(op, positions_from(op, first, queries), keys));
  add_mask(op, &scoring);
  const Attended result = attended(op, scoring, q, k, v);
  op.define(0, is_flat ? joined_heads(op, result.values) : result.values);
  const int64_t mode = op.attr_int("qk_matmul_output_mode", 0);
  if (!op.has_output(3)) return;
  if (mode < 0 || mode > 3) invalid(cat("attribute 'qk_matmul_output_mode' is ", mode));
  const Value* const on_the_way[] = {&result.products, &result.capped, &result.masked, &result.weights};
  op.define(3, *on_the_way[mode]);
}

// GroupQueryAttention writes the keys and values of now after those of the past that each sequence has, in
// tensors that may have room for more.
namespace {

// Extents and, for each sequence, how many positions of the past it has.
struct Cache {
  int64_t batch, now, room;  // positions that are new, and that the past has room for
  int64_t total;             // positions of the longest sequence
  Value past;                // [batch], float32; one number is a constant
  int64_t present() const { return std::max(room, total); }
  int64_t room_read() const { return total == now ? 0 : room; }
  // All sequences have this many, and that is known on import.
  std::optional<int64_t> known = {};
};

Cache cache_of(const OpContext& op, int64_t batch, int64_t now) {
  Cache cache{.batch = batch, .now = now, .room = 0, .total = 0, .past = {}};
  if (op.has_input(3)) {
    const ir::Shape& past = op.shape(op.input(3));
    if (past.size() != 4) invalid(cat("the past is ", op.type(op.input(3)), ", expected rank 4"));
    cache.room = past[2];
  }
  const ir::Ints total = op.ints(6, "lengths (total_sequence_length)");
  if (total.size() != 1) invalid(cat("total_sequence_length is ", op.type(op.input(6)), ", expected one"));
  cache.total = total[0];
  if (cache.total < now || cache.total > now + cache.room)
    invalid(cat("total_sequence_length is ", cache.total, " for ", now, " new positions and a past of ",
                cache.room));
  // A prompt has no past, and the lengths of its sequences change nothing that is read.
  if (cache.total == now) {
    cache.known = 0;
  } else if (op.type(op.input(5)).num_elements() != batch) {
    invalid(cat("seqlens_k is ", op.type(op.input(5)), ", expected ", batch, " values"));
  } else if (op.input(5).is_constant()) {
    // The last position of each sequence.
    const ir::Ints last = integers_of(op, op.input(5).constant);
    for (const int64_t at : last) {
      if (at < now - 1 || at >= cache.total)
        invalid(
            cat("seqlens_k is ", at, " for ", now, " new positions and total_sequence_length ", cache.total));
    }
    if (std::ranges::adjacent_find(last, std::ranges::not_equal_to()) == last.end())
      cache.known = last[0] + 1 - now;
  }
  if (cache.known) {
    cache.past = ir::make_constant<float>(ir::kFloat32, {1}, {static_cast<float>(*cache.known)});
  } else {
    const Value last = op.reshape(as_real(op, op.input(5)), {batch});
    cache.past = op.emit("add", {last, ir::make_scalar(static_cast<float>(1 - now))});
  }
  return cache;
}

// Where each position of the present comes from, among the past, what is new and zeros, one after another:
// one list for all sequences, or one for each.
std::vector<Value> places_of(const OpContext& op, const Cache& cache) {
  const int64_t room = cache.room_read(), count = cache.present();
  if (cache.known) {
    ir::Ints places = list_of(op, count);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_old = i < *cache.known;
      places[static_cast<size_t>(i)] = is_old ? i : std::min(room + i - *cache.known, room + cache.now);
    }
    return {make_vector(ir::kInt64, places)};
  }
  // The network computes one list after another.
  constexpr int64_t kMaxSequences = 64;
  if (cache.batch > kMaxSequences)
    throw Unsupported{cat(cache.batch, " sequences whose lengths (seqlens_k) are not constant, at most ",
                          kMaxSequences, "; pack the model with a smaller batch")};
  std::vector<Value> lists;
  const Value at = positions_in(op, count, {count});
  for (int64_t i = 0; i < cache.batch; ++i) {
    const Value past =
        op.emit("strided_slice", {cache.past}, {{"begin", ir::Ints{i}}, {"end", ir::Ints{i + 1}}});
    const auto shift = op.emit("subtract", {ir::make_scalar(static_cast<float>(room)), past});
    const Value end = op.emit("add", {past, ir::make_scalar(static_cast<float>(cache.now))});
    const Value after = op.emit("where", {op.emit("less", {at, end}), op.emit("add", {at, shift}),
                                          ir::make_scalar(static_cast<float>(room + cache.now))});
    const Value place = op.emit("where", {op.emit("less", {at, past}), at, after});
    lists.push_back(op.emit("cast", {place}, {{"dtype", std::string("int32")}}));
  }
  return lists;
}

// Keys or values of the past at input `i`, then those of now, then zeros.
Value present_of(const OpContext& op, const Cache& cache, const std::vector<Value>& places, size_t i,
                 const Value& now) {
  const ir::Shape shape = op.shape(now);
  std::vector<Value> parts;
  if (cache.room_read() > 0) {
    const ir::Shape of_past = op.shape(op.input(i));
    if (of_past != ir::Shape{shape[0], shape[1], cache.room, shape[3]})
      invalid(cat("the past is ", op.type(op.input(i)), ", but what follows it ", op.type(now)));
    parts.push_back(op.input(i));
  }
  parts.push_back(now);
  if (!cache.known || cache.present() > *cache.known + cache.now) {
    op.graph().charge(static_cast<uint64_t>(shape[0] * shape[1] * shape[3]) * sizeof(float));
    parts.push_back(
        ir::make_constant(ir::kFloat32, {shape[0], shape[1], 1, shape[3]},
                          std::vector<float>(static_cast<size_t>(shape[0] * shape[1] * shape[3]))));
  }
  const Value all = parts.size() == 1 ? parts[0] : op.emit("concatenate", parts, {{"axis", int64_t{2}}});
  const auto take = [&](const Value& from, const Value& list) {
    return op.emit("take", {from, list}, {{"axis", int64_t{2}}});
  };
  if (cache.known) return taken(op, all, 2, integers_of(op, places[0].constant));
  if (cache.batch == 1) return take(all, places[0]);
  std::vector<Value> sequences;
  for (int64_t b = 0; b < cache.batch; ++b) {
    const Value own = op.emit("strided_slice", {all},
                              {{"begin", ir::Ints{b}}, {"end", ir::Ints{b + 1}}, {"axes", ir::Ints{0}}});
    sequences.push_back(take(own, places[static_cast<size_t>(b)]));
  }
  return op.emit("concatenate", sequences, {{"axis", int64_t{0}}});
}

// Queries, keys and values, apart or side by side in one tensor, as heads.
std::vector<Value> grouped_heads(const OpContext& op) {
  const int64_t heads = attr_heads(op, "num_heads"), kv_heads = attr_heads(op, "kv_num_heads");
  if (heads < 1 || kv_heads < 1) invalid(cat(heads, " heads of queries, ", kv_heads, " of keys"));
  std::vector<Value> parts = {op.input(0)};
  if (op.has_input(1)) {
    parts = {op.input(0), op.input(1), op.input(2)};
  } else {
    const ir::Shape shape = op.shape(op.input(0));
    const int64_t all_heads = heads + 2 * kv_heads;
    if (shape.size() != 3 || shape[2] % all_heads != 0)
      invalid(cat("queries, keys and values are ", op.type(op.input(0)), " for ", all_heads, " heads"));
    const int64_t features = shape[2] / all_heads;
    parts = op.emit_many("split", {op.input(0)},
                         {{"indices_or_sections", ir::Ints{heads * features, (heads + kv_heads) * features}},
                          {"axis", int64_t{2}}});
  }
  return {as_heads(op, parts[0], heads, "queries"), as_heads(op, parts[1], kv_heads, "keys"),
          as_heads(op, parts[2], kv_heads, "values")};
}

// Attributes of what only ONNX Runtime's other devices compute.
void refuse_quantized_cache(const OpContext& op) {
  for (const char* attribute : {"k_quant_type", "v_quant_type"}) {
    if (op.attr_string(attribute, "NONE") != "NONE")
      throw Unsupported{cat("attribute ", in_quotes(attribute), "; export with keys and values of float")};
  }
  refuse_unless_zero(op, "kv_cache_bit_width", "export with keys and values of float");
  refuse_unless_zero(op, "qk_output", "export without products as an output");
}

}  // namespace

// Queries, keys, values, past keys, past values, last position of each sequence, length of the longest one,
// cosines, sines, positions, bias of the attention, sinks of heads, scales of keys and of values.
void import_group_query_attention(const OpContext& op) {
  op.expect_counts(1, 14, 3);
  refuse_quantized_cache(op);
  std::vector<Value> heads = grouped_heads(op);
  const ir::Shape shape = op.shape(heads[0]);
  const Cache cache = cache_of(op, shape[0], shape[2]);
  const int64_t of_past = op.shape(cache.past)[0];
  if (op.attr_int("do_rotary", 0) != 0) {
    const Value own =
        op.emit("add", {op.reshape(cache.past, {of_past, 1}), positions_in(op, shape[2], {1, shape[2]})});
    const Value positions =
        op.has_input(9) ? op.input(9) : op.emit("cast", {own}, {{"dtype", std::string("int32")}});
    Rotation rotation = rotation_at(op, op.input(7), op.input(8), positions);
    rotation.is_interleaved = op.attr_int("rotary_interleaved", 0) != 0;
    for (size_t i = 0; i < 2; ++i) heads[i] = rotated(op, rotation, heads[i], 2);
  }
  op.attr_int("rotary_interleaved", 0);
  const std::vector<Value> places = places_of(op, cache);
  Value k = present_of(op, cache, places, 3, heads[1]), v = present_of(op, cache, places, 4, heads[2]);
  op.define(1, k);
  op.define(2, v);
  if (cache.present() > cache.total) {
    const ir::Attrs attrs = {{"begin", ir::Ints{0}}, {"end", ir::Ints{cache.total}}, {"axes", ir::Ints{2}}};
    k = op.emit("strided_slice", {k}, attrs);
    v = op.emit("strided_slice", {v}, attrs);
  }
  Scoring scoring = {.scale = op.attr_float("scale", 0), .softcap = op.attr_float("softcap", 0)};
  const Value last = positions_from(op, op.reshape(cache.past, {of_past, 1, 1, 1}), shape[2]);
  scoring.visible = up_to(op, last, cache.total);
  const int64_t window = op.attr_int("local_window_size", -1);
  if (window > kMaxPositions) invalid(cat("attribute 'local_window_size' is ", window));
  if (window > 0) {
    const Value before = op.emit("add", {last, one_position(static_cast<float>(-window))});
    scoring.visible = both(op, scoring.visible,
                           op.emit("less", {before, positions_in(op, cache.total, {1, 1, 1, cache.total})}));
  }
  if (op.has_input(10)) scoring.addends.push_back(op.input(10));
  if (op.has_input(11)) {
    scoring.sink = op.input(11);
  } else if (op.attr_int("smooth_softmax", 0) > 0) {
    scoring.sink =
        ir::make_constant(ir::kFloat32, {shape[1]}, std::vector<float>(static_cast<size_t>(shape[1])));
  }
  op.attr_int("smooth_softmax", 0);
  op.define(0, joined_heads(op, attended(op, scoring, heads[0], k, v).values));
}

}  // namespace qplan::onnx
