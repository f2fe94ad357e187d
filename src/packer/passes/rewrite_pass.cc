#include "src/packer/passes/rewrite_pass.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

// Rows move at most a few steps in each visit; what they uncover for one another is done after as many.
constexpr int kMaxVisits = 16;

// The row, which fires only as long as there is memory for what it makes.
pattern::Rewrite within_budget(pattern::Rewrite row, PassContext& context, const Cost& cost) {
  row.build = [&context, &cost, build = std::move(row.build)](
                  const pattern::RewriteContext& match,
                  std::string* why) -> std::optional<pattern::PostValue> {
    const int64_t bytes = cost(match);
    if (bytes > context.fold_budget.bytes) {
      *why = "its constants would take more memory than is left for folding";
      return std::nullopt;
    }
    auto result = build(match, why);
    if (result) context.fold_budget.bytes -= bytes;
    return result;
  };
  return row;
}

}  // namespace

std::unique_ptr<ir::Function> run_rewrites(std::span<const pattern::Rewrite> rewrites,
                                           const ir::Function& pre, PassContext& context, const Cost& cost) {
  std::vector<pattern::Rewrite> rows;
  for (const pattern::Rewrite& row : rewrites) {
    if (!context.skipped(row.name)) rows.push_back(cost ? within_budget(row, context, cost) : row);
  }
  const pattern::Fired fired = [&](std::string_view rewrite, std::string_view node, std::string_view why) {
    context.fired(rewrite, node, why);
  };
  std::unique_ptr<ir::Function> result;
  for (int visit = 0; visit < kMaxVisits; ++visit) {
    std::unique_ptr<ir::Function> next = pattern::rewrite_once(result ? *result : pre, rows, fired);
    if (next == nullptr) break;
    result = std::move(next);
  }
  return result;
}

pattern::Pattern scalar_constant() { return pattern::constant().shape({}); }

pattern::Pattern dequantized(const std::string& name) {
  return pattern::op("qnn.dequantize", {pattern::any().dtypes({ir::kInt8, ir::kUint8}).as(name),
                                        scalar_constant(), scalar_constant()})
      .as("dq_" + name);
}

pattern::Pattern quantized(pattern::Pattern data) {
  return pattern::op("qnn.quantize", {std::move(data), scalar_constant(), scalar_constant()})
      .dtypes({ir::kInt8, ir::kUint8});
}

float scale_of(const pattern::Pre& pre, pattern::PreValue value) {
  return pre.constant(value)->as<float>()[0];
}

int32_t zero_point_of(const pattern::Pre& pre, pattern::PreValue value) {
  return pre.constant(value)->as<int32_t>()[0];
}

std::optional<double> scalar_value(const ir::Constant& constant) {
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kFloat32) return constant.as<float>()[0];
  if (dtype == ir::kInt32) return constant.as<int32_t>()[0];
  if (dtype == ir::kInt8) return constant.as<int8_t>()[0];
  if (dtype == ir::kUint8) return constant.as<uint8_t>()[0];
  return std::nullopt;
}

std::string describe(const pattern::Pre& pre, pattern::PreValue value) {
  if (const auto producer = pre.producer(value)) {
    return cat(producer->op() != nullptr ? producer->op()->name : "a call", " '", producer->name(), "'");
  }
  return pre.constant(value) != nullptr ? "a constant" : cat("parameter '%", pre.name(value), "'");
}

std::string count_text(uint64_t count, std::string_view noun) {
  return cat(count, " ", noun, count == 1 ? "" : "s");
}

bool is_per_channel(const ir::Shape& shape, const ir::Shape& data, size_t axis) {
  if (shape.size() > data.size()) return false;
  const size_t missing = data.size() - shape.size();
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t extent = i < missing ? 1 : shape[i - missing];
    if (extent != (i == axis ? data[axis] : 1)) return false;
  }
  return true;
}

AxisExtents extents_around(const ir::Shape& shape, size_t axis) {
  AxisExtents extents{static_cast<size_t>(shape[axis]), 1};
  for (size_t i = axis + 1; i < shape.size(); ++i) extents.inner *= static_cast<size_t>(shape[i]);
  return extents;
}

namespace {

// `rounded` is a whole number or infinite; beyond 2^53, where the sum would round, it is far outside anyway.
Quantized saturate(double rounded, int32_t zero_point, ir::DType dtype) {
  const double sum = rounded + zero_point;
  const auto least = static_cast<double>(dtype.min()), most = static_cast<double>(dtype.max());
  if (sum < least) return {static_cast<int32_t>(least), true};
  if (sum > most) return {static_cast<int32_t>(most), true};
  return {static_cast<int32_t>(sum), false};
}

}  // namespace

QuantizeRounding quantize_rounding(const ir::Node& quantize) {
  const std::string& rule = op::attr_string(quantize, "rule");
  if (rule == "mul_even") return QuantizeRounding::kMulEven;
  if (rule == "div_even") return QuantizeRounding::kDivEven;
  if (rule == "div_away") return QuantizeRounding::kDivAway;
  const bool even = op::attr_string(quantize, "contract") == "f32e";
  return even ? QuantizeRounding::kDivEven : QuantizeRounding::kDivAway;
}

Quantized Quantizer::operator()(float x) const {
  const float real = rounding == QuantizeRounding::kMulEven ? x * (1.0f / scale) : x / scale;
  if (std::isnan(real)) return {zero_point, false};
  const auto exact = static_cast<double>(real);
  // In double a float's fraction is exact, and so are both roundings.
  const double rounded = rounding == QuantizeRounding::kDivAway ? std::round(exact) : std::nearbyint(exact);
  return saturate(rounded, zero_point, dtype);
}

// The sums of products of a layer.
namespace {

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

// Sums of the differences of each sign.
struct SignedSums {
  int64_t positive = 0, negative = 0;
};

template <typename T>
std::vector<SignedSums> weight_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                    const AxisExtents& e) {
  const auto values = weights.as<T>();
  std::vector<SignedSums> sums(e.axis);
  for (size_t row = 0; row < values.size() / e.inner; ++row) {
    const size_t o = row % e.axis;
    const int64_t zero_point = entry<int32_t>(zero_points, o);
    for (const T value : values.subspan(row * e.inner, e.inner)) {
      const int64_t difference = int64_t{value} - zero_point;
      sums[o].positive += std::max<int64_t>(difference, 0);
      sums[o].negative += std::min<int64_t>(difference, 0);
    }
  }
  return sums;
}

}  // namespace

bool ProductSums::fits_with(double bias) const {
  // In double first: what is far outside has no int64.
  if (!(std::abs(bias) <= -static_cast<double>(kLeast))) return false;
  const auto whole = static_cast<int64_t>(bias);
  return whole + least >= kLeast && whole + most <= kMost;
}

std::vector<ProductSums> product_sums(const ir::Constant& weights, const ir::Constant& zero_points,
                                      size_t output_axis, LayerInput input, double largest_bias) {
  constexpr int64_t kLargestProduct = int64_t{255} * 255;
  const AxisExtents extents = extents_around(weights.type().shape, output_axis);
  const int64_t count = weights.type().num_elements() / static_cast<int64_t>(extents.axis);
  if (count <= kMost / kLargestProduct) {
    const ProductSums any{-count * kLargestProduct, count * kLargestProduct};
    if (any.fits_with(largest_bias) && any.fits_with(-largest_bias))
      return std::vector<ProductSums>(extents.axis, any);
  }
  const int64_t low = std::min<int64_t>(input.dtype.min() - int64_t{input.zero_point}, 0);
  const int64_t high = std::max<int64_t>(input.dtype.max() - int64_t{input.zero_point}, 0);
  const std::vector<SignedSums> all = weights.type().dtype == ir::kInt8
                                          ? weight_sums<int8_t>(weights, zero_points, extents)
                                          : weight_sums<uint8_t>(weights, zero_points, extents);
  std::vector<ProductSums> sums;
  for (const SignedSums& s : all) {
    sums.push_back({s.positive * low + s.negative * high, s.positive * high + s.negative * low});
  }
  return sums;
}

// The dtype of 8-bit operands and results.
namespace {

// How many elements of an axis the windows hold: whether that is odd for each of them.
bool all_odd(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  for (int64_t o = 0; o < out; ++o) {
    const int64_t begin = std::max<int64_t>(o * stride - pad, 0);
    const int64_t end = std::min(o * stride - pad + kernel, in);
    if ((end - begin) % 2 == 0) return false;
  }
  return true;
}

// The mean of an odd number of integers never lies halfway between two.
bool has_odd_windows(const Pre& pre, PreNode pool) {
  const op::DataLayout layout = op::data_layout(op::attr_string(pool.node(), "layout"));
  const op::Window2d window = op::pool2d_window(pool.node());
  const ir::Shape& in = pre.type(pool.operand(0)).shape;
  const ir::Shape& out = pre.type(pool.result()).shape;
  return all_odd(in[layout.h], out[layout.h], window.kernel_h, window.stride_h, window.pad_top) &&
         all_odd(in[layout.w], out[layout.w], window.kernel_w, window.stride_w, window.pad_left);
}

}  // namespace

bool may_change_signedness(const op::OpDef* op) {
  return op != nullptr && op->quantization != op::Quantization::kNone;
}

bool has_one_dtype(const op::OpDef& op) { return op.keeps_dtype || op.kind == op::OpKind::kBroadcast; }

const char* rounds_by_signedness(const Pre& pre, PreNode node) {
  if (node.is("image.resize2d")) return "it interpolates uint8 in float32 and int8 in integers";
  if (node.is("qnn.l2_normalize")) return "it multiplies numbers of uint8 in finer steps than those of int8";
  const bool averages = node.is("qnn.avg_pool2d") && op::attr_string(node.node(), "contract") != "f32e";
  return averages && !has_odd_windows(pre, node)
             ? "a mean halfway between two integers is rounded away from the stored 0"
             : nullptr;
}

bool contract_has_zero_points(PreNode node) {
  if (!op::has_contract(node.op())) return true;
  const std::string& contract = op::attr_string(node.node(), "contract");
  return contract == "tfl2" || contract == "tfl1" || contract == "f32e";
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }

bool keeps_reals(const Pre& pre, PreNode node) {
  if (!node.is("qnn.requantize")) return false;
  const ir::DType from = pre.type(node.operand(0)).dtype, to = pre.type(node.result()).dtype;
  if (!is_8_bit(from) || !is_8_bit(to)) return false;
  for (size_t i = 1; i < 5; ++i) {
    if (!pre.type(node.operand(i)).shape.empty()) return false;
  }
  const auto zero_point = [&](size_t i) { return pre.constant(node.operand(i))->as<int32_t>()[0]; };
  return node.operand(1) == node.operand(3) && zero_point(4) - zero_point(2) == to.min() - from.min();
}

ir::ConstantRef other_signedness(const ir::Constant& data) {
  std::vector<uint8_t> bytes(data.bytes().begin(), data.bytes().end());
  for (uint8_t& byte : bytes) byte ^= 0x80;  // plus or minus 128 in two's complement
  const ir::DType dtype = data.type().dtype == ir::kInt8 ? ir::kUint8 : ir::kInt8;
  return std::make_shared<const ir::Constant>(ir::TensorType{dtype, data.type().shape}, std::move(bytes));
}

ir::ConstantRef moved_zero_points(const ir::Constant& zero_points, int32_t offset) {
  std::vector<int32_t> values(zero_points.as<int32_t>().begin(), zero_points.as<int32_t>().end());
  for (int32_t& value : values) value += offset;  // within the other dtype
  return ir::make_constant(ir::kInt32, zero_points.type().shape, values);
}

namespace {

// As int8 weights, whatever dtype they have.
bool has_weight_zero_point(const Pre& pre, PreNode layer) {
  const size_t weight = *op::operand_with(*layer.op(), op::OperandRole::kWeight);
  const ir::ConstantRef zero_points = pre.constant(layer.operand(*op::zero_point_of(*layer.op(), weight)));
  if (zero_points == nullptr) return false;
  const int32_t symmetric = pre.type(layer.operand(weight)).dtype == ir::kUint8 ? 128 : 0;
  return std::ranges::any_of(zero_points->as<int32_t>(), [&](int32_t value) { return value != symmetric; });
}

bool is_uint8_arithmetic(const Pre& pre, PreNode node) {
  if (op::is_quantized_product(node.op())) return has_weight_zero_point(pre, node);
  if (!node.is("qnn.requantize") || op::attr_string(node.node(), "multiplier") != "product_f32") return false;
  // Fully connected layers form it so for both dtypes.
  const auto product = product_of(pre, node.operand(0));
  return product && product->is("qnn.conv2d");
}

}  // namespace

ir::DType activation_dtype(const ir::Function& function) {
  const Pre pre(function);
  for (size_t i = 0; i < function.nodes().size(); ++i) {
    if (is_uint8_arithmetic(pre, PreNode(function, i))) return ir::kUint8;
  }
  return ir::kInt8;
}

}  // namespace qplan::passes
