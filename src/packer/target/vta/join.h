// Streams of units, one behind the other, as one stream.
//
// Between two units stands a barrier: a no-op of the compute module takes the token of the last STORE, which
// FINISH would have taken, and gives one to the load module, whose first LOAD of the next unit takes it. So
// nothing of a unit's data is read or overwritten before it is complete in DRAM.
#ifndef QPLAN_SRC_PACKER_TARGET_VTA_JOIN_H_
#define QPLAN_SRC_PACKER_TARGET_VTA_JOIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/packer/target/vta/blob_writer.h"
#include "src/packer/target/vta/unit.h"

namespace qplan::target::vta {

// What a region of a unit becomes: bytes from `offset` on of a region of the blob. A multiple of the size of
// every element that the unit transfers there.
struct RegionPlace {
  uint32_t region = 0;
  uint64_t offset = 0;
};

class StreamJoiner {
 public:
  // places: one for each of the unit's regions.
  void add(const CompiledUnit& unit, std::span<const RegionPlace> places);
  // At least one unit was added.
  Stream finish();
  // The index of the first instruction of each unit, barriers in front of it included.
  const std::vector<uint32_t>& begins() const { return begins_; }

 private:
  void add_barrier(bool for_loads);

  Stream stream_;
  std::vector<uint32_t> begins_;
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_PACKER_TARGET_VTA_JOIN_H_
