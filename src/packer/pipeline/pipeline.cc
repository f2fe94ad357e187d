#include "src/packer/pipeline/pipeline.h"

#include <algorithm>

#include "src/packer/emit/plan_writer.h"
#include "src/packer/error.h"
#include "src/packer/partition/partition.h"
#include "src/packer/passes/float_leftovers.h"
#include "src/packer/pipeline/canonical_body.h"
#include "src/packer/pipeline/canonicalize.h"
#include "src/packer/pipeline/observer.h"
#include "src/packer/pipeline/source.h"
#include "src/packer/pipeline/why_not.h"
#include "src/packer/target/lower.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"

namespace qplan {
namespace {

constexpr uint32_t kNumStages = 4;

// A refusal also says which rewrites were left out that might have helped, and which came near.
target::Program lower(const ir::Function& main, const target::TargetProfile& profile,
                      const std::vector<std::string>& undone, const PackOptions& options) {
  try {
    return target::lower_function(main, profile);
  } catch (const PackError& error) {
    std::string text = error.what();
    for (const std::string& line : undone) text += "; " + line;
    passes::PassContext context;
    context.keep_float = options.keep_float;
    const std::string leftovers = passes::explain_float_leftovers(main, context);
    if (!leftovers.empty()) text += "; " + leftovers;
    throw PackError(error.status(), text);
  }
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
  const target::TargetProfile profile = target::parse_target(options.target);
  ir::Module module = import_model(model, name, options);
  pipeline::canonicalize(&module, profile, observer);
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
  return text::print(pipeline::canonical_body(module.main()), {.metadata = false, .names = false});
}

std::string explain_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                         bool json) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = target::parse_targets(options.target);
  const auto cpu = std::ranges::find_if(targets, [](const target::Target& target) { return target.is_cpu; });
  ir::Module module = import_model(model, name, options);
  pipeline::canonicalize(&module, cpu->profile, observer);
  const partition::Explain explain = partition::partition(module, targets).explain;
  return json ? explain.json() : explain.text();
}

emit::AlignedBytes pack(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  const pipeline::Observer observer(options);
  const target::TargetProfile profile = target::parse_target(options.target);

  observer.stage("import", 0, kNumStages);
  ir::Module module = import_model(model, name, options);

  observer.stage("rewrite", 1, kNumStages);
  const std::vector<std::string> undone = pipeline::canonicalize(&module, profile, observer);

  observer.stage("lower", 2, kNumStages);
  const target::Program program = lower(module.main(), profile, undone, options);
  module = ir::Module();  // the program holds its own constants: no second copy while the plan is written

  observer.stage("plan memory and write", 3, kNumStages);
  emit::EmitOptions emit_options;
  emit_options.strip_names = options.strip_names;
  emit_options.planner_iterations = options.planner_iterations;
  emit_options.source = pipeline::last_component(name);
  emit_options.source_digest = pipeline::sha256_text(model);
  emit::AlignedBytes plan = emit::write_plan(program, profile, emit_options);
  observer.stage("done", kNumStages, kNumStages);
  return plan;
}

}  // namespace qplan
