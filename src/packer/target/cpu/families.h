// The matchers and lowerings behind the rows of table.cc, one file per family: lower_<family>.cc.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_FAMILIES_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_FAMILIES_H_

#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

#define QPLAN_LOWERING(name)                                   \
  Chain match_##name(const Lowering& lowering, uint32_t node); \
  void lower_##name(Lowering& lowering, const Chain& chain);
#include "src/packer/target/cpu/lowerings.def"
#undef QPLAN_LOWERING

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_FAMILIES_H_
