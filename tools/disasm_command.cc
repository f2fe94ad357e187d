// qplan disasm: the plan's steps, one per line.
#include <memory>
#include <string>

#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/plan_file.h"
#include "tools/text_sink.h"

namespace qplan::tools {

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
