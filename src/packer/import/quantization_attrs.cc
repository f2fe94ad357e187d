#include "src/packer/import/quantization_attrs.h"

#include <cmath>
#include <limits>
#include <string>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan {
namespace {

std::string attr_name(const char* side, const char* what, size_t index) {
  return std::string(side) + what + std::to_string(index);
}

void set(ir::Function& function, const char* side, size_t index, TensorQuantization quantization) {
  function.attrs().set(attr_name(side, "_scale_", index), static_cast<double>(quantization.scale));
  function.attrs().set(attr_name(side, "_zero_point_", index), int64_t{quantization.zero_point});
}

void clear(ir::Function& function, const char* side, size_t index) {
  function.attrs().erase(attr_name(side, "_scale_", index));
  function.attrs().erase(attr_name(side, "_zero_point_", index));
}

std::optional<TensorQuantization> get(const ir::Function& function, const char* side, size_t index) {
  const std::string scale = attr_name(side, "_scale_", index);
  if (!function.attrs().has(scale)) return std::nullopt;
  const int64_t zero_point = function.attrs().get_int(attr_name(side, "_zero_point_", index), 0);
  return TensorQuantization{static_cast<float>(function.attrs().get_double(scale, 0)),
                            static_cast<int32_t>(zero_point)};
}

[[noreturn]] void refuse(const ir::Function& function, const std::string& name, const std::string& text) {
  throw PackError(QPLAN_MODEL_INVALID,
                  cat("function '@", function.name(), "': attribute '", name, "' ", text));
}

void check_scale(const ir::Function& function, const std::string& name) {
  const ir::AttrValue* value = function.attrs().find(name);
  if (value == nullptr) return;
  const auto* integer = std::get_if<int64_t>(value);
  const auto* number = std::get_if<double>(value);
  const double scale = integer != nullptr  ? static_cast<double>(*integer)
                       : number != nullptr ? *number
                                           : std::numeric_limits<double>::quiet_NaN();
  // The smallest subnormal float32 is about 1.4e-45; what is below half of it would become 0.
  const bool fits = scale > 0 && scale <= static_cast<double>(std::numeric_limits<float>::max());
  if (fits && static_cast<float>(scale) > 0) return;
  refuse(function, name, "is not a scale, expected a positive finite number of float32");
}

void check_zero_point(const ir::Function& function, const std::string& name, ir::DType dtype) {
  const ir::AttrValue* value = function.attrs().find(name);
  if (value == nullptr) return;
  const auto* zero_point = std::get_if<int64_t>(value);
  if (zero_point == nullptr) refuse(function, name, "is not a zero point, expected an integer");
  // Beside floats and wide integers a zero point means nothing; it must be one that a plan can hold.
  if (dtype.is_float() || dtype.bits > 32) dtype = ir::kInt32;
  if (*zero_point >= dtype.min() && *zero_point <= dtype.max()) return;
  refuse(function, name,
         cat("is ", *zero_point, ", outside of ", dtype, ": expected ", dtype.min(), " to ", dtype.max()));
}

void check(const ir::Function& function, const char* side, size_t index, ir::DType dtype) {
  check_scale(function, attr_name(side, "_scale_", index));
  check_zero_point(function, attr_name(side, "_zero_point_", index), dtype);
}

}  // namespace

void set_input_quantization(ir::Function& function, size_t index, TensorQuantization quantization) {
  set(function, "input", index, quantization);
}

void set_output_quantization(ir::Function& function, size_t index, TensorQuantization quantization) {
  set(function, "output", index, quantization);
}

void clear_input_quantization(ir::Function& function, size_t index) { clear(function, "input", index); }

void clear_output_quantization(ir::Function& function, size_t index) { clear(function, "output", index); }

std::optional<TensorQuantization> input_quantization(const ir::Function& function, size_t index) {
  return get(function, "input", index);
}

std::optional<TensorQuantization> output_quantization(const ir::Function& function, size_t index) {
  return get(function, "output", index);
}

void check_quantization_attrs(const ir::Function& function) {
  if (function.attrs().empty()) return;
  for (size_t i = 0; i < function.params().size(); ++i) {
    check(function, "input", i, function.type(function.params()[i]).dtype);
  }
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    check(function, "output", i, function.type(function.outputs()[i]).dtype);
  }
}

}  // namespace qplan
