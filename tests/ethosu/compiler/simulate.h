// A compiled region on the simulator.
#ifndef QPLAN_TESTS_ETHOSU_COMPILER_SIMULATE_H_
#define QPLAN_TESTS_ETHOSU_COMPILER_SIMULATE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/blob.h"
#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::testing {

inline std::vector<uint32_t> stream_words(const Payload& payload) {
  std::vector<uint32_t> words(payload.stream_words);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = load_word(payload.stream + uint64_t{i} * 4);
  return words;
}

struct Simulated {
  sim::Outcome outcome;
  std::vector<std::vector<uint8_t>> outputs;  // of the region's function, packed
};

inline Simulated simulate_region(const Config& config, const ir::Function& region,
                                 const target::CompiledRegion& compiled,
                                 std::span<const ir::ConstantRef> inputs) {
  Simulated result;
  Blob blob;
  qplan_npu_reason why = {};
  if (read_blob(compiled.blob.data(), compiled.blob.size(), config, &blob, &why) != QPLAN_NPU_OK) {
    ADD_FAILURE() << why.text;
    return result;
  }
  std::vector<std::vector<uint8_t>> regions(blob.header.num_regions);
  sim::Memory memory(config);
  for (uint32_t r = 0; r < regions.size(); ++r) {
    const BlobRegion from = blob_region(blob, r);
    regions[r].assign(from.bytes, 0xa5);
    const bool is_constant = from.kind == static_cast<uint32_t>(RegionKind::kConstants);
    if (is_constant) std::copy_n(blob.bytes + from.data_offset, from.bytes, regions[r].begin());
    memory.set_region(r, regions[r].data(), from.bytes, !is_constant, is_constant);
  }
  for (const target::RegionSlot& slot : compiled.slots) {
    if (slot.use != format::NpuUse_INPUT) continue;
    const BlobSlot to = blob_slot(blob, slot.slot);
    memory.define(to.region, to.offset, inputs[slot.index]->bytes().data(), to.bytes);
  }
  result.outcome = sim::Machine(config, &memory).run(stream_words(blob.payload));
  result.outputs.resize(region.outputs().size());
  for (const target::RegionSlot& slot : compiled.slots) {
    if (slot.use != format::NpuUse_OUTPUT) continue;
    const BlobSlot from = blob_slot(blob, slot.slot);
    const auto begin = regions[from.region].begin() + static_cast<int64_t>(from.offset);
    result.outputs[slot.index].assign(begin, begin + static_cast<int64_t>(from.bytes));
  }
  return result;
}

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_COMPILER_SIMULATE_H_
