// From a program and its memory plan to the bytes of a plan file.
#ifndef QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
#define QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/plan_generated.h"
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
  std::string explain = {};        // JSON of the placement; empty if it is not known
  std::string metadata = {};       // JSON of what the model says of inputs and outputs; empty: nothing
};

// What qplan_session_self_check compares (plan.fbs, SelfCheck): every list has one entry for each step.
struct SelfChecks {
  struct Run {
    uint32_t seed = 0;
    std::vector<uint32_t> outputs;
  };
  std::vector<uint32_t> constants;
  std::vector<Run> runs;  // none: the plan has no self-checks
};

// The same program, profile, arena, names and checks give the same bytes. program: scheduled. arena: its
// memory plan. PackError (QPLAN_MODEL_UNSUPPORTED) where they are beyond what a plan holds.
AlignedBytes write_plan(const target::Program& program, const target::TargetProfile& profile,
                        const memory::Arena& arena, const PlanNames& names, const SelfChecks& checks = {});

// The Plan flatbuffer of a program.

// Banks of an emitted plan. The constant bank is left out when there are no constants; with devices there are
// always some, their programs.
inline constexpr uint32_t kArenaBank = 0;
inline constexpr uint32_t kConstantBank = 1;
inline constexpr uint32_t kFirstDeviceBank = 2;  // one bank for each of Program::devices
// Targets of an emitted plan: the CPU, then Program::devices.
inline constexpr uint32_t kFirstDeviceTarget = 1;

// Where each constant lies in the plan's constant bank: equal contents lie there once.
struct ConstantSegment {
  static constexpr uint64_t kAlignment = 64;

  std::vector<uint64_t> offsets;               // per tensor of the program; 0 for activations
  std::vector<target::TensorId> first_tensor;  // one tensor per distinct content, by rising offset
  uint64_t size = 0;                           // bytes
};

ConstantSegment lay_out_constants(const target::Program& program);

struct RootContents {
  const target::Program& program;  // scheduled
  const target::TargetProfile& profile;
  const ConstantSegment& constants;
  const memory::Arena& arena;
  const SelfChecks& checks;
  uint64_t constants_offset = 0;  // bytes from the file's begin
};

// The same contents give the same bytes.
flatbuffers::DetachedBuffer build_root(const RootContents& contents);

}  // namespace qplan::write

#endif  // QPLAN_SRC_PACKER_WRITE_PLAN_WRITER_H_
