// From a program and its memory plan to the bytes of a plan file.
#ifndef QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
#define QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_

#include <string>

#include "src/packer/aligned_bytes.h"
#include "src/packer/memory/arena.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::write {

// What a plan is told of itself, after its content; nothing of it changes how the plan runs.
struct PlanNames {
  bool strip = false;              // none at all
  std::string source = {};         // base name of the model file
  std::string source_digest = {};  // its SHA-256, hexadecimal
  std::string explain = {};        // JSON of the placement; empty: there is none
};

// The same program, profile, arena and names give the same bytes. program: scheduled. arena: its memory plan.
// PackError (QPLAN_MODEL_UNSUPPORTED) where they are beyond what a plan holds.
AlignedBytes write_plan(const target::Program& program, const target::TargetProfile& profile,
                        const memory::Arena& arena, const PlanNames& names);

}  // namespace qplan::write

#endif  // QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
