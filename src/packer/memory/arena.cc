#include "src/packer/memory/arena.h"

#include <algorithm>
#include <utility>

#include "format/memory_layout.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/overlap_checker.h"
#include "src/packer/memory/region_checker.h"

namespace qplan::memory {
namespace {

using target::Program;
using target::ProgramStep;

// One bank: buffers of tensors, and after them those of slots.
struct BankBuffers {
  std::vector<Buffer> buffers;
  std::vector<uint32_t> tensor_buffer;               // positions in Lifetimes::buffers of the first ones
  std::vector<std::pair<uint32_t, uint32_t>> slots;  // step and position of the slot, of the others
};

BankBuffers buffers_of(const Program& program, const Arena& arena, uint32_t device) {
  BankBuffers result;
  for (uint32_t b = 0; b < arena.lifetimes.buffers.size(); ++b) {
    if (arena.lifetimes.device[b] != device) continue;
    result.buffers.push_back(arena.lifetimes.buffers[b]);
    result.tensor_buffer.push_back(b);
  }
  for (uint32_t s = 0; device != kNone && s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (step.npu == nullptr || step.npu->target != device) continue;
    for (uint32_t i = 0; i < step.npu->slots.size(); ++i) {
      const uint32_t tensor = slot_tensor(step, step.npu->slots[i]);
      if (tensor != kNone && arena.device_of[tensor] == device) continue;
      result.buffers.push_back({step.npu->slots[i].arrangement.size, s, s});
      result.slots.emplace_back(s, i);
    }
  }
  return result;
}

uint32_t alignment_of(const Program& program, uint32_t device) {
  uint32_t alignment = format::kArenaAlignment;
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr || step.npu->target != device) continue;
    for (const target::RegionSlot& slot : step.npu->slots) alignment = std::max(alignment, slot.alignment);
  }
  return alignment;
}

// Offsets of a bank's buffers, into the arena. Returns peak and lower bound.
Placement place_bank(const Program& program, uint32_t device, uint64_t alignment, uint32_t iterations,
                     std::vector<uint64_t>* buffer_offsets, Arena* arena) {
  const BankBuffers bank = buffers_of(program, *arena, device);
  PlannerOptions options;
  options.alignment = alignment;
  options.iterations = iterations;
  Placement placement = place_buffers(bank.buffers, options);
  for (size_t i = 0; i < bank.tensor_buffer.size(); ++i) {
    (*buffer_offsets)[bank.tensor_buffer[i]] = placement.offsets[i];
  }
  for (size_t i = 0; i < bank.slots.size(); ++i) {
    const auto& [step, slot] = bank.slots[i];
    arena->slot_offsets[step][slot] = placement.offsets[bank.tensor_buffer.size() + i];
  }
  return placement;
}

// The slots whose tensor lies in the bank are where it is.
void place_slots_in_place(const Program& program, Arena* arena) {
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    for (uint32_t i = 0; step.npu != nullptr && i < step.npu->slots.size(); ++i) {
      const uint32_t tensor = slot_tensor(step, step.npu->slots[i]);
      if (tensor != kNone && arena->device_of[tensor] == step.npu->target) {
        arena->slot_offsets[s][i] = arena->offsets[tensor];
      }
    }
  }
}

void check_bank(const Program& program, const Arena& arena, uint32_t device) {
  std::vector<PlacedValue> values;
  std::vector<uint32_t> index_of(program.tensors.size(), kNone);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] == kNone || arena.device_of[t] != device) continue;
    index_of[t] = static_cast<uint32_t>(values.size());
    PlacedValue value;
    value.offset = arena.offsets[t];
    value.size = static_cast<uint64_t>(program.tensors[t].type.size_bytes());
    value.first = arena.lifetimes.first[t];
    value.last = arena.lifetimes.last[t];
    value.name = program.tensors[t].name;
    values.push_back(std::move(value));
  }
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const uint32_t replaced = arena.lifetimes.replaces[t];
    if (replaced != kNone && index_of[t] != kNone) values[index_of[t]].replaces = index_of[replaced];
  }
  if (device == kNone) return check_no_overlap(values, arena.size, format::kArenaAlignment);
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (step.npu == nullptr || step.npu->target != device) continue;
    for (uint32_t i = 0; i < step.npu->slots.size(); ++i) {
      const target::RegionSlot& slot = step.npu->slots[i];
      const uint32_t tensor = slot_tensor(step, slot);
      if (tensor != kNone && arena.device_of[tensor] == device) continue;
      values.push_back({arena.slot_offsets[s][i], slot.arrangement.size, s, s, kNone,
                        cat(step.name, ", slot ", slot.slot)});
    }
  }
  check_no_overlap(values, arena.devices[device].size, arena.devices[device].alignment);
}

// With the given tensors in the banks of devices, unchecked.
Arena place_all(const Program& program, DeviceTensors device_of, const InPlaceQuery& may_be_in_place,
                uint32_t iterations) {
  Arena arena;
  arena.device_of = std::move(device_of);
  arena.lifetimes = find_lifetimes(program, arena.device_of, may_be_in_place);
  arena.slot_offsets.resize(program.steps.size());
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    if (program.steps[s].npu != nullptr) arena.slot_offsets[s].resize(program.steps[s].npu->slots.size());
  }
  std::vector<uint64_t> buffer_offsets(arena.lifetimes.buffers.size(), 0);
  const Placement main =
      place_bank(program, kNone, format::kArenaAlignment, iterations, &buffer_offsets, &arena);
  arena.size = main.peak;
  arena.lower_bound = main.lower_bound;
  for (uint32_t device = 0; device < program.devices.size(); ++device) {
    const uint32_t alignment = alignment_of(program, device);
    const Placement placement = place_bank(program, device, alignment, iterations, &buffer_offsets, &arena);
    arena.devices.push_back({placement.peak, placement.lower_bound, alignment});
  }
  arena.offsets.assign(program.tensors.size(), 0);
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] != kNone) arena.offsets[t] = buffer_offsets[arena.lifetimes.buffer[t]];
  }
  place_slots_in_place(program, &arena);
  return arena;
}

// Moves the largest tensor of each bank that exceeds its device to the arena; regions then copy it. False:
// all banks fit.
bool relieve_banks(const Program& program, const Arena& arena, DeviceTensors* device_of) {
  bool moved = false;
  for (uint32_t device = 0; device < program.devices.size(); ++device) {
    const uint64_t limit = program.devices[device].max_bank_bytes;
    if (limit == 0 || arena.devices[device].size <= limit) continue;
    uint32_t largest = kNone;
    for (uint32_t t = 0; t < program.tensors.size(); ++t) {
      if ((*device_of)[t] != device) continue;
      const auto bytes = [&](uint32_t tensor) { return program.tensors[tensor].type.size_bytes(); };
      if (largest == kNone || bytes(t) > bytes(largest)) largest = t;
    }
    if (largest == kNone) {
      throw PackError(
          QPLAN_MODEL_UNSUPPORTED,
          cat("the buffers of '", program.devices[device].name, "' need ", arena.devices[device].size,
              " bytes, it has ", limit, "; pin the operators of its largest region to the CPU"));
    }
    (*device_of)[largest] = kNone;
    moved = true;
  }
  return moved;
}

}  // namespace

Arena plan_arena(const Program& program, const InPlaceQuery& may_be_in_place, uint32_t iterations) {
  DeviceTensors device_of = find_device_tensors(program);
  Arena arena = place_all(program, device_of, may_be_in_place, iterations);
  while (relieve_banks(program, arena, &device_of))
    arena = place_all(program, device_of, may_be_in_place, iterations);
  check_bank(program, arena, kNone);
  for (uint32_t device = 0; device < program.devices.size(); ++device) check_bank(program, arena, device);
  check_regions(program, arena);
  return arena;
}

}  // namespace qplan::memory
