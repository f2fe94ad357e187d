// The importers: from the bytes of a file to a module; and what they share: the quantisation of inputs and
// outputs, and texts about what a file says.
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/ir/types.h"

namespace qplan {

// An operator of a model as its file has it.
struct SourceOperator {
  std::string kind;    // "CONV_2D"
  std::string name;    // of the nodes that it becomes
  std::string reason;  // why it is not imported; "": it is
  uint64_t macs = 0;   // of one that is not imported, as far as its weights tell
};

// A part of a network, by names of its tensors in the file (part.h). Empty lists: the model's own inputs and
// outputs.
struct Part {
  std::vector<std::string> begin_at, end_at;
  bool empty() const { return begin_at.empty() && end_at.empty(); }
};

// Information that the caller gives an importer because the model lacks it. An importer ignores options that
// its format cannot use, and refuses names that the model does not have.
struct ImportOptions {
  // Inputs and unbound parameters that become constants, by name.
  std::map<std::string, ir::ConstantRef, std::less<>> bindings;
  // Types of inputs: they fix dynamic extents, and type the free variables of Relay text.
  std::map<std::string, ir::TensorType, std::less<>> input_types;
  // Where two models are imported with the same options: names above that are no inputs of this model go
  // there. Otherwise they are refused.
  std::set<std::string>* names_of_others = nullptr;
  // Data for constants that a text names without giving them, the same for the same seed on every host.
  // Without a seed such a text is refused.
  std::optional<uint64_t> synthesize_constants;
  // To see what there is rather than to pack it: all operators of the file go there, and those that are not
  // imported become no error: their results are parameters, and what they read are results of main.
  // Importers of formats without a list of operators ignore it.
  std::vector<SourceOperator>* operators = nullptr;
  // Operators of the caller's, for what a model has that is not qplan's (docs/custom-operators.md).
  std::vector<const qplan_custom_operator*> custom_operators;
  // What is imported of the model: its tensors become main's inputs and outputs, in this order. Operators
  // that do not belong to it may be anything.
  Part part;
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
// (format/README.md, "Metadata"); "" where it says nothing. Of a part only what it says of the part's inputs
// and outputs. PackError (QPLAN_MODEL_INVALID) where it is damaged: nothing that the model computes depends
// on it.
std::string tflite_metadata_json(std::span<const uint8_t> bytes, const Part& part = {});

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

// Quantisation of a model's inputs and outputs, kept as attributes of the function for tools that show it
// (README.md).

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

// Sets the attributes that are absent, for 8-bit inputs and outputs whose scale an
// operator names, directly or through operators that only move elements. canonical: the function went through
// the passes. A canonical convolution without padding has the zero point that suits its kernel, with the
// difference in its bias, so it says nothing about its input's zero point.
void set_io_quantization(ir::Function& function, bool canonical);

}  // namespace qplan

namespace qplan::importer {

// Texts made from what a file says, fit for one line of an error message and for JSON.

// A name as it enters the IR: control characters, and bytes that are not UTF-8, become '?'; at most 1,024
// bytes, since a file may say the same long name many times.
std::string clean_name(std::string_view name);
// 'name' in single quotes, cut to what a message can carry.
std::string in_quotes(std::string_view name);
// Quotes like in_quotes(), but without a limit on the length, because the user must find the file by this
// text.
std::string quoted_path(std::string_view path);
std::string to_text(const ir::Shape& shape);  // "[1, 3, 3, 8]"
std::string to_text(float value);             // shortest that reads back the same

// PackError with status QPLAN_MODEL_INVALID; the importer puts the place before the text.
[[noreturn]] void invalid(const std::string& text);

// A use of an operator that is not imported; reason continues "<operator> with ": "float32 input". Not an
// error yet: the importer collects all of them.
struct Unsupported {
  std::string reason;
};

// Uses that qplan does not import, collected while the whole model is read, so that one error lists all of
// them.
class UnsupportedList {
 public:
  // what: "CONV_2D with float32 input"; node: of the operator, as messages show it.
  void add(const std::string& what, const std::string& node) {
    Entry& entry = entries_[what];
    if (entry.count++ == 0) entry.first = node;
    ++total_;
  }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return total_; }
  // Whether a part of what was added is this.
  bool mentions(std::string_view part) const;
  // "2 operators that qplan does not import: SVDF (first 'a')", or, where there are several kinds, their sum
  // and one line a kind, the most frequent first:
  //   3 operators that qplan does not import:
  //     2 x SVDF (first 'a')
  //     1 x CUMSUM ('x')
  std::string text() const;

 private:
  struct Entry {
    size_t count = 0;
    std::string first;
  };
  std::map<std::string, Entry> entries_;
  size_t total_ = 0;
};

// The notes, then the error, one line each. A note says what the model was made for or how it was quantised:
// it explains the error better than the error does.
// The error ends with what to do where no note says it, and with the lines about parts (part.h).
// has_coverage: `qplan pack --coverage` tells more.
std::string with_notes(const std::vector<std::string>& notes, const std::string& error,
                       const std::string& parts = "", bool has_coverage = true);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_H_
