#include "src/packer/target/cpu/table.h"

namespace qplan::target::cpu {

std::span<const TableRow> lowering_table() {
  static const std::vector<TableRow> table = {
#define QPLAN_LOWERING(name) {#name, match_##name, constraints_of_##name(), lower_##name},
#include "src/packer/target/cpu/lowerings.def"
#undef QPLAN_LOWERING
  };
  return table;
}

}  // namespace qplan::target::cpu
