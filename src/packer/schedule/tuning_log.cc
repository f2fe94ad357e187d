#include "src/packer/schedule/tuning_log.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/json.h"

namespace qplan::schedule {
namespace {

// Parts of the names of parameters that say with which numbers, not how much is computed.
constexpr std::string_view kNumbers[] = {"zero_point", "multiplier", "shift",   "scale",
                                         "clamp",      "value",      "diff_min"};

bool is_number(std::string_view name) {
  return std::ranges::any_of(kNumbers, [&](std::string_view part) { return name.find(part) != name.npos; });
}

std::string tensor_text(const format::Tensor& tensor) {
  return inspect::dtype_text(tensor) + "[" + inspect::shape_text(tensor) + "]";
}

std::string tensor_text(const StepTensor& tensor) {
  std::string text = std::string(dtype_name(tensor.dtype)) + "[";
  for (uint32_t i = 0; i < tensor.rank; ++i) text += (i == 0 ? "" : "x") + std::to_string(tensor.extents[i]);
  return text + (tensor.rank == 0 ? "scalar]" : "]");
}

std::string params_text(const format::KernelStep& step);

// "stage0=conv2d {..}, tile0=int8[1x8x8x24], stage1=.."; which of its operands a layer has from the tile
// matters to its meaning alone.
std::string cascade_text(const format::CascadeParams& cascade) {
  std::string text;
  for (uint32_t i = 0; i < cascade.layers()->size(); ++i) {
    const format::KernelStep& layer = *cascade.layers()->Get(i);
    const std::string number = std::to_string(i);
    text += (i == 0 ? "stage" : ", stage") + number + "=" + inspect::kernel_name(layer.kernel()) + " {" +
            params_text(layer) + "}";
    if (i < cascade.tiles()->size()) text += ", tile" + number + "=" + tensor_text(*cascade.tiles()->Get(i));
  }
  return text;
}

std::string params_text(const format::KernelStep& step) {
  if (const auto* cascade = step.params_as_CascadeParams()) return cascade_text(*cascade);
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  };
  for (const auto& [name, value] : inspect::step_params(step)) {
    // Weights with a zero point take a sum over each window besides.
    if (name == "weights_zero_point") {
      add("has_weights_zero_point", value == "0" ? "false" : "true");
    } else if (!is_number(name)) {
      add(name, value);
    }
  }
  // A sum with a float epilogue is another computation than one without.
  const format::AddParams* sum = step.residual() != nullptr ? step.residual() : step.params_as_AddParams();
  if (sum != nullptr) add("has_float_epilogue", sum->float_scale1() > 0.0f ? "true" : "false");
  return text;
}

}  // namespace

std::string step_key(const StepView& step, const std::string& target) {
  std::string key = inspect::kernel_name(step.step->kernel()) + " {" + params_text(*step.step) + "}";
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    const StepTensor input = step.input(i);
    key += (i == 0 ? " " : ", ") + tensor_text(input) + (input.is_constant ? " constant" : "");
  }
  for (uint32_t o = 0; o < step.num_outputs(); ++o) {
    key += (o == 0 ? " -> " : ", ") + tensor_text(step.output(o));
  }
  return target.empty() ? key : key + " on " + target;
}

std::string target_text(const target::TargetProfile& profile) { return profile.name + "," + profile.options; }

std::string target_text(const format::Plan& plan) {
  const auto* targets = plan.targets();
  if (format::count_of(targets) == 0 || targets->Get(0)->name() == nullptr) return "";
  const format::Target& cpu = *targets->Get(0);
  return cpu.name()->str() + (cpu.options() == nullptr ? "" : "," + cpu.options()->str());
}

using ir::Json;

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
  std::string reason;
  const Json line = ir::parse_json(text, &reason);
  if (line.is_discarded()) fail(number, reason);
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
  if (!schedule.empty()) keys_with_choice_.insert(key.get<std::string>());
  const auto layer = line.find("stage");
  lines_[key.get<std::string>()].push_back(
      {number, schedule, ns.get<uint64_t>(), layer != line.end() && *layer == "heat"});
}

target::StepSchedule TuningLog::fastest(const std::string& key, uint16_t kernel, const LogFunction& log) {
  const auto lines = lines_.find(key);
  if (lines == lines_.end()) return {};
  const bool is_of_use =
      !inspect::knobs_of(kernel).empty() || keys_with_choice_.empty() || keys_with_choice_.contains(key);
  used_ = used_ || is_of_use;
  fits_without_choice_ = fits_without_choice_ || !is_of_use;
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
    text = none + (fits_without_choice_ ? "for a step with a choice " : "") +
           "fits a step of this model for this target; measure it with 'qplan tune' and the same options";
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
