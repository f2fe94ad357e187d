// Chains by measured times.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_CHAIN_TIMES_H_
#define QPLAN_SRC_PACKER_SCHEDULE_CHAIN_TIMES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/packer/schedule/chain_links.h"

namespace qplan::schedule {

// Times of a cascade, and of its layers as steps of their own, in ns.
struct ChainTimes {
  uint64_t chain = 0;
  uint64_t layers = 0;
};
// nullopt where they are not known.
using TimesQuery = std::function<std::optional<ChainTimes>(const ChainSteps&)>;

// `chains` without those that are slower than their layers by more than a tenth, and of the other steps those
// chains that save the most time together.
std::vector<ChainSteps> with_times(const std::vector<uint32_t>& links, std::vector<ChainSteps> chains,
                                   const TimesQuery& times_of);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_CHAIN_TIMES_H_
