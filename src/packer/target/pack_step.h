// The KernelStep table of a step. Fields are added in the schema's order and vectors before their table, which
// is what fixes a plan's bytes.
#ifndef QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_
#define QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_

#include <cstdint>

#include "format/plan_generated.h"
#include "src/packer/target/program.h"

namespace qplan::target {

// How a step is to run, which nobody can say before its tensors and kernel are settled.
struct StepExecution {
  uint32_t min_units_per_task = 0;
  uint64_t schedule = 0;
};

// num_tensors: of the plan, whose indices from there on are the tiles of the step's layers.
flatbuffers::Offset<format::KernelStep> pack_kernel_step(const ProgramStep& step, size_t num_tensors,
                                                         const StepExecution& execution,
                                                         flatbuffers::FlatBufferBuilder& builder);

// The table of a tensor that lies nowhere: dtype, shape and size.
flatbuffers::Offset<format::Tensor> pack_tile(const ProgramTensor& tile,
                                              flatbuffers::FlatBufferBuilder& builder);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_
