#include "src/packer/schedule/tuning_log.h"

#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/inspect/schedule_names.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json_depth.h"

namespace qplan::schedule {

using Json = nlohmann::ordered_json;

TuningLog::TuningLog(std::string name, std::string_view text, uint32_t num_threads)
    : name_(std::move(name)), num_threads_(num_threads) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) add(line, number, num_threads);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  for (auto& [key, lines] : lines_) {
    // An interrupted `qplan tune` leaves heats alone.
    const auto is_heat = [](const Line& line) { return line.is_heat; };
    if (!std::ranges::all_of(lines, is_heat)) std::erase_if(lines, is_heat);
    std::ranges::stable_sort(lines, {}, &Line::ns);
  }
}

void TuningLog::add(std::string_view text, size_t number, uint32_t num_threads) {
  if (ir::exceeds_json_depth(text)) fail(number, cat("nests more than ", ir::kMaxJsonDepth, " deep"));
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) fail(number, "is not a JSON object");
  const auto member = [&](const char* what) -> const Json& {
    const auto at = line.find(what);
    if (at == line.end()) fail(number, std::string("has no '") + what + "'");
    return *at;
  };
  const Json& key = member("key");
  const Json& schedule = member("schedule");
  const Json& threads = member("threads");
  const Json& ns = member("ns");
  if (!key.is_string()) fail(number, "'key' is not a text");
  if (!schedule.is_object()) fail(number, "'schedule' is not an object of names and values");
  if (!threads.is_number_unsigned() || threads == 0) fail(number, "'threads' is not a number from 1");
  if (!ns.is_number_unsigned()) fail(number, "'ns' is not a whole number of nanoseconds");
  ++num_lines_;
  if (threads != num_threads) {
    ++num_of_other_threads_;
    return;
  }
  const auto stage = line.find("stage");
  lines_[key.get<std::string>()].push_back(
      {number, schedule, ns.get<uint64_t>(), stage != line.end() && *stage == "heat"});
}

target::StepSchedule TuningLog::fastest(const std::string& key, uint16_t kernel, const LogFunction& log) {
  const auto lines = lines_.find(key);
  if (lines == lines_.end()) return {};
  used_ = true;
  for (const Line& line : lines->second) {
    try {
      return inspect::parse_schedule(kernel, line.schedule);
    } catch (const PackError& error) {
      if (log && warned_.insert(line.number).second) {
        log(QPLAN_LOG_WARNING, "tuning '" + name_ + "' line " + std::to_string(line.number) + ": " +
                                   error.what() + "; the line is passed over");
      }
    }
  }
  return {};
}

std::optional<uint64_t> TuningLog::shortest_ns(const std::string& key) const {
  const auto lines = lines_.find(key);
  if (lines == lines_.end()) return std::nullopt;
  return lines->second.front().ns;
}

bool TuningLog::has_keys_of(std::string_view prefix) const {
  const auto first = lines_.lower_bound(prefix);
  return first != lines_.end() && first->first.starts_with(prefix);
}

void TuningLog::check_used() const {
  if (used_) return;
  const std::string none = "no line (of " + std::to_string(num_lines_) + ") ";
  std::string text;
  if (num_lines_ == 0) {
    text = "has no measurements";
  } else if (num_of_other_threads_ == num_lines_) {
    text = none + "was measured with " + std::to_string(num_threads_) +
           (num_threads_ == 1 ? " thread" : " threads") + ", the number that is wanted (--tuning-threads)";
  } else {
    text =
        none + "fits a step of this model for this target; measure it with 'qplan tune' and the same options";
  }
  throw PackError(QPLAN_INVALID_ARGUMENT, "tuning '" + name_ + "': " + text);
}

void TuningLog::fail(size_t number, const std::string& text) const {
  throw PackError(QPLAN_INVALID_ARGUMENT,
                  "tuning '" + name_ + "' line " + std::to_string(number) + ": " + text +
                      "; expected what qplan tune writes: {\"key\": .., \"schedule\": {..}, "
                      "\"threads\": .., \"ns\": ..}");
}

}  // namespace qplan::schedule
