// Imports .tflite files: their operators, the quantisation of inputs and outputs, and their metadata.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "format/plan_view.h"
#include "src/packer/error.h"
#include "src/packer/import/custom_operator.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/metadata_subset_generated.h"
#include "src/packer/import/tflite/model_file.h"
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"

namespace qplan {
namespace {

using importer::UnsupportedList;
using tfl::Graph;
using tfl::ModelFile;
using tfl::OpContext;
using tfl::TensorInfo;

std::string place_of(const ModelFile& file, const tflite::Operator& op, size_t index) {
  return "operator " + std::to_string(index) + " " + file.operator_name(op);
}

// Gives every output of an operator that could not be imported a parameter's value, so that the rest of the
// model can be looked through. The module is thrown away afterwards.
void define_placeholders(Graph& graph, const tflite::Operator& op) {
  if (op.outputs() == nullptr) return;
  for (const int32_t index : *op.outputs()) {
    const TensorInfo& tensor = graph.file().tensor(index);
    if (tensor.is_variable || tensor.is_constant() || tensor.file_type == tflite::TensorType_RESOURCE ||
        graph.find_list(tensor) != nullptr || graph.is_defined(tensor))
      continue;
    graph.define(tensor, graph.function().add_param("unknown_" + std::to_string(index),
                                                    {tensor.dtype.value_or(ir::kFloat32), tensor.shape}));
  }
}

// Multiply-accumulates of an operator with weights: each is used once for each position of the result, of a
// transposed convolution for each of its input. 0 for operators without any.
uint64_t weighted_macs(ModelFile& file, const tflite::Operator& op) {
  uint64_t weights = 0, positions = 0;
  const auto positions_of = [](const TensorInfo& tensor) {
    if (tensor.shape.empty() || tensor.is_empty) return uint64_t{0};
    return static_cast<uint64_t>(ir::TensorType{ir::kInt8, tensor.shape}.num_elements() /
                                 tensor.shape.back());
  };
  try {
    for (size_t i = 0; op.inputs() != nullptr && i < op.inputs()->size(); ++i) {
      const int32_t index = op.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (index == -1) continue;
      const TensorInfo& tensor = file.tensor(index);
      if (tensor.is_constant() && tensor.shape.size() >= 2)
        weights += static_cast<uint64_t>(ir::TensorType{ir::kInt8, tensor.shape}.num_elements());
      if (!tensor.is_constant() && file.builtin_code(op) == tflite::BuiltinOperator_TRANSPOSE_CONV)
        positions = std::max(positions, positions_of(tensor));
    }
    if (positions == 0 && op.outputs() != nullptr && op.outputs()->size() > 0)
      positions = positions_of(file.tensor(op.outputs()->Get(0)));
  } catch (const tfl::ExpandsTooMuch&) {
    throw;
  } catch (const PackError&) {  // of a tensor that is broken
    return 0;
  }
  return weights > 0 && positions > UINT64_MAX / weights ? 0 : weights * positions;
}

// found: where every operator is noted; null: nowhere. Returns the numbers of those that are not imported.
std::set<size_t> import_operators(Graph& graph, UnsupportedList* unsupported, const ImportOptions& options) {
  std::vector<SourceOperator>* const found = options.operators;
  std::set<size_t> refused;
  for (size_t i = 0; i < graph.file().num_operators(); ++i) {
    if (!graph.file().is_in_part(i)) continue;
    const tflite::Operator& op = graph.file().op(i);
    const std::string op_name = graph.file().operator_name(op);
    std::string node_name, name;
    const auto refuse = [&](const std::string& reason) {
      unsupported->add(reason.empty() ? op_name : op_name + " with " + reason, node_name);
      refused.insert(i);
      if (found == nullptr) return;
      found->back().reason = reason.empty() ? "not imported" : reason;
      found->back().macs =
          tfl::has_weights(graph.file().builtin_code(op)) ? weighted_macs(graph.file(), op) : 0;
    };
    try {
      OpContext context(graph, op, op_name, i);
      name = context.name();
      node_name = tfl::in_quotes(name);
      if (found != nullptr) found->push_back({op_name, name, "", 0});
      const int32_t code = graph.file().builtin_code(op);
      if (tfl::fold_integers(context, code)) continue;
      const tfl::ImportRow* float_row = tfl::find_float_row(context, code);
      if (const tfl::ImportRow* row = float_row != nullptr ? float_row : tfl::find_row(code)) {
        row->import_op(context);
        continue;
      }
      const qplan_custom_operator* custom =
          importer::find_custom(options.custom_operators, graph.file().custom_code(op));
      if (custom != nullptr) {
        tfl::import_custom(context, *custom);
        continue;
      }
      if (tfl::import_list(context, graph.file().custom_code(op))) continue;
      if (graph.file().custom_code(op) == "ethos-u") {
        tfl::import_ethosu(context);
        continue;
      }
      refuse("");
    } catch (const tfl::Unsupported& use) {
      refuse(use.reason);
    } catch (const tfl::ExpandsTooMuch& error) {
      throw PackError(error.status(), place_of(graph.file(), op, i) + " " + node_name + ": " + error.what());
    } catch (const PackError& error) {
      // After a placeholder an error may be about the placeholder; the list is what the user needs.
      if (unsupported->empty()) {
        throw PackError(error.status(),
                        place_of(graph.file(), op, i) + " " + node_name + ": " + error.what());
      }
      if (found != nullptr && !found->empty())
        found->back().reason = "it needs what an operator that is not imported computes";
    }
    define_placeholders(graph, op);
  }
  return refused;
}

// TFLite lets its caller resize such inputs; a plan has one shape, the one that the file was saved with.
void report_open_extents(const Graph& graph, const TensorInfo& tensor) {
  if (tensor.open.empty() || !graph.log()) return;
  const bool only_batch =
      std::ranges::find(tensor.open.begin() + 1, tensor.open.end(), true) == tensor.open.end();
  graph.log()(only_batch ? QPLAN_LOG_INFO : QPLAN_LOG_WARNING,
              "tflite: input " + tfl::in_quotes(tensor.name) + " has " +
                  (only_batch ? "an open batch extent" : "open extents") + ": " +
                  importer::to_text(tensor.shape) + " is taken" +
                  (only_batch ? "" : "; export the model with the shape that it is used with"));
}

void add_inputs(Graph& graph, UnsupportedList* unsupported) {
  std::set<std::string> names;
  for (size_t i = 0; i < graph.file().inputs().size(); ++i) {
    const TensorInfo& tensor = graph.file().tensor(graph.file().inputs()[i]);
    if (!tensor.dtype) {
      // A parameter of float32 stands for it, so that the operators that read it are checked, too.
      unsupported->add("input of type " + tfl::type_name(tensor.file_type), tfl::in_quotes(tensor.name));
      graph.define(tensor,
                   graph.function().add_param("input_" + std::to_string(i), {ir::kFloat32, tensor.shape}));
      continue;
    }
    if (tensor.is_variable) tfl::invalid("input " + tfl::in_quotes(tensor.name) + " is a variable");
    if (tensor.has_open_rank) unsupported->add("input without a shape", tfl::in_quotes(tensor.name));
    if (tensor.is_empty) tfl::invalid("input " + tfl::in_quotes(tensor.name) + " has no elements");
    report_open_extents(graph, tensor);
    std::string name = tensor.name.empty() ? "input_" + std::to_string(i) : tensor.name;
    for (size_t suffix = 1; !names.insert(name).second; ++suffix) {
      name = tensor.name + "_" + std::to_string(suffix);
    }
    graph.define(tensor, graph.function().add_param(name, {*tensor.dtype, tensor.shape}));
  }
}

// Returns the quantisation of an input or output of the model; scales of floats and wide integers mean
// nothing.
std::optional<TensorQuantization> plain_quantization(const TensorInfo& tensor) {
  if (tensor.num_scales() != 1 || !tensor.dtype || tensor.dtype->is_float() || tensor.dtype->bits > 32) {
    return std::nullopt;
  }
  const tfl::QuantParams params = tfl::checked_quantization(tensor);
  return TensorQuantization{params.scale, params.zero_point};
}

// has_gaps: operators were left out.
void finish(Graph& graph, bool has_gaps) {
  ir::Function& main = graph.function();
  for (size_t i = 0; i < graph.file().inputs().size(); ++i) {
    const TensorInfo& tensor = graph.file().tensor(graph.file().inputs()[i]);
    if (const auto quantization = plain_quantization(tensor)) set_input_quantization(main, i, *quantization);
  }
  std::vector<ir::ValueId> outputs;
  std::vector<std::string> names;
  if (graph.file().outputs().empty()) tfl::invalid("the model has no outputs");
  for (size_t i = 0; i < graph.file().outputs().size(); ++i) {
    const TensorInfo& tensor = graph.file().tensor(graph.file().outputs()[i]);
    outputs.push_back(graph.value(tensor));
    names.push_back(tensor.name.empty() ? "output_" + std::to_string(i) : tensor.name);
    if (const auto quantization = plain_quantization(tensor)) set_output_quantization(main, i, *quantization);
  }
  const std::vector<ir::State> states = graph.finish_states(&outputs, &names);
  main.set_outputs(std::move(outputs), std::move(names));
  // Results of operators that are not imported are parameters, after which no states can stand.
  if (has_gaps) return keep_all_results(main);
  ir::set_states(main, states);
}

// A plan has no complex numbers. A parameter stands for such an output, as it does for operators that are not
// imported.
void refuse_complex_outputs(Graph& graph, UnsupportedList* unsupported) {
  for (const int32_t index : graph.file().outputs()) {
    const TensorInfo& tensor = graph.file().tensor(index);
    if (graph.find_complex(tensor) == nullptr || graph.is_defined(tensor)) continue;
    unsupported->add("output of type " + tfl::type_name(tensor.file_type), tfl::in_quotes(tensor.name));
    graph.define(tensor,
                 graph.function().add_param("output_" + std::to_string(index), {ir::kFloat32, tensor.shape}));
  }
}

ir::Module import_model(ModelFile& file, const std::string& place, const LogFunction& log,
                        const ImportOptions& options, std::string* parts) {
  ir::Module module;
  Graph graph(file, module.add_function("main"), log);
  UnsupportedList unsupported;
  add_inputs(graph, &unsupported);
  const size_t before_variables = unsupported.size();
  tfl::prepare_variables(graph, &unsupported);
  const bool has_variables = unsupported.size() == before_variables;
  std::set<size_t> refused = import_operators(graph, &unsupported, options);
  refuse_complex_outputs(graph, &unsupported);
  if (!unsupported.empty() && options.operators == nullptr) {
    tfl::list_subgraph_operators(file, graph.imported_subgraphs(), &unsupported);
    // Variables that have no first value are at fault where they are set.
    for (size_t i = 0; !has_variables && i < file.num_operators(); ++i) {
      if (file.is_in_part(i) && file.builtin_code(file.op(i)) == tflite::BuiltinOperator_CALL_ONCE)
        refused.insert(i);
    }
    const auto is_known = [&](const TensorInfo& tensor) {
      return graph.is_defined(tensor) && graph.function().value(graph.value(tensor)).constant != nullptr;
    };
    if (options.part.empty()) *parts = tfl::parts_without(file, refused, is_known);
    throw PackError(QPLAN_MODEL_UNSUPPORTED, unsupported.text());
  }
  finish(graph, !unsupported.empty());
  if (log) {
    for (const std::string& note : tfl::model_notes(file)) log(QPLAN_LOG_INFO, place + note);
  }
  if (log && file.num_subgraphs() > 1 && !graph.has_variables() && graph.imported_subgraphs().empty()) {
    log(QPLAN_LOG_INFO,
        place + "subgraphs 1 to " + std::to_string(file.num_subgraphs() - 1) + " are not used");
  }
  return module;
}

// What to do about uses that are not imported, where that is more than to leave them out.
struct Advice {
  const char* part;  // of the list of operators
  const char* text;
};
constexpr char kFixShapes[] =
    "shapes, axes and positions must be known when the model is packed; export it with fixed input shapes";
constexpr char kCustomOperator[] = "custom operator";
constexpr Advice kAdvice[] = {
    {"shape values that are not constant", kFixShapes},
    {"begin values that are not constant", kFixShapes},
    {"size values that are not constant", kFixShapes},
    {"extents that are not constant", kFixShapes},
    {"of type string",
     "qplan runs networks on numbers: pack the part of the model after its texts became numbers "
     "(--begin-at)"},
    {"output of type complex64",
     "a plan has no complex numbers: end the model with their absolute values, or with real and imaginary "
     "parts"},
    {" inside IF",
     "branches are imported where all operators inside both are; else export the model with the branch that "
     "is "
     "meant"},
    {"custom operator 'ethos-u' with ",
     "the model holds a program of Arm's compiler that cannot be taken over; pack the .tflite file that Vela "
     "was given"},
    {kCustomOperator,
     "TFLite's converter left custom operators: give them with --custom-operators LIB "
     "(docs/custom-operators.md), "
     "replace them by builtin ones, or pack a part of the model without them (--end-at, --begin-at) and "
     "run the rest in the application"},
    {"first value that is not constant",
     "variables begin as constants: initialise them with numbers when the model is exported"},
    {" inside WHILE",
     "a loop is unrolled where the number of its rounds is known when the model is packed; else unroll it "
     "(`unroll=True` of Keras's recurrent layers), or export the body alone"},
};

std::vector<std::string> notes_for(ModelFile& file, const std::string& error) {
  std::vector<std::string> notes = tfl::model_notes(file);
  for (const Advice& advice : kAdvice) {
    // A note says it better: the operator is TensorFlow's, or a program for a device.
    if (advice.part == kCustomOperator && !notes.empty()) continue;
    const bool applies = error.find(advice.part) != std::string::npos;
    if (applies && std::ranges::find(notes, advice.text) == notes.end()) notes.emplace_back(advice.text);
  }
  return notes;
}

ir::Module import_checked(std::span<const uint8_t> bytes, const std::string& place, const LogFunction& log,
                          const ImportOptions& options) {
  ModelFile file(bytes);
  tfl::check_operand_count(file);
  tfl::select_part(file, options.part, options.names_of_others);
  std::string parts;
  try {
    return import_model(file, place, log, options, &parts);
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    throw PackError(error.status(), importer::with_notes(notes_for(file, error.what()), error.what(), parts));
  } catch (const tfl::Unsupported& use) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    importer::with_notes(tfl::model_notes(file), "a model with " + use.reason));
  }
}

}  // namespace

ir::Module import_tflite(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log,
                         const ImportOptions& options) {
  const std::string place = "tflite: " + importer::quoted_path(name) + ": ";
  try {
    return import_checked(bytes, place, log, options);
  } catch (const PackError& error) {
    throw PackError(error.status(), place + error.what());
  }
}

// ---- metadata ----
// What a .tflite file says of its inputs and outputs for people: "TFLITE_METADATA" is a flatbuffer of
// its own in one of the model's buffers, and the files that it names are in a zip after the model. All of it
// is untrusted: the work and the memory for one model are limited, whatever its tensors and outputs share.

namespace {

using ir::Json;
using tfl::invalid;

// Limits for the labels of all outputs together: one small file may serve as the labels of each output.
// ImageNet, among the largest sets of classes, has 21,841.
constexpr size_t kMaxLabelNames = 100'000;
constexpr size_t kMaxLabelBytes = size_t{4} << 20;
// Means and standard deviations of all inputs together.
constexpr size_t kMaxNumbers = 65'536;

template <typename Vector>
size_t count_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// The label files of one model.
class LabelFiles {
 public:
  explicit LabelFiles(std::span<const uint8_t> model) : model_(model) {}

  Json read(const std::string& name) {
    // Models whose metadata names no file have no zip.
    if (!archive_) archive_.emplace(model_);
    if (!archive_->has(name))
      invalid(cat("labels ", importer::in_quotes(name), " are not among the model's associated files"));
    const uint64_t size = archive_->entry_bytes(name);
    if (size > kMaxLabelBytes - bytes_) refuse(name, cat(bytes_ + size, " bytes"), kMaxLabelBytes);
    bytes_ += size;
    return lines_of(archive_->read(name), name);
  }

 private:
  // The names of a text, one a line; empty lines at the end do not count.
  Json lines_of(std::span<const uint8_t> text, const std::string& name) {
    Json lines = Json::array();
    std::string line;
    size_t num_empty = 0;  // lines before this one that are not written yet
    const auto end_line = [&] {
      ++num_empty;
      if (line.empty()) return;
      if (num_empty > kMaxLabelNames - names_)
        refuse(name, cat("more than ", kMaxLabelNames, " names"), kMaxLabelNames);
      names_ += num_empty;
      for (; num_empty > 1; --num_empty) lines.push_back("");
      lines.push_back(line);
      num_empty = 0;
      line.clear();
    };
    for (const uint8_t byte : text) {
      if (byte == '\n') {
        end_line();
      } else if (byte != '\r') {
        line += static_cast<char>(byte);
      }
    }
    end_line();
    return lines;
  }

  [[noreturn]] static void refuse(const std::string& name, const std::string& found, size_t expected) {
    invalid(cat("labels ", importer::in_quotes(name), ": with those of the outputs before it, there are ",
                found, ", expected at most ", expected, "; shorten the file"));
  }

  std::span<const uint8_t> model_;
  std::optional<importer::ZipArchive> archive_;
  uint64_t bytes_ = 0;  // of the files that were read, once for each output
  size_t names_ = 0;
};

// Labels without a locale come first: a model may bring translations of them.
const tflite_metadata::AssociatedFile* labels_file(const tflite_metadata::TensorMetadata& tensor) {
  const tflite_metadata::AssociatedFile* found = nullptr;
  for (uint32_t i = 0; i < count_of(tensor.associated_files()); ++i) {
    const tflite_metadata::AssociatedFile* file = tensor.associated_files()->Get(i);
    if (file->type() != tflite_metadata::AssociatedFileType_TENSOR_AXIS_LABELS || file->name() == nullptr)
      continue;
    const bool is_plain = file->locale() == nullptr || file->locale()->size() == 0;
    if (found == nullptr || is_plain) found = file;
    if (is_plain) break;
  }
  return found;
}

// num_numbers: of all inputs so far.
Json numbers_of(const flatbuffers::Vector<float>* values, const char* what, bool may_be_zero,
                size_t* num_numbers) {
  *num_numbers += count_of(values);
  if (*num_numbers > kMaxNumbers)
    invalid(cat(what, ": with those of the inputs before it, there are ", *num_numbers,
                " numbers, expected at most ", kMaxNumbers, "; write one for all channels"));
  Json numbers = Json::array();
  for (uint32_t i = 0; i < count_of(values); ++i) {
    const float value = values->Get(i);
    if (!std::isfinite(value) || (value == 0 && !may_be_zero))
      invalid(cat(what, " ", i, " is not a finite number", may_be_zero ? "" : " other than 0"));
    numbers.push_back(value);
  }
  return numbers;
}

Json input_json(const tflite_metadata::TensorMetadata& tensor, size_t* num_numbers) {
  Json json = Json::object();
  for (uint32_t i = 0; i < count_of(tensor.process_units()); ++i) {
    const auto* options = tensor.process_units()->Get(i)->options_as_NormalizationOptions();
    if (options == nullptr) continue;
    json["mean"] = numbers_of(options->mean(), "mean", true, num_numbers);
    json["std"] = numbers_of(options->std(), "std", false, num_numbers);
    break;
  }
  return json;
}

Json output_json(const tflite_metadata::TensorMetadata& tensor, LabelFiles* files) {
  Json json = Json::object();
  const tflite_metadata::AssociatedFile* labels = labels_file(tensor);
  if (labels != nullptr) json["labels"] = files->read(labels->name()->str());
  return json;
}

template <typename Write>
Json tensors_json(const flatbuffers::Vector<flatbuffers::Offset<tflite_metadata::TensorMetadata>>* tensors,
                  size_t expected, size_t most, const char* what, const Write& write) {
  Json json = Json::array();
  if (count_of(tensors) == 0) return json;
  if (tensors->size() > most) invalid(cat(tensors->size(), " ", what, ", expected at most ", most));
  if (tensors->size() != expected) invalid(cat(tensors->size(), " ", what, ", the model has ", expected));
  for (const auto* tensor : *tensors) json.push_back(write(*tensor));
  return json;
}

// What is said of the model's tensors, for those of a part: nothing where a tensor is not among the model's.
Json in_order_of(const Json& of_model, std::span<const int32_t> model, std::span<const int32_t> part) {
  Json json = Json::array();
  if (of_model.empty()) return json;
  for (const int32_t tensor : part) {
    const auto found = std::ranges::find(model, tensor);
    json.push_back(found == model.end() ? Json::object()
                                        : of_model.at(static_cast<size_t>(found - model.begin())));
  }
  return json;
}

}  // namespace

std::string tflite_metadata_json(std::span<const uint8_t> bytes, const Part& part) {
  const ModelFile file(bytes);
  const std::span<const uint8_t> metadata = file.metadata("TFLITE_METADATA");
  if (metadata.empty()) return "";
  try {
    // A copy that is aligned, whatever the buffer is: the verifier looks at offsets in the flatbuffer alone.
    std::vector<uint64_t> copy(metadata.size() / sizeof(uint64_t) + 1);
    std::ranges::copy(metadata, reinterpret_cast<uint8_t*>(copy.data()));
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(copy.data()), metadata.size(), 16,
                                   100'000);
    if (!tflite_metadata::VerifyModelMetadataBuffer(verifier)) invalid("the flatbuffer is damaged");
    const auto* graphs = tflite_metadata::GetModelMetadata(copy.data())->subgraph_metadata();
    if (count_of(graphs) == 0) return "";
    const tflite_metadata::SubGraphMetadata& graph = *graphs->Get(0);
    Json json;
    size_t num_numbers = 0;
    LabelFiles files(bytes);
    json["inputs"] =
        tensors_json(graph.input_tensor_metadata(), file.inputs().size(), format::kMaxFunctionInputs,
                     "inputs", [&](const auto& tensor) { return input_json(tensor, &num_numbers); });
    json["outputs"] =
        tensors_json(graph.output_tensor_metadata(), file.outputs().size(), format::kMaxFunctionOutputs,
                     "outputs", [&](const auto& tensor) { return output_json(tensor, &files); });
    if (!part.empty()) {
      ModelFile of_part(bytes);
      std::set<std::string> names_of_others;
      tfl::select_part(of_part, part, &names_of_others);
      json["inputs"] = in_order_of(json["inputs"], file.inputs(), of_part.inputs());
      json["outputs"] = in_order_of(json["outputs"], file.outputs(), of_part.outputs());
    }
    const auto is_empty = [](const Json& tensor) { return tensor.empty(); };
    if (std::ranges::all_of(json["inputs"], is_empty) && std::ranges::all_of(json["outputs"], is_empty))
      return "";
    return ir::json_text(json);
  } catch (const PackError& error) {
    throw PackError(error.status(), cat("its metadata: ", error.what()));
  }
}

}  // namespace qplan
