// Layers that run as one step: additions as residuals, and chains, which keep a few rows of what lies between
// layers (kernels/chain/chain.h).
#ifndef QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_

#include <cstdint>

#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

// Which chains are made. kAuto: those that save much memory for little time, or time by a log of
// measurements. kAll: every chain that is possible. kMemory: those that take the least memory, whatever time
// they take, with one row of output at a time (compared with what the other choices take).
enum class Fuse : uint8_t { kOff, kAuto, kAll, kMemory };

struct FuseOptions {
  Fuse how = Fuse::kOff;
  TuningLog* tuning = nullptr;      // null, or where times are known from
  uint32_t planner_iterations = 0;  // of the memory plans that kMemory compares; 0: the planner's default
  LogFunction log = {};
};

// The program with residuals (fold_residuals.h) and chains in the place of steps. What lies between steps
// that are fused has no other reader and is no output of the function. Regions on devices, and the steps that
// stand in for them, stay as they are. With measured times a chain that is faster than its layers is made,
// and one that saves memory is not where it is slower by more than a tenth.
target::Program fuse_steps(const target::Program& program, const target::TargetProfile& profile,
                           const FuseOptions& options);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
