// qplan inspect: what a plan holds.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "qplan/pack.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/reports.h"
#include "tools/words.h"

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

}  // namespace qplan::tools
