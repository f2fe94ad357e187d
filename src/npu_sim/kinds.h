// The kinds of simulated devices, by the text that opens one.
#ifndef QPLAN_SRC_NPU_SIM_KINDS_H_
#define QPLAN_SRC_NPU_SIM_KINDS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/ethosu/sim/device.h"
#include "src/vta/sim/device.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

struct OpenText {
  Options options;
  const ethosu::Config* ethosu = nullptr;  // device=ethos-u55-128 and its like; null: VTA
};

// False with *error set to one line.
inline bool read_open_text(std::string_view text, OpenText* opened, std::string* error) {
  std::string rest;
  for (const std::string_view part : split(text, ',')) {
    if (part.substr(0, 7) != "device=") {
      rest += (rest.empty() ? "" : ",") + std::string(part);
      continue;
    }
    const std::string name(part.substr(7));
    opened->ethosu = ethosu::find_config(name.c_str());
    if (opened->ethosu == nullptr && name != "vta") {
      *error =
          "options: '" + std::string(part) + "': known are vta and Arm's configurations, like ethos-u55-128";
      return false;
    }
  }
  if (!parse_options(rest, &opened->options, error)) return false;
  if (opened->ethosu == nullptr || opened->options.trace.empty()) return true;
  *error = "options: 'trace' is VTA's; Ethos-U has none";
  return false;
}

inline std::shared_ptr<Device> make_device(const qplan_device_hooks* hooks, OpenText opened) {
  if (opened.ethosu == nullptr) return std::make_shared<Device>(hooks, std::move(opened.options));
  return std::make_shared<ethosu::sim::EthosuDevice>(hooks, std::move(opened.options), *opened.ethosu);
}

}  // namespace qplan::sim

#endif  // QPLAN_SRC_NPU_SIM_KINDS_H_
