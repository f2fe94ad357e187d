#include "src/packer/memory/arena.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "format/memory_layout.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::memory {
namespace {

using target::Program;
using target::ProgramStep;

// One bank: buffers of tensors, and after them those of slots.
struct BankBuffers {
  std::vector<Buffer> buffers;
  std::vector<uint32_t> tensor_buffer;               // positions in Lifetimes::buffers of the first ones
  std::vector<std::pair<uint32_t, uint32_t>> slots;  // step and position of the slot, of the others
  std::vector<uint32_t> scratch;                     // steps of the last ones
};

BankBuffers buffers_of(const Program& program, const Arena& arena, uint32_t bank) {
  BankBuffers result;
  std::vector<uint32_t> position(arena.lifetimes.buffers.size(), kNone);
  for (uint32_t b = 0; b < arena.lifetimes.buffers.size(); ++b) {
    if (arena.lifetimes.device[b] != bank) continue;
    position[b] = static_cast<uint32_t>(result.buffers.size());
    result.buffers.push_back(arena.lifetimes.buffers[b]);
    uint32_t& rest_of = result.buffers.back().rest_of;  // of an earlier one, in the same bank
    if (rest_of != kNone) rest_of = position[rest_of];
    result.tensor_buffer.push_back(b);
  }
  for (uint32_t s = 0; bank != kNone && s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (step.npu == nullptr) continue;
    for (uint32_t i = 0; i < step.npu->slots.size(); ++i) {
      const uint32_t tensor = slot_tensor(step, step.npu->slots[i]);
      if (arena.bank_of(step, step.npu->slots[i]) != bank) continue;
      if (tensor != kNone && arena.device_of[tensor] == bank) continue;
      if (step.npu->slots[i].use == format::NpuUse_INPUT && arena.kept[s][i] != 0) continue;
      const uint32_t last = last_reader(program, arena.kept, s, i);
      result.buffers.push_back({step.npu->slots[i].arrangement.size, s, last});
      result.slots.emplace_back(s, i);
    }
  }
  for (uint32_t s = 0; bank == kNone && s < arena.scratch_sizes.size(); ++s) {
    if (arena.scratch_sizes[s] == 0) continue;
    result.buffers.push_back({arena.scratch_sizes[s], s, s});
    result.scratch.push_back(s);
  }
  return result;
}

uint32_t alignment_of(const Program& program, const BankKey& key) {
  uint32_t alignment = format::kArenaAlignment;
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr || step.npu->target != key.device) continue;
    for (const target::RegionSlot& slot : step.npu->slots) {
      if (slot.memory_class == key.memory_class) alignment = std::max(alignment, slot.alignment);
    }
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
  for (size_t i = 0; i < bank.scratch.size(); ++i) {
    arena->scratch_offsets[bank.scratch[i]] =
        placement.offsets[bank.tensor_buffer.size() + bank.slots.size() + i];
  }
  return placement;
}

// Where the region keeps its output.
uint64_t kept_offset(const Program& program, const Arena& arena, uint32_t s, uint32_t tensor) {
  const ProgramStep& step = program.steps[s];
  for (size_t i = 0; i < step.npu->slots.size(); ++i) {
    const target::RegionSlot& slot = step.npu->slots[i];
    if (slot.use == format::NpuUse_OUTPUT && slot_tensor(step, slot) == tensor)
      return arena.slot_offsets[s][i];
  }
  throw PackError(QPLAN_INTERNAL, cat("memory plan: '", step.name, "' keeps no '",
                                      program.tensors[tensor].name, "'; this is a defect of the packer"));
}

// A slot whose tensor is in the bank has the tensor's address, and one that reads what another keeps has the
// address of that one.
void place_slots_in_place(const Program& program, Arena* arena) {
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    for (uint32_t i = 0; step.npu != nullptr && i < step.npu->slots.size(); ++i) {
      const uint32_t tensor = slot_tensor(step, step.npu->slots[i]);
      if (tensor != kNone && arena->device_of[tensor] == arena->bank_of(step, step.npu->slots[i])) {
        arena->slot_offsets[s][i] = arena->offsets[tensor];
      } else if (tensor != kNone && step.npu->slots[i].use == format::NpuUse_INPUT &&
                 arena->kept[s][i] != 0) {
        arena->slot_offsets[s][i] = kept_offset(program, *arena, s - arena->kept[s][i], tensor);
      }
    }
  }
}

// Per tensor: what the steps say about its place in the tensor that it is said to be a part of; nullopt where
// no step says so, or one says two things.
std::vector<std::optional<uint64_t>> offsets_of_parts(const Program& program, const Arena& arena,
                                                      const PartOffsetQuery& part_offset) {
  const std::vector<uint32_t>& inside = arena.lifetimes.inside;
  std::vector<std::optional<uint64_t>> offsets(program.tensors.size());
  std::vector<bool> is_told(program.tensors.size(), false);
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    for (uint32_t o = 0; o < step.outputs.size(); ++o) {
      for (uint32_t i = 0; i < step.inputs.size(); ++i) {
        const uint32_t output = step.outputs[o], input = step.inputs[i];
        if (inside[input] != output && inside[output] != input) continue;
        const uint32_t part = inside[input] == output ? input : output;
        const std::optional<uint64_t> offset = part_offset(s, o, i);
        if (is_told[part] && offsets[part] != offset)
          return std::vector<std::optional<uint64_t>>(program.tensors.size());
        offsets[part] = offset;
        is_told[part] = true;
      }
    }
  }
  return offsets;
}

// The outputs of a step do not overlap its inputs, except those that it replaces or need not move;
// checker.cc checks regions.
void check_steps(const Program& program, const Arena& arena) {
  const auto end = [&](uint32_t t) {
    return arena.offsets[t] + static_cast<uint64_t>(program.tensors[t].type.size_bytes());
  };
  const Lifetimes& lifetimes = arena.lifetimes;
  for (const ProgramStep& step : program.steps) {
    if (step.npu != nullptr) continue;
    for (const uint32_t output : step.outputs) {
      for (const uint32_t input : step.inputs) {
        if (lifetimes.buffer[input] == kNone || arena.device_of[input] != arena.device_of[output]) continue;
        if (arena.area(input) != arena.area(output)) continue;
        if (arena.offsets[input] >= end(output) || arena.offsets[output] >= end(input)) continue;
        if (lifetimes.replaces[output] == input || lifetimes.inside[input] == output ||
            lifetimes.inside[output] == input) {
          continue;
        }
        throw PackError(
            QPLAN_INTERNAL,
            cat("memory plan: '", step.name, "' writes '", program.tensors[output].name, "' over '",
                program.tensors[input].name, "', which it reads", "; this is a defect of the packer"));
      }
    }
  }
}

// Nothing but the next value of a state is written over its bytes, and that after everything that reads it.
void check_states(const Program& program, const Arena& arena) {
  const auto overlap = [&](uint32_t a, uint32_t area, uint64_t begin, uint64_t size) {
    const auto a_size = static_cast<uint64_t>(program.tensors[a].type.size_bytes());
    return arena.area(a) == area && arena.offsets[a] < begin + size && begin < arena.offsets[a] + a_size;
  };
  for (const target::ProgramState& state : program.states) {
    const auto fail = [&](const std::string& what) {
      throw PackError(QPLAN_INTERNAL, cat("memory plan: state '", program.tensors[state.input].name, "' ",
                                          what, "; this is a defect of the packer"));
    };
    if (arena.device_of[state.input] != kNone || arena.device_of[state.output] != kNone)
      fail("is in the memory of a device");
    const auto in_state = [&](uint32_t area, uint64_t begin, uint64_t size) {
      return overlap(state.input, area, begin, size);
    };
    uint32_t reads_end = 0, written = 0;
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      const ProgramStep& step = program.steps[s];
      const uint32_t end = s + (step.npu == nullptr ? 0 : step.npu->num_alternative_steps);
      if (std::ranges::find(step.inputs, state.input) != step.inputs.end())
        reads_end = std::max(reads_end, end + 1);
      if (!arena.scratch_sizes.empty() && arena.scratch_sizes[s] != 0 &&
          in_state(0, arena.scratch_offsets[s], arena.scratch_sizes[s])) {
        fail(cat("overlaps the scratch of '", step.name, "'"));
      }
      for (const uint32_t output : step.outputs) {
        if (output == state.output && written == 0) written = s + 1;
        if (output == state.output || arena.device_of[output] != kNone) continue;
        if (in_state(arena.area(output), arena.offsets[output],
                     static_cast<uint64_t>(program.tensors[output].type.size_bytes())))
          fail(cat("is overwritten by '", program.tensors[output].name, "'"));
      }
    }
    if (written == 0) fail("has a next value that no step writes");
    const auto size = static_cast<uint64_t>(program.tensors[state.output].type.size_bytes());
    if (!in_state(arena.area(state.output), arena.offsets[state.output], size)) continue;
    if (arena.offsets[state.output] != arena.offsets[state.input] || written <= reads_end)
      fail("is overwritten by its next value while steps read it");
  }
}

// area: of what no device has.
void check_bank(const Program& program, const Arena& arena, uint32_t device, uint32_t area,
                const PartOffsetQuery& part_offset) {
  const uint64_t bank_alignment =
      device == kNone ? arena_alignment(program) : arena.devices[device].alignment;
  const std::vector<std::optional<uint64_t>> part_offsets = offsets_of_parts(program, arena, part_offset);
  std::vector<PlacedValue> values;
  std::vector<uint32_t> index_of(program.tensors.size(), kNone);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] == kNone || arena.device_of[t] != device) continue;
    if (device == kNone && arena.area(t) != area) continue;
    index_of[t] = static_cast<uint32_t>(values.size());
    PlacedValue value;
    value.offset = arena.offsets[t];
    value.size = static_cast<uint64_t>(program.tensors[t].type.size_bytes());
    value.first = arena.lifetimes.first[t];
    value.last = arena.lifetimes.last[t];
    // Kernels need no more alignment; a tensor that is no part of another has the bank's alignment.
    value.alignment = arena.lifetimes.offset[t] == 0
                          ? bank_alignment
                          : std::max<uint64_t>(program.tensors[t].type.dtype.bits / 8, 1);
    value.name = program.tensors[t].name;
    value.is_input = std::ranges::find(program.inputs, t) != program.inputs.end();
    values.push_back(std::move(value));
  }
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    const uint32_t replaced = arena.lifetimes.replaces[t];
    if (replaced != kNone && index_of[t] != kNone) values[index_of[t]].replaces = index_of[replaced];
    if (index_of[t] == kNone || !part_offsets[t]) continue;
    values[index_of[t]].inside = index_of[arena.lifetimes.inside[t]];
    values[index_of[t]].inside_offset = *part_offsets[t];
  }
  for (uint32_t s = 0; device == kNone && area == 0 && s < arena.scratch_offsets.size(); ++s) {
    if (arena.scratch_sizes[s] == 0) continue;
    PlacedValue value;
    value.offset = arena.scratch_offsets[s];
    value.size = arena.scratch_sizes[s];
    value.first = value.last = s;
    value.alignment = bank_alignment;
    value.name = cat(program.steps[s].name, ", scratch");
    values.push_back(std::move(value));
  }
  if (device == kNone) return check_no_overlap(values, area == 0 ? arena.size : arena.areas[area - 1].size);
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    if (step.npu == nullptr) continue;
    for (uint32_t i = 0; i < step.npu->slots.size(); ++i) {
      const target::RegionSlot& slot = step.npu->slots[i];
      const uint32_t tensor = slot_tensor(step, slot);
      if (arena.bank_of(step, slot) != device || (tensor != kNone && arena.device_of[tensor] == device))
        continue;
      if (slot.use == format::NpuUse_INPUT && arena.kept[s][i] != 0) continue;  // checker.cc
      PlacedValue value;
      value.offset = arena.slot_offsets[s][i];
      value.size = slot.arrangement.size;
      value.first = s;
      value.last = last_reader(program, arena.kept, s, i);
      value.alignment = bank_alignment;
      value.name = cat(step.name, ", slot ", slot.slot);
      values.push_back(std::move(value));
    }
  }
  check_no_overlap(values, arena.devices[device].size);
}

// A caller may bind the inputs and outputs of the function to other memory: then nothing is in place.
uint64_t scratch_of(const Program& program, const Arena& arena, const ProgramStep& step) {
  if (step.npu != nullptr) return 0;
  bool is_in_place = false, is_bindable = false;
  for (const uint32_t output : step.outputs) {
    // What replaces a state is not computed in place: the step reads other tensors.
    const uint32_t replaced = arena.lifetimes.replaces[output];
    is_in_place = is_in_place || std::ranges::find(step.inputs, replaced) != step.inputs.end();
    is_bindable = is_bindable || std::ranges::find(program.outputs, output) != program.outputs.end();
  }
  for (const uint32_t input : step.inputs)
    is_bindable = is_bindable || std::ranges::find(program.inputs, input) != program.inputs.end();
  if (is_bindable) return std::max(step.scratch_bytes, step.in_place_scratch_bytes);
  return is_in_place ? step.in_place_scratch_bytes : step.scratch_bytes;
}

// With the given tensors in the banks of devices, unchecked.
Arena place_all(const Program& program, DeviceTensors device_of, bool keeps, const SharingQueries& sharing,
                uint32_t iterations) {
  Arena arena;
  arena.device_of = std::move(device_of);
  for (const BankKey& key : device_banks(program))
    arena.devices.push_back({.key = key, .alignment = alignment_of(program, key)});
  arena.kept = keeps ? find_kept_slots(program, arena.device_of) : no_kept_slots(program);
  arena.lifetimes = find_lifetimes(program, arena.device_of, sharing.may_be_in_place, sharing.may_overwrite);
  if (sharing.part_offset) place_parts(program, arena.device_of, sharing.part_offset, &arena.lifetimes);
  arena.slot_offsets.resize(program.steps.size());
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    if (program.steps[s].npu != nullptr) arena.slot_offsets[s].resize(program.steps[s].npu->slots.size());
  }
  if (program.is_small) {
    arena.scratch_offsets.assign(program.steps.size(), 0);
    for (const ProgramStep& step : program.steps)
      arena.scratch_sizes.push_back(scratch_of(program, arena, step));
  }
  std::vector<uint64_t> buffer_offsets(arena.lifetimes.buffers.size(), 0);
  const Placement main =
      place_bank(program, kNone, arena_alignment(program), iterations, &buffer_offsets, &arena);
  arena.size = main.peak;
  arena.lower_bound = main.lower_bound;
  for (uint32_t b = 0; b < arena.devices.size(); ++b) {
    DeviceBank& bank = arena.devices[b];
    const Placement placement = place_bank(program, b, bank.alignment, iterations, &buffer_offsets, &arena);
    bank.size = placement.peak, bank.lower_bound = placement.lower_bound;
  }
  arena.offsets.assign(program.tensors.size(), 0);
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] == kNone) continue;
    arena.offsets[t] = buffer_offsets[arena.lifetimes.buffer[t]] + arena.lifetimes.offset[t];
  }
  place_slots_in_place(program, &arena);
  return arena;
}

// Buffers of more tensors are larger and live longer, and rests of buffers have to be where those were: no
// lower bound is higher for it, but gaps may fit worse.
Arena place_smallest(const Program& program, const DeviceTensors& device_of, bool keeps,
                     const SharingQueries& sharing, uint32_t iterations) {
  Arena arena = place_all(program, device_of, keeps, sharing, iterations);
  const bool has_parts = std::ranges::any_of(arena.lifetimes.inside, [](uint32_t t) { return t != kNone; });
  const bool has_rests = std::ranges::any_of(arena.lifetimes.buffers,
                                             [](const Buffer& buffer) { return buffer.rest_of != kNone; });
  const auto keep_smaller = [&](bool with_parts, bool with_rests) {
    if (arena.size == arena.lower_bound) return;
    const SharingQueries queries = {sharing.may_be_in_place, with_parts ? sharing.part_offset : nullptr,
                                    with_rests ? sharing.may_overwrite : nullptr};
    Arena other = place_all(program, device_of, keeps, queries, iterations);
    if (other.size < arena.size) arena = std::move(other);
  };
  if (has_parts) keep_smaller(false, true);
  if (has_rests) keep_smaller(true, false);
  if (has_parts && has_rests) keep_smaller(false, false);
  return arena;
}

// Moves the largest tensor of each bank that exceeds its device to the arena; regions then copy it, and first
// of all what they kept. False: all banks fit.
bool relieve_banks(const Program& program, const Arena& arena, DeviceTensors* device_of, bool* keeps) {
  bool moved = false;
  const auto has_kept = [](const std::vector<uint32_t>& slots) {
    return std::ranges::any_of(slots, [](uint32_t kept) { return kept != 0; });
  };
  for (uint32_t b = 0; b < arena.devices.size(); ++b) {
    const DeviceBank& bank = arena.devices[b];
    const target::ProgramDevice& device = program.devices[bank.key.device];
    const uint64_t limit = device.max_bank_bytes;
    if (limit == 0 || bank.size <= limit) continue;
    if (std::ranges::any_of(arena.kept, has_kept)) {
      *keeps = false;
      return true;
    }
    uint32_t largest = kNone;
    for (uint32_t t = 0; t < program.tensors.size(); ++t) {
      if ((*device_of)[t] != b) continue;
      const auto bytes = [&](uint32_t tensor) { return program.tensors[tensor].type.size_bytes(); };
      if (largest == kNone || bytes(t) > bytes(largest)) largest = t;
    }
    if (largest == kNone) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("the buffers of '", device.name, "' need ", bank.size, " bytes, it has ", limit,
                          "; pin the operators of its largest region to the CPU"));
    }
    (*device_of)[largest] = kNone;
    moved = true;
  }
  return moved;
}

// areas: none where there is one memory, which has room for all.
Arena place_in_areas(const Program& program, const SharingQueries& sharing, uint32_t iterations,
                     std::span<const target::MemoryArea> areas) {
  DeviceTensors device_of = find_device_tensors(program);
  bool keeps = true;
  Arena arena = place_smallest(program, device_of, keeps, sharing, iterations);
  while (relieve_banks(program, arena, &device_of, &keeps))
    arena = place_smallest(program, device_of, keeps, sharing, iterations);
  if (!areas.empty()) spread(program, areas, arena_alignment(program), iterations, &arena);
  return arena;
}

}  // namespace

uint32_t Arena::bank_of(const ProgramStep& step, const target::RegionSlot& slot) const {
  const BankKey key = {step.npu->target, slot.memory_class};
  return static_cast<uint32_t>(std::ranges::lower_bound(devices, key, {}, &DeviceBank::key) -
                               devices.begin());
}

uint64_t arena_alignment(const Program& program) {
  return program.is_small ? uint64_t{format::kSmallAlignment} : format::kArenaAlignment;
}

Arena plan_arena(const Program& program, const SharingQueries& queries, uint32_t iterations,
                 std::span<const target::MemoryArea> areas) {
  Arena arena;
  try {
    arena = place_in_areas(program, queries, iterations, areas);
  } catch (const PackError& error) {
    // What is left of a buffer is in the same area as the buffer. Apart, both may find room.
    if (error.status() != QPLAN_MEMORY_TOO_SMALL || areas.size() < 2 || !queries.may_overwrite) throw;
    SharingQueries apart = queries;
    apart.may_overwrite = nullptr;
    arena = place_in_areas(program, apart, iterations, areas);
  }
  for (uint32_t area = 0; area <= arena.areas.size(); ++area)
    check_bank(program, arena, kNone, area, queries.part_offset);
  for (uint32_t bank = 0; bank < arena.devices.size(); ++bank)
    check_bank(program, arena, bank, 0, queries.part_offset);
  check_steps(program, arena);
  check_states(program, arena);
  check_regions(program, arena);
  return arena;
}

uint64_t total_bytes(const Arena& arena) {
  uint64_t bytes = arena.size;
  for (const DeviceBank& bank : arena.devices) bytes += bank.size;
  for (const AreaBank& bank : arena.areas) bytes += bank.size;
  return bytes;
}

}  // namespace qplan::memory
