#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/partition/stages.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::partition {
namespace {

using target::Candidate;
using target::PatternRow;
using target::Target;

constexpr uint32_t kNoUnit = UINT32_MAX;

uint64_t bytes_of(const ir::TensorType& type) { return static_cast<uint64_t>(type.size_bytes()); }

void add_reason(std::vector<target::Reason>* reasons, const target::Reason& reason) {
  if (std::ranges::find(*reasons, reason) == reasons->end()) reasons->push_back(reason);
}

class Annotator {
 public:
  Annotator(const pattern::Pre& pre, std::span<const Target* const> targets, std::span<const Pin> pins,
            std::span<const Exclusion> exclusions)
      : pre_(pre),
        function_(pre.function()),
        targets_(targets),
        pin_of_(function_.nodes().size(), nullptr),
        live_(pattern::live_nodes(function_)) {
    annotation_.unit_of.assign(function_.nodes().size(), kNoUnit);
    annotation_.refusals.resize(function_.nodes().size());
    for (const Pin& pin : pins) apply(pin);
    for (const Exclusion& exclusion : exclusions) excluded_[exclusion.node].push_back(&exclusion);
  }

  Annotation run() {
    // Pinned nodes first, so that a target which would come too late for them gets them.
    for (const Target* target : targets_) take_rows(*target, /*pinned=*/true);
    for (const Target* target : targets_) {
      take_rows(*target, /*pinned=*/false);
      if (target->is_cpu) take_rest(*target);
    }
    check_pins();
    sort_units();
    return std::move(annotation_);
  }

 private:
  const ir::Node& node(uint32_t index) const { return function_.nodes()[index]; }
  bool is_free(uint32_t index) const { return annotation_.unit_of[index] == kNoUnit; }

  void apply(const Pin& pin) {
    const auto target = std::ranges::find(targets_, pin.target, [](const Target* t) { return t->name; });
    if (target == targets_.end()) {
      std::string names;
      for (const Target* known : targets_) names += cat(names.empty() ? "" : ", ", known->name);
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("pin '", pin.node, "=", pin.target, "': there is no target '", pin.target,
                          "'; there are: ", names));
    }
    bool found = false;
    for (uint32_t n = 0; n < function_.nodes().size(); ++n) {
      if (node(n).name != pin.node && pin.node != cat("%", n)) continue;
      found = true;
      if (pin_of_[n] != nullptr && pin_of_[n] != *target) {
        throw PackError(QPLAN_INVALID_ARGUMENT, cat("pin '", pin.node, "=", pin.target,
                                                    "': it is pinned to '", pin_of_[n]->name, "' too"));
      }
      pin_of_[n] = *target;
    }
    if (found) return;
    throw PackError(QPLAN_INVALID_ARGUMENT, cat("pin '", pin.node, "=", pin.target,
                                                "': no operator has this name; 'qplan explain' lists them, "
                                                "%NUMBER names one by its number"));
  }

  void take_rows(const Target& target, bool pinned) {
    if (pinned && std::ranges::find(pin_of_, &target) == pin_of_.end()) return;
    for (const PatternRow& row : target.table) {
      // Nodes of a refused match: its parts are no better.
      std::vector<bool> refused(function_.nodes().size(), false);
      for (auto n = static_cast<uint32_t>(function_.nodes().size()); n-- > 0;) {
        if (is_free(n) && !refused[n] && node(n).op != nullptr) try_row(target, row, n, pinned, &refused);
      }
    }
  }

  void try_row(const Target& target, const PatternRow& row, uint32_t n, bool pinned,
               std::vector<bool>* refused) {
    if (node(n).results.size() != 1 && !row.is_program) return;
    const auto matches = pattern::match(row.pattern, pre_, pattern::PreValue{node(n).results[0]});
    if (!matches || matches->nodes().empty() || matches->nodes().back() != n) return;
    const std::vector<uint32_t>& nodes = matches->nodes();
    bool any_pinned = false;
    for (const uint32_t index : nodes) {
      if (!is_free(index) || (pin_of_[index] != nullptr && pin_of_[index] != &target)) return;
      any_pinned = any_pinned || pin_of_[index] == &target;
    }
    if (any_pinned != pinned) return;
    const Candidate candidate{pre_, *matches};
    std::vector<target::Reason> reasons = row.check(candidate);
    // A region must have something to return.
    if (!live_[n] && !target.is_cpu) {
      reasons.push_back({cat(target.name, ".dead"), "no path to an output reads it", "remove it"});
    }
    add_exclusions(target, nodes, &reasons);
    if (const std::string reader = read_elsewhere(nodes); !reader.empty()) {
      reasons.push_back({cat(target.name, ".pattern.inner_result"),
                         cat("the result of ", reader, " is read outside of ", row.name), ""});
    }
    if (reasons.empty()) return take(target, &row, candidate, pinned);
    for (const uint32_t index : nodes) {
      annotation_.refusals[index].push_back({&target, &row, reasons});
      (*refused)[index] = true;
    }
  }

  // The reason for which the target's compiler rejected one of the nodes.
  void add_exclusions(const Target& target, const std::vector<uint32_t>& nodes,
                      std::vector<target::Reason>* reasons) const {
    for (const uint32_t index : nodes) {
      const auto known = excluded_.find(index);
      if (known == excluded_.end()) continue;
      for (const Exclusion* exclusion : known->second) {
        if (exclusion->target == target.name) add_reason(reasons, exclusion->reason);
      }
    }
  }

  // An inner node whose result something else reads too; empty if each is read inside alone.
  std::string read_elsewhere(const std::vector<uint32_t>& nodes) const {
    for (const uint32_t inner : nodes) {
      if (inner == nodes.back()) continue;
      for (const ir::ValueId result : node(inner).results) {
        uint32_t uses = 0;
        for (const uint32_t user : nodes) {
          uses += static_cast<uint32_t>(std::ranges::count(node(user).operands, result));
        }
        if (uses != pre_.num_uses(pattern::PreValue{result})) return pattern::node_label(function_, inner);
      }
    }
    return "";
  }

  void take(const Target& target, const PatternRow* row, const Candidate& candidate, bool pinned) {
    Unit unit;
    unit.nodes.assign(candidate.nodes().begin(), candidate.nodes().end());
    if (row->cycles) unit.cycles = row->cycles(candidate, target.costs);
    add(target, row, std::move(unit), pinned);
  }

  void take_rest(const Target& cpu) {
    for (uint32_t n = 0; n < function_.nodes().size(); ++n) {
      if (!is_free(n) || (pin_of_[n] != nullptr && pin_of_[n] != &cpu)) continue;
      Unit unit;
      unit.nodes = {n};
      add(cpu, nullptr, std::move(unit), pin_of_[n] == &cpu);
    }
  }

  void add(const Target& target, const PatternRow* row, Unit unit, bool pinned) {
    unit.target = &target;
    unit.row = row;
    unit.pinned = pinned;
    const ir::Node& root = node(unit.root());
    unit.is_program = root.op != nullptr && root.op->name == op::kProgramOperator;
    measure(&unit);
    for (const uint32_t n : unit.nodes)
      annotation_.unit_of[n] = static_cast<uint32_t>(annotation_.units.size());
    annotation_.units.push_back(std::move(unit));
  }

  void measure(Unit* unit) const {
    std::unordered_set<uint32_t> inside, read;
    for (const uint32_t n : unit->nodes) {
      unit->macs += target::node_macs(function_, node(n));
      for (const ir::ValueId operand : node(n).operands) {
        if (inside.contains(operand.index) || !read.insert(operand.index).second) continue;
        (function_.is_constant(operand) ? unit->weight_bytes : unit->bytes) +=
            bytes_of(function_.type(operand));
      }
      for (const ir::ValueId result : node(n).results) inside.insert(result.index);
    }
    for (const ir::ValueId result : node(unit->root()).results)
      unit->bytes += bytes_of(function_.type(result));
    const auto cpu = std::ranges::find_if(targets_, [](const Target* t) { return t->is_cpu; });
    if (unit->is_program) return;
    unit->cpu_ns =
        target::cpu_ns((*cpu)->cpu_costs, work_of(*unit), unit->macs, unit->bytes, unit->weight_bytes);
  }

  // That of the node which multiplies, else of the first: the others are part of its kernel.
  target::CpuWork work_of(const Unit& unit) const {
    const auto multiplies = [&](uint32_t n) { return target::node_macs(function_, node(n)) > 0; };
    const auto found = std::ranges::find_if(unit.nodes, multiplies);
    return target::cpu_work(function_, node(found == unit.nodes.end() ? unit.nodes.front() : *found));
  }

  void check_pins() const {
    std::string text;
    size_t count = 0;
    for (uint32_t n = 0; n < function_.nodes().size(); ++n) {
      if (!is_free(n)) continue;
      Unit unit;
      unit.nodes = {n};
      const Target& target = *pin_of_[n];
      const TargetVerdict why = verdict(pre_, annotation_, unit, target);
      text += cat(count++ == 0 ? "" : "; ", pattern::node_label(function_, n), " is pinned to '", target.name,
                  "'");
      for (const target::Reason& reason : why.reasons) text += cat(", ", reason.text, " [", reason.id, "]");
    }
    if (count != 0) throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("pins that cannot be kept: ", text));
  }

  void sort_units() {
    std::ranges::sort(annotation_.units, {}, &Unit::root);
    for (uint32_t u = 0; u < annotation_.units.size(); ++u) {
      for (const uint32_t n : annotation_.units[u].nodes) annotation_.unit_of[n] = u;
    }
  }

  const pattern::Pre& pre_;
  const ir::Function& function_;
  const std::span<const Target* const> targets_;
  std::vector<const Target*> pin_of_;                                     // by node
  const std::vector<bool> live_;                                          // by node
  std::unordered_map<uint32_t, std::vector<const Exclusion*>> excluded_;  // by node
  Annotation annotation_;
};

// Whether the pattern contains the operator.
bool mentions(const pattern::Pattern& pattern, const op::OpDef* op) {
  std::vector<const pattern::PatternNode*> open = {&pattern.node()};
  std::unordered_set<const pattern::PatternNode*> seen;
  while (!open.empty()) {
    const pattern::PatternNode* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (std::ranges::find(node->ops, op) != node->ops.end()) return true;
    for (const pattern::Pattern& child : node->children) open.push_back(&child.node());
  }
  return false;
}

constexpr uint32_t kMaxChain = 5;  // how far after a node the last operator of a pattern may be

// Tries all rows that mention the node's operator, at the node and at those after it, and returns the one
// whose conditions held longest.
std::optional<NearMissReport> near_miss(const pattern::Pre& pre, uint32_t index, const Target& target) {
  const ir::Function& function = pre.function();
  const ir::Node& node = function.nodes()[index];
  std::vector<ir::ValueId> roots = {node.results[0]};
  for (uint32_t n = index + 1; n < function.nodes().size() && roots.size() < kMaxChain; ++n) {
    const ir::Node& next = function.nodes()[n];
    if (next.results.size() == 1 && std::ranges::find(next.operands, roots.back()) != next.operands.end()) {
      roots.push_back(next.results[0]);
    }
    if (n - index > 64) break;  // operators of a layer are close to each other
  }
  std::optional<NearMissReport> nearest;
  uint32_t depth = 0;
  for (const PatternRow& row : target.table) {
    if (!mentions(row.pattern, node.op)) continue;
    for (const ir::ValueId root : roots) {
      const auto miss = pattern::explain(row.pattern, pre, pattern::PreValue{root});
      if (!miss) {  // nothing is missing: something else decided
        if (std::ranges::binary_search(pattern::match(row.pattern, pre, pattern::PreValue{root})->nodes(),
                                       index))
          return std::nullopt;
        continue;
      }
      if (miss->depth == 0 || (nearest && miss->depth <= depth)) continue;
      depth = miss->depth;
      nearest = {row.name, miss->place, miss->expected, miss->found};
    }
  }
  return nearest;
}

}  // namespace

Annotation annotate(const pattern::Pre& pre, std::span<const Target* const> targets,
                    std::span<const Pin> pins, std::span<const Exclusion> exclusions) {
  return Annotator(pre, targets, pins, exclusions).run();
}

TargetVerdict verdict(const pattern::Pre& pre, const Annotation& annotation, const Unit& unit,
                      const Target& target) {
  TargetVerdict result{.target = target.name, .reasons = {}, .near_miss = {}, .cycles = {}, .ns = {}};
  if (target.is_cpu) return result;
  if (unit.gated && unit.gated_from == &target) {
    result.reasons.push_back(*unit.gated);
    result.cycles = unit.cycles;
    if (unit.cycles) result.ns = target::device_ns(target.costs, *unit.cycles);
    return result;
  }
  const ir::Function& function = pre.function();
  for (const uint32_t n : unit.nodes) {
    for (const Refusal& refusal : annotation.refusals[n]) {
      if (refusal.target != &target) continue;
      for (const target::Reason& reason : refusal.reasons) add_reason(&result.reasons, reason);
    }
  }
  if (!result.reasons.empty()) return result;
  // The layer's first operator is the one that patterns are made for.
  const uint32_t first = unit.nodes.front();
  const ir::Node& node = function.nodes()[first];
  if (node.op == nullptr) {
    result.reasons.push_back({cat(target.name, ".op.call"), "calls of functions are not placed", ""});
    return result;
  }
  const bool known = std::ranges::any_of(
      target.table, [&](const PatternRow& row) { return mentions(row.pattern, node.op); });
  if (!known) {
    result.reasons.push_back({cat(target.name, ".op.", target::plain_operator_name(node.op->name)),
                              cat("operator ", node.op->name, " ", target.no_row_text), target.no_row_hint});
    return result;
  }
  result.near_miss = near_miss(pre, first, target);
  if (result.near_miss) {
    const NearMissReport& miss = *result.near_miss;
    result.reasons.push_back({cat(target.name, ".pattern"),
                              cat("no pattern matches; '", miss.composite, "' is the nearest: at ",
                                  miss.place, " it expects ", miss.expected, ", found ", miss.found),
                              ""});
  }
  return result;
}

}  // namespace qplan::partition
