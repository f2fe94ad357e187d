// Segments of memory for a program's regions, and its run on the simulator: what the simulations of layers,
// units and regions share.
#ifndef QPLAN_TESTS_VTA_COMPILER_RUN_H_
#define QPLAN_TESTS_VTA_COMPILER_RUN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "src/vta/compiler/streams/stream.h"
#include "src/vta/sim/machine.h"

namespace qplan::vta::compiler {

// False: a failure was added.
inline bool load_blob(const Config& config, const std::vector<uint8_t>& blob, sim::Program* program) {
  qplan_npu_reason why = {};
  if (load_program(config, blob.data(), blob.size(), program, &why) == QPLAN_NPU_OK) return true;
  ADD_FAILURE() << "the blob is refused: " << why.text;
  return false;
}

// Regions in order, each from a page of its own on.
class SimulatedMemory {
 public:
  void add(sim::Segment segment) {
    segment.address = address_;
    addresses_.push_back(address_);
    address_ += (segment.bytes + sim::kPageBytes - 1) / sim::kPageBytes * sim::kPageBytes;
    dram_.add(segment);
  }
  // False: failures were added, for a fault, hazards, or interleavings that did not run.
  bool run(const Config& config, const sim::Program& program, uint64_t seed, uint32_t interleavings) {
    sim::ExecuteOptions options;
    options.seed = seed;
    options.explore = interleavings;
    const sim::Outcome outcome =
        execute(config, relocate(program, addresses_), program.schedule, options, &dram_);
    EXPECT_FALSE(outcome.fault.is_set()) << outcome.fault.text;
    EXPECT_EQ(outcome.hazards, 0u) << outcome.first_hazard.text;
    EXPECT_EQ(outcome.interleavings, interleavings);
    return !outcome.fault.is_set();
  }

 private:
  sim::Dram dram_;
  std::vector<uint64_t> addresses_;
  uint64_t address_ = sim::kArenaBase;
};

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_VTA_COMPILER_RUN_H_
