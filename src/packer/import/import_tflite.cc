#include <algorithm>
#include <set>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/model_file.h"
#include "src/packer/import/tflite/op_context.h"

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

// found: where every operator is noted; null: nowhere.
void import_operators(Graph& graph, UnsupportedList* unsupported, const ImportOptions& options) {
  std::vector<SourceOperator>* const found = options.operators;
  for (size_t i = 0; i < graph.file().num_operators(); ++i) {
    const tflite::Operator& op = graph.file().op(i);
    const std::string op_name = graph.file().operator_name(op);
    std::string node_name, name;
    const auto refuse = [&](const std::string& reason) {
      unsupported->add(reason.empty() ? op_name : op_name + " with " + reason, node_name);
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
          tfl::find_custom(options.custom_operators, graph.file().custom_code(op));
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
    if (!tensor.has_shape) tfl::invalid("input " + tfl::in_quotes(tensor.name) + " has no shape");
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

ir::Module import_model(ModelFile& file, const std::string& place, const LogFunction& log,
                        const ImportOptions& options) {
  ir::Module module;
  Graph graph(file, module.add_function("main"), log);
  UnsupportedList unsupported;
  add_inputs(graph, &unsupported);
  tfl::prepare_variables(graph, &unsupported);
  import_operators(graph, &unsupported, options);
  if (!unsupported.empty() && options.operators == nullptr) {
    tfl::list_subgraph_operators(file, graph.imported_subgraphs(), &unsupported);
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
     "qplan runs networks on numbers: pack the part of the model after its texts became numbers"},
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
     "replace them by builtin ones, or export the model up to their inputs and compute them in the "
     "application"},
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
  try {
    return import_model(file, place, log, options);
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    throw PackError(error.status(), importer::with_notes(notes_for(file, error.what()), error.what()));
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

}  // namespace qplan
