// Layers that run as one step: additions as residuals, and cascades, which keep a few rows of what lies
// between layers (src/runtime/cascade.h).
#ifndef QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_

#include <cstdint>

#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

// Which cascades are made. kAuto: those that save much memory for little time, or time by a log of
// measurements. kAll: every cascade that is possible. kMemory: those that take the least memory, whatever
// time they take, with one row of output at a time (compared with what the other choices take).
enum class Fuse : uint8_t { kOff, kAuto, kAll, kMemory };

struct FuseOptions {
  Fuse how = Fuse::kOff;
  TuningLog* tuning = nullptr;      // null, or where times are known from
  uint32_t planner_iterations = 0;  // of the memory plans that kMemory compares; 0: the planner's default
  LogFunction log = {};
  // For kMemory on small devices: bytes beyond the least memory that cascades may take to be faster.
  uint64_t spare_bytes = 0;
};

// The program with residuals and cascades in the place of steps. What lies between steps
// that are fused has no other reader and is no output of the function. Regions on devices, and the steps that
// stand in for them, stay as they are. With measured times a cascade that is faster than its layers is made,
// and one that saves memory is not where it is slower by more than a tenth.
target::Program fuse_steps(const target::Program& program, const target::TargetProfile& profile,
                           const FuseOptions& options);

// Sums that a convolution's own step adds to its outputs, instead of a step that reads them again.

// The program with each add that can be as the residual of the convolution whose output it alone reads. Where
// both operands are such outputs, it is that of the later one. Regions on devices, and the steps that stand
// in for them, stay as they are.
target::Program fold_residuals(const target::Program& program);

// A step with a residual as the two that it was, the only steps of a program without inputs and outputs of a
// function.
target::Program residual_apart(const target::Program& program, uint32_t step);

// The search for cascades of a program.

// fuse_steps of one kind, kMemory by an estimate of the memory alone.
target::Program fuse_cascades(const target::Program& program, const target::TargetProfile& profile, Fuse fuse,
                              const TuningLog* tuning, const LogFunction& log);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
