// The costs of a CPU in target files (target_list.cc), and costs that are fitted to measurements. Boards read
// and write them without the packer.
//   "costs": {
//     "clock_mhz": 1800, "pj_per_cycle": 154, "step_cycles": 900,
//     "cycles_per_million": {"convolution": {"macs": 85000, "bytes": 2000000}, ..., "weights": {"bytes":
//     250000}}, "macs_per_us": 60000, "bytes_per_us": 20000}
// What is left out has its default. macs_per_us are those of convolutions, bytes_per_us those of additions;
// other kinds of work keep their ratio to them.
#ifndef QPLAN_SRC_PACKER_TARGET_COST_FILE_H_
#define QPLAN_SRC_PACKER_TARGET_COST_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/json.h"
#include "src/packer/target/profile.h"

namespace qplan::target {

// "convolution", "narrow_convolution", ...
const char* work_name(CpuWork work);
std::optional<CpuWork> work_of_name(std::string_view name);

// PackError for keys that are not known, and for numbers out of range.
void read_cpu_costs(const ir::Json& json, CpuCosts* costs);
// All that differs between two CPUs, without macs_per_us and bytes_per_us.
ir::Json cpu_costs_json(const CpuCosts& costs);

// A step that was run, as cpu_ns counts it.
struct MeasuredStep {
  CpuWork work = CpuWork::kArithmetic;
  uint64_t macs = 0, bytes = 0, weight_bytes = 0;
  uint64_t ns = 0;  // at least 1
};

// The costs whose estimates of the steps are nearest to what was measured: the least sum of squares of
// log(measured / estimated), so that twice and half of a time are equally wrong, and short steps count as
// long ones. Figures that no step depends on keep their ratio to defaults. The clock and the energy are those
// of defaults.
CpuCosts fit_cpu_costs(const CpuCosts& defaults, std::span<const MeasuredStep> steps);

// What `qplan tune --calibrate` gives to the packer and gets back (qplan_fit_costs). PackError.
std::string fit_costs_json(std::string_view measurements);

// ---- members of target files

// PackError where json is no object or has other keys.
void check_keys(const ir::Json& json, const std::string& what, const std::vector<const char*>& known);
// A whole number from 1 to max; it stays as it is where json does not have the key.
void read_number(const ir::Json& json, const char* key, uint64_t max, uint64_t* number);
inline constexpr uint64_t kMaxCost = 1'000'000'000;

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_COST_FILE_H_
