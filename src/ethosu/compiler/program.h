// Programs that Arm's compiler made (operator npu.program) as regions: nothing is compiled, everything is
// checked.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_PROGRAM_H_
#define QPLAN_SRC_ETHOSU_COMPILER_PROGRAM_H_

#include "src/ethosu/isa/config.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::ethosu::compiler {

target::PatternRow program_row(const Config& config);

// region: one node, the program. PackError (QPLAN_MODEL_INVALID) with the word of the command stream that is
// wrong.
target::CompiledRegion compile_program(const Config& config, const ir::Function& region);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_PROGRAM_H_
