// qplan check: everything that can be known of a plan without running it.
#include <cstdint>
#include <memory>
#include <string>

#include "tools/command.h"
#include "tools/files.h"
#include "tools/plan_file.h"
#include "tools/session.h"

namespace qplan::tools {
namespace {

// Opens with digest and full verification, then binds every step to a kernel of every ISA this machine has.
void run(const std::string& path) {
  const PlanFile plan(path, QPLAN_PLAN_DIGEST);
  SessionOptions options;
  options.isa = "reference";
  Session reference(plan, options);
  options.isa = "auto";
  Session best(plan, options);
  const qplan_session_info info = best.info();
  print("OK: " + std::to_string(plan.size()) + " bytes, digest and structure verified, " +
        std::to_string(info.num_steps) + " steps bound (" + info.isa_name + ", reference), " +
        std::to_string(info.memory_bytes) + " bytes of memory\n");
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("check", "Verify a plan");
  command->add_option("PLAN", *path, "Plan file")->required()->type_name("");
  command->footer(
      "Checks the digest and the whole structure and binds every step to a kernel; says OK or why not.\n"
      "Example:\n"
      "  qplan check model.qplan && echo fine");
  command->callback([path]() { run(*path); });
}

}  // namespace qplan::tools
