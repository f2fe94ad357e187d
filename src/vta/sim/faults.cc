#include "src/vta/sim/faults.h"

#include <iterator>

#include "src/vta/sim/random.h"
#include "src/vta/sim/text.h"

namespace qplan::sim {
namespace {

struct KindRow {
  const char* name;
  FaultKind kind;
  FaultPlace place;
};
constexpr KindRow kKinds[] = {
    {"absent", FaultKind::kAbsent, FaultPlace::kOpen},
    {"allocation_failure", FaultKind::kAllocationFailure, FaultPlace::kAlloc},
    {"truncated_blob", FaultKind::kTruncatedBlob, FaultPlace::kLoad},
    {"skewed_blob", FaultKind::kSkewedBlob, FaultPlace::kLoad},
    {"damaged_blob", FaultKind::kDamagedBlob, FaultPlace::kLoad},
    {"hang", FaultKind::kHang, FaultPlace::kJob},
    {"bus_error", FaultKind::kBusError, FaultPlace::kJob},
    {"illegal_instruction", FaultKind::kIllegalInstruction, FaultPlace::kJob},
    {"bit_flip", FaultKind::kBitFlip, FaultPlace::kJob},
    {"silent_bit_flip", FaultKind::kSilentBitFlip, FaultPlace::kJob},
    {"device_lost", FaultKind::kDeviceLost, FaultPlace::kJob},
    {"lost_interrupt", FaultKind::kLostInterrupt, FaultPlace::kJob},
    {"late_interrupt", FaultKind::kLateInterrupt, FaultPlace::kJob},
};

const KindRow* find_kind(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

bool parse_place(std::string_view text, FaultRule* rule) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view place = text.substr(0, colon), number = text.substr(colon + 1);
  if (place == "open" || place == "alloc" || place == "load") {
    rule->place = place == "open"    ? FaultPlace::kOpen
                  : place == "alloc" ? FaultPlace::kAlloc
                                     : FaultPlace::kLoad;
    return parse_number(number, &rule->number);
  }
  rule->place = FaultPlace::kJob;
  if (!parse_number(place, &rule->number)) return false;
  rule->instruction = kAnyInstruction;
  return number == "*" || parse_number(number, &rule->instruction);
}

bool parse_rule(std::string_view text, FaultRule* rule, std::string* error) {
  bool has_place = false;
  const KindRow* kind = nullptr;
  for (const std::string_view word : split(text, ' ')) {
    if (word.substr(0, 3) == "at=" && parse_place(word.substr(3), rule)) {
      has_place = true;
    } else if (word.substr(0, 5) == "kind=" && (kind = find_kind(word.substr(5))) != nullptr) {
      rule->kind = kind->kind;
    } else if (word.substr(0, 3) != "ms=" || !parse_number(word.substr(3), &rule->milliseconds)) {
      *error = "faults: '" + std::string(word) + "' is no at=PLACE:NUMBER, no known kind=, no ms=NUMBER";
      return false;
    }
  }
  if (!has_place || kind == nullptr || kind->place != rule->place) {
    *error = "faults: '" + std::string(text) + "' needs at= and a kind= that can happen there";
    return false;
  }
  return true;
}

}  // namespace

const char* fault_kind_name(FaultKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  return "?";
}

bool parse_faults(std::string_view script, std::vector<FaultRule>* rules, std::string* error) {
  for (const std::string_view text : split(script, ';')) {
    FaultRule rule;
    if (!parse_rule(text, &rule, error)) return false;
    rules->push_back(rule);
  }
  return true;
}

const FaultRule* find_fault(const std::vector<FaultRule>& rules, FaultPlace place, uint64_t number) {
  for (const FaultRule& rule : rules) {
    if (rule.place == place && rule.number == number) return &rule;
  }
  return nullptr;
}

bool random_fault(uint64_t seed, uint32_t percent, uint64_t job, uint64_t num_instructions, FaultRule* rule) {
  // Those that a driver can notice: a silent flip would need a second computation.
  constexpr FaultKind kNoticed[] = {
      FaultKind::kHang,    FaultKind::kBusError,      FaultKind::kIllegalInstruction,
      FaultKind::kBitFlip, FaultKind::kLostInterrupt, FaultKind::kLateInterrupt};
  Random random(seed + job * 0x632be59bd9b4e019);
  if (random.below(100) >= percent) return false;
  *rule = FaultRule();
  rule->kind = kNoticed[random.below(std::size(kNoticed))];
  rule->number = job;
  rule->instruction = random.below(num_instructions);
  return true;
}

}  // namespace qplan::sim
