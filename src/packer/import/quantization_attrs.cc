#include "src/packer/import/quantization_attrs.h"

#include <string>

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

}  // namespace qplan
