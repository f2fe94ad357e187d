#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/part.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/exported_program.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/script.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

constexpr char kFreezeHint[] = "freeze the model: m = torch.jit.freeze(m.eval()), m.save('model.pt')";

[[noreturn]] void wrong_options(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// Parameters of forward after self.
std::vector<Parameter> inputs_of(Archive& archive) {
  const std::string& class_name = archive.values().get<Object>(archive.module())->class_name;
  const FunctionBody* forward = archive.find_method(class_name, "forward");
  if (forward == nullptr) invalid("class " + in_quotes(class_name) + " has no method 'forward'");
  if (forward->parameters.empty()) invalid("'forward' has no parameter 'self'");
  return {forward->parameters.begin() + 1, forward->parameters.end()};
}

void check_names(const std::vector<Parameter>& inputs, const ImportOptions& options) {
  std::string known;
  for (const Parameter& input : inputs) known += (known.empty() ? "" : ", ") + in_quotes(input.name);
  const auto check = [&](const std::string& name, const char* what) {
    if (std::ranges::find(inputs, name, &Parameter::name) != inputs.end()) return;
    if (options.names_of_others != nullptr) {
      options.names_of_others->insert(name);
      return;
    }
    wrong_options(cat(what, " for ", in_quotes(name), ", which is no input; inputs are ", known));
  };
  for (const auto& [name, type] : options.input_types) check(name, "a type is given");
  for (const auto& [name, constant] : options.bindings) check(name, "a constant is given");
}

std::vector<Ref> add_inputs(Archive& archive, ir::Function& main, const ImportOptions& options) {
  const std::vector<Parameter> inputs = inputs_of(archive);
  check_names(inputs, options);
  std::vector<Ref> values;
  std::string missing;
  for (const Parameter& input : inputs) {
    if (!input.type.empty() && input.type != "Tensor") {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, "input " + in_quotes(input.name) + " is " +
                                                   in_quotes(input.type) + ", expected a Tensor");
    }
    const auto bound = options.bindings.find(input.name);
    const auto typed = options.input_types.find(input.name);
    if (bound != options.bindings.end()) {
      values.push_back(archive.values().add(Flow{main.add_constant(bound->second, input.name)}));
    } else if (typed != options.input_types.end()) {
      values.push_back(archive.values().add(Flow{main.add_param(input.name, typed->second)}));
    } else {
      missing += (missing.empty() ? "" : " ") + ("--input-shape " + input.name) + "=1x3x224x224:float32";
    }
  }
  if (!missing.empty()) {
    wrong_options("TorchScript does not record the shapes of inputs; give them, for example: " + missing);
  }
  return values;
}

// The keys of a dict and the fields of a NamedTuple are names of outputs; others are output_<i>.
std::string output_name(const Output& output, const std::vector<std::string>& taken) {
  const std::string name = importer::clean_name(output.name);
  const bool is_free = !name.empty() && std::ranges::find(taken, name) == taken.end();
  return is_free ? name : "output_" + std::to_string(taken.size());
}

void finish(const ValueTable& values, ir::Function& main, const std::vector<Output>& returned) {
  std::vector<ir::ValueId> outputs;
  std::vector<std::string> names;
  if (returned.empty()) invalid("the model returns no value");
  for (const Output& output : returned) {
    const Ref ref = output.value;
    const Flow* flow = values.get<Flow>(ref);
    if (values.get<Tensor>(ref) != nullptr) {
      throw PackError(
          QPLAN_MODEL_UNSUPPORTED,
          cat("output ", outputs.size(), " is a constant of the model, expected a tensor that it computes"));
    }
    if (flow == nullptr) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("output ", outputs.size(), " is ",
                                                   kind_name(values.at(ref)), ", expected a tensor"));
    }
    if (flow->quantization) {
      set_output_quantization(main, outputs.size(),
                              {flow->quantization->scale, flow->quantization->zero_point});
    }
    names.push_back(output_name(output, names));
    outputs.push_back(flow->value);
  }
  main.set_outputs(std::move(outputs), std::move(names));
}

void log_biases(const BiasCounts& counts, const std::string& place, const LogFunction& log) {
  if (!log) return;
  if (counts.total > 0) {
    log(QPLAN_LOG_INFO, cat(place, counts.total,
                            " bias values became int32, rounded half to even; truncation (as "
                            "torch.onnx.export does) would give ",
                            counts.truncated, " of them another value"));
  }
  if (counts.float_layers > 0) {
    log(QPLAN_LOG_INFO, cat(place, "int32 might not hold the sums of ", counts.float_layers,
                            counts.float_layers == 1 ? " layer" : " layers",
                            ", biases included: imported as float operators between quantise nodes"));
  }
}

constexpr char kTraceHint[] =
    "a plan has one path through the model: trace it, which leaves only that, m = "
    "torch.jit.freeze(torch.jit.trace(m.eval(), example_inputs)), m.save('model.pt'), or take conditions and "
    "loops on tensors out of forward";

// What the unsupported operators reveal about how the model was made.
std::vector<std::string> model_notes(const importer::UnsupportedList& unsupported) {
  if (unsupported.mentions("MKLDNN") || unsupported.mentions("mkldnn") ||
      unsupported.mentions("prepacked::")) {
    return {
        "the model was prepared for the kernels of one processor (torch.jit.optimize_for_inference or "
        "optimize_for_mobile); save it without that: m = torch.jit.freeze(torch.jit.script(m.eval())), "
        "m.save('model.pt')"};
  }
  if (unsupported.mentions("_dynamic") || unsupported.mentions("choose_qparams")) {
    return {
        "the model is quantised dynamically, in a way that is not read (that of PT2E is: prepare_pt2e with "
        "is_dynamic=True, convert_pt2e, torch.export); or quantise it statically (prepare, run it on sample "
        "data, convert)"};
  }
  return {};
}

// The line that follows an error about TorchScript.
std::string hints_for(const std::string& error, bool is_frozen) {
  if (error.find("control flow") != std::string::npos) return std::string("\n") + kTraceHint;
  return is_frozen ? "" : std::string("\n") + kFreezeHint;
}

// TorchScript: what forward returns is one tensor, or tuples, lists and dicts of them. The walk ends where it
// cannot go on, so that the share of the model that would run is not known.
void import_script(importer::ZipArchive zip, ir::Function& main, const std::string& place,
                   const LogFunction& log, const ImportOptions& options) {
  importer::refuse_part(options.part, "TorchScript",
                        "return these tensors from forward, or save the model by torch.export (.pt2)");
  Archive archive(std::move(zip));
  try {
    const std::vector<Ref> inputs = add_inputs(archive, main, options);
    OperatorCalls calls(archive.values(), archive.tensors(), main, log);
    const std::vector<Output> returned = Evaluator(archive, calls).run(inputs);
    if (const importer::UnsupportedList& unsupported = calls.unsupported(); !unsupported.empty()) {
      const std::string error = unsupported.text();
      throw PackError(
          QPLAN_MODEL_UNSUPPORTED,
          importer::with_notes(model_notes(unsupported), error + hints_for(error, archive.is_frozen()),
                               /*parts=*/"", /*has_coverage=*/false));
    }
    finish(archive.values(), main, returned);
    log_biases(calls.biases(), place, log);
  } catch (const importer::Unsupported& use) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "a model with " + use.reason + hints_for(use.reason, archive.is_frozen()));
  }
}

void import_exported(importer::ZipArchive zip, ir::Function& main, const LogFunction& log,
                     const ImportOptions& options) {
  try {
    ExportedArchive archive(std::move(zip));
    archive.select_part(options);
    OperatorCalls calls(archive.values(), archive.tensors(), main, log);
    const ir::Json& module = object_member(archive.program(), "graph_module");
    Sharing sharing(calls);
    ExportedGraph graph(calls, sharing, exported_inputs(archive, calls, options), options.operators);
    graph.run(object_member(module, "graph"));
    std::vector<Output> outputs;
    for (const Ref ref : graph.outputs(object_member(module, "signature"))) outputs.push_back({ref});
    if (options.operators != nullptr && !calls.unsupported().empty()) return keep_all_results(main);
    if (const importer::UnsupportedList& unsupported = calls.unsupported(); !unsupported.empty()) {
      const auto is_known = [&](const std::string& name) { return graph.is_known(name); };
      throw PackError(
          QPLAN_MODEL_UNSUPPORTED,
          importer::with_notes(
              model_notes(unsupported), unsupported.text(),
              options.part.empty() ? parts_without(archive.program(), graph.refused(), is_known) : ""));
    }
    finish(archive.values(), main, outputs);
    set_io_quantization(main, /*canonical=*/false);
  } catch (const importer::Unsupported& use) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "a model with " + use.reason);
  }
}

ir::Module import_checked(std::span<const uint8_t> bytes, const std::string& place, const LogFunction& log,
                          const ImportOptions& options) {
  importer::ZipArchive zip(bytes);
  ir::Module module;
  ir::Function& main = module.add_function("main");
  if (is_exported(zip)) {
    import_exported(std::move(zip), main, log, options);
  } else {
    import_script(std::move(zip), main, place, log, options);
  }
  return module;
}

}  // namespace
}  // namespace qplan::pt

namespace qplan {

ir::Module import_pytorch(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log,
                          const ImportOptions& options) {
  const std::string place = "pytorch: " + importer::quoted_path(name) + ": ";
  try {
    return pt::import_checked(bytes, place, log, options);
  } catch (const PackError& error) {
    throw PackError(error.status(), place + error.what());
  }
}

}  // namespace qplan
