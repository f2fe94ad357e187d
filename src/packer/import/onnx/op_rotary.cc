// RotaryEmbedding, of ONNX and of com.microsoft.
#include "src/packer/import/onnx/attention.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// Data of rank 4 are heads; of rank 3 they are [batch, positions, heads * features]. heads: 0 where the
// features of a head are unknown.
struct RotaryData {
  ir::Shape shape;  // of rank 4
  size_t axis;      // of positions
};
RotaryData rotary_data(const OpContext& op, const ir::Shape& given, int64_t heads, int64_t pairs) {
  if (given.size() == 4) return {given, 2};
  if (given.size() != 3) throw Unsupported{cat("data of rank ", given.size(), ", expected 3 or 4")};
  if (heads == 0 && pairs > 0 && given[2] % (2 * pairs) == 0) heads = given[2] / (2 * pairs);
  if (heads < 1 || given[2] % heads != 0)
    invalid(cat("the data is ", op.type(op.input(0)), ", attribute 'num_heads' ", heads,
                ", the angles of a head ", pairs));
  return {{given[0], given[1], heads, given[2] / heads}, 1};
}

// position_ids or what stands in their place, as [batch or 1, positions]: one number is the first position.
Value position_ids(const OpContext& op, size_t i, int64_t count) {
  const ir::Shape shape = op.shape(op.input(i));
  const ir::DType dtype = op.type(op.input(i)).dtype;
  if (dtype != ir::kInt32 && dtype != ir::kInt64)
    invalid(cat("the positions are ", op.type(op.input(i)), ", expected integers"));
  if (shape.size() == 2 || count == 0) return op.input(i);
  if (op.type(op.input(i)).num_elements() != 1)
    invalid(cat("the positions are ", op.type(op.input(i)), ", expected one or a row for each sequence"));
  ir::Ints after = list_of(op, count);
  for (size_t k = 0; k < after.size(); ++k) after[k] = static_cast<int64_t>(k);
  return op.emit("add", {op.reshape(op.input(i), {1, 1}), integers(op, dtype, {1, count}, after)});
}

// The attribute that says how many features of a head are rotated must agree with the tables.
void check_rotated_features(const OpContext& op, int64_t pairs) {
  const int64_t features = op.attr_int("rotary_embedding_dim", 0);
  if (features != 0 && features != 2 * pairs)
    invalid(
        cat("attribute 'rotary_embedding_dim' is ", features, ", but the tables have ", pairs, " angles"));
}

void define_rotated(const OpContext& op, Rotation rotation, const RotaryData& data) {
  rotation.is_interleaved = op.attr_int("interleaved", 0) != 0;
  const Value result = rotated(op, rotation, op.reshape(op.input(0), data.shape), data.axis);
  op.define(0, op.reshape(result, op.shape(op.input(0))));
}

}  // namespace

// Data, cosines, sines, positions. Without positions the first two have a row for each position of the data.
void import_rotary_embedding(const OpContext& op) {
  op.expect_counts(3, 4);
  const ir::Shape table = op.shape(op.input(1));
  const int64_t pairs = table.empty() ? 0 : table.back();
  const RotaryData data = rotary_data(op, op.shape(op.input(0)), op.attr_int("num_heads", 0), pairs);
  check_rotated_features(op, pairs);
  define_rotated(op,
                 op.has_input(3) ? rotation_at(op, op.input(1), op.input(2), position_ids(op, 3, 0))
                                 : Rotation{op.input(1), op.input(2)},
                 data);
}

// Data, positions, cosines, sines.
void import_microsoft_rotary_embedding(const OpContext& op) {
  op.expect_counts(4, 4);
  refuse_unless_zero(op, "is_packed_batching", "export with one sequence in each row");
  if (op.attr_float("scale", 1) != 1) throw Unsupported{"attribute 'scale' that is not 1"};
  const ir::Shape table = op.shape(op.input(2));
  const int64_t pairs = table.empty() ? 0 : table.back();
  const RotaryData data = rotary_data(op, op.shape(op.input(0)), op.attr_int("num_heads", 0), pairs);
  check_rotated_features(op, pairs);
  const Value positions = position_ids(op, 1, data.shape[data.axis]);
  define_rotated(op, rotation_at(op, op.input(2), op.input(3), positions), data);
}

}  // namespace qplan::onnx
