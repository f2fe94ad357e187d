// From a lowered program to what a plan will hold of it: the stages that pack() runs before it writes.
#ifndef QPLAN_SRC_PACKER_PIPELINE_PLAN_PROGRAM_H_
#define QPLAN_SRC_PACKER_PIPELINE_PLAN_PROGRAM_H_

#include <cstdint>
#include <optional>

#include "src/packer/memory/arena.h"
#include "src/packer/partition/explain.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/target/target.h"

namespace qplan::pipeline {

// A program that is fused and scheduled, and its memory plan.
struct Planned {
  target::Program program;
  memory::Arena arena;
};
struct PlannedSizes {
  uint64_t constants = 0;  // bytes in the file
  uint64_t memory = 0;     // bytes of activations and device buffers
};

std::optional<schedule::TuningLog> read_tuning(const PackOptions& options);
schedule::FuseOptions fuse_options(const PackOptions& options, schedule::TuningLog* tuning);
// program: scheduled.
memory::Arena plan_memory(const target::Program& program, const PackOptions& options);

// What pack() makes of a lowered program, without its log. tuning may be null.
Planned plan_program(const target::Program& lowered, const target::TargetProfile& profile,
                     const PackOptions& options, schedule::TuningLog* tuning);
PlannedSizes sizes_of(const Planned& planned);

// What the session copies at the regions' boundaries.
void report_copies(const Planned& planned, const target::Target& cpu, partition::Explain* explain);
// What a plan without the CPU's steps for its regions is smaller than the one with them.
void report_savings(const PlannedSizes& with_fallback, const PlannedSizes& without,
                    partition::Explain* explain);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_PLAN_PROGRAM_H_
