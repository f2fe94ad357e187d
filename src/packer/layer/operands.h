// Operands of quantised operators as numbers: constants, scales, zero points, clamps. All targets read them
// here, so that a model is refused with the same text everywhere.
#ifndef QPLAN_SRC_PACKER_LAYER_OPERANDS_H_
#define QPLAN_SRC_PACKER_LAYER_OPERANDS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/packer/ir/module.h"

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
// One number for all channels.
Part<int32_t> read_zero_point(const ir::Function& function, ir::ValueId value, const char* what);

// What an 8-bit result is clamped to, in units of the output.
struct Clamp {
  int32_t min = 0;
  int32_t max = 0;
};
Clamp full_clamp(ir::DType dtype);
// The dtype's range, cut by the clip.
Clamp clip_clamp(const ir::Node& clip, ir::DType dtype);

bool is_8_bit(ir::DType dtype);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_OPERANDS_H_
