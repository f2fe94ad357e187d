// The packer's stages after lowering, in one call: for constants that are folded, and for tests.
#ifndef QPLAN_SRC_PACKER_EVALUATE_MAKE_PLAN_H_
#define QPLAN_SRC_PACKER_EVALUATE_MAKE_PLAN_H_

#include "src/packer/aligned_bytes.h"
#include "src/packer/memory/arena.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/write/plan_writer.h"

namespace qplan::evaluate {

// Fuses, schedules, plans memory, writes and checks, as pack() does.
AlignedBytes make_plan(const target::Program& program, const target::TargetProfile& profile,
                       const schedule::FuseOptions& options = {}, const write::PlanNames& names = {});

// What the runtime refuses of a plan just made is our own defect: PackError (QPLAN_INTERNAL). A session of a
// large arena is not tried: the overlap checker and the kernels' own checks have been over all that it would
// look at. Nor is one that needs a device.
void check_plan(std::span<const uint8_t> plan, const target::Program& program, const memory::Arena& arena);

}  // namespace qplan::evaluate

#endif  // QPLAN_SRC_PACKER_EVALUATE_MAKE_PLAN_H_
