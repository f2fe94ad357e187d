// The importers: from the bytes of a file to a module.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"

namespace qplan {

// An operator of a model as its file has it.
struct SourceOperator {
  std::string kind;    // "CONV_2D"
  std::string name;    // of the nodes that it becomes
  std::string reason;  // why it is not imported; "": it is
  uint64_t macs = 0;   // of one that is not imported, as far as its weights tell
};

// Information that the caller gives an importer because the model lacks it. An importer ignores options that
// its format cannot use, and refuses names that the model does not have.
struct ImportOptions {
  // Inputs and unbound parameters that become constants, by name.
  std::map<std::string, ir::ConstantRef, std::less<>> bindings;
  // Types of inputs: they fix dynamic extents, and type the free variables of Relay text.
  std::map<std::string, ir::TensorType, std::less<>> input_types;
  // Data for constants that a text names without giving them, the same for the same seed on every host.
  // Without a seed such a text is refused.
  std::optional<uint64_t> synthesize_constants;
  // To see what there is rather than to pack it: all operators of the file go there, and those that are not
  // imported become no error: their results are parameters, and what they read are results of main.
  // Importers of formats without a list of operators ignore it.
  std::vector<SourceOperator>* operators = nullptr;
  // Operators of the caller's, for what a model has that is not qplan's (docs/custom-operators.md).
  std::vector<const qplan_custom_operator*> custom_operators;
};

// For modules of such an import: everything that nothing reads becomes a result, as far as there is room.
void keep_all_results(ir::Function& main);

// Reads a .tflite file. README.md states what each operator becomes.

// The model as a module with one function, "main". The bytes are untrusted. name appears in error texts: the
// file's. PackError: QPLAN_MODEL_INVALID for a damaged file, QPLAN_MODEL_UNSUPPORTED with the list of
// everything in it that qplan does not import.
ir::Module import_tflite(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                         const ImportOptions& options = {});

// What the file says of its inputs and outputs for people (TFLite's metadata), as the JSON that a plan keeps
// (format/README.md, "Metadata"); "" where it says nothing. PackError (QPLAN_MODEL_INVALID) where it is
// damaged: nothing that the model computes depends on it.
std::string tflite_metadata_json(std::span<const uint8_t> bytes);

// Reads an ONNX model (.onnx). README.md states what each operator becomes.

// Whether the bytes begin as a ModelProto with a graph does; a truncated one too.
bool looks_like_onnx(std::span<const uint8_t> bytes);

// The model as a module with one function, "main". The bytes are untrusted. name appears in error texts: the
// file's. Inputs whose extents the model leaves open get them from options.input_types; an open first extent
// alone, the batch, is 1. Inputs in options.bindings become constants. PackError: QPLAN_MODEL_INVALID for a
// damaged file, QPLAN_MODEL_UNSUPPORTED with the list of everything in it that qplan does not import,
// QPLAN_INVALID_ARGUMENT for inputs that the options leave open or name wrongly.
ir::Module import_onnx(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                       const ImportOptions& options = {});

// Reads an archive of PyTorch: TorchScript (.pt) or an exported program (.pt2). README.md states what each
// operator becomes.

// The model as a module with one function, "main". The bytes are untrusted; nothing in them is executed. name
// appears in error texts: the file's. TorchScript does not record the types of inputs: each must be in
// options.input_types or options.bindings. An exported program does, and an open first extent is 1, or what
// options.input_types says. PackError: QPLAN_MODEL_INVALID for a damaged file,
// QPLAN_MODEL_UNSUPPORTED with the list of everything in it that qplan does not import,
// QPLAN_INVALID_ARGUMENT for inputs that the options leave open or name wrongly.
ir::Module import_pytorch(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                          const ImportOptions& options = {});

// Reads Relay text (text/README.md).

// Whether the bytes can be a text: no control characters in their first part.
bool is_text(std::span<const uint8_t> bytes);

// The module of the text, which is untrusted. A body without a header becomes @main. The log reports
// requantisations whose multiplier differs from the one that their printed scale gives. PackError with line,
// column and the line.
ir::Module import_relay(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                        const ImportOptions& options = {});

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_H_
