// The ordered list of what the CPU target can lower.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_

#include <span>

#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

struct TableRow {
  const char* name;
  // The nodes that the row would take when its pattern begins at the node; empty when it does not.
  Chain (*match)(const Lowering& lowering, uint32_t node);
  // Adds steps that define the results of the chain's last node. PackError (QPLAN_MODEL_UNSUPPORTED) with the
  // reason when the kernel does not compute this one.
  void (*lower)(Lowering& lowering, const Chain& chain);
};

// The first row that matches wins: composites before their parts.
std::span<const TableRow> lowering_table();

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
