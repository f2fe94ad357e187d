// A compiled unit on the simulator: its regions are placed, borders are poisoned, and several interleavings
// run.
#ifndef QPLAN_TESTS_VTA_COMPILER_UNIT_SIMULATE_H_
#define QPLAN_TESTS_VTA_COMPILER_UNIT_SIMULATE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/stream.h"
#include "tests/vta/compiler/run.h"

namespace qplan::vta::compiler {

using Bytes8 = std::vector<uint8_t>;

struct UnitTensor {
  ActivationLayout layout;
  Bytes8 dense;          // [h][w][channels], in the device's terms
  int8_t border = 0x33;  // a value that must not matter, unless the unit asks for it
};

inline Region bound_region(const UnitRegion& region, uint64_t bytes) {
  Region result;
  result.name = region.name;
  result.alignment = 256;
  switch (region.kind) {
    case UnitRegion::Kind::kCarried:
      result.kind = region.blob_kind;
      result.data = region.data;
      break;
    case UnitRegion::Kind::kInput:
      result.kind = vta::RegionKind::kInput;
      result.bytes = bytes;
      break;
    case UnitRegion::Kind::kOutput:
      result.kind = vta::RegionKind::kOutput;
      result.bytes = bytes;
      break;
  }
  return result;
}

// The output's planes, dense. Adds failures: a refused blob, faults, hazards, a border of the output that was
// written, an estimate more than a tenth off. Empty: it did not run.
inline std::vector<Bytes8> simulate_unit(const Config& config, const CompiledUnit& unit,
                                         const std::vector<UnitTensor>& inputs,
                                         const ActivationLayout& output, size_t num_planes, uint64_t seed,
                                         uint32_t interleavings) {
  constexpr uint8_t kUntouched = 0x5a;
  const auto plane_bytes = static_cast<size_t>(output.bytes());
  Bytes8 result(plane_bytes * num_planes, kUntouched);
  std::vector<Bytes8> memories;
  std::vector<Region> regions;
  for (const UnitRegion& region : unit.regions) {
    Bytes8 bytes;
    if (region.kind == UnitRegion::Kind::kCarried) bytes = region.data;
    if (region.kind == UnitRegion::Kind::kInput) {
      const UnitTensor& tensor = inputs[region.operand];
      bytes = pack_activations(tensor.layout, tensor.dense, 0, tensor.border);
    }
    regions.push_back(
        bound_region(region, region.kind == UnitRegion::Kind::kOutput ? result.size() : bytes.size()));
    memories.push_back(std::move(bytes));
  }
  const Bytes8 blob = write_blob(config, unit.stream, regions, unit.estimate.total_cycles);
  sim::Program program;
  if (!load_blob(config, blob, &program)) return {};
  SimulatedMemory simulated;
  for (size_t r = 0; r < regions.size(); ++r) {
    const bool is_output = unit.regions[r].kind == UnitRegion::Kind::kOutput;
    sim::Segment segment;
    segment.memory = is_output ? result.data() : memories[r].data();
    segment.bytes = is_output ? result.size() : memories[r].size();
    segment.name = unit.regions[r].name;
    if (is_output) {
      segment.is_writable = segment.is_output = true;
      segment.is_initialised = false;
    }
    simulated.add(segment);
  }
  if (!simulated.run(config, program, seed, interleavings)) return {};
  const auto estimated = static_cast<double>(unit.estimate.total_cycles);
  const auto counted = static_cast<double>(program.schedule.total_cycles);
  EXPECT_LE(std::abs(estimated - counted), 0.1 * counted);

  std::vector<Bytes8> planes;
  ActivationLayout whole = output;  // all channels of its blocks are the unit's
  whole.channels = output.channel_blocks() * kBlock;
  const Bytes8 ones(static_cast<size_t>(whole.h * whole.w * whole.channels), 1);
  const Bytes8 is_inside = pack_activations(whole, ones, 0, 0);
  for (size_t p = 0; p < num_planes; ++p) {
    const std::span<const uint8_t> plane(&result[p * plane_bytes], plane_bytes);
    for (size_t i = 0; i < plane_bytes; ++i) {
      if (is_inside[i] == 0 && plane[i] != kUntouched) {
        ADD_FAILURE() << "byte " << i << " of the output's border was written";
        break;
      }
    }
    planes.push_back(unpack_activations(output, plane, 0));
  }
  return planes;
}

using Random = std::mt19937;

inline int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
}

// Now and then with a border for other readers.
inline ActivationLayout random_layout(Random& random, int64_t h, int64_t w, int64_t channels) {
  ActivationLayout layout;
  layout.h = h, layout.w = w, layout.channels = channels;
  if (random() % 3 == 0) {
    layout.top = between(random, 0, 2), layout.left = between(random, 0, 2);
    layout.bottom = between(random, 0, 2), layout.right = between(random, 0, 2);
  }
  return layout;
}

inline Bytes8 random_bytes(Random& random, int64_t count) {
  Bytes8 bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// 1 to 20, at times many.
inline int64_t random_channels(Random& random) {
  return random() % 8 == 0 ? between(random, 100, 400) : between(random, 1, 40);
}

inline Bytes8 flipped(Bytes8 bytes) {
  for (uint8_t& byte : bytes) byte ^= 0x80;
  return bytes;
}

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_VTA_COMPILER_UNIT_SIMULATE_H_
