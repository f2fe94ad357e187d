#include "src/packer/passes/rewrite_pass.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

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

}  // namespace qplan::passes
