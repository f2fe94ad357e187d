// What a matched unit costs on the device: the count of its own stream.
#ifndef QPLAN_SRC_PACKER_TARGET_VTA_UNIT_CYCLES_H_
#define QPLAN_SRC_PACKER_TARGET_VTA_UNIT_CYCLES_H_

#include <cstdint>
#include <string_view>

#include "src/packer/target/target.h"
#include "src/packer/target/vta/config.h"

namespace qplan::target::vta {

// Of a candidate of the row, whose constraints hold: compiled by itself, from memory to memory, at the costs
// given. What the compiler does not take after all counts as its multiply-accumulates or its transfers.
uint64_t unit_cycles(const Config& config, std::string_view row_name, const Candidate& candidate,
                     const DeviceCosts& costs);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_PACKER_TARGET_VTA_UNIT_CYCLES_H_
