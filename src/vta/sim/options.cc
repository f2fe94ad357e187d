#include "src/vta/sim/options.h"

#include "src/vta/sim/text.h"

namespace qplan::sim {
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
                       "record, trace, faults, fault_seed, fault_percent";
    return false;
  }
  return true;
}

}  // namespace qplan::sim
