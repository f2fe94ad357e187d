// The table of a target from outside the tree.
#ifndef QPLAN_SRC_PACKER_TARGET_EXTERNAL_ROWS_H_
#define QPLAN_SRC_PACKER_TARGET_EXTERNAL_ROWS_H_

#include <cstdint>
#include <vector>

#include "qplan/npu_target.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {

// config: what the library's configure gave.
std::vector<PatternRow> make_rows(const qplan_npu_target& library, uint64_t config);
// The library's program, or an operator list, for a region. Target::compile.
CompiledRegion compile_region(const qplan_npu_target& library, uint64_t config,
                              const std::vector<PatternRow>& rows, const ir::Module& module,
                              const ir::Function& region);

}  // namespace qplan::target::external

#endif  // QPLAN_SRC_PACKER_TARGET_EXTERNAL_ROWS_H_
