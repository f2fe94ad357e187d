// Quantisation of a model's inputs and outputs, kept as attributes of the function for tools that show it
// (README.md).
#ifndef QPLAN_SRC_PACKER_IMPORT_QUANTIZATION_ATTRS_H_
#define QPLAN_SRC_PACKER_IMPORT_QUANTIZATION_ATTRS_H_

#include <cstdint>
#include <optional>

#include "src/packer/ir/module.h"

namespace qplan {

struct TensorQuantization {
  float scale;
  int32_t zero_point;
};

void set_input_quantization(ir::Function& function, size_t index, TensorQuantization quantization);
void set_output_quantization(ir::Function& function, size_t index, TensorQuantization quantization);
void clear_input_quantization(ir::Function& function, size_t index);
void clear_output_quantization(ir::Function& function, size_t index);
// nullopt: the input or output has none. The attributes have the kinds that the functions above give them:
// those of a file are checked first.
std::optional<TensorQuantization> input_quantization(const ir::Function& function, size_t index);
std::optional<TensorQuantization> output_quantization(const ir::Function& function, size_t index);

// For attributes that a file may hold: PackError (QPLAN_MODEL_INVALID) unless each one of an input or output
// is what the functions above write. A scale is a positive finite float32; a zero point is an integer in the
// range of the dtype.
void check_quantization_attrs(const ir::Function& function);

// Quantisation of 8-bit inputs and outputs, read off the operators beside them where the source keeps it
// nowhere else.

// Sets the attributes (quantization_attrs.h) that are absent, for 8-bit inputs and outputs whose scale an
// operator names, directly or through operators that only move elements. canonical: the function went through
// the passes. A canonical convolution without padding has the zero point that suits its kernel, with the
// difference in its bias, so it says nothing about its input's zero point.
void set_io_quantization(ir::Function& function, bool canonical);

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_QUANTIZATION_ATTRS_H_
