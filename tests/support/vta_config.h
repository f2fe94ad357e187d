// The configuration of VTA that a target's options stand for.
#ifndef QPLAN_TESTS_SUPPORT_VTA_CONFIG_H_
#define QPLAN_TESTS_SUPPORT_VTA_CONFIG_H_

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler {

// target: "vta". Its options as the plan records them: "sram=quarter,mul=on", "sram=uop:1/wgt:2/...,mul=on".
inline Config config_of(const target::Target& target) {
  target::TargetOptions options;
  std::optional<target::MemorySizes> memories;
  std::istringstream parts(target.options);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    if (key != "sram" || value.find(':') == std::string::npos) {
      options.emplace_back(key, value);
      continue;
    }
    memories.emplace();
    std::istringstream sizes(value);
    for (std::string size; std::getline(sizes, size, '/');) {
      const size_t colon = size.find(':');
      memories->emplace_back(size.substr(0, colon), std::stoull(size.substr(colon + 1)));
    }
  }
  return read_config(options, memories);
}

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_SUPPORT_VTA_CONFIG_H_
