// The search for chains of a program.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_CHAIN_SEARCH_H_
#define QPLAN_SRC_PACKER_SCHEDULE_CHAIN_SEARCH_H_

#include "src/packer/schedule/fuse.h"

namespace qplan::schedule {

// fuse_steps of one kind, kMemory by an estimate of the memory alone.
target::Program fuse_chains(const target::Program& program, const target::TargetProfile& profile, Fuse fuse,
                            const TuningLog* tuning, const LogFunction& log);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_CHAIN_SEARCH_H_
