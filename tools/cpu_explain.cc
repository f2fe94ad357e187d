#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "src/base/short_name.h"
#include "tools/error.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// Families that move bytes and compute nothing: one kernel serves every processor.
bool only_moves(const std::string& op) {
  constexpr std::string_view kFamilies[] = {"copy", "concat", "split", "pad", "transpose", "strided_slice"};
  return std::find(std::begin(kFamilies), std::end(kFamilies), op) != std::end(kFamilies);
}

std::string kilobytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f kB", static_cast<double>(bytes) / 1e3);
  return text;
}

// Why the plan suits no vector kernel of this machine: "packed for 'arch=cortex-m'"; "" where it was made for
// them.
std::string made_for_others(const PlanFile& plan) {
  qplan_plan_info info{};
  info.struct_size = sizeof info;
  if (qplan_plan_get_info(&plan.plan(), &info) < 0) return "";
  const std::string options = one_line(info.target_options);
  const bool is_for_reference = options.find("isa=reference") != std::string::npos;
  return info.is_for_other_arch != 0 || is_for_reference ? "packed for '" + options + "'" : "";
}

// What `inspect --json` states of this machine, for a step or a layer of a cascade; null where it does not.
const Json* of_this_machine(const Json& of_step) {
  if (!of_step.contains("variants")) return nullptr;
  for (const Json& variant : of_step.at("variants")) {  // the best instruction set first
    uint32_t isa = QPLAN_ISA_AUTO;
    const bool known = qplan_isa_from_name(variant.at("isa").get<std::string>().c_str(), &isa) >= 0;
    if (known && qplan_isa_available(isa) != 0) return &variant;
  }
  return nullptr;
}

// Why this machine does not use better variants. before: what the lines begin with.
void add_refusals(const Json& of_step, const std::string& before, std::vector<std::string>* lines) {
  const Json* variant = of_this_machine(of_step);
  if (variant == nullptr || !variant->contains("refused")) return;
  for (const Json& refused : variant->at("refused")) {
    lines->push_back(before + refused.at("kernel").get<std::string>() +
                     " is not used: " + refused.at("reason").get<std::string>());
  }
}

std::vector<std::string> refusals(const Json& of_step) {
  std::vector<std::string> lines;
  add_refusals(of_step, "", &lines);
  if (!of_step.contains("layers")) return lines;
  for (size_t i = 0; i < of_step.at("layers").size(); ++i)
    add_refusals(of_step.at("layers")[i], "layer " + std::to_string(i) + ": ", &lines);
  return lines;
}

// of_step: as `inspect --json` prints it. others: made_for_others().
std::vector<std::string> notes_of(const qplan_event& event, const Json& of_step, const std::string& others) {
  const std::string op = event.op, kernel = event.kernel;
  std::vector<std::string> notes;
  if (only_moves(op)) {
    std::string note = "computes nothing, copies " + kilobytes(event.bytes);
    if (op == "transpose")
      note += " into another layout; at an input or output --io-layout nhwc leaves it to the caller";
    notes.push_back(note);
  } else if (op == "quantize" || op == "dequantize") {
    notes.push_back(
        "converts between float32 and integers; at an input or output --io int8 leaves it to the caller");
  } else if (op == "chain") {
    notes.push_back(
        "several layers, a few rows at a time, which saves memory; --fuse off makes a step of each");
  }
  if (only_moves(op) || kernel.empty()) return notes;
  const bool is_reference = kernel.ends_with("_ref");
  if (!others.empty()) {
    if (is_reference) notes.push_back("the reference kernel runs here: " + others);
    return notes;
  }
  const Json* variant = of_this_machine(of_step);
  const std::vector<std::string> reasons = refusals(of_step);
  if (is_reference && variant != nullptr && variant->at("isa") != "reference") {
    const bool has_scratch = variant->at("kernel") == kernel;
    notes.push_back(has_scratch
                        ? "slow: the reference kernel runs"
                        : "slow: the reference kernel runs, as a vector kernel has too little scratch");
  }
  notes.insert(notes.end(), reasons.begin(), reasons.end());
  return notes;
}

}  // namespace

Json cpu_explain_json(const PlanFile& plan) {
  const Session session(plan, SessionOptions{});
  const qplan_session_info info = session.info();
  const Json of_plan = plan_steps(plan);
  const std::string others = made_for_others(plan);
  Json report;
  report["isa"] = info.isa_name;
  report["macs"] = info.macs;
  report["steps"] = Json::array();
  for (uint32_t i = 0; i < info.num_steps; ++i) {
    const qplan_event event = session.step(i);
    Json step;
    step["step"] = i;
    step["op"] = event.op;
    step["kernel"] = event.kernel;
    step["name"] = event.name;
    step["macs"] = event.macs;
    step["bytes"] = event.bytes;
    const Json& of_step = of_plan.at(event.step);
    step["schedule"] = of_step.contains("schedule") ? of_step.at("schedule") : Json::object();
    for (const char* member : {"variants", "layers"}) {
      if (of_step.contains(member)) step[member] = of_step.at(member);
    }
    step["notes"] = notes_of(event, of_step, others);
    report["steps"].push_back(step);
  }
  return report;
}

std::string cpu_explain_text(const Json& report) {
  const Json& steps = report.at("steps");
  std::string text = "cpu: " + count_text(steps.size(), "step", "steps") + ", " +
                     short_count(report.at("macs").get<uint64_t>()) +
                     " MACs; the kernels are those of this machine (" + report.at("isa").get<std::string>() +
                     ")\n";
  text += " step       MMAC         kB  kernel                        operator\n";
  for (const Json& step : steps) {
    char line[128];
    std::snprintf(line, sizeof line, "%5u %10.3f %10.1f  ", step.at("step").get<uint32_t>(),
                  static_cast<double>(step.at("macs").get<uint64_t>()) / 1e6,
                  static_cast<double>(step.at("bytes").get<uint64_t>()) / 1e3);
    std::string kernel = step.at("kernel").get<std::string>();
    if (kernel.size() < 28) kernel.resize(28, ' ');
    text += line + kernel + "  " + one_line(short_name(step.at("name").get<std::string>()));
    const std::string schedule = schedule_text(step.at("schedule"));
    text += (schedule.empty() ? "" : "  {" + schedule + "}") + "\n";
    for (const Json& note : step.at("notes")) text += "        " + note.get<std::string>() + "\n";
  }
  return text + "'qplan bench PLAN --per-step' measures how long each step takes\n";
}

}  // namespace qplan::tools
