// Faults by script: what goes wrong, and when. The grammar is in include/qplan/npu_sim.h.
#ifndef QPLAN_SRC_VTA_SIM_FAULTS_H_
#define QPLAN_SRC_VTA_SIM_FAULTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::sim {

enum class FaultPlace : uint8_t { kOpen, kAlloc, kLoad, kJob };
enum class FaultKind : uint8_t {
  kAbsent,
  kAllocationFailure,
  kTruncatedBlob,
  kSkewedBlob,
  kDamagedBlob,
  kHang,
  kBusError,
  kIllegalInstruction,
  kBitFlip,
  kSilentBitFlip,
  kDeviceLost,
  kLostInterrupt,
  kLateInterrupt,
};

constexpr uint64_t kAnyInstruction = UINT64_MAX;

struct FaultRule {
  FaultPlace place = FaultPlace::kJob;
  FaultKind kind = FaultKind::kHang;
  uint64_t number = 0;         // of the place, from 0
  uint64_t instruction = 0;    // kJob
  uint64_t milliseconds = 10;  // kLateInterrupt
};

const char* fault_kind_name(FaultKind kind);
// False with *error set to what is wrong.
bool parse_faults(std::string_view script, std::vector<FaultRule>* rules, std::string* error);
// The rule for place number `number`, or null.
const FaultRule* find_fault(const std::vector<FaultRule>& rules, FaultPlace place, uint64_t number);
// What a seed does to job `job` of num_instructions; false: nothing.
bool random_fault(uint64_t seed, uint32_t percent, uint64_t job, uint64_t num_instructions, FaultRule* rule);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_FAULTS_H_
