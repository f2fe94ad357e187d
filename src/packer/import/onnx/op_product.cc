// Sums of products with weights: Conv, MatMul, Gemm and their quantised and integer forms.
#include <algorithm>
#include <cmath>
#include <functional>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"

namespace qplan::onnx {

// The part that convolutions and matrix products on integers share: from the accumulator to the output.
struct MatmulTail {
  QParams input, kernel, output;
  ir::DType out_dtype;
  int64_t channel_axis = 1;  // of the accumulator
  Value bias;                // int32, its scale the product of the others; nothing: zeros
  float alpha = 1;           // a factor of the real product
};
// accumulator -> nn.bias_add -> qnn.requantize.
Value emit_tail(const OpContext& op, const Value& accumulator, const MatmulTail& tail);

// The accumulator's scales, (float)(input scale * kernel scale), scalar or per channel.
ir::ConstantRef product_scales(const QParams& input, const QParams& kernel, float alpha = 1);

ir::ConstantRef product_scales(const QParams& input, const QParams& kernel, float alpha) {
  const float input_scale = alpha * input.scale->as<float>()[0];
  std::vector<float> scales;
  for (const float kernel_scale : kernel.scale->as<float>()) {
    const float scale = input_scale * kernel_scale;
    if (!std::isfinite(scale) || scale <= 0) {
      invalid(cat("input scale ", to_text(input_scale), " times weight scale ", to_text(kernel_scale),
                  " leaves the range of float32"));
    }
    scales.push_back(scale);
  }
  return ir::make_constant(ir::kFloat32, kernel.scale->type().shape, scales);
}

Value emit_tail(const OpContext& op, const Value& accumulator, const MatmulTail& tail) {
  const int64_t channels = op.shape(accumulator).at(static_cast<size_t>(tail.channel_axis));
  // Nodes may share the weights that a bias of zeros and scales are made for.
  op.graph().charge(static_cast<uint64_t>(channels) * (sizeof(int32_t) + sizeof(float)));
  Value bias = tail.bias;
  if (!bias.is_known()) bias = ir::make_constant(ir::kInt32, {channels}, std::vector<int32_t>(channels));
  if (op.type(bias).dtype != ir::kInt32) throw Unsupported{ir::to_string(op.type(bias).dtype) + " bias"};
  const Value sum = op.emit("nn.bias_add", {accumulator, bias}, {{"axis", tail.channel_axis}});
  const ir::ConstantRef scales = product_scales(tail.input, tail.kernel, tail.alpha);
  ir::Attrs attrs{{"out_dtype", ir::to_string(tail.out_dtype)}, {"contract", std::string("f32e")}};
  if (!scales->type().shape.empty()) attrs.set("axis", tail.channel_axis);
  return op.emit("qnn.requantize",
                 {sum, scales, ir::make_scalar(int32_t{0}), tail.output.scale, tail.output.zero_point},
                 std::move(attrs));
}

// Conv and QLinearConv over height and width. Weights are OIHW, whatever the layout of the data.
namespace {

// The operands of a convolution, both with a height, and its attributes.
struct PlaneConv {
  Value data, weights;
  ir::Attrs attrs;
};

// weights: which input they are. ranks: those that the data may have, for the message.
PlaneConv plane_conv(const OpContext& op, size_t weights, Layout layout, const char* ranks) {
  const size_t rank = op.shape(op.input(0)).size();
  PlaneConv conv{.data = with_height(op, op.input(0)), .weights = {}, .attrs = {}};
  const ir::Ints extents = spatial(op.shape(conv.data), layout, ranks);
  const ir::TensorType& type = op.type(op.input(weights));
  if (type.shape.size() != rank) invalid(cat("the weights are ", type, ", expected rank ", rank));
  if (type.shape[0] < 1) invalid(cat("the weights are ", type, ", expected an output channel"));
  conv.weights = with_height(op, op.input(weights));
  const ir::Shape& kernel = op.shape(conv.weights);
  const Window window = read_plane_window(op, extents, {kernel[2], kernel[3]}, rank == 3);
  ir::Attrs& attrs = conv.attrs = window.plane_attrs("kernel_size");
  if (const int64_t groups = op.attr_int("group", 1); groups != 1) attrs.set("groups", groups);
  attrs.set("channels", kernel[0]);
  if (layout != Layout::kNchw) attrs.set("data_layout", layout_name(layout));
  return conv;
}

}  // namespace

namespace {

Value conv(const OpContext& op) {
  const size_t rank = op.shape(op.input(0)).size();
  if (rank == 5) return volume_conv(op, op.input(0), op.input(1));
  PlaneConv conv = plane_conv(op, 1, Layout::kNchw, "3, 4 or 5");
  Value result = op.emit("nn.conv2d", {conv.data, conv.weights}, std::move(conv.attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  return without_height(op, result, op.input(0));
}

}  // namespace

void import_conv(const OpContext& op) {
  op.expect_counts(2, 3);
  op.define(0, conv(op));
}

// com.microsoft: with another addend and an activation.
void import_fused_conv(const OpContext& op) {
  op.expect_counts(2, 4);
  op.define(0, activated(op, with_addend(op, conv(op), 3)));
}

namespace {

// The convolution of what the integers stand for, which is quantised again: the form that other rewrites turn
// into integers where weights have a zero point of their own for each output.
Value real_conv(const OpContext& op, PlaneConv conv, const QParams& input, const QParams& kernel,
                const MatmulTail& tail) {
  const Value data = op.dequantize(conv.data, input), weights = op.dequantize(conv.weights, kernel, 0);
  Value result = op.emit("nn.conv2d", {data, weights}, std::move(conv.attrs));
  if (tail.bias.is_known()) {
    const QParams of_bias = {product_scales(input, kernel), ir::make_scalar(int32_t{0})};
    result =
        op.emit("nn.bias_add", {result, op.dequantize(tail.bias, of_bias, 0)}, {{"axis", tail.channel_axis}});
  }
  return op.quantize(result, tail.output, tail.out_dtype);
}

}  // namespace

void import_qlinear_conv(const OpContext& op) {
  op.expect_counts(8, 9);
  const Layout layout = layout_of(op);
  if (op.shape(op.input(0)).size() == 3 && layout != Layout::kNchw)
    throw Unsupported{"channels_last data of rank 3"};
  PlaneConv conv = plane_conv(op, 3, layout, layout == Layout::kNchw ? "3 or 4" : "4");
  const QParams input = op.per_tensor_qparams(1), kernel = op.qparams(4);
  MatmulTail tail;
  tail.input = input;
  tail.kernel = kernel;
  tail.output = op.per_tensor_qparams(6);
  tail.out_dtype = op.zero_point_dtype(7);
  tail.channel_axis = layout == Layout::kNchw ? 1 : 3;
  if (op.has_input(8)) tail.bias = op.input(8);
  const auto zero_points = kernel.zero_point->as<int32_t>();
  if (std::ranges::adjacent_find(zero_points, std::not_equal_to()) != zero_points.end())
    return op.define(0, without_height(op, real_conv(op, std::move(conv), input, kernel, tail), op.input(0)));
  const Value accumulator = op.emit(
      "qnn.conv2d", {conv.data, conv.weights, input.zero_point, kernel.zero_point, input.scale, kernel.scale},
      std::move(conv.attrs));
  op.define(0, without_height(op, emit_tail(op, accumulator, tail), op.input(0)));
}

namespace {

// A zero point that is an input of its own, without a scale: int32, a scalar or one per channel.
Value integer_zero_point(const OpContext& op, size_t i) {
  if (!op.has_input(i)) return ir::make_scalar(int32_t{0});
  const ir::ConstantRef given = op.constant(i, "zero points");
  const int64_t count = given->type().num_elements();
  if (given->type().shape.size() > 1 || count == 0) throw Unsupported{"zero points in blocks"};
  if (given->type().dtype != ir::kInt8 && given->type().dtype != ir::kUint8) {
    throw Unsupported{ir::to_string(given->type().dtype) + " zero points"};
  }
  std::vector<int32_t> values;
  for (const double value : numbers_of(*given)) values.push_back(static_cast<int32_t>(value));
  if (count == 1) return ir::make_scalar(values[0]);
  op.graph().charge(static_cast<uint64_t>(count) * sizeof(int32_t));
  return make_vector(ir::kInt32, values);
}

// The zero point of the data is what the network computes, as DynamicQuantizeLinear does.
bool has_computed_zero_point(const OpContext& op) { return op.has_input(2) && !op.input(2).is_constant(); }

// The operands of an integer product whose scales nobody names: the accumulators are the result.
std::vector<Value> integer_operands(const OpContext& op, const Value& data, const Value& weights) {
  const bool runs = has_computed_zero_point(op);
  const Value input = runs ? Value{ir::make_scalar(int32_t{0})} : integer_zero_point(op, 2);
  const Value kernel = integer_zero_point(op, 3);
  if (!op.type(input).shape.empty()) throw Unsupported{"per-row zero points of activations"};
  return {data, weights, input, kernel, ir::make_scalar(1.0f), ir::make_scalar(1.0f)};
}

}  // namespace

namespace {

// The sums of the weights of each output, less their zero points: what a zero point of the data of 1 has too
// much of in a product without padding.
std::vector<int32_t> sums_of_weights(const ir::Constant& weights, std::span<const int32_t> zero_points) {
  if (weights.type().dtype != ir::kInt8 && weights.type().dtype != ir::kUint8)
    invalid(cat("the weights are ", weights.type(), ", expected int8 or uint8"));
  const auto outputs = static_cast<size_t>(weights.type().shape[0]);
  if (zero_points.size() != 1 && zero_points.size() != outputs)
    invalid(cat("there are ", zero_points.size(), " zero points of the weights, expected 1 or ", outputs));
  const std::vector<double> values = numbers_of(weights);
  const size_t count = values.size() / outputs;
  std::vector<int32_t> sums(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    uint32_t sum = 0;
    for (size_t k = 0; k < count; ++k) {
      sum += static_cast<uint32_t>(static_cast<int32_t>(values[o * count + k]) -
                                   zero_points[zero_points.size() == 1 ? 0 : o]);
    }
    sums[o] = static_cast<int32_t>(sum);
  }
  return sums;
}

// The data padded with a zero point that the network computes: a mask chooses between both.
Value padded_with(const OpContext& op, const Value& data, const Value& zero_point, const ir::Ints& padding) {
  if (padding == ir::Ints{0, 0, 0, 0}) return data;
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {padding[0], padding[2]}, {padding[1], padding[3]}};
  const Value padded = op.emit("nn.pad", {data, ir::make_scalar(int32_t{0})}, {{"pad_width", width}});
  const ir::Shape &from = op.shape(data), &to = op.shape(padded);
  op.graph().charge(static_cast<uint64_t>(to[2] * to[3]));
  std::vector<uint8_t> is_inside(static_cast<size_t>(to[2] * to[3]));
  for (int64_t y = 0; y < from[2]; ++y) {
    for (int64_t x = 0; x < from[3]; ++x)
      is_inside[static_cast<size_t>((y + padding[0]) * to[3] + x + padding[1])] = 1;
  }
  const Value mask = ir::make_constant(ir::kBool, {1, 1, to[2], to[3]}, is_inside);
  return op.emit("where", {mask, padded, op.reshape(zero_point, {1, 1, 1, 1})});
}

}  // namespace

void import_conv_integer(const OpContext& op) {
  op.expect_counts(2, 4);
  auto [data, weights, attrs] = plane_conv(op, 1, Layout::kNchw, "3 or 4");
  if (!has_computed_zero_point(op)) {
    const Value result = op.emit("qnn.conv2d", integer_operands(op, data, weights), std::move(attrs));
    return op.define(0, without_height(op, result, op.input(0)));
  }
  // As DynamicQuantizeLinear gives it. The product of the stored integers has the zero point's part too much.
  const Value& zero_point = op.input(2);
  if (op.type(zero_point).num_elements() != 1) throw Unsupported{"per-row zero points of activations"};
  if (op.type(zero_point).dtype != op.type(data).dtype)
    invalid(cat("the zero point is ", op.type(zero_point), ", but the data ", op.type(data)));
  if (!weights.is_constant()) throw Unsupported{"weights that are not constant"};
  data = padded_with(op, data, zero_point, attrs.get_ints("padding", {0, 0, 0, 0}));
  attrs.set("padding", ir::Ints{0, 0, 0, 0});
  const std::vector<Value> operands = integer_operands(op, data, weights);
  const std::vector<int32_t> sums = sums_of_weights(*weights.constant, operands[3].constant->as<int32_t>());
  op.graph().charge(sums.size() * sizeof(int32_t));
  const Value product = op.emit("qnn.conv2d", operands, std::move(attrs));
  const Value wide = op.emit("cast", {op.reshape(zero_point, {})}, {{"dtype", std::string("int32")}});
  const auto channels = static_cast<int64_t>(sums.size());
  const Value part =
      op.emit("multiply", {wide, Value{ir::make_constant(ir::kInt32, {channels, 1, 1}, sums)}});
  op.define(0, without_height(op, op.emit("subtract", {product, part}), op.input(0)));
}

// MatMul, Gemm, QLinearMatMul, QGemm: the second operand, [k, n] in ONNX, becomes the weights [n, k] of a
// dense layer by a transpose.
namespace {

Value transposed(const OpContext& op, const Value& matrix) {
  if (op.shape(matrix).size() != 2) invalid(cat("a matrix is ", op.type(matrix)));
  return op.emit("transpose", {matrix}, {{"axes", ir::Ints{1, 0}}});
}

// alpha and beta of Gemm.
Value scaled(const OpContext& op, const Value& value, float factor) {
  if (factor == 1.0f) return value;
  return op.emit("multiply", {value, ir::make_scalar(factor)});
}

// The addend of Gemm where it is one value per column; nothing where it is another broadcast.
Value as_bias(const OpContext& op, const Value& addend, int64_t columns) {
  const ir::Shape& shape = op.shape(addend);
  if (shape == ir::Shape{columns}) return addend;
  if (shape == ir::Shape{1, columns}) return op.reshape(addend, {columns});
  return {};
}

// The layer on data [..., k] and weights [n, k].
using Dense = std::function<Value(const Value& data, const Value& weights)>;

// A product of batches is written out as layers. Each takes about this much memory, which a small file could
// ask for often.
constexpr int64_t kMaxBatches = 64;
constexpr uint64_t kBytesPerProduct = 4096;

ir::Shape batch_shape(const ir::Shape& shape) { return {shape.begin(), shape.end() - 2}; }
int64_t num_matrices(const ir::Shape& batches) { return ir::TensorType{ir::kInt8, batches}.num_elements(); }

// An operand [..., r, c] as its matrices, one by one.
std::vector<Value> matrices_of(const OpContext& op, const Value& operand) {
  const ir::Shape shape = op.shape(operand);
  const ir::Shape matrix(shape.end() - 2, shape.end());
  const int64_t count = num_matrices(batch_shape(shape));
  if (count == 1) return {op.reshape(operand, matrix)};
  const Value flat = op.reshape(operand, {count, matrix[0], matrix[1]});
  std::vector<Value> parts =
      op.emit_many("split", {flat}, {{"indices_or_sections", count}, {"axis", int64_t{0}}});
  for (Value& part : parts) part = op.reshape(part, matrix);
  return parts;
}

// MatMul of operands of rank 2 and more, the second a batch of matrices.
Value batched(const OpContext& op, const Value& a, const Value& b, const Dense& dense) {
  const ir::Shape batch_a = batch_shape(op.shape(a)), batch_b = batch_shape(op.shape(b));
  const ir::Shape batches = op::broadcast_shape(batch_a, batch_b);
  const int64_t count = num_matrices(batches);
  if (count > kMaxBatches) throw Unsupported{cat(count, " matrix products (at most ", kMaxBatches, ")")};
  op.graph().charge(static_cast<uint64_t>(count) * kBytesPerProduct);
  const std::vector<Value> all_a = matrices_of(op, a), all_b = matrices_of(op, b);
  // For each matrix of the result which one of an operand's, whose batches broadcast, it is made of.
  const std::vector<size_t> from_a = op::broadcast_indices(batch_a, batches),
                            from_b = op::broadcast_indices(batch_b, batches);
  std::vector<Value> products;
  for (size_t i = 0; i < from_a.size(); ++i) {
    const Value product = dense(all_a[from_a[i]], transposed(op, all_b[from_b[i]]));
    products.push_back(op.reshape(product, {1, op.shape(product)[0], op.shape(product)[1]}));
  }
  const Value all = count == 1 ? products[0] : op.emit("concatenate", products, {{"axis", int64_t{0}}});
  ir::Shape shape = batches;
  shape.insert(shape.end(), op.shape(all).begin() + 1, op.shape(all).end());
  return op.reshape(all, shape);
}

// Multiplies two tensors of matrices that the network computes: [..., m, k] and [..., k, n].
using Matmul = std::function<Value(const Value& a, const Value& b)>;

// MatMul: a vector counts as a row [1, k] or a column [k, 1], whose axis is not in the result. matmul: null
// if only `dense` can multiply them.
Value product(const OpContext& op, const Value& a, const Value& b, const Dense& dense,
              const Matmul& matmul = nullptr) {
  const size_t rank_a = op.shape(a).size(), rank_b = op.shape(b).size();
  if (rank_a == 0 || rank_b == 0) invalid("an operand is a scalar");
  const Value rows = rank_a == 1 ? op.reshape(a, {1, op.shape(a)[0]}) : a;
  Value result;
  if (matmul != nullptr && !depends_on_constants(op, b)) {
    result = matmul(rows, rank_b == 1 ? op.reshape(b, {op.shape(b)[0], 1}) : b);
  } else if (rank_b > 2) {
    result = batched(op, rows, b, dense);
  } else {
    result = dense(rows, rank_b == 1 ? op.reshape(b, {1, op.shape(b)[0]}) : transposed(op, b));
  }
  ir::Shape shape = op.shape(result);
  if (rank_b == 1) shape.pop_back();
  if (rank_a == 1) shape.erase(shape.end() - (rank_b == 1 ? 1 : 2));
  return op.reshape(result, shape);
}

}  // namespace

Value matrix_product(const OpContext& op, const Value& a, const Value& b) {
  const auto dense = [&](const Value& data, const Value& weights) {
    return op.emit("nn.dense", {data, weights});
  };
  const auto matmul = [&](const Value& lhs, const Value& rhs) {
    return op.emit("nn.batch_matmul", {lhs, rhs});
  };
  return product(op, a, b, dense, matmul);
}

void import_mat_mul(const OpContext& op) {
  op.expect_counts(2, 2);
  op.define(0, matrix_product(op, op.input(0), op.input(1)));
}

// com.microsoft: alpha * A * B, either of them with its last two axes exchanged.
void import_fused_mat_mul(const OpContext& op) {
  op.expect_counts(2, 2);
  const auto operand = [&](size_t i, const char* transposes, const char* transposes_batch) {
    if (op.attr_int(transposes_batch, 0) != 0) throw Unsupported{cat("attribute '", transposes_batch, "'")};
    const Value& value = op.input(i);
    const size_t rank = op.shape(value).size();
    if (op.attr_int(transposes, 0) == 0 || rank < 2) return value;
    ir::Ints axes;
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
    std::swap(axes[rank - 2], axes[rank - 1]);
    return op.emit("transpose", {value}, {{"axes", axes}});
  };
  const Value a = operand(0, "transA", "transBatchA"), b = operand(1, "transB", "transBatchB");
  op.define(0, scaled(op, matrix_product(op, a, b), op.attr_float("alpha", 1)));
}

namespace {

Value gemm(const OpContext& op) {
  const float alpha = op.attr_float("alpha", 1), beta = op.attr_float("beta", 1);
  const bool trans_a = op.attr_int("transA", 0) != 0, trans_b = op.attr_int("transB", 0) != 0;
  if (op.opset() < 7) op.attr_int("broadcast", 0);  // says that the addend's shape may differ
  const Value data = trans_a ? transposed(op, op.input(0)) : op.input(0);
  if (op.shape(data).size() != 2) invalid(cat("the first operand is ", op.type(data), ", expected rank 2"));
  const bool is_layer = depends_on_constants(op, op.input(1));
  const auto product_of = [&] {
    if (!is_layer) return op.emit("nn.batch_matmul", {data, op.input(1)}, {{"transpose_b", trans_b}});
    return op.emit("nn.dense", {data, trans_b ? op.input(1) : transposed(op, op.input(1))});
  };
  Value result = scaled(op, product_of(), alpha);
  if (op.has_input(2) && beta != 0) {
    const int64_t columns = op.shape(result)[1];
    const Value addend = scaled(op, op.input(2), beta);
    const bool is_bias = is_layer && depends_on_constants(op, addend);
    const Value bias = is_bias ? as_bias(op, addend, columns) : Value();
    const ir::Shape shape = op.shape(result);
    result = bias.is_known() ? op.emit("nn.bias_add", {result, bias}, {{"axis", int64_t{1}}})
                             : op.emit("add", {result, addend});
    if (op.shape(result) != shape)
      invalid(cat("the addend is ", op.type(addend), ", expected to broadcast to ", to_text(shape)));
  }
  return result;
}

}  // namespace

void import_gemm(const OpContext& op) {
  op.expect_counts(op.opset() < 11 ? 3 : 2, 3);
  op.define(0, gemm(op));
}

// com.microsoft: with an activation.
void import_fused_gemm(const OpContext& op) {
  op.expect_counts(2, 3);
  op.define(0, activated(op, gemm(op)));
}

void import_qlinear_mat_mul(const OpContext& op) {
  op.expect_counts(8, 8);
  MatmulTail tail;
  tail.input = op.per_tensor_qparams(1);
  tail.kernel = op.qparams(4);
  tail.output = op.per_tensor_qparams(6);
  tail.out_dtype = op.zero_point_dtype(7);
  const auto dense = [&](const Value& data, const Value& weights) {
    const Value accumulator = op.emit(
        "qnn.dense",
        {data, weights, tail.input.zero_point, tail.kernel.zero_point, tail.input.scale, tail.kernel.scale});
    tail.channel_axis = static_cast<int64_t>(op.shape(accumulator).size()) - 1;
    return emit_tail(op, accumulator, tail);
  };
  // Inputs and output have one dtype; int8 and uint8 stand for the same reals when the zero point moves
  // along.
  const auto as_output = [&](const Value& data, QParams* params) {
    const ir::DType from = op.type(data).dtype;
    if (from == tail.out_dtype) return data;
    const auto moved = params->zero_point->as<int32_t>()[0] + static_cast<int32_t>(tail.out_dtype.min()) -
                       static_cast<int32_t>(from.min());
    const ir::ConstantRef before = params->zero_point;
    params->zero_point = ir::make_scalar(static_cast<int32_t>(moved));
    return op.emit("qnn.requantize", {data, params->scale, before, params->scale, params->zero_point},
                   {{"out_dtype", ir::to_string(tail.out_dtype)}, {"contract", std::string("f32e")}});
  };
  const auto matmul = [&](const Value& a, const Value& b) {
    if (tail.kernel.per_axis()) throw Unsupported{"one scale per column of activations"};
    QParams left = tail.input, right = tail.kernel;
    const Value lhs = as_output(a, &left), rhs = as_output(b, &right);
    return op.emit("qnn.batch_matmul",
                   {lhs, rhs, left.scale, left.zero_point, right.scale, right.zero_point, tail.output.scale,
                    tail.output.zero_point},
                   {{"contract", std::string("f32e")}});
  };
  op.define(0, product(op, op.input(0), op.input(3), dense, matmul));
}

namespace {

// The zero point that the network computes, times the sums of the weights, as int32: what the product of the
// stored integers has too much.
Value zero_point_part(const OpContext& op, const Value& zero_point, size_t weights_at,
                      size_t zero_points_at) {
  const ir::ConstantRef weights = op.constant(weights_at, "weights");
  const Value zero_points = integer_zero_point(op, zero_points_at);
  if (weights->type().shape.size() != 2)
    throw Unsupported{"a zero point that is not constant beside batches of weights"};
  if (op.type(zero_point).num_elements() != 1) throw Unsupported{"per-row zero points of activations"};
  const auto rows = static_cast<size_t>(weights->type().shape[0]),
             columns = static_cast<size_t>(weights->type().shape[1]);
  const std::span<const int32_t> less = zero_points.constant->as<int32_t>();
  const ir::DType dtype = op.type(zero_point).dtype;
  const bool is_8_bit = dtype == ir::kInt8 || dtype == ir::kUint8;
  const bool weights_are = weights->type().dtype == ir::kInt8 || weights->type().dtype == ir::kUint8;
  if (!is_8_bit || !weights_are)
    throw Unsupported{"a zero point or weights of another dtype than int8 or uint8"};
  if (less.size() != 1 && less.size() != columns)
    invalid(cat("there are ", less.size(), " zero points for ", columns, " columns"));
  const std::vector<double> values = numbers_of(*weights);
  std::vector<int32_t> sums(columns);
  for (size_t o = 0; o < columns; ++o) {
    uint32_t sum = 0;
    for (size_t k = 0; k < rows; ++k)
      sum += static_cast<uint32_t>(static_cast<int32_t>(values[k * columns + o]) -
                                   less[less.size() == 1 ? 0 : o]);
    sums[o] = static_cast<int32_t>(sum);
  }
  op.graph().charge(columns * sizeof(int32_t));
  const Value wide = op.emit("cast", {op.reshape(zero_point, {})}, {{"dtype", std::string("int32")}});
  return op.emit("multiply", {wide, make_vector(ir::kInt32, sums)});
}

}  // namespace

void import_mat_mul_integer(const OpContext& op) {
  op.expect_counts(2, 4);
  if (has_computed_zero_point(op)) {
    const Value sums = product(op, op.input(0), op.input(1), [&](const Value& data, const Value& weights) {
      return op.emit("qnn.dense", integer_operands(op, data, weights));
    });
    return op.define(0, op.emit("subtract", {sums, zero_point_part(op, op.input(2), 1, 3)}));
  }
  op.define(0, product(op, op.input(0), op.input(1), [&](const Value& data, const Value& weights) {
              return op.emit("qnn.dense", integer_operands(op, data, weights));
            }));
}

// com.microsoft: the product, its scales and an addend in one.
namespace {

// sums * scales + bias; scales: of both operands.
Value scaled_sums(const OpContext& op, const Value& sums, const Value& scales, size_t bias) {
  const Value real = op.emit("cast", {sums}, {{"dtype", std::string("float32")}});
  return with_addend(op, op.emit("multiply", {real, scales}), bias);
}

// The product of integers of a tensor with a zero point that the network computes.
Value integer_product(const OpContext& op, const Value& data, const Value& weights,
                      size_t weights_zero_point) {
  const Value kernel = integer_zero_point(op, weights_zero_point);
  return product(op, data, weights, [&](const Value& rows, const Value& columns) {
    return op.emit("qnn.dense", {rows, columns, ir::make_scalar(int32_t{0}), kernel, ir::make_scalar(1.0f),
                                 ir::make_scalar(1.0f)});
  });
}

}  // namespace

Value integer_product_to_float(const OpContext& op, const IntegerProductInputs& at) {
  Value sums = integer_product(op, op.input(0), op.input(1), at.weights_zero_point);
  if (op.has_input(at.zero_point)) {
    const Value part = zero_point_part(op, op.input(at.zero_point), 1, at.weights_zero_point);
    sums = op.emit("subtract", {sums, part});
  }
  const Value scales = op.emit("multiply", {op.input(at.scale), op.input(at.weights_scale)});
  return scaled_sums(op, sums, scales, at.bias);
}

void import_mat_mul_integer_to_float(const OpContext& op) {
  op.expect_counts(4, 7);
  op.define(0,
            integer_product_to_float(
                op, {.scale = 2, .weights_scale = 3, .zero_point = 4, .weights_zero_point = 5, .bias = 6}));
}

// A float32, B, b scale, b zero point, bias.
void import_dynamic_quantize_mat_mul(const OpContext& op) {
  op.expect_counts(3, 5);
  const DynamicallyQuantized a = dynamically_quantized(op, op.input(0));
  const Value sums = integer_product(op, a.data, op.input(1), 3);
  const Value part = zero_point_part(op, a.zero_point, 1, 3);
  const Value scales = op.emit("multiply", {a.scale, op.input(2)});
  op.define(0, scaled_sums(op, op.emit("subtract", {sums, part}), scales, 4));
}

void import_qgemm(const OpContext& op) {
  op.expect_counts(6, 9);
  const bool trans_a = op.attr_int("transA", 0) != 0, trans_b = op.attr_int("transB", 0) != 0;
  const Value data = trans_a ? transposed(op, op.input(0)) : op.input(0);
  if (op.shape(data).size() != 2) invalid(cat("the first operand is ", op.type(data), ", expected rank 2"));
  const Value weights = trans_b ? op.input(3) : transposed(op, op.input(3));
  MatmulTail tail;
  tail.alpha = op.attr_float("alpha", 1);
  if (!(tail.alpha > 0)) throw Unsupported{cat("attribute 'alpha' ", tail.alpha, "; expected more than 0")};
  tail.input = op.per_tensor_qparams(1);
  tail.kernel = op.qparams(4);
  if (op.has_input(6)) {
    const Value& addend = op.input(6);
    tail.bias = as_bias(op, addend, op.shape(weights)[0]);
    if (!tail.bias.is_known()) throw Unsupported{"an addend that is not one value per column"};
  }
  const Value accumulator = op.emit(
      "qnn.dense",
      {data, weights, tail.input.zero_point, tail.kernel.zero_point, tail.input.scale, tail.kernel.scale});
  if (op.has_input(7)) {
    tail.output = op.per_tensor_qparams(7);
    tail.out_dtype = op.zero_point_dtype(8);
    return op.define(0, emit_tail(op, accumulator, tail));
  }
  const Value sums = tail.bias.is_known()
                         ? op.emit("nn.bias_add", {accumulator, tail.bias}, {{"axis", tail.channel_axis}})
                         : accumulator;
  op.define(0, scaled_sums(op, sums, product_scales(tail.input, tail.kernel, tail.alpha), kNoInput));
}

}  // namespace qplan::onnx
