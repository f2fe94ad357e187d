#include "src/vta/sim/options.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "src/base/random.h"
#include "src/vta/sim/machine.h"

namespace qplan::sim {

std::string hexadecimal(uint64_t number) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[number & 15]);
    number >>= 4;
  } while (number != 0);
  return "0x" + text;
}

bool parse_number(std::string_view text, uint64_t* number) {
  uint32_t base = 10;
  if (text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return false;
  uint64_t value = 0;
  for (const char c : text) {
    uint32_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<uint32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') digit = static_cast<uint32_t>(c - 'A' + 10);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return false;
    value = value * base + digit;
  }
  *number = value;
  return true;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

void copy_text(const std::string& from, char* to, size_t size) {
  const size_t kept = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), kept);
  to[kept] = '\0';
}

void give_reason(qplan_npu_reason* why, const std::string& text, int64_t limit, int64_t actual) {
  if (why == nullptr) return;
  *why = {};
  why->place = UINT32_MAX;
  why->limit = limit;
  why->actual = actual;
  copy_text(text, why->text, sizeof(why->text));
}

namespace {

// A number in [low, high].
template <typename T>
bool number(std::string_view text, uint64_t low, uint64_t high, T* to) {
  uint64_t value = 0;
  if (!parse_number(text, &value) || value < low || value > high) return false;
  *to = static_cast<T>(value);
  return true;
}

// One of two words.
bool choice(std::string_view text, std::string_view no, std::string_view yes, bool* to) {
  *to = text == yes;
  return text == yes || text == no;
}

bool sram(std::string_view text, vta::Config* config) {
  const vta::Config* found = vta::find_config(std::string(text).c_str());
  if (found == nullptr) return false;
  const bool has_multiply = config->has_multiply;
  *config = *found;
  config->has_multiply = has_multiply;
  return true;
}

bool set(std::string_view key, std::string_view value, Options* o, bool* is_known) {
  *is_known = true;
  if (key == "sram") return sram(value, &o->config);
  if (key == "multiply") return choice(value, "0", "1", &o->config.has_multiply);
  if (key == "seed") return number(value, 0, UINT64_MAX, &o->seed);
  if (key == "explore") return number(value, 1, 1000000, &o->explore);
  if (key == "hazards") return choice(value, "report", "fail", &o->hazards_fail);
  if (key == "coherent") return choice(value, "0", "1", &o->is_coherent);
  if (key == "queue") return number(value, 1, 65536, &o->queue);
  if (key == "memory") return number(value, 4096, 0xfffff000, &o->memory_bytes);
  if (key == "work") return number(value, 1, UINT64_MAX, &o->work);
  if (key == "fault_seed") return number(value, 0, UINT64_MAX, &o->fault_seed);
  if (key == "fault_percent") return number(value, 0, 100, &o->fault_percent);
  if (key == "record_all") return choice(value, "0", "1", &o->records_all);
  if (key == "record") {
    o->record = value;
    return !value.empty();
  }
  if (key == "trace") {
    o->trace = value;
    return !value.empty();
  }
  *is_known = false;
  return false;
}

}  // namespace

bool parse_options(std::string_view text, Options* options, std::string* error) {
  for (const std::string_view part : split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    if (key == "faults") {
      if (!parse_faults(value, &options->faults, error)) return false;
      continue;
    }
    bool is_known = false;
    if (set(key, value, options, &is_known)) continue;
    *error = is_known
                 ? "options: '" + std::string(part) + "': value out of range"
                 : "options: unknown '" + std::string(key) +
                       "'; known are sram, multiply, seed, explore, hazards, coherent, queue, memory, work, "
                       "record, record_all, trace, faults, fault_seed, fault_percent";
    return false;
  }
  return true;
}

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
  SplitMix64 random(seed + job * 0x632be59bd9b4e019);
  if (random.below(100) >= percent) return false;
  *rule = FaultRule();
  rule->kind = kNoticed[random.below(std::size(kNoticed))];
  rule->number = job;
  rule->instruction = random.below(num_instructions);
  return true;
}

}  // namespace qplan::sim
