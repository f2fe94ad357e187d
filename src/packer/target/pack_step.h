// The KernelStep table of a step. Fields are added in the schema's order and vectors before their table,
// which is what fixes a plan's bytes.
#ifndef QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_
#define QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_

#include <cstdint>

#include "format/plan_generated.h"
#include "src/packer/target/program.h"

namespace qplan::target {

// num_tensors: of the plan, whose indices from there on are the tiles of the step's layers.
flatbuffers::Offset<format::KernelStep> pack_kernel_step(const ProgramStep& step, size_t num_tensors,
                                                         flatbuffers::FlatBufferBuilder& builder);

// The table of a tensor that lies nowhere: dtype, shape and size.
flatbuffers::Offset<format::Tensor> pack_tile(const ProgramTensor& tile,
                                              flatbuffers::FlatBufferBuilder& builder);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PACK_STEP_H_
