// Constants that are quantised in blocks, with a scale for each block of elements along an axis:
// DequantizeLinear with block_size, and ONNX Runtime's MatMulNBits and GatherBlockQuantized. They become
// float32; lowering finds the integers of layers again (src/packer/layer/weight_only.h).
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

void warn_of_floats(const OpContext& op) {
  op.graph().warn_once("weights are quantised in blocks: layers with them compute in float32");
}

// An integer of 8 bits of a constant.
int32_t integer_at(const ir::Constant& constant, size_t i) {
  const uint8_t byte = constant.bytes()[i];
  return constant.type().dtype == ir::kInt8 ? static_cast<int8_t>(byte) : byte;
}

// Element i of a row of packed integers.
int32_t packed_at(std::span<const uint8_t> row, size_t i, int64_t bits) {
  return bits == 8 ? row[i] : row[i / 2] >> (i % 2 * 4) & 15;
}

int64_t num_blocks(int64_t extent, int64_t block) { return (extent - 1) / block + 1; }

ir::ConstantRef with_8_bits(const OpContext& op, size_t i, const char* what) {
  const ir::ConstantRef constant = op.widened(op.constant(i, what));
  const ir::DType dtype = constant->type().dtype;
  if (dtype != ir::kInt8 && dtype != ir::kUint8)
    throw Unsupported{cat(dtype, " ", what, " in blocks, expected int8, uint8, int4 or uint4")};
  return constant;
}

}  // namespace

// (data - zero point) * scale, in float32.
namespace {

struct Blocks {
  ir::ConstantRef data;  // an integer of 8 bits for each element
  ir::ConstantRef scale;
  ir::ConstantRef zero_point;  // or null: `zero`
  int32_t zero = 0;
  size_t axis = 0;
  int64_t block = 1;
};

Value reals_of(const OpContext& op, const Blocks& b) {
  if (b.block < 1) invalid(cat("attribute 'block_size' is ", b.block, ", expected at least 1"));
  const ir::Shape& shape = b.data->type().shape;
  if (b.data->type().num_elements() == 0) throw Unsupported{"a tensor without elements"};
  ir::Shape blocks = shape;
  blocks[b.axis] = num_blocks(shape[b.axis], b.block);
  if (b.scale->type().shape != blocks)
    invalid(cat("the scales are ", b.scale->type(), ", expected shape ", to_text(blocks), " for data ",
                to_text(shape), " in blocks of ", b.block, " along axis ", b.axis));
  if (b.scale->type().dtype != ir::kFloat32)
    throw Unsupported{ir::to_string(b.scale->type().dtype) + " scales"};
  if (b.zero_point != nullptr && b.zero_point->type() != ir::TensorType{b.data->type().dtype, blocks})
    invalid(cat("the zero points are ", b.zero_point->type(), ", expected ", b.data->type().dtype, " ",
                to_text(blocks)));
  warn_of_floats(op);
  int64_t inner = 1;
  for (size_t i = b.axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const auto count = static_cast<size_t>(b.data->type().num_elements());
  op.graph().charge(count * sizeof(float));
  std::vector<float> reals(count);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i), row = at / inner;
    const int64_t in_axis = row % shape[b.axis], outer = row / shape[b.axis];
    const auto of = static_cast<size_t>((outer * blocks[b.axis] + in_axis / b.block) * inner + at % inner);
    const int32_t zero = b.zero_point == nullptr ? b.zero : integer_at(*b.zero_point, of);
    reals[i] = static_cast<float>(integer_at(*b.data, i) - zero) * b.scale->as<float>()[of];
  }
  return ir::make_constant(ir::kFloat32, shape, reals);
}

}  // namespace

Value dequantized_in_blocks(const OpContext& op, int64_t axis_attr, int64_t block) {
  if (!op.input(0).is_constant()) throw Unsupported{"quantisation in blocks of data that is not constant"};
  Blocks b{.data = with_8_bits(op, 0, "data"), .scale = op.constant(1, "scales"), .zero_point = nullptr};
  b.axis = static_cast<size_t>(OpContext::axis_of(axis_attr, b.data->type().shape.size()));
  b.block = block;
  if (op.has_input(2)) b.zero_point = with_8_bits(op, 2, "zero points");
  return reals_of(op, b);
}

// GatherBlockQuantized: a table that is quantised in blocks, and which of its rows are taken.
namespace {

// Bytes of two integers along the last axis as one byte each, `extent` of them.
ir::ConstantRef unpacked_last(const OpContext& op, const ir::ConstantRef& packed, int64_t extent) {
  ir::Shape shape = packed->type().shape;
  if (shape.empty() || shape.back() != (extent + 1) / 2)
    invalid(cat("packed integers are ", packed->type(), ", expected ", (extent + 1) / 2, " bytes in a row"));
  if (packed->type().num_elements() == 0) throw Unsupported{"a tensor without elements"};
  const auto row = static_cast<size_t>(shape.back()), of_row = static_cast<size_t>(extent);
  shape.back() = extent;
  const auto bytes = packed->bytes();
  const size_t count = bytes.size() / row * of_row;
  op.graph().charge(count);
  std::vector<uint8_t> integers(count);
  for (size_t i = 0; i < count; ++i)
    integers[i] = static_cast<uint8_t>(packed_at(bytes.subspan(i / of_row * row, row), i % of_row, 4));
  return ir::make_constant(ir::kUint8, shape, integers);
}

}  // namespace

// Data, indices, scales, zero points.
void import_gather_block_quantized(const OpContext& op) {
  op.expect_counts(3, 4);
  const int64_t bits = op.attr_int("bits", 4);
  if (bits != 4 && bits != 8) throw Unsupported{cat(bits, " bits, expected 4 or 8")};
  const bool is_uint8 = op.type(op.input(0)).dtype == ir::kUint8;
  Blocks b{.data = with_8_bits(op, 0, "data"), .scale = op.constant(2, "scales"), .zero_point = nullptr};
  const size_t rank = b.data->type().shape.size();
  b.axis = static_cast<size_t>(OpContext::axis_of(op.attr_int("quantize_axis", 1), rank));
  b.block = op.attr_int("block_size", 128);
  if (op.has_input(3)) b.zero_point = with_8_bits(op, 3, "zero points");
  if (is_uint8) {
    b.zero = 1 << (bits - 1);
    if (bits == 4) {
      if (b.axis + 1 != rank)
        invalid(cat("attribute 'quantize_axis' is ", b.axis, ", expected the last axis, ", rank - 1));
      b.data = unpacked_last(op, b.data, 2 * b.data->type().shape.back());
      if (b.zero_point != nullptr && !b.scale->type().shape.empty())
        b.zero_point = unpacked_last(op, b.zero_point, b.scale->type().shape.back());
    }
  }
  const int64_t axis = OpContext::axis_of(op.attr_int("gather_axis", 0), rank);
  op.define(0, rows_of_table(op, reals_of(op, b), op.input(1), axis));
}

// MatMulNBits: weights [n, k], row by row in blocks of k, each block a whole number of bytes with the first
// element in the lowest bits.
namespace {

struct NBits {
  int64_t n, k, bits, block, blocks;
  size_t row_bytes(int64_t elements) const { return static_cast<size_t>((elements * bits + 7) / 8); }
};

int64_t attr_extent(const OpContext& op, const char* name) {
  const int64_t value = op.attr_int(name, 0);
  constexpr int64_t kMax = int64_t{1} << 30;  // products of two of them do not wrap
  if (value < 1 || value > kMax) invalid(cat("attribute '", name, "' is ", value));
  return value;
}

void check_size(const char* what, const ir::TensorType& type, ir::DType dtype, size_t expected) {
  if (type.dtype != dtype || static_cast<size_t>(type.num_elements()) != expected)
    invalid(cat("the ", what, " are ", type, ", expected ", expected, " of ", dtype));
}

// The blocks must follow one another.
void check_groups(const OpContext& op, const NBits& w) {
  if (!op.has_input(4)) return;
  const ir::ConstantRef groups = op.constant(4, "group indices");
  check_size("group indices", groups->type(), ir::kInt32, static_cast<size_t>(w.k));
  for (int64_t i = 0; i < w.k; ++i) {
    if (groups->as<int32_t>()[static_cast<size_t>(i)] != i / w.block)
      throw Unsupported{"columns of weights in another order (input 'g_idx'); quantise without desc_act"};
  }
}

Value weights_of(const OpContext& op, const NBits& w) {
  const ir::ConstantRef packed = op.constant(1, "weights"), scale = op.constant(2, "scales");
  const auto rows = static_cast<size_t>(w.n), columns = static_cast<size_t>(w.k);
  const auto blocks = static_cast<size_t>(w.blocks), block = static_cast<size_t>(w.block);
  const size_t row_bytes = blocks * w.row_bytes(w.block), zero_bytes = w.row_bytes(w.blocks);
  check_size("weights", packed->type(), ir::kUint8, rows * row_bytes);
  check_size("scales", scale->type(), ir::kFloat32, rows * blocks);
  const ir::ConstantRef zero = op.has_input(3) ? op.constant(3, "zero points") : nullptr;
  const bool is_real = zero != nullptr && zero->type().dtype == ir::kFloat32;
  if (is_real) check_size("zero points", zero->type(), ir::kFloat32, rows * blocks);
  if (zero != nullptr && !is_real) check_size("zero points", zero->type(), ir::kUint8, rows * zero_bytes);
  op.graph().charge(rows * columns * sizeof(float));
  std::vector<float> reals(rows * columns);
  for (size_t row = 0; row < rows; ++row) {
    const auto integers = packed->bytes().subspan(row * row_bytes, row_bytes);
    for (size_t i = 0; i < columns; ++i) {
      const size_t at = i / block, of = row * blocks + at;
      const float factor = scale->as<float>()[of];
      const int32_t integer = packed_at(integers, i, w.bits);
      float& real = reals[row * columns + i];
      if (is_real) {  // in this order, as in ONNX Runtime
        real = static_cast<float>(integer) * factor;
        real += -factor * zero->as<float>()[of];
        continue;
      }
      const int32_t less = zero == nullptr
                               ? 1 << (w.bits - 1)
                               : packed_at(zero->bytes().subspan(row * zero_bytes, zero_bytes), at, w.bits);
      real = static_cast<float>(integer - less) * factor;
    }
  }
  return ir::make_constant(ir::kFloat32, {w.n, w.k}, reals);
}

}  // namespace

// A, packed weights, scales, zero points, group indices, bias.
void import_mat_mul_nbits(const OpContext& op) {
  op.expect_counts(3, 6);
  NBits w{attr_extent(op, "N"), attr_extent(op, "K"), op.attr_int("bits", 4), attr_extent(op, "block_size"),
          0};
  op.attr_int("accuracy_level", 0);  // the least accuracy that ONNX Runtime is allowed
  if (w.bits != 4 && w.bits != 8) throw Unsupported{cat(w.bits, " bits, expected 4 or 8")};
  if (w.block * w.bits % 8 != 0) invalid(cat("attribute 'block_size' is ", w.block, ", which is odd"));
  w.blocks = num_blocks(w.k, w.block);
  check_groups(op, w);
  const Value weights = weights_of(op, w);
  warn_of_floats(op);
  const Value result = op.emit("nn.dense", {op.input(0), weights});
  if (!op.has_input(5)) return op.define(0, result);
  const auto last = static_cast<int64_t>(op.shape(result).size()) - 1;
  op.define(0, op.input(5).is_constant() ? op.emit("nn.bias_add", {result, op.input(5)}, {{"axis", last}})
                                         : op.emit("add", {result, op.input(5)}));
}

}  // namespace qplan::onnx
