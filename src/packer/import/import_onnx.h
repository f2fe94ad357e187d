// Reads an ONNX model (.onnx). README.md states what each operator becomes.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_ONNX_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_ONNX_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/packer/import/import_options.h"
#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan {

// Whether the bytes begin as a ModelProto with a graph does; a truncated one too.
bool looks_like_onnx(std::span<const uint8_t> bytes);

// The model as a module with one function, "main". The bytes are untrusted. name appears in error texts: the
// file's. Inputs whose extents the model leaves open get them from options.input_types; an open first extent
// alone, the batch, is 1. Inputs in options.bindings become constants. PackError: QPLAN_MODEL_INVALID for a
// damaged file, QPLAN_MODEL_UNSUPPORTED with the list of everything in it that qplan does not import,
// QPLAN_INVALID_ARGUMENT for inputs that the options leave open or name wrongly.
ir::Module import_onnx(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                       const ImportOptions& options = {});

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_ONNX_H_
