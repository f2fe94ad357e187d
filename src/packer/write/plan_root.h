// The Plan flatbuffer of a program.
#ifndef QPLAN_SRC_PACKER_WRITE_PLAN_ROOT_H_
#define QPLAN_SRC_PACKER_WRITE_PLAN_ROOT_H_

#include <cstdint>
#include <vector>

#include "format/plan_generated.h"
#include "src/packer/memory/arena.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::write {

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
  uint64_t constants_offset = 0;  // bytes from the file's begin
};

// The same contents give the same bytes.
flatbuffers::DetachedBuffer build_root(const RootContents& contents);

}  // namespace qplan::write

#endif  // QPLAN_SRC_PACKER_WRITE_PLAN_ROOT_H_
