#include "src/packer/pipeline/pipeline.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <memory>
#include <optional>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/passes/float_leftovers.h"
#include "src/packer/pipeline/canonical_body.h"
#include "src/packer/pipeline/canonicalize.h"
#include "src/packer/pipeline/observer.h"
#include "src/packer/pipeline/place.h"
#include "src/packer/pipeline/source.h"
#include "src/packer/pipeline/targets.h"
#include "src/packer/pipeline/why_not.h"
#include "src/packer/target/lower.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"
#include "src/packer/write/plan_writer.h"

namespace qplan {
namespace {

constexpr uint32_t kNumStages = 4;

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
    if (error.status() == QPLAN_MODEL_UNSUPPORTED && passes::is_float_network(canonical)) {
      text =
          "the model is not quantised: all that it computes, it computes in float; quantise its weights and "
          "activations "
          "to 8 bits first\n" +
          text;
    }
    for (const std::string& line : undone) text += "\n" + line;
    passes::PassContext context;
    context.keep_float = options.keep_float;
    const std::string leftovers = passes::explain_float_leftovers(canonical, context);
    if (!leftovers.empty()) text += "\n" + leftovers;
    throw PackError(error.status(), text);
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

// What a plan without the CPU's steps for its regions is smaller than the one with them.
void report_savings(const target::Program& program, const target::TargetProfile& profile,
                    const PackOptions& options, pipeline::Placed* placed) {
  placed->codes.fallback = true;
  const target::Program whole = target::lower_function(placed->main(), profile, placed->codes);
  const emit::ProgramSizes with = emit::measure_program(whole, profile, options.planner_iterations);
  const emit::ProgramSizes without = emit::measure_program(program, profile, options.planner_iterations);
  partition::Explain& explain = placed->explain();
  explain.fallback = false;
  explain.saved_constant_bytes = static_cast<int64_t>(with.constants - without.constants);
  explain.saved_memory_bytes = static_cast<int64_t>(with.memory - without.memory);
}

}  // namespace

ir::Module import_model(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  const pipeline::Observer observer(options);
  ir::Module module = pipeline::import_any(model, name, options.log, options.import);
  observer.dump("import", module);
  return module;
}

ir::Module canonical_module(std::span<const uint8_t> model, std::string_view name,
                            const PackOptions& options) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = pipeline::read_targets(options);
  ir::Module module = import_model(model, name, options);
  pipeline::canonicalize(&module, pipeline::cpu_of(targets).profile, observer,
                         options.canonical_body ? pipeline::Border::kOfTheBody : pipeline::Border::kAsAsked);
  return module;
}

namespace {

// The rewrites' log tells how often the one in question applied.
std::string why_not_text(std::span<const uint8_t> model, std::string_view name, PackOptions options) {
  uint64_t num_fired = 0;
  options.log = [log = options.log, prefix = options.why_not + ": '", &num_fired](uint32_t level,
                                                                                  const std::string& text) {
    if (text.starts_with(prefix)) ++num_fired;
    if (log) log(level, text);
  };
  const pipeline::Observer observer(options);
  const ir::Module module = canonical_module(model, name, options);
  return pipeline::why_not_report(options.why_not, observer.passes(), module, num_fired);
}

}  // namespace

std::string model_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                       bool canonical) {
  if (!options.why_not.empty()) return why_not_text(model, name, options);
  if (!canonical) return text::print(import_model(model, name, options));
  const ir::Module module = canonical_module(model, name, options);
  if (!options.canonical_body) return text::print(module);
  std::string text;
  for (const ir::Function& body : pipeline::canonical_bodies(module)) {
    text += text::print(body, {.metadata = false, .names = false});
  }
  return text;
}

BodyComparison compare_models(const NamedModel& model, const NamedModel& other, const PackOptions& options) {
  PackOptions of_bodies = options;
  of_bodies.canonical_body = true;
  std::vector<std::vector<ir::Function>> bodies;
  std::vector<std::string> contracts;
  for (const NamedModel& m : {model, other}) {
    bodies.push_back(pipeline::canonical_bodies(canonical_module(m.bytes, m.name, of_bodies)));
    contracts.push_back(pipeline::contracts_of(
        pipeline::import_any(m.bytes, m.name, /*log=*/{}, options.import)));  // what it says was told before
  }
  const pipeline::BodyDifference difference = pipeline::compare_bodies(bodies[0], bodies[1]);
  return {difference.lines.empty(),
          pipeline::describe(difference, bodies[0][0].nodes().size(), contracts[0], contracts[1])};
}

emit::AlignedBytes pack(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = pipeline::read_targets(options);
  const target::Target& cpu = pipeline::cpu_of(targets);
  const target::TargetProfile& profile = cpu.profile;
  const bool has_devices = targets.size() > 1;
  std::optional<emit::TuningLog> tuning;
  if (options.tuning) tuning.emplace(options.tuning->name, options.tuning->text, options.tuning->num_threads);

  observer.stage("import", 0, kNumStages);
  emit::EmitOptions emit_options;
  emit_options.strip_names = options.strip_names;
  emit_options.planner_iterations = options.planner_iterations;
  emit_options.source = pipeline::last_component(name);
  emit_options.source_digest = pipeline::sha256_text(model);
  emit_options.fuse = options.fuse;
  emit_options.tuning = tuning ? &*tuning : nullptr;
  emit_options.log = options.log;
  ir::Module module = import_model(model, name, options);
  if (options.imported) options.imported();

  observer.stage("rewrite", 1, kNumStages);
  const std::vector<std::string> undone = pipeline::canonicalize(&module, profile, observer);

  observer.stage("place and lower", 2, kNumStages);
  // For the CPU alone there is nothing to decide: it is asked for the report only.
  std::unique_ptr<pipeline::Placed> placed;
  if (has_devices || !options.pins.empty() || options.strict_placement) {
    placed = pipeline::place(module, targets, options);
    pipeline::check_all_compiled(*placed);
  }
  target::Program program = lower(placed ? placed->main() : module.main(), module.main(), profile,
                                  placed ? placed->codes : target::RegionCodes{}, undone, observer);
  if (!placed && options.summary && module.functions().size() == 1)
    placed = pipeline::place(module, targets, options);

  if (placed) {
    pipeline::report_copies(program, cpu, options.planner_iterations, &placed->explain());
    if (!options.fallback) report_savings(program, profile, options, placed.get());
    if (has_devices) emit_options.explain = placed->explain().json();
  }
  const std::string summary = placed ? placed->explain().summary() : "";
  // The program holds its own constants: no second copy while the plan is written.
  placed = nullptr;
  module = ir::Module();
  return_freed_memory(model.size());

  observer.stage("plan memory and write", 3, kNumStages);
  emit::AlignedBytes plan = emit::write_plan(program, profile, emit_options);
  if (tuning) tuning->check_used();
  program = {};
  return_freed_memory(model.size());
  observer.stage("done", kNumStages, kNumStages);
  if (options.summary) options.summary(summary);
  return plan;
}

}  // namespace qplan
