// The ordered list of what the CPU target can lower.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_

#include <span>
#include <vector>

#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

struct TableRow {
  const char* name;
  // The nodes that the row would take when its pattern begins at the node; empty when it does not.
  Chain (*match)(const Lowering& lowering, uint32_t node);
  std::vector<Constraint> constraints;
  // Adds steps that define the results of the chain's last node. All constraints
  // hold; PackError (QPLAN_MODEL_UNSUPPORTED) only for tensors that no plan can hold.
  void (*lower)(Lowering& lowering, const Chain& chain);

  // All reasons against what the row matched; empty: it can be lowered.
  std::vector<Reason> check(const Matched& matched) const {
    return reasons_against<Matched>(constraints, matched);
  }
};

// The first row that matches wins: composites before their parts.
std::span<const TableRow> lowering_table();

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
