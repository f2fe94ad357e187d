// qplan check: everything that can be known of a plan without running it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/session.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

struct CheckOptions {
  std::string plan;
  std::string custom_operators;
  uint64_t max_work = 0;
  NpuOptions npu;
};

// The regions that the devices took; one that a device refused is an error, for it never runs there.
std::string regions_text(const Session& session) {
  const std::vector<qplan_region_info> regions = region_infos(session.get());
  if (regions.empty()) return "";
  for (const qplan_region_info& region : regions) {
    if (region.on_device != 0) continue;
    throw Failure(
        "region '" + one_line(region.name) + "' does not load on '" + one_line(region.target) +
        "': " + (region.text[0] != '\0' ? one_line(region.text) : qplan_status_name(region.status)));
  }
  const std::string driver = one_line(device_infos(session.get()).front().driver);
  return ", " + count_text(regions.size(), "region", "regions") + " loaded (" + driver + ")";
}

// Opens with digest and full verification, then binds every step to a kernel of every ISA this machine has,
// and loads every region on its device.
void run(const CheckOptions& options) {
  const PlanFile plan(options.plan, QPLAN_PLAN_DIGEST);
  SessionOptions session;
  session.npu = options.npu;
  session.max_work = options.max_work;
  session.custom_operators = options.custom_operators;
  session.isa = "reference";
  Session reference(plan, session);
  session.isa = "auto";
  Session best(plan, session);
  const qplan_session_info info = best.info();
  const std::string regions = options.npu.driver == "none" ? "" : regions_text(best);
  print("OK: " + std::to_string(plan.size()) + " bytes, digest and structure verified, " +
        count_text(info.num_steps, "step", "steps") + " bound (" + info.isa_name + ", reference)" + regions +
        ", " + std::to_string(info.memory_bytes) + " bytes of memory\n");
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Verify a plan");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  add_max_work_option(*command, options->max_work);
  add_custom_operators_option(*command, options->custom_operators);
  add_driver_options(*command, options->npu);
  command->footer(
      "Checks the digest and the whole structure, binds every step to a kernel and loads every NPU region on "
      "its device;\n"
      "prints OK or the reason. --driver none leaves the devices out.\n"
      "Examples:\n"
      "  qplan check model.qplan && echo fine\n"
      "  qplan check npu.qplan --driver ./libmy_driver.so");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
