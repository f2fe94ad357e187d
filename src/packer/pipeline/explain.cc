// What `qplan explain` prints: of a model what pack() would do, of a plan what it remembers; and the report
// of `qplan pack --coverage`.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "format/container.h"
#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"
#include "src/packer/op/op_def.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/program.h"
#include "src/packer/target/target.h"
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
  pipeline::canonicalize(&module, targets, observer);
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
  pipeline::canonicalize(&module, targets, observer,
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
  // What is given for inputs is for the model that has such an input: a .pt file needs shapes, the .tflite
  // file beside it takes none.
  std::vector<std::set<std::string>> unknown(2);
  for (const NamedModel& m : {model, other}) {
    of_bodies.import.names_of_others = &unknown[bodies.size()];
    bodies.push_back(pipeline::canonical_bodies(canonical_module(m.bytes, m.name, of_bodies)));
    contracts.push_back(pipeline::contracts_of(pipeline::import_any(
        m.bytes, m.name, /*log=*/{}, of_bodies.import)));  // what it says was told before
  }
  for (const std::string& name : unknown[0]) {
    if (!unknown[1].contains(name)) continue;
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "a type or a constant is given for '" + name + "', which is an input of neither '" +
                        std::string(model.name) + "' nor '" + std::string(other.name) + "'");
  }
  const pipeline::BodyDifference difference = pipeline::compare_bodies(bodies[0], bodies[1]);
  return {difference.lines.empty(),
          pipeline::describe(difference, bodies[0][0].nodes().size(), contracts[0], contracts[1])};
}

// `qplan pack --coverage`: the share of a model's operators and multiply-accumulates that would run.
namespace {

using ir::Json;

// Operators of one kind that do not run for one reason.
struct Missing {
  uint64_t count = 0;
  uint64_t macs = 0;
  std::string first;
};

class Survey {
 public:
  explicit Survey(std::vector<SourceOperator> operators) : operators_(std::move(operators)) {
    for (size_t i = 0; i < operators_.size(); ++i) {
      const SourceOperator& op = operators_[i];
      by_name_.emplace(op.name, i);
      if (op.reason.empty()) continue;
      add(op.kind, op.reason, op.name, op.macs);
      total_macs_ += op.macs;
      stopped_.insert(i);
    }
  }

  // What became of the operators that were imported. canonical: not empty.
  void look(const ir::Function& canonical, const std::vector<target::Target>& targets) {
    const target::TargetProfile& profile = pipeline::cpu_of(targets).profile;
    const pattern::Pre pre(canonical);
    if (operators_.empty()) num_nodes_ = canonical.nodes().size();
    std::vector<bool> is_refused(canonical.nodes().size(), false);
    for (const target::CpuRefusal& refusal : target::cpu_refusals(canonical, profile)) {
      const ir::Node& node = canonical.nodes()[refusal.node];
      if (is_taken_program(pre, node, targets)) continue;
      is_refused[refusal.node] = true;
      const uint64_t macs = target::node_macs(canonical, node);
      const auto source = by_name_.find(node.name);
      const std::string& reason = refusal.reasons.front().text;
      if (source == by_name_.end()) {
        add(node.op == nullptr ? node.callee : node.op->name, reason, node.name, macs);
        ++num_unnamed_;
      } else if (stopped_.insert(source->second).second) {
        add(operators_[source->second].kind, reason, node.name, macs);
      }
    }
    for (size_t n = 0; n < canonical.nodes().size(); ++n) {
      const uint64_t macs = target::node_macs(canonical, canonical.nodes()[n]);
      total_macs_ += macs;
      if (!is_refused[n]) run_macs_ += macs;
    }
  }

  // Something stands against all of it.
  void stop(const std::string& reason) { add("the model", reason, "", 0); }

  std::string json() const {
    const uint64_t total = operators_.empty() ? num_nodes_ : operators_.size();
    const uint64_t stopped = std::min<uint64_t>(stopped_.size() + num_unnamed_, total);
    Json json;
    json["operators"] = {{"total", total}, {"run", total - stopped}};
    json["macs"] = {{"total", total_macs_}, {"run", run_macs_}};
    json["all_run"] = missing_.empty();
    std::vector<std::pair<std::pair<std::string, std::string>, Missing>> lines(missing_.begin(),
                                                                               missing_.end());
    std::ranges::stable_sort(lines, std::greater<>(), [](const auto& line) { return line.second.count; });
    json["missing"] = Json::array();
    for (const auto& [what, missing] : lines) {
      json["missing"].push_back({{"operator", what.first},
                                 {"reason", what.second},
                                 {"count", missing.count},
                                 {"first", missing.first},
                                 {"macs", missing.macs}});
    }
    return ir::json_text(json, 2) + "\n";
  }

 private:
  // A program of an NPU, which runs on a device or nowhere.
  static bool is_taken_program(const pattern::Pre& pre, const ir::Node& node,
                               const std::vector<target::Target>& targets) {
    for (const target::Target& target : targets) {
      for (const target::PatternRow& row : target.table) {
        if (!row.is_program) continue;
        const auto matches = pattern::match(row.pattern, pre, pattern::PreValue{node.results[0]});
        if (matches && row.check({pre, *matches}).empty()) return true;
      }
    }
    return false;
  }

  void add(const std::string& kind, const std::string& reason, const std::string& name, uint64_t macs) {
    Missing& missing = missing_[{kind, reason}];
    if (missing.count++ == 0) missing.first = name;
    missing.macs += macs;
  }

  const std::vector<SourceOperator> operators_;  // empty: of a format whose importer lists none
  std::map<std::string, size_t> by_name_;        // of the nodes that an operator became
  std::map<std::pair<std::string, std::string>, Missing> missing_;
  std::set<size_t> stopped_;  // operators that do not run
  uint64_t num_unnamed_ = 0;  // nodes without an operator of their name that do not run
  uint64_t num_nodes_ = 0;
  uint64_t total_macs_ = 0, run_macs_ = 0;
};

}  // namespace

std::string coverage_json(std::span<const uint8_t> model, std::string_view name, const PackOptions& options) {
  std::vector<SourceOperator> operators;
  PackOptions looking = options;
  looking.import.operators = &operators;
  const pipeline::Observer observer(looking);
  const std::vector<target::Target> targets = pipeline::read_targets(looking);
  ir::Module module = import_model(model, name, looking);
  Survey survey(std::move(operators));
  if (!module.main().outputs().empty()) {
    try {
      pipeline::canonicalize(&module, targets, observer);
      survey.look(module.main(), targets);
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      survey.stop(error.what());  // a dtype or a number of inputs that no plan has
    }
  }
  return survey.json();
}

}  // namespace qplan
