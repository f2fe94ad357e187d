// qplan_npu_sim_replay over the simulated devices of all kinds.
#include "src/ethosu/sim/replay.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "qplan/npu_sim.h"
#include "src/vta/sim/job_reader.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/replay.h"

namespace qplan::sim {
namespace {

// As far as the caller's struct reaches.
void give_report(const Fault& fault, const char* text, qplan_npu_report all, qplan_npu_report* report) {
  if (report == nullptr) return;
  all.struct_size = report->struct_size;
  all.status = fault.status;
  all.fault_instruction = fault.instruction;
  all.fault_address = fault.address;
  std::strncpy(all.text, text, sizeof(all.text) - 1);
  std::memcpy(report, &all, std::min<size_t>(report->struct_size, sizeof(all)));
}

Fault replay(const std::string& directory, const Options& options, qplan_npu_report* report) {
  if (job_target(directory) == "ethosu") return ethosu::sim::replay_ethosu(directory, options, report);
  return replay_vta(directory, options, report);  // which refuses other targets
}

}  // namespace
}  // namespace qplan::sim

qplan_npu_status qplan_npu_sim_replay(const char* directory, const char* text, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (directory == nullptr || (report != nullptr && report->struct_size < sizeof(report->struct_size))) {
    return QPLAN_NPU_E_ARGUMENT;
  }
  try {
    qplan_npu_report all = {};
    Options options;
    Fault fault;
    std::string error;
    if (parse_options(text == nullptr ? "" : text, &options, &error)) {
      fault = replay(directory, options, &all);
    } else {
      fault.status = QPLAN_NPU_E_ARGUMENT;
      fault.text = error;
    }
    give_report(fault, fault.text.c_str(), all, report);
    return fault.status;
  } catch (...) {
    Fault fault;
    fault.status = QPLAN_NPU_E_MEMORY;
    give_report(fault, "replay: no memory left for the job", {}, report);  // a text that needs none itself
    return fault.status;
  }
}
