// Reads a TorchScript archive (.pt). README.md states what each operator becomes.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_PYTORCH_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_PYTORCH_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/packer/import/import_options.h"
#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan {

// The model as a module with one function, "main". The bytes are untrusted; nothing in them is executed. name
// appears in error texts: the file's. TorchScript does not record the types of inputs: each must be in
// options.input_types or options.bindings. PackError: QPLAN_MODEL_INVALID for a damaged file,
// QPLAN_MODEL_UNSUPPORTED with the list of everything in it that qplan does not import,
// QPLAN_INVALID_ARGUMENT for inputs that the options leave open or name wrongly.
ir::Module import_pytorch(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                          const ImportOptions& options = {});

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_PYTORCH_H_
