// From a canonical function to the steps of a program.
#ifndef QPLAN_SRC_PACKER_TARGET_LOWER_H_
#define QPLAN_SRC_PACKER_TARGET_LOWER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/packer/target/target.h"

namespace qplan::target {

// What stands for calls of a region's function.
struct RegionCode {
  uint32_t device = 0;                       // position in RegionCodes::devices
  const CompiledRegion* compiled = nullptr;  // checked (region.h)
  // The region as operators alone: what the CPU runs in its place.
  const ir::Function* body = nullptr;
};
struct RegionCodes {
  std::vector<ProgramDevice> devices;
  std::map<std::string, RegionCode, std::less<>> by_function;
  bool fallback = true;  // the CPU's steps are there too
};

// Reports progress in nodes; may be empty.
using LowerProgress = std::function<void(uint32_t done, uint32_t total)>;

// PackError (QPLAN_MODEL_UNSUPPORTED) naming every node that no kernel computes, each with its reason. A call
// of one of the regions becomes its step, followed by the CPU's steps for its body. Bodies are lowered in any
// case, but for programs that were compiled before: a plan without the steps is refused where the one with
// them would be.
Program lower_function(const ir::Function& function, const TargetProfile& profile,
                       const RegionCodes& regions = {}, const LowerProgress& progress = {});

// Why the CPU does not run a node and those that its pattern takes after it.
struct CpuRefusal {
  uint32_t node = 0;
  std::vector<Reason> reasons;  // all of them
};
std::vector<CpuRefusal> cpu_refusals(const ir::Function& function, const TargetProfile& profile);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_LOWER_H_
