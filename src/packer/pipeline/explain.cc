// What `qplan explain` prints: of a model what pack() would do, of a plan what it remembers.
#include "src/packer/partition/explain.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "format/container.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"

namespace qplan {
namespace {

bool is_plan(std::span<const uint8_t> bytes) {
  return bytes.size() >= sizeof(format::kMagic) &&
         std::memcmp(bytes.data(), format::kMagic, sizeof(format::kMagic)) == 0;
}

std::string stored_json(std::span<const uint8_t> plan, std::string_view name) {
  const inspect::PlanReader reader(plan);
  const format::Names* names = reader.view().names();
  if (names == nullptr || names->explain() == nullptr) {
    throw PackError(QPLAN_NOT_FOUND, cat("explain: plan '", pipeline::last_component(name),
                                         "' does not state its placement: it was "
                                         "packed ",
                                         names == nullptr ? "with --strip-names" : "for the CPU alone",
                                         "; ask 'qplan explain MODEL' with the target it was packed for"));
  }
  return names->explain()->str();
}

// Why the CPU does not run what is left to it.
void report_cpu_refusals(const ir::Function& canonical, const target::TargetProfile& profile,
                         partition::Explain* explain) {
  for (target::CpuRefusal& refusal : target::cpu_refusals(canonical, profile)) {
    partition::UnitReport& unit = explain->units[explain->nodes[refusal.node].unit];
    if (!unit.region.empty()) continue;
    partition::TargetVerdict verdict;
    verdict.target = unit.target;
    verdict.reasons = std::move(refusal.reasons);
    unit.verdicts.push_back(std::move(verdict));
  }
}

partition::Explain explain_model(std::span<const uint8_t> model, std::string_view name,
                                 const PackOptions& options) {
  const pipeline::Observer observer(options);
  const std::vector<target::Target> targets = pipeline::read_targets(options);
  const target::Target& cpu = pipeline::cpu_of(targets);
  const target::TargetProfile& profile = cpu.profile;
  std::optional<schedule::TuningLog> tuning = pipeline::read_tuning(options);
  ir::Module module = import_model(model, name, options);
  pipeline::canonicalize(&module, profile, observer);
  const std::unique_ptr<pipeline::Placed> placed = pipeline::place(module, targets, options);
  pipeline::log_warnings(*placed, observer);
  try {
    const auto plan = [&] {
      return pipeline::plan_program(target::lower_function(placed->main(), profile, placed->codes), profile,
                                    options, tuning ? &*tuning : nullptr);
    };
    const pipeline::Planned planned = plan();
    pipeline::report_copies(planned, cpu, &placed->explain());
    if (!options.fallback) {
      placed->codes.fallback = true;
      pipeline::report_savings(pipeline::sizes_of(plan()), pipeline::sizes_of(planned), &placed->explain());
    }
  } catch (const PackError& error) {
    // Placement can be told of models that the CPU does not run; the copies are then the partition's guess.
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    observer.log(QPLAN_LOG_WARNING, cat("no plan can be made of this model: ", error.what()));
    report_cpu_refusals(module.main(), profile, &placed->explain());
  }
  return std::move(placed->explain());
}

// The plan that the page's table of kernels is about; empty where the CPU does not run all of the model.
std::string inspected_plan(std::span<const uint8_t> model, std::string_view name, PackOptions options) {
  if (is_plan(model)) return inspect::inspect_json(inspect::PlanReader(model).view());
  options.log = nullptr;  // explain_model() has said all of it
  options.summary = nullptr;
  try {
    const AlignedBytes plan = pack(model, name, options);
    return inspect::inspect_json(inspect::PlanReader(plan.span()).view());
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return "";
  }
}

}  // namespace

std::string explain_text(std::span<const uint8_t> model, std::string_view name, const PackOptions& options,
                         ExplainFormat format) {
  std::string json;
  if (is_plan(model)) {
    json = stored_json(model, name);
    if (format == ExplainFormat::kJson) (void)partition::parse_explain(json);  // refuses what is no report
  } else {
    const partition::Explain explain = explain_model(model, name, options);
    if (format == ExplainFormat::kText) return explain.text();
    json = explain.json();
  }
  switch (format) {
    case ExplainFormat::kText:
      return partition::parse_explain(json).text();
    case ExplainFormat::kJson:
      return json;
    case ExplainFormat::kHtml:
      return partition::explain_html(json, pipeline::last_component(name),
                                     inspected_plan(model, name, options));
  }
  throw PackError(QPLAN_INTERNAL, "explain: unknown format");
}

// What a caller sees of a model before it is lowered: modules, their text, comparisons.
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

}  // namespace qplan
