// qplan inspect: what a plan holds.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/command.h"
#include "tools/files.h"
#include "tools/plan_file.h"
#include "tools/plan_report.h"

namespace qplan::tools {
namespace {

struct InspectOptions {
  std::string plan;
  bool json = false;
};

void run(const InspectOptions& options) {
  const PlanFile plan(options.plan);
  const std::string text = inspect_text(plan.bytes(), plan.size(), "'" + options.plan + "'");
  print(options.json ? text : inspect_page(nlohmann::ordered_json::parse(text)));
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Tell what a plan holds and needs");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_flag("--json", options->json, "Everything, each step too, as JSON");
  command->footer(
      "The arena is what tensors share; a session needs it and some structures of the runtime (session).\n"
      "The content digest covers everything but names and provenance.\n"
      "Examples:\n"
      "  qplan inspect model.qplan\n"
      "  qplan inspect model.qplan --json | jq .memory");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
