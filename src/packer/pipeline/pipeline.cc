// A pack: all stages in their order, the first of which, a model's file, is read here.
#include "src/packer/pipeline/pipeline.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/import/import.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/memory/arena.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/target/program.h"
#include "src/packer/target/target.h"
#include "src/packer/write/plan_writer.h"

namespace qplan {
namespace {

constexpr uint32_t kNumStages = 4;
constexpr char kHowToQuantize[] =
    "use the TFLite converter with a representative dataset, or quantize_static of onnxruntime.quantization";

// A refusal also says which rewrites were left out that might have helped, and which came near in canonical,
// the main before its regions were made functions.
target::Program lower(const ir::Function& main, const ir::Function& canonical,
                      const target::TargetProfile& profile, const target::RegionCodes& codes,
                      const std::vector<std::string>& undone, const pipeline::Observer& observer) {
  const PackOptions& options = observer.options();
  try {
    return target::lower_function(main, profile, codes, [&](uint32_t done, uint32_t total) {
      observer.progress("lower", done, total);
    });
  } catch (const PackError& error) {
    std::string text = error.what();
    const bool is_float = error.status() == QPLAN_MODEL_UNSUPPORTED && passes::is_float_network(canonical);
    if (is_float) {
      text =
          "the model is not quantised: all that it computes, it computes in float; quantise its weights and "
          "activations to 8 bits first\n" +
          text;
    }
    for (const std::string& line : undone) text += "\n" + line;
    passes::PassContext context;
    context.keep_float = options.keep_float;
    const std::string leftovers = passes::explain_float_leftovers(canonical, context);
    if (!leftovers.empty()) text += "\n" + leftovers;
    if (is_float) text += std::string("\nto quantise it, ") + kHowToQuantize;
    throw PackError(error.status(), text);
  }
}

// What is computed in float32, and how it would not be.
void tell_of_floats(const ir::Function& canonical, const target::Program& program,
                    const pipeline::Observer& observer) {
  if (passes::is_float_network(canonical)) {
    const auto has_integers = [](const target::ProgramStep& step) {
      return step.kernel == kKernel_weight_only_dense;
    };
    if (std::ranges::any_of(program.steps, has_integers)) return;  // only its weights are quantised
    const auto has_weights = [](const ir::Node& node) { return op::is_product(node.op); };
    if (!std::ranges::any_of(canonical.nodes(), has_weights)) return;
    observer.log(
        QPLAN_LOG_WARNING,
        "the model is not quantised: everything is computed in float32. Weights of 8 bits take a quarter "
        "of the bytes, and integer kernels are faster; to quantise it, " +
            std::string(kHowToQuantize));
    return;
  }
  passes::PassContext context;
  context.keep_float = observer.options().keep_float;
  // Where what they make is quantised, integers were meant.
  const bool integers_were_meant = std::ranges::any_of(canonical.nodes(), [&](const ir::Node& node) {
    return node.op != nullptr && node.op->name == "qnn.quantize" &&
           canonical.producer(node.operands[0]) != nullptr;
  });
  if (!integers_were_meant) return;
  const std::string leftovers = passes::explain_float_leftovers(canonical, context);
  if (leftovers.empty()) return;
  observer.log(QPLAN_LOG_INFO, "some operators between quantise nodes are computed in float32");
  for (size_t begin = 0; begin < leftovers.size();) {
    const size_t end = std::min(leftovers.find('\n', begin), leftovers.size());
    observer.log(QPLAN_LOG_INFO, leftovers.substr(begin, end - begin));
    begin = end + 1;
  }
}

// The system gets back what was freed: weights of a few megabytes each lie in the C library's heap, which
// would keep their pages while the next copy of them is made.
void return_freed_memory(size_t model_size) {
#if defined(__GLIBC__)
  constexpr size_t kLargeModel = size_t{16} << 20;  // where it is worth the time
  if (model_size >= kLargeModel) malloc_trim(0);
#else
  static_cast<void>(model_size);
#endif
}

// The bytes that a plan of the placed regions would take with the CPU's steps for them.
pipeline::PlannedSizes sizes_with_fallback(pipeline::Placed* placed, const target::TargetProfile& profile,
                                           const PackOptions& options, schedule::TuningLog* tuning) {
  placed->codes.fallback = true;
  return pipeline::sizes_of(pipeline::plan_program(
      target::lower_function(placed->main(), profile, placed->codes), profile, options, tuning));
}

}  // namespace

AlignedBytes pack(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = pipeline::read_targets(options);
  const target::Target& cpu = pipeline::cpu_of(targets);
  const target::TargetProfile& profile = cpu.profile;
  const bool has_devices = targets.size() > 1;
  std::optional<schedule::TuningLog> tuning = pipeline::read_tuning(options);
  schedule::TuningLog* const times = tuning ? &*tuning : nullptr;

  observer.stage("import", 0, kNumStages);
  write::PlanNames names = {.strip = options.strip_names,
                            .source = pipeline::last_component(name),
                            .source_digest = pipeline::sha256_text(model)};
  ir::Module module = import_model(model, name, options);
  if (!options.strip_names) names.metadata = pipeline::metadata_of(model, name, options);
  if (options.imported) options.imported();

  observer.stage("rewrite", 1, kNumStages);
  const std::vector<std::string> undone = pipeline::canonicalize(&module, targets, observer);

  observer.stage("place and lower", 2, kNumStages);
  // For the CPU alone there is nothing to decide: it is asked for the report only.
  std::unique_ptr<pipeline::Placed> placed;
  if (has_devices || !options.pins.empty() || options.strict_placement) {
    placed = pipeline::place(module, targets, options);
    pipeline::check_programs(*placed, module.main());
    pipeline::check_all_compiled(*placed);
    pipeline::log_warnings(*placed, observer);
  }
  target::Program program = lower(placed ? placed->main() : module.main(), module.main(), profile,
                                  placed ? placed->codes : target::RegionCodes{}, undone, observer);
  if (options.log) tell_of_floats(module.main(), program, observer);

  if (!placed && options.summary && module.functions().size() == 1)
    placed = pipeline::place(module, targets, options);
  std::optional<partition::Explain> explain;
  std::optional<pipeline::PlannedSizes> with_fallback;
  if (placed && !options.fallback) with_fallback = sizes_with_fallback(placed.get(), profile, options, times);
  if (placed) explain = std::move(placed->explain());
  // The program holds its own constants: no second copy while memory is planned and the plan is written.
  placed = nullptr;
  module = ir::Module();
  return_freed_memory(model.size());

  observer.stage("plan memory and write", 3, kNumStages);
  pipeline::Planned planned;
  planned.program = schedule::fuse_steps(program, profile, pipeline::fuse_options(options, times));
  if (options.max_ram == 0) program = {};
  schedule::schedule_steps(&planned.program, profile, times, options.log);
  planned.arena = pipeline::plan_memory(planned.program, options);
  if (options.max_ram != 0) pipeline::fit_memory(&planned, program, profile, observer, times);
  pipeline::place_in_areas(&planned, profile, options);
  pipeline::copy_constants(&planned, profile, options);
  program = {};
  if (explain) {
    pipeline::report_copies(planned, cpu, &*explain);
    if (with_fallback) pipeline::report_savings(*with_fallback, pipeline::sizes_of(planned), &*explain);
    if (has_devices) names.explain = explain->json();
  }
  AlignedBytes plan = write::write_plan(planned.program, profile, planned.arena, names);
  if (options.self_checks > 0) {
    const write::SelfChecks checks = evaluate::make_self_checks(
        plan.span(), planned.program, options.self_checks,
        [&](uint32_t done, uint32_t total) { observer.progress("self-check", done, total); });
    plan = write::write_plan(planned.program, profile, planned.arena, names, checks);
  }
  evaluate::check_plan(plan.span(), planned.program, planned.arena);

  if (tuning) tuning->check_used();
  planned = {};
  return_freed_memory(model.size());
  observer.stage("done", kNumStages, kNumStages);
  if (options.summary) options.summary(explain ? explain->summary() : "");
  return plan;
}

}  // namespace qplan

// Models as files.

namespace qplan::pipeline {
namespace {

struct Format {
  const char* name;
  bool (*matches)(std::span<const uint8_t> model);
  ir::Module (*import)(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                       const ImportOptions& options);
  bool may_lack_constants = false;  // which synthesize_constants makes up
};

// FlatBuffers puts a schema's file identifier after the root offset.
bool is_tflite(std::span<const uint8_t> model) {
  return model.size() >= 8 && std::memcmp(&model[4], "TFL3", 4) == 0;
}

// A zip: of its kinds only PyTorch's archives are models.
bool is_pytorch(std::span<const uint8_t> model) {
  return model.size() >= 4 && std::memcmp(model.data(), "PK\3\4", 4) == 0;
}

// A .tflite model says everything itself.
ir::Module import_tflite_alone(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                               const ImportOptions& options) {
  const auto check = [&](const std::string& given) {
    if (options.names_of_others == nullptr) {
      throw PackError(
          QPLAN_INVALID_ARGUMENT,
          "'" + std::string(name) +
              "': a TensorFlow Lite model has its own types and data, nothing can be given for '" + given +
              "'");
    }
    options.names_of_others->insert(given);
  };
  for (const auto& [given, constant] : options.bindings) check(given);
  for (const auto& [given, type] : options.input_types) check(given);
  return import_tflite(model, name, log, options);
}

// Text that has at least a function, the version line or a variable as Relay writes them: other texts (a
// README, a page that a download brought in place of the model) are no models, and a parser's complaint would
// mislead.
bool is_relay(std::span<const uint8_t> model) {
  if (!is_text(model)) return false;
  const std::string_view text(reinterpret_cast<const char*>(model.data()), model.size());
  if (text.find("#[version") != std::string_view::npos || text.find("def @") != std::string_view::npos)
    return true;
  const auto is_one_of = [](char c, std::string_view set) { return set.find(c) != std::string_view::npos; };
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const char before = at == 0 ? '\n' : text[at - 1];
    const char after = at + 1 < text.size() ? text[at + 1] : ' ';
    const bool is_name = (after >= '0' && after <= '9') || (after >= 'a' && after <= 'z') ||
                         (after >= 'A' && after <= 'Z') || is_one_of(after, "_\"");
    if (is_name && is_one_of(before, " \t\r\n(,{=")) return true;
  }
  return false;
}

constexpr Format kFormats[] = {
    {"TensorFlow Lite (.tflite, 'TFL3' at byte 4)", is_tflite, import_tflite_alone},
    {"PyTorch (.pt of TorchScript, .pt2 of torch.export: a zip)", is_pytorch, import_pytorch},
    {"ONNX (.onnx, a ModelProto)", looks_like_onnx, import_onnx},
    {"Relay text ('def @main')", is_relay, import_relay, /*may_lack_constants=*/true},
};

}  // namespace

ir::Module import_any(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                      const ImportOptions& options) {
  std::string known;
  for (const Format& format : kFormats) {
    if (!format.matches(model)) {
      known += (known.empty() ? "" : ", ") + std::string(format.name);
      continue;
    }
    if (options.synthesize_constants && options.names_of_others == nullptr && !format.may_lack_constants) {
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      "'" + std::string(name) +
                          "': the model has its constants, only those of a Relay text can be "
                          "made up; leave --synthesize-constants out");
    }
    return format.import(model, name, log, options);
  }
  throw PackError(QPLAN_MODEL_INVALID,
                  "'" + std::string(name) + "': is not a model: " + std::to_string(model.size()) + " bytes " +
                      (is_text(model) ? "of text that is no Relay" : "in no format that is known") +
                      "; known: " + known);
}

std::string metadata_of(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  if (!is_tflite(model)) return "";
  try {
    return tflite_metadata_json(model, options.import.part);
  } catch (const PackError& error) {
    if (options.log)
      options.log(QPLAN_LOG_WARNING,
                  "'" + std::string(name) + "': " + error.what() + "; labels and normalisation are left out");
    return "";
  }
}

std::string last_component(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string sha256_text(std::span<const uint8_t> bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return inspect::hexadecimal(digest, sizeof(digest));
}

}  // namespace qplan::pipeline
