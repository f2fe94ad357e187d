#include "src/packer/memory/device_tensors.h"

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
