// qplan explain --memory: the plans that --fuse and --max-ram choose from, and what less memory costs.
#include <algorithm>
#include <cstdio>
#include <string>

#include "qplan/pack.h"
#include "tools/reports.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr struct {
  const char* name;
  uint32_t fuse;
} kChoices[] = {{"off", QPLAN_FUSE_OFF},
                {"auto", QPLAN_FUSE_AUTO},
                {"memory", QPLAN_FUSE_MEMORY},
                {"all", QPLAN_FUSE_ALL}};

// The memory of a session with one worker; with the widest pointers where the target is not known.
uint64_t session_bytes(const Json& memory) {
  const bool is_small = memory.at("target_pointer_bits") == 32;
  return memory.at("session_bytes").at(is_small ? "32_bit" : "64_bit").at("1").get<uint64_t>();
}

Json choice_of(const char* name, const Json& plan) {
  uint64_t cascades = 0, repeated = 0;
  for (const Json& step : plan.at("steps")) {
    if (!step.contains("repeated_work")) continue;
    ++cascades;
    repeated += step.at("repeated_work").get<uint64_t>();
  }
  Json choice;
  choice["fuse"] = name;
  choice["session_bytes"] = session_bytes(plan.at("memory"));
  choice["cascades"] = cascades;
  choice["macs"] = plan.at("functions").at(0).at("macs");
  choice["work"] = plan.at("functions").at(0).at("work");
  choice["repeated_work"] = repeated;
  choice["copies"] = plan.at("memory").at("copies");
  return choice;
}

std::string right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

uint64_t bytes_of(const Json& choice) { return choice.at("session_bytes").get<uint64_t>(); }

// "+1.20 %" more work than without cascades; "?" where a kernel is not of this build.
std::string more_work_text(const Json& choice, const Json& without) {
  if (choice.at("work").is_null() || without.at("work").is_null()) return "?";
  const auto base = without.at("work").get<double>();
  if (base == 0) return "?";
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * (choice.at("work").get<double>() / base - 1));
  return text;
}

// What each --max-ram gives: a plan that fits, the default's first. is_small: on processors of 32 bits a
// limit above the least memory gives faster cascades.
std::string max_ram_text(uint64_t of_auto, uint64_t of_memory, bool is_small) {
  std::string text = "--max-ram from " + grouped(of_auto) + " on takes the plan of --fuse auto";
  if (of_memory < of_auto) {
    text += ", from " + grouped(of_memory) + " on that of --fuse memory";
    if (is_small) text += ", with faster cascades where the limit leaves room";
  }
  return text + "; no plan takes less than " + grouped(std::min(of_memory, of_auto)) + "\n";
}

}  // namespace

Json memory_explain_json(const ModelOptions& model, const PlacementOptions& placement) {
  Json report;
  report["target_pointer_bits"] = nullptr;
  report["choices"] = Json::array();
  for (const auto& [name, fuse] : kChoices) {
    const PlanFile plan(model.model, pack_model(model, placement, fuse));
    const Json inspected = Json::parse(inspect_text(plan.bytes(), plan.size(), "'" + model.model + "'"));
    report["target_pointer_bits"] = inspected.at("memory").at("target_pointer_bits");
    report["choices"].push_back(choice_of(name, inspected));
  }
  return report;
}

std::string memory_explain_text(const Json& report) {
  constexpr uint64_t kBarWidth = 24;
  const Json& choices = report.at("choices");
  uint64_t most = 1;
  for (const Json& choice : choices) most = std::max(most, bytes_of(choice));
  std::string text =
      " --fuse    session, bytes                            cascades            MACs   more work      "
      "repeated\n";
  for (const Json& choice : choices) {
    std::string name = " " + choice.at("fuse").get<std::string>();
    name.resize(10, ' ');
    std::string bar(static_cast<size_t>(std::max<uint64_t>(kBarWidth * bytes_of(choice) / most, 1)), '#');
    bar.resize(kBarWidth, ' ');
    text += name + right(grouped(bytes_of(choice)), 14) + "  " + bar +
            right(grouped(choice.at("cascades").get<uint64_t>()), 12) +
            right(grouped(choice.at("macs").get<uint64_t>()), 16) +
            right(more_work_text(choice, choices.at(0)), 12) +
            right(grouped(choice.at("repeated_work").get<uint64_t>()), 14) + "\n";
  }
  text +=
      max_ram_text(bytes_of(choices.at(1)), bytes_of(choices.at(2)), report.at("target_pointer_bits") == 32);
  for (const Json& choice : choices) {
    if (choice.at("copies").empty()) continue;
    text +=
        "\nwith --fuse " + choice.at("fuse").get<std::string>() + ":\n" + copies_text(choice.at("copies"));
  }
  return text;
}

}  // namespace qplan::tools
