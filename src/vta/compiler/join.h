// Streams of units, one behind the other, as one stream.
//
// Between two units stands a barrier: a no-op of the compute module takes the token of the last STORE, which
// FINISH would have taken, and gives one to the load module, whose first LOAD of an activation takes it. So
// nothing of a unit's data is read or overwritten before it is complete in DRAM. Weights are no unit's data:
// what a unit loads of them before its first activation waits only for the last GEMM before the barrier.
#ifndef QPLAN_SRC_VTA_COMPILER_JOIN_H_
#define QPLAN_SRC_VTA_COMPILER_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/vta/compiler/blob_writer.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// What a region of a unit becomes: bytes from `offset` on of a region of the blob. A multiple of the size of
// every element that the unit transfers there.
struct RegionPlace {
  uint32_t region = 0;
  uint64_t offset = 0;
};

// A stream with the places of its regions.
struct Part {
  CompiledUnit unit;
  std::vector<RegionPlace> places;
};

class StreamJoiner {
 public:
  // Parts of one step: they do not read each other's data, so that the LOADs of all of them wait for the step
  // before only.
  void add(std::span<const Part> parts);
  // At least one step was added.
  Stream finish();
  // Instructions so far, without FINISH.
  size_t size() const { return stream_.instructions.size(); }

 private:
  void add_part(const Part& part, bool waits_for_stores, bool gives_to_loads, bool waits_for_token);

  Stream stream_;
  // The last GEMM that reads WGT, since the load module last took a barrier's token.
  std::optional<size_t> last_gemm_;
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_JOIN_H_
