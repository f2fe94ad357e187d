// Regions as functions of their own.
#ifndef QPLAN_SRC_PACKER_PARTITION_OUTLINE_H_
#define QPLAN_SRC_PACKER_PARTITION_OUTLINE_H_

#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/partition/annotate.h"
#include "src/packer/partition/cost_gate.h"

namespace qplan::partition {

struct Outlined {
  ir::Module module;
  std::vector<uint32_t> order;             // islands in the order in which main calls them
  std::vector<std::string> function_name;  // by island; empty for those that are not alive
};

// The living islands become functions qplan_<target>_main_<n> with Compiler, Primitive and global_symbol;
// units of composites become functions with Composite and Primitive. Everything else stays in main.
Outlined outline(const ir::Function& main, const Annotation& annotation, const Islands& islands);

}  // namespace qplan::partition

#endif  // QPLAN_SRC_PACKER_PARTITION_OUTLINE_H_
