// What the operators of attention share: heads, the past, which keys a query may see, the rotation of
// positions. Tensors of heads are [batch, heads, positions, features].
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_ATTENTION_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_ATTENTION_H_

#include <optional>
#include <vector>

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx {

// Data [batch, positions, heads * features] as heads; data of rank 4 are heads already. what: "queries".
Value as_heads(const OpContext& op, const Value& data, int64_t heads, const char* what);
// The opposite: [batch, positions, heads * features].
Value joined_heads(const OpContext& op, const Value& heads);

// The keys or values at input `past`, where there are any, and then those of now.
Value after_past(const OpContext& op, size_t past, const Value& now);

// How the products of queries and keys become weights of the values.
struct Scoring {
  float scale = 0;                    // of the products; 0: 1 / sqrt(features of a head)
  float softcap = 0;                  // products become softcap * tanh(product / softcap); 0: they stay
  std::vector<Value> addends = {};    // of the products after that; each broadcasts to them
  std::optional<Value> visible = {};  // whether a query may see a key: bool
  // Where weights are not 0: bool. Those of a query that sees no key are otherwise any, or no numbers.
  std::optional<Value> nonzero = {};
  std::optional<Value> sink = {};  // [heads]: a product beside those of the keys, whose weight is dropped
};
// The values, weighed for each query. Queries may have more heads than keys and values, whose heads then
// serve as many neighbours each.
struct Attended {
  Value values;
  // On the way there: scaled products, those after softcap, those after the addends, weights.
  Value products, capped, masked, weights;
};
Attended attended(const OpContext& op, const Scoring& scoring, const Value& query, const Value& key,
                  const Value& value);

// 0 where the condition holds, `masked` elsewhere.
Value addend_where(const OpContext& op, const Value& condition, float masked);
Value as_real(const OpContext& op, const Value& value);
// The positions 0 to before `count` in this shape, as float32.
Value positions_in(const OpContext& op, int64_t count, const ir::Shape& shape);
// Whether keys 0 to before `keys` are at most at the last position that each query sees, float32 [..., 1].
Value up_to(const OpContext& op, const Value& last, int64_t keys);

// Attributes that ask for something only where they are not 0.
void refuse_unless_zero(const OpContext& op, const char* attribute, const char* what_to_do);

// Rotary embeddings: pairs of features turned by an angle of their position.
struct Rotation {
  Value cosine, sine;  // [batch or 1, positions, pairs]
  bool is_interleaved =
      false;  // pairs are neighbours; else a feature of the first half and one of the second
};
// The rows of the tables at these positions: integers [batch or 1, positions].
Rotation rotation_at(const OpContext& op, const Value& cosines, const Value& sines, const Value& positions);
// data: rank 4, with its positions along this axis. The first features, two for each pair, are rotated.
Value rotated(const OpContext& op, const Rotation& rotation, const Value& data, size_t axis);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_ATTENTION_H_
