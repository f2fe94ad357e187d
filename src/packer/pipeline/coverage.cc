// `qplan pack --coverage`: the share of a model's operators and multiply-accumulates that would run.
#include <algorithm>
#include <map>
#include <set>

#include "src/packer/error.h"
#include "src/packer/ir/json.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/target/lower.h"
#include "src/packer/target/target.h"

namespace qplan {
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
      pipeline::canonicalize(&module, pipeline::cpu_of(targets).profile, observer);
      survey.look(module.main(), targets);
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      survey.stop(error.what());  // a dtype or a number of inputs that no plan has
    }
  }
  return survey.json();
}

}  // namespace qplan
