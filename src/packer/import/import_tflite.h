// Reads a .tflite file. README.md states what each operator becomes.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_TFLITE_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_TFLITE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan {

// The model as a module with one function, "main". The bytes are untrusted. name appears in error texts: the
// file's. PackError: QPLAN_MODEL_INVALID for a damaged file, QPLAN_MODEL_UNSUPPORTED with the list of
// everything in it that qplan does not import.
ir::Module import_tflite(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {});

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_TFLITE_H_
