// What a matched unit costs on the device: the count of its own stream.
#ifndef QPLAN_SRC_VTA_COMPILER_UNIT_CYCLES_H_
#define QPLAN_SRC_VTA_COMPILER_UNIT_CYCLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/packer/target/target.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

// Of candidates of the row, whose constraints hold: compiled by themselves, from memory to memory, at the
// costs given. What the compiler does not take after all counts as its multiply-accumulates or its transfers.
// Candidates of the same types, attributes and scalars are compiled once: copies share what they remember.
class UnitCycles {
 public:
  UnitCycles(const Config& config, std::string row) : config_(config), row_(std::move(row)) {}
  uint64_t operator()(const Candidate& candidate, const DeviceCosts& costs) const;

 private:
  uint64_t count(const Candidate& candidate, const DeviceCosts& costs) const;

  Config config_;
  std::string row_;
  std::shared_ptr<std::unordered_map<std::string, uint64_t>> known_ =
      std::make_shared<std::unordered_map<std::string, uint64_t>>();
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_UNIT_CYCLES_H_
