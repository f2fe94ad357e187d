#include <algorithm>

#include "format/memory_layout.h"
#include "src/packer/memory/lifetimes.h"

namespace qplan::memory {

using target::Program;
using target::ProgramStep;
using target::RegionSlot;

uint32_t slot_tensor(const ProgramStep& step, const RegionSlot& slot) {
  if (slot.use == format::NpuUse_SCRATCH) return kNone;
  return (slot.use == format::NpuUse_INPUT ? step.inputs : step.outputs).at(slot.index);
}

DeviceTensors find_device_tensors(const Program& program) {
  DeviceTensors device_of(program.tensors.size(), kNone);
  std::vector<bool> is_copied(program.tensors.size(), false);
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      const uint32_t tensor = slot_tensor(step, slot);
      if (tensor == kNone) continue;
      const bool other_device = device_of[tensor] != kNone && device_of[tensor] != step.npu->target;
      if (other_device || !slot.arrangement.is_packed(program.tensors[tensor].type)) is_copied[tensor] = true;
      device_of[tensor] = step.npu->target;
    }
  }
  for (uint32_t t = 0; t < device_of.size(); ++t) {
    if (is_copied[t]) device_of[t] = kNone;
  }
  return device_of;
}

bool fit_side_by_side(const Program& program, const DeviceTensors& device_of) {
  std::vector<uint64_t> bytes(program.devices.size(), 0);
  std::vector<uint64_t> alignment(program.devices.size(), format::kArenaAlignment);
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots)
      alignment[step.npu->target] = std::max(alignment[step.npu->target], uint64_t{slot.alignment});
  }
  const auto add = [&](uint32_t device, uint64_t size) {
    bytes[device] += (size + alignment[device] - 1) / alignment[device] * alignment[device];
  };
  for (size_t t = 0; t < device_of.size(); ++t) {
    if (device_of[t] != kNone) add(device_of[t], static_cast<uint64_t>(program.tensors[t].type.size_bytes()));
  }
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      const uint32_t tensor = slot_tensor(step, slot);
      if (tensor == kNone || device_of[tensor] != step.npu->target)
        add(step.npu->target, slot.arrangement.size);
    }
  }
  for (size_t device = 0; device < bytes.size(); ++device) {
    const uint64_t limit = program.devices[device].max_bank_bytes;
    if (limit != 0 && bytes[device] > limit) return false;
  }
  return true;
}

BoundaryCopies boundary_copies(const Program& program, const DeviceTensors& device_of,
                               const ProgramStep& step) {
  BoundaryCopies copies;
  for (const RegionSlot& slot : step.npu->slots) {
    const uint32_t tensor = slot_tensor(step, slot);
    if (tensor == kNone || device_of[tensor] != kNone) continue;
    ++copies.count;
    copies.bytes += static_cast<uint64_t>(program.tensors[tensor].type.size_bytes());
  }
  return copies;
}

}  // namespace qplan::memory
