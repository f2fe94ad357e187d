// Instructions and micro-ops as text, one line each:
//   load.inp   [16+120] <- 0x40 8x14/32 pad 0,0,1,0                 pop.next push.next
//   gemm       uop[0,9) 14x14 dst+14,+1 src+32,+2 wgt+0,+0          pop.prev
//   alu.add    uop[0,1) 14x14 dst+14,+1 imm 127
#ifndef QPLAN_SRC_VTA_ISA_VTA_DISASM_H_
#define QPLAN_SRC_VTA_ISA_VTA_DISASM_H_

#include <stddef.h>

#include "src/vta/isa/vta.h"

namespace qplan::vta {

constexpr size_t kDisassemblyBytes = 160;  // enough for every instruction, with its NUL
void disassemble(const Instruction& instruction, char text[kDisassemblyBytes]);

}  // namespace qplan::vta

#endif  // QPLAN_SRC_VTA_ISA_VTA_DISASM_H_
