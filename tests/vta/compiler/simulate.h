// A compiled layer on the simulator: its blob is loaded, its regions are placed, and several interleavings
// run.
#ifndef QPLAN_TESTS_VTA_COMPILER_SIMULATE_H_
#define QPLAN_TESTS_VTA_COMPILER_SIMULATE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/vta_layer.h"
#include "tests/vta/compiler/run.h"

namespace qplan::vta::compiler {

struct SimResult {
  std::vector<int8_t> output;
  uint64_t cycles = 0;
  uint64_t most_busy = 0;
};

// Empty output: a failure was added.
inline SimResult simulate(const Config& config, const CompiledLayer& compiled,
                          const std::vector<int8_t>& input, uint64_t seed, uint32_t interleavings) {
  sim::Program program;
  if (!load_blob(config, compiled.blob, &program)) return {};
  const std::vector<uint8_t> dense(input.begin(), input.end());
  std::vector<uint8_t> packed = pack_activations(compiled.input, dense, 0, compiled.input_border);
  std::vector<uint8_t> output(static_cast<size_t>(compiled.output.bytes()), 0x5a);
  std::vector<std::vector<uint8_t>> carried(program.regions.size());
  SimulatedMemory simulated;
  for (uint32_t r = 0; r < program.regions.size(); ++r) {
    const sim::ProgramRegion& region = program.regions[r];
    sim::Segment segment;
    segment.bytes = region.bytes;
    segment.name = region.name;
    if (region.is_carried) {
      vta::Blob blob;
      std::memcpy(&blob.header, compiled.blob.data(), sizeof(blob.header));
      blob.regions = compiled.blob.data() + sizeof(blob.header);
      const uint8_t* from = compiled.blob.data() + blob_region(blob, r).data_offset;
      carried[r].assign(from, from + region.bytes);
      segment.memory = carried[r].data();
    } else if (r == kInputRegion) {
      segment.memory = packed.data();
    } else {
      segment.memory = output.data();
      segment.is_writable = segment.is_output = true;
      segment.is_initialised = false;
    }
    simulated.add(segment);
  }
  if (!simulated.run(config, program, seed, interleavings)) return {};
  const std::vector<uint8_t> bytes = unpack_activations(compiled.output, output, 0);
  return {std::vector<int8_t>(bytes.begin(), bytes.end()), program.schedule.total_cycles,
          most_busy_cycles(program.schedule)};
}

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_VTA_COMPILER_SIMULATE_H_
