// qplan inspect: what a plan holds, and the pages that other commands print of it, too.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "qplan/pack.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

struct InspectOptions {
  std::string plan;
  bool json = false;
};

// Nothing where the plan is for this machine.
std::string other_arch_note(const PlanFile& plan) {
  qplan_plan_info info{};
  info.struct_size = sizeof info;
  if (qplan_plan_get_info(&plan.plan(), &info) < 0 || info.is_for_other_arch == 0) return "";
  return "note:      packed for another processor (" + one_line(info.target_options) + "); this is " +
         info.runtime_arch +
         ", where it gives the same results but may take several times the time and memory\n";
}

void run(const InspectOptions& options) {
  const PlanFile plan(options.plan);
  const std::string text = inspect_text(plan.bytes(), plan.size(), "'" + options.plan + "'");
  if (options.json) {
    print(text);
  } else {
    print(inspect_page(nlohmann::ordered_json::parse(text)) + other_arch_note(plan));
  }
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a plan contains and needs");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_flag("--json", options->json, "Everything, each step too, as JSON");
  command->footer(
      "The arena is the memory that tensors share; a session needs it and some structures of the runtime.\n"
      "The work counts elementary operations (docs/work.md) and follows from shapes alone; `qplan run "
      "--max-work`\n"
      "refuses plans of more.\n"
      "The content digest covers everything but names and provenance.\n"
      "Examples:\n"
      "  qplan inspect model.qplan\n"
      "  qplan inspect model.qplan --json | jq .memory");
  command->callback([options]() { run(*options); });
}

// qplan disasm: the plan's steps, one per line.
void add_disasm_command(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("disasm", "List a plan's steps");
  command->add_option("PLAN", *path, "Plan file")->required()->type_name("");
  command->footer(
      "One line per step: kernel, tensors, addresses, parameters.\n"
      "Example:\n"
      "  qplan disasm model.qplan | less");
  command->callback([path]() {
    const PlanFile plan(*path);
    qplan_error error = make_error();
    check(qplan_disassemble(plan.bytes(), plan.size(), write_to_stdout, nullptr, &error), error,
          "'" + *path + "'");
  });
}

// ---- the page

namespace {

using Json = nlohmann::ordered_json;

std::string grouped(const Json& number) { return tools::grouped(number.get<uint64_t>()); }

std::string bytes_text(const Json& bytes) {
  return grouped(bytes) + " bytes (" + size_text(bytes.get<uint64_t>()) + ")";
}

std::string number_text(const Json& number) {
  if (number.is_array()) return std::to_string(number.size()) + " of them, one per channel";
  return json_text(number);
}

std::string tensor_line(const char* role, size_t index, const Json& tensor) {
  std::string line = std::string(role) + " " + std::to_string(index) + ":  ";
  line += one_line(short_name(tensor.at("name").get<std::string>())) + "  " +
          tensor.at("dtype").get<std::string>() + json_text(tensor.at("shape")) + "  " +
          grouped(tensor.at("bytes")) + " bytes";
  if (!tensor.at("scale").is_null()) {
    line +=
        "  scale " + number_text(tensor.at("scale")) + ", zero point " + number_text(tensor.at("zero_point"));
  }
  return line + "\n";
}

// MACs of one inference; the fallback of a region is not counted in addition to the region.
uint64_t total_macs(const Json& plan) {
  uint64_t macs = 0;
  for (const Json& function : plan.at("functions")) macs += function.at("macs").get<uint64_t>();
  return macs;
}

bool is_fallback(const Json& step) { return step.contains("alternative"); }

size_t count_steps(const Json& plan) {
  size_t count = 0;
  for (const Json& step : plan.at("steps")) count += is_fallback(step) ? 0 : 1;
  return count;
}

// The most that the CPU computes in one run of main; null where this build does not know a kernel.
std::string work_text(const Json& plan) {
  const Json& work = plan.at("functions").at(0).at("work");
  return work.is_null() ? "unknown (a step is not for this build)" : grouped(work) + " operations at most";
}

std::string region_line(const Json& region) {
  return "region:    " + one_line(region.at("name").get<std::string>()) + " on " +
         region.at("target").get<std::string>() + ": " +
         count_text(region.at("operators").get<uint64_t>(), "operator", "operators") + ", " +
         grouped(region.at("macs")) + " MACs, about " + grouped(region.at("estimated_cycles")) +
         " cycles; program " + grouped(region.at("blob_bytes")) + " bytes in the plan, " +
         grouped(region.at("program_bytes")) + " in the driver; " +
         count_text(region.at("copies").get<uint64_t>(), "boundary copy", "boundary copies") + " (" +
         grouped(region.at("copy_bytes")) + " bytes); " +
         (region.at("alternative_steps") == 0
              ? "no CPU fallback"
              : count_text(region.at("alternative_steps").get<uint64_t>(), "CPU step", "CPU steps") +
                    " as its fallback") +
         "\n";
}

// Names and how often each was counted, in the order of first use.
class Counts {
 public:
  void add(const std::string& name) {
    auto at = counts_.begin();
    while (at != counts_.end() && at->first != name) ++at;
    if (at == counts_.end()) at = counts_.insert(at, {name, 0});
    ++at->second;
  }
  const std::vector<std::pair<std::string, uint64_t>>& all() const { return counts_; }
  // "conv2d 15, depthwise_conv2d 13"
  std::string text() const {
    std::string text;
    for (const auto& [name, count] : counts_)
      text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
    return text;
  }

 private:
  std::vector<std::pair<std::string, uint64_t>> counts_;
};

// "conv2d 15, depthwise_conv2d 13, ..."; regions as "npu".
std::string op_counts(const Json& steps) {
  Counts counts;
  for (const Json& step : steps) {
    if (!is_fallback(step)) counts.add(step.at("op").get<std::string>());
  }
  return counts.text();
}

// Which variants the steps on the CPU, and the layers of cascades, have on a machine of each instruction set,
// and which better ones refuse them.
class VariantCounts {
 public:
  void add(const Json& step) {
    if (step.contains("variants") && !step.at("variants").is_null()) {
      std::vector<std::string> refusals;  // each once, though it is the same for several instruction sets
      for (const Json& variant : step.at("variants")) {
        kernels(variant.at("isa").get<std::string>()).add(variant.at("kernel").get<std::string>());
        if (!variant.contains("refused")) continue;
        for (const Json& refused : variant.at("refused")) {
          std::string line =
              refused.at("kernel").get<std::string>() + ": " + refused.at("reason").get<std::string>();
          if (std::find(refusals.begin(), refusals.end(), line) == refusals.end()) refusals.push_back(line);
        }
      }
      for (const std::string& line : refusals) refusals_.add(line);
    }
    if (!step.contains("layers")) return;
    for (const Json& layer : step.at("layers")) add(layer);
  }

  // kernels:   avx2: conv2d_avx2 15, conv2d_ref 1
  // refused:   1 step by conv2d_avx2: it does not read weights in this layout
  std::string text() const {
    std::string text;
    for (const auto& [isa, counts] : by_isa_) text += "kernels:   " + isa + ": " + counts.text() + "\n";
    for (const auto& [line, count] : refusals_.all())
      text += "refused:   " + count_text(count, "step", "steps") + " by " + line + "\n";
    return text;
  }

 private:
  Counts& kernels(const std::string& isa) {
    for (auto& [name, counts] : by_isa_) {
      if (name == isa) return counts;
    }
    return by_isa_.emplace_back(isa, Counts()).second;
  }

  std::vector<std::pair<std::string, Counts>> by_isa_;
  Counts refusals_;
};

std::string variant_lines(const Json& steps) {
  VariantCounts counts;
  for (const Json& step : steps) counts.add(step);
  return counts.text();
}

}  // namespace

std::string copies_text(const Json& copies) {
  if (copies.empty()) return "";
  const auto right = [](const std::string& text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  };
  std::string rows;
  uint64_t bytes = 0, saved = 0;
  for (const Json& copy : copies) {
    const auto name = copy.at("name").get<std::string>();
    bytes += copy.at("bytes").get<uint64_t>();
    saved += copy.at("saved_cost").get<uint64_t>();
    rows += "copy:      " + right(grouped(copy.at("bytes")), 10) + " bytes to memory " +
            json_text(copy.at("area")) + right(grouped(copy.at("bytes_read")), 13) + " read in a run" +
            right(grouped(copy.at("saved_cost")), 15) + " saved  " +
            (name.empty() ? "tensor " + json_text(copy.at("tensor")) : one_line(short_name(name))) + "\n";
  }
  return "copies:    " + count_text(copies.size(), "constant", "constants") + " of the plan, " +
         bytes_text(bytes) + "; a run saves " + tools::grouped(saved) + " by the costs of the target file\n" +
         rows;
}

std::string inspect_text(const void* plan, size_t size, const std::string& label) {
  std::string text;
  qplan_error error = make_error();
  check(qplan_inspect_json(plan, size, append_to_string, &text, &error), error, label);
  return text;
}

std::string size_text(uint64_t bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", unit == 0 || value >= 99.95 ? 0 : 1, value, units[unit]);
  return text;
}

std::string inspect_page(const Json& plan) {
  const Json& memory = plan.at("memory");
  std::string page = "plan:      version " + plan.at("version").get<std::string>() + ", " +
                     bytes_text(plan.at("file_bytes")) + "\n";
  page += "digest:    " + plan.at("content_digest").get<std::string>() + "\n";
  if (!plan.at("provenance").is_null()) {
    page += "source:    " + one_line(plan.at("provenance").at("source").get<std::string>()) + ", packed by " +
            one_line(plan.at("provenance").at("producer").get<std::string>()) + "\n";
  }
  for (const Json& target : plan.at("targets")) {
    const auto options = target.at("options").get<std::string>();
    page +=
        "target:    " + target.at("name").get<std::string>() + (options.empty() ? "" : ", " + options) + "\n";
  }
  for (size_t i = 0; i < plan.at("inputs").size(); ++i) page += tensor_line("input", i, plan.at("inputs")[i]);
  for (size_t i = 0; i < plan.at("outputs").size(); ++i)
    page += tensor_line("output", i, plan.at("outputs")[i]);
  page += "steps:     " + std::to_string(count_steps(plan)) + " (" + op_counts(plan.at("steps")) + "), " +
          tools::grouped(total_macs(plan)) + " MACs\n";
  page += "work:      " + work_text(plan) + "\n";
  page += variant_lines(plan.at("steps"));
  for (const Json& region : plan.at("regions")) page += region_line(region);
  page += "constants: " + bytes_text(memory.at("constants_bytes")) + "\n";
  page += "arena:     " + bytes_text(memory.at("arena_bytes")) + ", lower bound " +
          grouped(memory.at("arena_lower_bound_bytes")) + "; scratch " +
          grouped(memory.at("scratch_per_worker_bytes")) + " bytes a worker\n";
  size_t area = 0;
  for (const Json& entry : memory.at("areas")) {
    page += "area " + std::to_string(++area) + ":    " + bytes_text(entry.at("bytes")) +
            " of activations beside the session's memory\n";
  }
  page += copies_text(memory.at("copies"));
  for (const Json& bank : plan.at("banks")) {
    if (bank.at("kind") != "device") continue;
    const auto memory_class = bank.at("memory_class").get<std::string>();
    page += "device:    " + bytes_text(bank.at("bytes")) +
            (memory_class == "any" ? "" : " of " + memory_class) + " that '" +
            bank.at("target").get<std::string>() + "' reaches, aligned to " +
            json_text(bank.at("alignment")) + "\n";
  }
  // The memory that a caller must provide, runtime structures included.
  for (const auto& [width, by_workers] : memory.at("session_bytes").items()) {
    std::string line = "session:   ";
    line += width == "32_bit" ? "32 bit: " : "64 bit: ";
    bool first = true;
    for (const auto& [workers, bytes] : by_workers.items()) {
      line += (first ? "" : ", ") + grouped(bytes) + " bytes with " + workers +
              (workers == "1" ? " worker" : " workers");
      first = false;
    }
    page += line + "\n";
  }
  for (const auto& [call, bytes] : memory.at("stack_bytes").at("32_bit").items()) {
    page += "stack:     32 bit: " + grouped(bytes) + " bytes at most in " + call + "\n";
  }
  if (memory.at("overwrites_inputs").get<bool>()) {
    page += "note:      a run writes over the memory of its inputs; write them before each run\n";
  }
  return page;
}

std::string pack_summary(const Json& plan) {
  const Json& memory = plan.at("memory");
  const auto exact = [](uint64_t bytes) { return tools::grouped(bytes) + " bytes"; };
  const auto arena = memory.at("arena_bytes").get<uint64_t>();
  const auto lower_bound = memory.at("arena_lower_bound_bytes").get<uint64_t>();
  const auto device_bytes = memory.at("device_bytes").get<uint64_t>();
  std::string text = "  " + count_text(count_steps(plan), "step", "steps") + ", " +
                     short_count(total_macs(plan)) + " MACs\n";
  text += "  file " + exact(plan.at("file_bytes").get<uint64_t>()) + ", constants " +
          exact(memory.at("constants_bytes").get<uint64_t>()) + "\n";
  text += "  arena peak " + exact(arena) +
          (arena == lower_bound ? ", which is the lower bound" : ", lower bound " + exact(lower_bound)) +
          "\n";
  size_t area = 0;
  for (const Json& entry : memory.at("areas"))
    text += "  area " + std::to_string(++area) + " " + exact(entry.at("bytes").get<uint64_t>()) + "\n";
  if (device_bytes != 0) text += "  device memory " + exact(device_bytes) + "\n";
  return text;
}

bool has_devices(const Json& plan) {
  for (const Json& target : plan.at("targets")) {
    if (target.at("name") != "cpu") return true;
  }
  return false;
}

}  // namespace qplan::tools
