#include <algorithm>
#include <bit>

#include "kernels/numeric/wide_functions.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/op_def.h"

namespace qplan::layer {
namespace {

// Converts an integer-valued clip bound, which may be infinite.
int32_t bound_in(double bound, ir::DType dtype) {
  if (bound <= static_cast<double>(dtype.min())) return static_cast<int32_t>(dtype.min());
  if (bound >= static_cast<double>(dtype.max())) return static_cast<int32_t>(dtype.max());
  return static_cast<int32_t>(bound);
}

}  // namespace

Part<ir::ConstantRef> read_constant(const ir::Function& function, ir::ValueId value, const char* what) {
  const ir::ConstantRef& constant = function.value(value).constant;
  if (constant == nullptr) return Part<ir::ConstantRef>::unreadable(cat(what, " is not a constant"));
  return constant;
}

Part<std::span<const float>> read_floats(const ir::Function& function, ir::ValueId value, const char* what) {
  using Floats = Part<std::span<const float>>;
  const Part<ir::ConstantRef> constant = read_constant(function, value, what);
  if (!constant) return Floats::unreadable(constant.why());
  if ((*constant)->type().dtype != ir::kFloat32) return Floats::unreadable(cat(what, " is not float32"));
  return (*constant)->as<float>();
}

std::vector<int64_t> integers(const ir::Constant& constant) {
  if (constant.type().dtype == ir::kInt32) {
    const auto values = constant.as<int32_t>();
    return {values.begin(), values.end()};
  }
  const auto values = constant.as<int64_t>();
  return {values.begin(), values.end()};
}

Part<float> read_scale(const ir::Function& function, ir::ValueId value, const char* what) {
  const Part<std::span<const float>> values = read_floats(function, value, what);
  if (!values) return Part<float>::unreadable(values.why());
  if (values->size() != 1)
    return Part<float>::unreadable(cat(what, " has ", values->size(), " values, expected one"));
  return values->front();
}

Part<int32_t> read_zero_point(const ir::Function& function, ir::ValueId value, const char* what) {
  const Part<ir::ConstantRef> constant = read_constant(function, value, what);
  if (!constant) return Part<int32_t>::unreadable(constant.why());
  if ((*constant)->type().dtype != ir::kInt32) return Part<int32_t>::unreadable(cat(what, " is not int32"));
  const std::span<const int32_t> values = (*constant)->as<int32_t>();
  if (values.empty() || std::ranges::any_of(values, [&](int32_t v) { return v != values[0]; }))
    return Part<int32_t>::unreadable(cat(what, " is not one number"));
  return values[0];
}

Clamp full_clamp(ir::DType dtype) {
  return {static_cast<int32_t>(dtype.min()), static_cast<int32_t>(dtype.max())};
}

Clamp clip_clamp(const ir::Node& clip, ir::DType dtype) {
  return {bound_in(op::attr_float(clip, "a_min"), dtype), bound_in(op::attr_float(clip, "a_max"), dtype)};
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }
bool is_quantized(ir::DType dtype) { return is_8_bit(dtype) || dtype == ir::kInt16; }

QuantizedMultiplier checked_multiplier(double real, std::string_view between) {
  constexpr int32_t kMaxShift = 30;
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > kMaxShift) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("its scales make a factor of 2^30 or more between ", between));
  }
  return result;
}

AddMultipliers add_multipliers(float lhs_scale, float rhs_scale, float output_scale) {
  const double lhs = static_cast<double>(lhs_scale), rhs = static_cast<double>(rhs_scale);
  const double twice_max = 2.0 * std::max(lhs, rhs);
  const double output = static_cast<double>(1 << kAddLeftShift) * static_cast<double>(output_scale);
  return {quantize_multiplier(lhs / twice_max), quantize_multiplier(rhs / twice_max),
          quantize_multiplier(twice_max / output)};
}

// float32 throughout, as TFLite's Prepare.
QuantizedMultiplier product_multiplier(float lhs_scale, float rhs_scale, float output_scale) {
  const float real = lhs_scale * rhs_scale / output_scale;
  return checked_multiplier(static_cast<double>(real));
}

std::optional<SoftmaxScaling> softmax_scaling(double factor) {
  constexpr int32_t kIntegerBits = 5;
  constexpr double kMaxMultiplier = 2147483647.0;  // 2^31 - 1
  const double real = factor * static_cast<double>(1 << (31 - kIntegerBits));
  if (!(real > 1.0)) return std::nullopt;
  const QuantizedMultiplier quantized = quantize_multiplier(real < kMaxMultiplier ? real : kMaxMultiplier);
  // The largest difference whose shifted value is at most 31 in Q5.26.
  const int64_t radius = (int64_t{(1 << kIntegerBits) - 1} << (31 - kIntegerBits)) >> quantized.shift;
  return SoftmaxScaling{quantized.multiplier, quantized.shift, static_cast<int32_t>(-radius)};
}

std::vector<float> softmax_exponentials(float input_scale) {  // docs/numerics/softmax.md
  constexpr int kDifferences = 256;                           // of two bytes
  std::vector<float> table;
  for (int d = 0; d < kDifferences; ++d)
    table.push_back(static_cast<float>(exp_double(-static_cast<double>(input_scale) * d)));
  return table;
}

QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count) {
  const QuantizedMultiplier factor =
      checked_multiplier(static_cast<double>(input_scale) / static_cast<double>(output_scale));
  const int32_t room = std::min({static_cast<int32_t>(std::bit_width(count)) - 1, 32, 31 + factor.shift});
  const uint64_t significand = static_cast<uint64_t>(factor.multiplier) << room;
  return {static_cast<int32_t>(significand / count), factor.shift - room};
}

}  // namespace qplan::layer
