// What the packer must know of the device a plan is made for. Read from a text, never from the packing
// machine.
#ifndef QPLAN_SRC_PACKER_TARGET_PROFILE_H_
#define QPLAN_SRC_PACKER_TARGET_PROFILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/layout.h"

namespace qplan::target {

// The zero point that convolutions and fully connected layers read their input with; the difference to the
// real one is folded into the bias.
enum class InputOrigin {
  kZero,      // 0 of the dtype: multiply as stored
  kDtypeMin,  // the dtype's minimum: byte dot products take the input as unsigned
};

struct TargetProfile {
  std::string name;     // "cpu"
  std::string arch;     // "x86_64"
  std::string options;  // canonical, as the plan records them: "arch=x86_64,isa=avx512vnni"
  uint64_t pointer_size = 8;
  std::vector<uint32_t>
      isas;  // QPLAN_ISA_*: variants of these may run the plan and find the scratch they need
  // Those whose variants the packer asks for scratch memory and work items: the same. Where they are of
  // another architecture than the packer's, this build lacks them, and one whose vectors have as many bytes
  // stands in: variants that find less scratch memory than they want leave their steps to others.
  std::vector<uint32_t> asked_isas;
  uint16_t conv2d_layout = kLayout_ohwi;
  uint16_t fully_connected_layout = kLayout_ohwi;
  uint16_t depthwise_layout = kLayout_ohwi;
  InputOrigin input_origin = InputOrigin::kZero;
  uint64_t task_work =
      0;  // multiply-accumulates and bytes worth a task of their own; 0: steps are never split
  uint64_t min_fused_bytes = 0;  // of memory that chains must save to be made
};

// Without blanks at either end.
std::string_view trim(std::string_view text);

// "cpu", "cpu,isa=avx2", "cpu,arch=cortex-m", ... PackError (QPLAN_INVALID_ARGUMENT) with the list of what is
// known.
TargetProfile parse_target(std::string_view text);
// The reference kernels on any machine: what constants are folded with.
TargetProfile reference_profile();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PROFILE_H_
