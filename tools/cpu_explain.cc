#include "tools/cpu_explain.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "tools/bench_steps.h"
#include "tools/error.h"
#include "tools/session.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

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

// isa: the best that the session may use.
std::vector<std::string> notes_of(const qplan_event& event, const std::string& isa) {
  const std::string op = event.op, kernel = event.kernel;
  std::vector<std::string> notes;
  if (only_moves(op)) {
    std::string note = "computes nothing, moves " + kilobytes(event.bytes);
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
  if (only_moves(op) || isa == "reference" || kernel.empty()) return notes;
  if (ends_with(kernel, "_ref")) {
    notes.push_back(
        "slow: the reference kernel runs, as no vector kernel of this machine takes its shapes and types");
  } else if (event.macs > 0 && op != "chain" && !ends_with(kernel, "_" + isa)) {
    notes.push_back("no " + isa + " kernel takes its shapes and types, or its schedule asks for another");
  }
  return notes;
}

}  // namespace

Json cpu_explain_json(const PlanFile& plan) {
  const Session session(plan, SessionOptions{});
  const qplan_session_info info = session.info();
  const Json schedules = plan_schedules(plan);
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
    step["schedule"] = schedules.at(event.step);
    step["notes"] = notes_of(event, info.isa_name);
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
