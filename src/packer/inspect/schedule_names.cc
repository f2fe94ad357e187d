#include <algorithm>
#include <optional>

#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"

namespace qplan::inspect {
namespace {

using ir::Json;

constexpr uint32_t kIsaShift = 56;

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// The setting of the knob whose value this is.
std::optional<uint64_t> setting_of(const Knob& knob, const Json& value) {
  for (uint64_t s = 1; s <= knob.num_values; ++s) {
    if (value.is_number_integer() && value == knob.values[s - 1]) return s;
  }
  return std::nullopt;
}

std::string values_text(const Knob& knob) {
  std::string text;
  for (uint32_t v = 0; v < knob.num_values; ++v)
    text += (text.empty() ? "" : ", ") + std::to_string(knob.values[v]);
  return text;
}

uint64_t parse_isa(const Json& value) {
  uint32_t isa = QPLAN_ISA_AUTO;
  if (!value.is_string() || qplan_isa_from_name(value.get_ref<const std::string&>().c_str(), &isa) < 0 ||
      isa == QPLAN_ISA_AUTO) {
    fail("isa " + ir::json_text(value) + " is not an instruction set");
  }
  return isa;
}

double parse_grain(const Json& value) {
  if (value.is_number()) {
    const auto grain = value.get<double>();
    if (grain == 1 || std::ranges::find(kGrains, grain) != std::end(kGrains)) return grain;
  }
  fail("grain " + ir::json_text(value) + " is not one of 0.25, 0.5, 1, 2, 4");
}

}  // namespace

std::span<const Knob> knobs_of(uint16_t kernel) {
  const qplan_kernel_set& all = *qplan_kernels_all();
  const KernelFamily* family = kernel < all.num_families ? all.families[kernel] : nullptr;
  for (uint32_t v = 0; family != nullptr && v < family->num_variants; ++v) {
    const KernelVariant& variant = family->variants[v];
    if (variant.num_knobs != 0) return {variant.knobs, variant.num_knobs};
  }
  return {};
}

Json schedule_json(uint16_t kernel, const target::StepSchedule& schedule) {
  Json json = Json::object();
  const std::span<const Knob> knobs = knobs_of(kernel);
  for (uint32_t k = 0; k < knobs.size(); ++k) {
    const uint32_t value = knob_value(schedule.bytes, knobs.data(), k);
    if (value != 0) json[knobs[k].name] = value;
  }
  const uint32_t isa = schedule_isa(schedule.bytes);
  if (isa != 0 && qplan_isa_name(isa) != nullptr) json["isa"] = qplan_isa_name(isa);
  if (schedule.grain != 1) json["grain"] = schedule.grain;
  return json;
}

std::string schedule_text(uint16_t kernel, const target::StepSchedule& schedule) {
  const Json json = schedule_json(kernel, schedule);
  std::string text;
  for (const auto& [name, value] : json.items()) {
    text += (text.empty() ? "" : ", ") + name + "=" +
            (value.is_string() ? value.get<std::string>() : ir::json_text(value));
  }
  return text;
}

target::StepSchedule parse_schedule(uint16_t kernel, const Json& settings) {
  if (!settings.is_object())
    fail("a schedule is an object of names and values, found " + ir::json_text(settings));
  target::StepSchedule schedule;
  const std::span<const Knob> knobs = knobs_of(kernel);
  for (const auto& [name, value] : settings.items()) {
    if (name == "isa") {
      schedule.bytes |= parse_isa(value) << kIsaShift;
      continue;
    }
    if (name == "grain") {
      schedule.grain = parse_grain(value);
      continue;
    }
    const auto knob =
        std::ranges::find_if(knobs, [&name = name](const Knob& known) { return name == known.name; });
    if (knob == knobs.end()) {
      std::string known = "isa, grain";
      for (const Knob& k : knobs) known += std::string(", ") + k.name;
      fail(kernel_name(kernel) + " has no knob '" + name + "', only " + known);
    }
    const std::optional<uint64_t> setting = setting_of(*knob, value);
    if (!setting)
      fail("knob '" + name + "' of " + kernel_name(kernel) + " has no value " + ir::json_text(value) +
           ", only " + values_text(*knob));
    schedule.bytes |= *setting << (8 * (knob - knobs.begin()));
  }
  return schedule;
}

}  // namespace qplan::inspect
