// Lists of targets as texts, and the values of the options that all targets have.
#include "src/packer/target/target_text.h"

#include <charconv>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/profile.h"

namespace qplan::target {

void fail_target(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, "target: " + text); }

int32_t checked_priority(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > 1'000'000) {
    fail_target(cat("priority '", text, "' is not a number from 0 to 1000000"));
  }
  return value;
}

uint64_t checked_clock_khz(std::string_view name, std::string_view text) {
  struct Unit {
    std::string_view name;
    uint64_t hz;
  };
  constexpr Unit kUnits[] = {{"GHz", 1'000'000'000}, {"MHz", 1'000'000}, {"kHz", 1000}, {"Hz", 1}};
  constexpr uint64_t kMinHz = 1000, kMaxHz = 100'000'000'000;
  constexpr size_t kMaxDigits = 12;  // of either half
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.size() <= kMaxDigits &&
           part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    std::string_view number = trim(text.substr(0, text.size() - unit.name.size()));
    const size_t point = number.find('.');
    const std::string_view whole = number.substr(0, point);
    if (!digits(whole) || (point != std::string_view::npos && !digits(number.substr(point + 1)))) break;
    uint64_t hz = mul_div(std::stoull(std::string(whole)), unit.hz, 1);
    if (point != std::string_view::npos) {
      uint64_t of = 1;
      for (size_t i = point + 1; i < number.size(); ++i) of *= 10;
      hz += mul_div(std::stoull(std::string(number.substr(point + 1))), unit.hz, of);
    }
    if (hz < kMinHz || hz > kMaxHz) break;
    return hz / 1000;
  }
  fail_target(cat("clock '", text, "' of '", name,
                  "' is not a frequency from 1kHz to 100GHz with its unit; expected like 250MHz or 1.2GHz"));
}

// A part without '=' begins the next target.
std::vector<TargetText> split_targets(std::string_view text) {
  std::vector<TargetText> targets;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      targets.push_back({std::string(part), {}});
    } else if (targets.empty()) {
      fail_target(
          cat("option '", part, "' comes before any target; expected a name first, like \"vta, cpu\""));
    } else {
      targets.back().options.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
    }
  }
  return targets;
}

}  // namespace qplan::target
