// A compiled region on the simulator: tensors are arranged in the buffers of its slots as the runtime does
// it, and several interleavings of the program run.
#ifndef QPLAN_TESTS_VTA_COMPILER_SIMULATE_REGION_H_
#define QPLAN_TESTS_VTA_COMPILER_SIMULATE_REGION_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/ir/module.h"
#include "src/packer/partition/partition.h"
#include "src/vta/compiler/target.h"
#include "src/vta/isa/vta_blob.h"
#include "tests/vta/compiler/run.h"

namespace qplan::vta::compiler {

using target::RegionSlot;

// Calls visit(byte of the packed tensor, byte of the buffer) for each byte: format/plan.fbs, NpuBind.
template <typename Visit>
void for_each_arranged(const Arrangement& arrangement, const ir::TensorType& type, const Visit& visit) {
  const uint64_t bytes_each = type.dtype.bits / 8u;
  std::vector<int64_t> index(type.shape.size(), 0);
  for (int64_t n = 0; n < type.num_elements(); ++n) {
    uint64_t at = arrangement.origin;
    for (size_t axis = 0; axis < index.size(); ++axis)
      at += static_cast<uint64_t>(index[axis]) * arrangement.strides[axis];
    for (uint64_t b = 0; b < bytes_each; ++b)
      visit(static_cast<uint64_t>(n) * bytes_each + b, at + b * arrangement.byte_stride);
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < type.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

struct RegionResult {
  std::vector<std::vector<uint8_t>> outputs;  // packed; empty: a failure was added
  uint64_t cycles = 0;
  sim::Schedule schedule;
};

inline RegionResult simulate_region(const Config& config, const ir::Function& region,
                                    const CompiledRegion& compiled, std::span<const ir::ConstantRef> inputs,
                                    uint64_t seed, uint32_t interleavings) {
  sim::Program program;
  if (!load_blob(config, compiled.blob, &program)) return {};
  EXPECT_EQ(program.memory_bytes, compiled.program_bytes);
  program.memory = sim::Block({}, program.memory_bytes, 0);
  place_program(config, compiled.blob.data(), &program);

  std::vector<std::vector<uint8_t>> memory(program.regions.size());
  std::vector<bool> is_bound(program.regions.size(), false);
  for (const RegionSlot& slot : compiled.slots) {
    EXPECT_FALSE(is_bound.at(slot.slot));
    is_bound[slot.slot] = true;
    const Arrangement& arrangement = slot.arrangement;
    EXPECT_EQ(arrangement.size, program.regions[slot.slot].bytes);
    std::vector<uint8_t>& buffer = memory[slot.slot];
    buffer.assign(arrangement.size, slot.use == format::NpuUse_INPUT ? arrangement.fill : 0x5a);
    if (slot.use != format::NpuUse_INPUT) continue;
    const ir::Constant& input = *inputs[slot.index];
    for_each_arranged(arrangement, input.type(), [&](uint64_t from, uint64_t to) {
      buffer.at(to) = input.bytes()[from] ^ arrangement.flip;
    });
  }
  SimulatedMemory simulated;
  for (uint32_t r = 0; r < program.regions.size(); ++r) {
    const sim::ProgramRegion& from = program.regions[r];
    EXPECT_EQ(is_bound[r], !from.is_carried);
    sim::Segment segment;
    segment.bytes = from.bytes;
    segment.name = from.name;
    segment.memory = from.is_carried ? program.memory.data() + from.offset : memory[r].data();
    segment.is_writable = sim::is_writable(from.kind);
    segment.is_initialised = from.is_initialised;
    segment.is_output = from.kind == vta::RegionKind::kOutput;
    simulated.add(segment);
  }
  if (!simulated.run(config, program, seed, interleavings)) return {};

  RegionResult result;
  result.outputs.resize(region.outputs().size());
  for (const RegionSlot& slot : compiled.slots) {
    if (slot.use != format::NpuUse_OUTPUT) continue;
    const ir::TensorType& type = region.type(region.outputs()[slot.index]);
    std::vector<uint8_t>& output = result.outputs[slot.index];
    output.resize(static_cast<size_t>(type.size_bytes()));
    for_each_arranged(slot.arrangement, type, [&](uint64_t to, uint64_t from) {
      output[to] = memory[slot.slot].at(from) ^ slot.arrangement.flip;
    });
  }
  result.cycles = program.schedule.total_cycles;
  result.schedule = std::move(program.schedule);
  return result;
}

// The outputs of the CPU's reference kernels for the region's inputs.
inline std::vector<ir::ConstantRef> run_on_cpu(const ir::Module& module, const ir::Function& region,
                                               std::span<const ir::ConstantRef> inputs) {
  ir::Function main("main");
  std::vector<ir::ValueId> params;
  for (const ir::ValueId param : region.params())
    params.push_back(main.add_param(region.value(param).name, region.type(param)));
  std::vector<ir::TensorType> types;
  for (const ir::ValueId output : region.outputs()) types.push_back(region.type(output));
  main.set_outputs(main.add_call(region.name(), params, types, "").results);
  return evaluate::run_function(*partition::inline_calls(module, main), inputs);
}

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_VTA_COMPILER_SIMULATE_REGION_H_
