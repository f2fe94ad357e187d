// Operands of quantised operators as numbers: constants, scales, zero points, clamps. All targets read them
// here, so that a model is refused with the same text everywhere.
#ifndef QPLAN_SRC_PACKER_LAYER_OPERANDS_H_
#define QPLAN_SRC_PACKER_LAYER_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/properties.h"

namespace qplan::layer {

// What was read of a model, or why it cannot be read: "the weights' scale is not a constant".
template <typename T>
class Part {
 public:
  Part() = default;
  Part(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): as std::optional
  static Part unreadable(std::string why) {
    Part part;
    part.why_ = std::move(why);
    return part;
  }

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  // Only where there is no value.
  const std::string& why() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_ = "it is not there";
};

// what: the subject of the refusal, "the weights' scale".
Part<ir::ConstantRef> read_constant(const ir::Function& function, ir::ValueId value, const char* what);
Part<std::span<const float>> read_floats(const ir::Function& function, ir::ValueId value, const char* what);
Part<float> read_scale(const ir::Function& function, ir::ValueId value, const char* what);
// The elements of an int32 or int64 constant.
std::vector<int64_t> integers(const ir::Constant& constant);
// One number for all channels.
Part<int32_t> read_zero_point(const ir::Function& function, ir::ValueId value, const char* what);

// What a quantised result is clamped to, in units of the output.
struct Clamp {
  int32_t min = 0;
  int32_t max = 0;
};
Clamp full_clamp(ir::DType dtype);
// The dtype's range, cut by the clip.
Clamp clip_clamp(const ir::Node& clip, ir::DType dtype);

bool is_8_bit(ir::DType dtype);
// int8, uint8, int16: what activations of quantised networks are.
bool is_quantized(ir::DType dtype);

// The scales of quantised operators, and the multipliers that their contracts make of them
// (docs/numerics.md, "Scales"): one place for all targets.

// The scales of a layer of weights and of its qnn.requantize.
struct LayerScales {
  float input = 1.0f;
  std::span<const float> weights;  // one or one per channel
  std::span<const float> product;  // what the requantisation names: one or one per channel
  float output = 1.0f;
  bool product_in_float = false;  // multiplier="product_f32"

  // One multiplier serves all channels.
  bool is_one() const { return weights.size() == 1 && product.size() == 1; }
  float weight(size_t o) const { return weights[weights.size() == 1 ? 0 : o]; }
  float given(size_t o) const { return product[product.size() == 1 ? 0 : o]; }
  bool given_is_meant(size_t o) const {
    return !op::means_product(static_cast<double>(given(o)), static_cast<double>(input * weight(o)));
  }

  // Real multiplier of channel o under tfl2 and tfl1.
  double multiplier(size_t o) const {
    if (given_is_meant(o)) return static_cast<double>(given(o)) / static_cast<double>(output);
    if (product_in_float) return static_cast<double>(input * weight(o)) / static_cast<double>(output);
    return static_cast<double>(input) * static_cast<double>(weight(o)) / static_cast<double>(output);
  }
  // The same under f32e: product and quotient are float32.
  float f32e(size_t o) const {
    const float product_scale = given_is_meant(o) ? given(o) : input * weight(o);
    return product_scale / output;
  }
};

// The multiplier that kernels accept. PackError (QPLAN_MODEL_UNSUPPORTED) for one that is too large; between:
// what it leads from and to, in that error's text.
QuantizedMultiplier checked_multiplier(double real, std::string_view between = "accumulator and output");

// An addition under tfl2 (docs/numerics/add.md): both inputs, shifted left by kAddLeftShift, are brought to
// twice the larger scale, their sum to the output's.
inline constexpr int32_t kAddLeftShift = 20;
inline constexpr int32_t kAddLeftShiftInt16 = 15;
struct AddMultipliers {
  QuantizedMultiplier lhs, rhs, output;
};
AddMultipliers add_multipliers(float lhs_scale, float rhs_scale, float output_scale);

// A product under tfl2 (docs/numerics/mul.md). PackError (QPLAN_MODEL_UNSUPPORTED) as checked_multiplier.
QuantizedMultiplier product_multiplier(float lhs_scale, float rhs_scale, float output_scale);

// What brings differences to a softmax's maximum to Q5.26 under tfl2 (kernels/softmax/softmax.h); those below
// diff_min count as nothing.
struct SoftmaxScaling {
  int32_t multiplier = 0, left_shift = 0, diff_min = 0;
};
// factor: what a unit of the input is in the exponent. nullopt: TFLite refuses one of at most 2^-26.
std::optional<SoftmaxScaling> softmax_scaling(double factor);

// e to the power of -input_scale * d, for differences d from 0 to 255: a softmax's table under f32e.
std::vector<float> softmax_exponentials(float input_scale);

// A mean of count elements under tfl2: the count is divided into the multiplier's significand
// (docs/numerics/mean.md). PackError (QPLAN_MODEL_UNSUPPORTED) for scales that are too far apart.
QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_OPERANDS_H_
