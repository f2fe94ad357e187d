// Small pieces of text: numbers in and out.
#ifndef QPLAN_SRC_VTA_SIM_OPTIONS_H_
#define QPLAN_SRC_VTA_SIM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/vta/isa/vta.h"

namespace qplan::sim {

std::string hexadecimal(uint64_t number);  // "0x1000"
// Decimal, or hexadecimal after 0x; the whole of text. False when it is no such number or too large.
bool parse_number(std::string_view text, uint64_t* number);
// The parts between separators, without blanks at their ends; empty parts are left out.
std::vector<std::string_view> split(std::string_view text, char separator);
// Cut to the room there is.
void copy_text(const std::string& from, char* to, size_t size);
// Fills *why (may be null).
void give_reason(qplan_npu_reason* why, const std::string& text, int64_t limit = 0, int64_t actual = 0);

// Faults by script: what goes wrong, and when. The grammar is in include/qplan/npu_sim.h.
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

// The text that opens a simulated device (include/qplan/npu_sim.h) as a struct.

struct Options {
  vta::Config config = vta::kDefaultConfig;
  uint64_t seed = 1;
  uint32_t explore = 1;
  bool hazards_fail = true;
  bool is_coherent = true;
  uint32_t queue = 8;
  uint64_t memory_bytes = uint64_t{256} << 20;
  uint64_t work = uint64_t{1} << 30;  // of a replayed job: micro-ops executed, elements loaded and stored
  std::string record;                 // directory; empty: no
  bool records_all = false;           // checks of what a job leaves in its scratch, too
  std::string trace;                  // file; empty: no
  std::vector<FaultRule> faults;
  uint64_t fault_seed = 0;
  uint32_t fault_percent = 0;
};

// False with *error set to one line.
bool parse_options(std::string_view text, Options* options, std::string* error);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_OPTIONS_H_
