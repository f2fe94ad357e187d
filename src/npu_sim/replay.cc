// Recorded jobs on the simulated devices of all kinds, and on drivers.
#include "src/ethosu/sim/replay.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "qplan/npu_sim.h"
#include "src/npu_sim/driver_replay.h"
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
  const std::string target = job_target(directory);
  if (target == "ethosu") return ethosu::sim::replay_ethosu(directory, options, report);
  if (target == "slots") {
    Fault fault;
    fault.status = QPLAN_NPU_E_UNSUPPORTED;
    fault.text = "replay: target 'slots' is a program that its driver alone can run; --driver LIB names it";
    return fault;
  }
  return replay_vta(directory, options, report);  // which refuses other targets
}

// The status of play(), whose fault and counts the report has.
template <typename Play>
qplan_npu_status reported(qplan_npu_report* report, Play play) {
  if (report != nullptr && report->struct_size < sizeof(report->struct_size)) return QPLAN_NPU_E_ARGUMENT;
  try {
    qplan_npu_report all = {};
    const Fault fault = play(&all);
    give_report(fault, fault.text.c_str(), all, report);
    return fault.status;
  } catch (...) {
    Fault fault;
    fault.status = QPLAN_NPU_E_MEMORY;
    give_report(fault, "replay: no memory left for the job", {}, report);  // a text that needs none itself
    return fault.status;
  }
}

}  // namespace
}  // namespace qplan::sim

qplan_npu_status qplan_npu_sim_replay(const char* directory, const char* text, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (directory == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return reported(report, [&](qplan_npu_report* all) {
    Options options;
    Fault fault;
    if (parse_options(text == nullptr ? "" : text, &options, &fault.text))
      return replay(directory, options, all);
    fault.status = QPLAN_NPU_E_ARGUMENT;
    return fault;
  });
}

qplan_npu_status qplan_npu_replay(const qplan_npu_driver* driver, qplan_npu_device device,
                                  const char* directory, uint32_t timeout_ms, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (driver == nullptr || directory == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return reported(report, [&](qplan_npu_report* all) {
    return replay_on_driver(*driver, device, directory, timeout_ms, all);
  });
}
