// An AluStep (requantize.h) over the elements of a tile as an instruction.
#ifndef QPLAN_SRC_VTA_COMPILER_ALU_INSTRUCTION_H_
#define QPLAN_SRC_VTA_COMPILER_ALU_INSTRUCTION_H_

#include <cstdint>

#include "src/vta/compiler/requantize.h"

namespace qplan::target::vta {

// The ALU's micro-op `uop` over so many consecutive elements of its destination.
::qplan::vta::Instruction over_elements(int64_t elements, int64_t uop);
// Over [positions][out_blocks] elements; a constant has out_blocks elements, which serve all positions.
// uop: names the step's destination and source.
::qplan::vta::Instruction alu_instruction(const AluStep& step, int64_t positions, int64_t out_blocks,
                                          int64_t uop);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_ALU_INSTRUCTION_H_
