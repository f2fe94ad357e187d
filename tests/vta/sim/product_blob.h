// The smallest blob that does something: y = the low bytes of W x, one product of the device.
#ifndef QPLAN_TESTS_VTA_SIM_PRODUCT_BLOB_H_
#define QPLAN_TESTS_VTA_SIM_PRODUCT_BLOB_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "src/vta/sim/machine.h"
#include "tests/vta/sim/blob_builder.h"

namespace qplan::vta::testing {

constexpr uint32_t kProductInput = 2;  // slots
constexpr uint32_t kProductOutput = 3;

inline std::vector<uint8_t> product_weights() {
  std::vector<uint8_t> weights(256);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i * 37 + 11);
  return weights;
}

// change(i, instruction i), before it is written. estimate: the cycles that the header declares.
inline std::vector<uint8_t> product_blob(const Config& config = kDefaultConfig,
                                         const std::function<void(size_t, Instruction&)>& change = nullptr,
                                         uint64_t estimate = 0) {
  BlobBuilder builder(config);
  builder.estimate(estimate);
  const uint32_t uops = builder.region(RegionKind::kConstants, uops_raw(config, {Uop{0, 0, 0}}), "micro-ops");
  const uint32_t weights = builder.region(RegionKind::kWeights, product_weights(), "w");
  const uint32_t x = builder.region(RegionKind::kInput, 16, "x");
  const uint32_t y = builder.region(RegionKind::kOutput, 16, "y");
  std::vector<std::pair<Instruction, uint32_t>> stream = {
      {load(Memory::kUop, 0, 0, 1), uops},
      {load(Memory::kInp, 0, 0, 1), x},
      {tokens("push.next", load(Memory::kWgt, 0, 0, 1)), weights},
      {gemm(0, 1, true), 0},
      {tokens("pop.prev push.next", gemm(0, 1)), 0},
      {tokens("pop.prev push.prev", store(0, 0, 1)), y},
      {tokens("pop.next", finish()), 0},
  };
  for (size_t i = 0; i < stream.size(); ++i) {
    if (i == 3) builder.label("dense_1");
    auto& [instruction, region] = stream[i];
    const bool had_region = is_memory(instruction);
    if (change) change(i, instruction);
    if (had_region) {
      builder.add(instruction, region);
    } else {
      builder.add(instruction);
    }
  }
  return builder.build();
}

inline std::vector<uint8_t> product_of(const std::vector<uint8_t>& x) {
  const std::vector<uint8_t> weights = product_weights();
  std::vector<uint8_t> y(16);
  for (size_t o = 0; o < 16; ++o) {
    int sum = 0;
    for (size_t i = 0; i < 16; ++i)
      sum += static_cast<int8_t>(x[i]) * static_cast<int8_t>(weights[o * 16 + i]);
    y[o] = static_cast<uint8_t>(sum);
  }
  return y;
}

// Runs a loaded program on memory of exactly its regions' sizes.
inline sim::Outcome run_program(const Config& config, const void* blob, sim::Program* program) {
  program->memory = sim::Block(qplan_device_hooks{}, program->memory_bytes, 0);
  sim::place_program(config, blob, program);
  std::vector<std::vector<uint8_t>> memories;
  std::vector<uint64_t> addresses;
  sim::Dram dram;
  uint64_t at = 0x1000;
  for (const sim::ProgramRegion& region : program->regions) {
    memories.emplace_back(region.is_carried ? 0 : region.bytes);
    sim::Segment segment;
    segment.address = at;
    segment.bytes = region.bytes;
    segment.memory = region.is_carried ? program->memory.data() + region.offset : memories.back().data();
    segment.is_writable = sim::is_writable(region.kind);
    segment.is_initialised = region.is_initialised;
    segment.name = region.name;
    addresses.push_back(at);
    at += (region.bytes + 4095) / 4096 * 4096;
    dram.add(std::move(segment));
  }
  return sim::execute(config, sim::relocate(*program, addresses), program->schedule, {}, &dram);
}

}  // namespace qplan::vta::testing

#endif  // QPLAN_TESTS_VTA_SIM_PRODUCT_BLOB_H_
