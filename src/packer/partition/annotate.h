// Composites, and which target each of them goes to.
#ifndef QPLAN_SRC_PACKER_PARTITION_ANNOTATE_H_
#define QPLAN_SRC_PACKER_PARTITION_ANNOTATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pattern/rebuild.h"
#include "src/packer/target/target.h"

namespace qplan::partition {

// Nodes that are placed together. Only the last one's result is read outside.
struct Unit {
  std::vector<uint32_t> nodes;  // ascending
  const target::Target* target = nullptr;
  const target::PatternRow* row = nullptr;  // null: a single node that no pattern took
  bool pinned = false;
  uint64_t macs = 0, bytes = 0, weight_bytes = 0;
  uint64_t cpu_ns = 0;
  std::optional<uint64_t> cycles;  // of a device's row
  // Decided after annotation.
  std::optional<target::Reason> gated;  // why it went back from `gated_from` to the CPU
  const target::Target* gated_from = nullptr;

  uint32_t root() const { return nodes.back(); }
};

// A pattern matched, but constraints do not hold.
struct Refusal {
  const target::Target* target;
  const target::PatternRow* row;
  std::vector<target::Reason> reasons;
};

struct Annotation {
  std::vector<Unit> units;                     // by their roots: a unit reads only units before it
  std::vector<uint32_t> unit_of;               // by node
  std::vector<std::vector<Refusal>> refusals;  // by node
};

// targets: by priority, the CPU among them. cpu: its costs. Nodes in the exclusions go to other targets.
Annotation annotate(const pattern::Pre& pre, std::span<const target::Target* const> targets,
                    std::span<const Pin> pins, std::span<const Exclusion> exclusions = {});

// Why a target does not run a node: refusals, otherwise the near miss, or the operator that no pattern
// contains.
TargetVerdict verdict(const pattern::Pre& pre, const Annotation& annotation, const Unit& unit,
                      const target::Target& target);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_ANNOTATE_H_
