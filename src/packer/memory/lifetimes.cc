#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

using target::Program;
using target::ProgramStep;
using target::TensorId;

class Finder {
 public:
  Finder(const Program& program, const DeviceTensors& device_of, const InPlaceQuery& may_be_in_place,
         const InPlaceQuery& may_overwrite)
      : program_(program),
        device_of_(device_of),
        may_be_in_place_(may_be_in_place),
        may_overwrite_(may_overwrite),
        kept_(program.tensors.size(), false),
        read_by_region_(program.tensors.size(), 0) {}

  Lifetimes run() {
    result_.first.assign(program_.tensors.size(), 0);
    result_.last.assign(program_.tensors.size(), 0);
    result_.replaces.assign(program_.tensors.size(), kNone);
    result_.inside.assign(program_.tensors.size(), kNone);
    result_.buffer.assign(program_.tensors.size(), kNone);
    result_.offset.assign(program_.tensors.size(), 0);
    find_uses();
    for (uint32_t s = 0; s < program_.steps.size(); ++s) take_over_inputs(s);
    take_over_states();
    make_buffers();
    return std::move(result_);
  }

 private:
  void find_uses() {
    std::vector<bool> used(program_.tensors.size(), false);
    const auto use = [&](TensorId tensor, uint32_t step, uint32_t end) {
      if (!used[tensor]) result_.first[tensor] = step;
      used[tensor] = true;
      result_.last[tensor] = std::max(result_.last[tensor], end);
    };
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      const ProgramStep& step = program_.steps[s];
      const uint32_t end = step.npu == nullptr ? s : s + step.npu->num_alternative_steps;
      for (const TensorId tensor : step.inputs) {
        use(tensor, s, end);
        if (step.npu != nullptr) read_by_region_[tensor] = end + 1;
      }
      for (const TensorId tensor : step.outputs) use(tensor, s, end);
    }
    const uint32_t last_step = program_.steps.empty() ? 0 : static_cast<uint32_t>(program_.steps.size() - 1);
    for (const TensorId tensor : program_.inputs) {
      result_.first[tensor] = 0;
      if (program_.overwrites_inputs) continue;
      kept_[tensor] = true;
      result_.last[tensor] = last_step;
    }
    for (const TensorId tensor : program_.outputs) {
      result_.last[tensor] = last_step;
      kept_[tensor] = true;
    }
    for (const target::ProgramState& state : program_.states) {
      last_read_.push_back(result_.last[state.input]);
      result_.first[state.input] = 0;
      kept_[state.input] = kept_[state.output] = true;
      result_.last[state.input] = result_.last[state.output] = last_step;
    }
  }

  // A state's next value is written over its value where all that read the value have run before: then
  // nothing is copied after the run. Not what something is computed in the place of.
  void take_over_states() {
    for (size_t i = 0; i < program_.states.size(); ++i) {
      const auto& [input, output, initial, fill] = program_.states[i];
      if (last_read_[i] >= result_.first[output] || result_.replaces[output] != kNone) continue;
      result_.replaces[output] = input;
      result_.last[input] = result_.first[output];
    }
  }

  void take_over_inputs(uint32_t s) {
    const ProgramStep& step = program_.steps[s];
    std::vector<TensorId> taken;
    for (uint32_t o = 0; o < step.outputs.size(); ++o) {
      for (const TensorId input : step.inputs) {
        if (std::ranges::find(taken, input) != taken.end() || !can_replace(s, o, input)) continue;
        result_.replaces[step.outputs[o]] = input;
        taken.push_back(input);
        break;
      }
    }
  }

  bool can_replace(uint32_t s, uint32_t o, TensorId input) const {
    const ProgramStep& step = program_.steps[s];
    const target::ProgramTensor& from = program_.tensors[input];
    const target::ProgramTensor& to = program_.tensors[step.outputs[o]];
    if (from.is_constant() || kept_[input] || result_.last[input] != s) return false;
    // A region's outputs exist before its fallback steps; its inputs are kept.
    if (result_.first[step.outputs[o]] != s || s < read_by_region_[input]) return false;
    if (device_of_[input] != device_of_[step.outputs[o]]) return false;
    const bool shrinks = to.type.size_bytes() < from.type.size_bytes();
    if (shrinks ? !can_shrink(input, step.outputs[o]) : from.type.size_bytes() != to.type.size_bytes())
      return false;
    const InPlaceQuery& may_replace = shrinks ? may_overwrite_ : may_be_in_place_;
    for (uint32_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] == input && !may_replace(s, o, i)) return false;
    }
    return true;
  }

  // Callers bind no part of a tensor; memories of devices are as they were.
  bool can_shrink(TensorId input, TensorId output) const {
    return may_overwrite_ && device_of_[input] == kNone && !kept_[output] &&
           std::ranges::find(program_.inputs, input) == program_.inputs.end();
  }

  // Tensors in the order in which they begin to live: a tensor comes after the one it replaces.
  void make_buffers() {
    for (const TensorId tensor : program_.inputs) new_buffer(tensor);
    for (const target::ProgramState& state : program_.states) new_buffer(state.input);
    for (const ProgramStep& step : program_.steps) {
      for (const TensorId tensor : step.outputs) {
        if (result_.buffer[tensor] != kNone) continue;  // of a region, and of the steps in its place
        const uint32_t replaced = result_.replaces[tensor];
        if (replaced == kNone) {
          new_buffer(tensor);
        } else if (is_smaller(tensor, replaced) && result_.last[tensor] > result_.first[tensor]) {
          new_buffer(tensor);
          result_.buffers.back().rest_of = result_.buffer[replaced];
          ++result_.buffers.back().first;  // until then the other has its bytes
        } else {
          result_.buffer[tensor] = result_.buffer[replaced];
          result_.buffers[result_.buffer[tensor]].last = result_.last[tensor];
        }
      }
    }
  }

  bool is_smaller(TensorId a, TensorId b) const {
    return program_.tensors[a].type.size_bytes() < program_.tensors[b].type.size_bytes();
  }

  void new_buffer(TensorId tensor) {
    result_.buffer[tensor] = static_cast<uint32_t>(result_.buffers.size());
    const auto size = static_cast<uint64_t>(program_.tensors[tensor].type.size_bytes());
    result_.buffers.push_back({size, result_.first[tensor], result_.last[tensor]});
    result_.device.push_back(device_of_[tensor]);
  }

  const Program& program_;
  const DeviceTensors& device_of_;
  const InPlaceQuery& may_be_in_place_;
  const InPlaceQuery& may_overwrite_;
  std::vector<bool> kept_;                // inputs, outputs and states of the function
  std::vector<uint32_t> last_read_;       // per state: the last step that reads its value
  std::vector<uint32_t> read_by_region_;  // the step after the last region that reads the tensor; 0: none
  Lifetimes result_;
};

}  // namespace

Lifetimes find_lifetimes(const Program& program, const DeviceTensors& device_of,
                         const InPlaceQuery& may_be_in_place, const InPlaceQuery& may_overwrite) {
  return Finder(program, device_of, may_be_in_place, may_overwrite).run();
}

std::optional<Conflicts> Conflicts::find(std::span<const Buffer> buffers, size_t max_pairs) {
  std::vector<uint32_t> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), 0u);
  std::ranges::stable_sort(by_first, {}, [&](uint32_t i) { return buffers[i].first; });

  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<uint32_t> alive;
  for (const uint32_t buffer : by_first) {
    std::erase_if(alive, [&](uint32_t other) { return buffers[other].last < buffers[buffer].first; });
    if (pairs.size() + alive.size() > max_pairs) return std::nullopt;
    for (const uint32_t other : alive) pairs.emplace_back(other, buffer);
    alive.push_back(buffer);
  }

  Conflicts conflicts;
  conflicts.begin_.assign(buffers.size() + 1, 0);
  for (const auto& [a, b] : pairs) {
    ++conflicts.begin_[a + 1];
    ++conflicts.begin_[b + 1];
  }
  std::partial_sum(conflicts.begin_.begin(), conflicts.begin_.end(), conflicts.begin_.begin());
  conflicts.neighbours_.resize(2 * pairs.size());
  std::vector<size_t> next(conflicts.begin_.begin(), conflicts.begin_.end() - 1);
  for (const auto& [a, b] : pairs) {
    conflicts.neighbours_[next[a]++] = b;
    conflicts.neighbours_[next[b]++] = a;
  }
  return conflicts;
}

using target::Program;
using target::ProgramStep;
using target::RegionSlot;

uint32_t slot_tensor(const ProgramStep& step, const RegionSlot& slot) {
  if (slot.use == format::NpuUse_SCRATCH) return kNone;
  return (slot.use == format::NpuUse_INPUT ? step.inputs : step.outputs).at(slot.index);
}

std::vector<BankKey> device_banks(const Program& program) {
  std::set<BankKey> banks;
  std::vector<bool> has_slots(program.devices.size(), false);
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      banks.insert({step.npu->target, slot.memory_class});
      has_slots[step.npu->target] = true;
    }
  }
  for (uint32_t device = 0; device < program.devices.size(); ++device) {
    if (!has_slots[device]) banks.insert({device});
  }
  return {banks.begin(), banks.end()};
}

uint32_t bank_of_slot(const std::vector<BankKey>& banks, const ProgramStep& step, const RegionSlot& slot) {
  const BankKey key = {step.npu->target, slot.memory_class};
  return static_cast<uint32_t>(std::ranges::lower_bound(banks, key) - banks.begin());
}

DeviceTensors find_device_tensors(const Program& program) {
  const std::vector<BankKey> banks = device_banks(program);
  DeviceTensors device_of(program.tensors.size(), kNone);
  std::vector<bool> is_copied(program.tensors.size(), false);
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      const uint32_t tensor = slot_tensor(step, slot);
      if (tensor == kNone) continue;
      const uint32_t bank = bank_of_slot(banks, step, slot);
      const bool other_bank = device_of[tensor] != kNone && device_of[tensor] != bank;
      if (other_bank || !slot.arrangement.is_packed(program.tensors[tensor].type)) is_copied[tensor] = true;
      device_of[tensor] = bank;
    }
  }
  for (const target::ProgramState& state : program.states)
    is_copied[state.input] = is_copied[state.output] = true;
  for (uint32_t t = 0; t < device_of.size(); ++t) {
    if (is_copied[t]) device_of[t] = kNone;
  }
  return device_of;
}

bool fit_side_by_side(const Program& program, const DeviceTensors& device_of) {
  const std::vector<BankKey> banks = device_banks(program);
  std::vector<uint64_t> bytes(banks.size(), 0);
  std::vector<uint64_t> alignment(banks.size(), format::kArenaAlignment);
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      uint64_t& of_bank = alignment[bank_of_slot(banks, step, slot)];
      of_bank = std::max(of_bank, uint64_t{slot.alignment});
    }
  }
  const auto add = [&](uint32_t bank, uint64_t size) {
    bytes[bank] += (size + alignment[bank] - 1) / alignment[bank] * alignment[bank];
  };
  for (size_t t = 0; t < device_of.size(); ++t) {
    if (device_of[t] != kNone) add(device_of[t], static_cast<uint64_t>(program.tensors[t].type.size_bytes()));
  }
  for (const ProgramStep& step : program.steps) {
    if (step.npu == nullptr) continue;
    for (const RegionSlot& slot : step.npu->slots) {
      const uint32_t tensor = slot_tensor(step, slot);
      const uint32_t bank = bank_of_slot(banks, step, slot);
      if (tensor == kNone || device_of[tensor] != bank) add(bank, slot.arrangement.size);
    }
  }
  for (size_t bank = 0; bank < bytes.size(); ++bank) {
    const uint64_t limit = program.devices[banks[bank].device].max_bank_bytes;
    if (limit != 0 && bytes[bank] > limit) return false;
  }
  return true;
}

KeptSlots no_kept_slots(const Program& program) {
  KeptSlots kept(program.steps.size());
  for (size_t s = 0; s < kept.size(); ++s) {
    if (program.steps[s].npu != nullptr) kept[s].assign(program.steps[s].npu->slots.size(), 0);
  }
  return kept;
}

namespace {

constexpr size_t kNoSlot = SIZE_MAX;

size_t input_slot(const ProgramStep& step, uint32_t tensor) {
  const std::vector<RegionSlot>& slots = step.npu->slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].use == format::NpuUse_INPUT && slot_tensor(step, slots[i]) == tensor) return i;
  }
  return kNoSlot;
}

// An output that the region at `maker` copies.
void keep_output(const Program& program, uint32_t maker, size_t slot, KeptSlots* kept) {
  const target::NpuRegion& region = *program.steps[maker].npu;
  const RegionSlot& output = region.slots[slot];
  const uint32_t tensor = slot_tensor(program.steps[maker], output);
  bool is_read_there = false;
  bool is_read_elsewhere = std::ranges::find(program.outputs, tensor) != program.outputs.end();
  // The fallback steps of a region read what it reads.
  for (uint32_t s = maker + region.num_alternative_steps + 1; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    const bool reads = std::ranges::find(step.inputs, tensor) != step.inputs.end();
    if (reads && step.npu != nullptr && step.npu->target == region.target) {
      const size_t input = input_slot(step, tensor);
      const bool stays = input != kNoSlot && step.npu->slots[input].memory_class == output.memory_class &&
                         target::may_stay(output.arrangement, step.npu->slots[input].arrangement,
                                          program.tensors[tensor].type);
      if (stays) (*kept)[s][input] = s - maker;
      (stays ? is_read_there : is_read_elsewhere) = true;
    } else if (reads) {
      is_read_elsewhere = true;
    }
    if (step.npu != nullptr) s += step.npu->num_alternative_steps;
  }
  if (is_read_there) (*kept)[maker][slot] = is_read_elsewhere ? format::kKeptToo : format::kKeptAlone;
}

}  // namespace

KeptSlots find_kept_slots(const Program& program, const DeviceTensors& device_of) {
  KeptSlots kept = no_kept_slots(program);
  const auto is_state = [&](uint32_t tensor) {
    return std::ranges::any_of(program.states, [&](const target::ProgramState& state) {
      return state.input == tensor || state.output == tensor;
    });
  };
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    for (size_t i = 0; i < kept[s].size(); ++i) {
      const RegionSlot& slot = program.steps[s].npu->slots[i];
      if (slot.use != format::NpuUse_OUTPUT) continue;
      const uint32_t tensor = slot_tensor(program.steps[s], slot);
      if (device_of[tensor] == kNone && !is_state(tensor)) keep_output(program, s, i, &kept);
    }
  }
  return kept;
}

uint32_t last_reader(const Program& program, const KeptSlots& kept, uint32_t step, uint32_t slot) {
  uint32_t last = step;
  if (kept[step][slot] == 0) return last;
  const uint32_t tensor = slot_tensor(program.steps[step], program.steps[step].npu->slots[slot]);
  for (uint32_t s = step + 1; s < kept.size(); ++s) {
    for (size_t i = 0; i < kept[s].size(); ++i) {
      const RegionSlot& reader = program.steps[s].npu->slots[i];
      if (reader.use == format::NpuUse_INPUT && kept[s][i] == s - step &&
          slot_tensor(program.steps[s], reader) == tensor) {
        last = s;
      }
    }
  }
  return last;
}

BoundaryCopies boundary_copies(const Program& program, const DeviceTensors& device_of, const KeptSlots& kept,
                               uint32_t s) {
  BoundaryCopies copies;
  const ProgramStep& step = program.steps[s];
  for (size_t i = 0; i < step.npu->slots.size(); ++i) {
    const RegionSlot& slot = step.npu->slots[i];
    const uint32_t tensor = slot_tensor(step, slot);
    if (tensor == kNone || device_of[tensor] != kNone) continue;
    const bool is_input = slot.use == format::NpuUse_INPUT;
    if (is_input ? kept[s][i] != 0 : kept[s][i] == format::kKeptAlone) continue;
    ++copies.count;
    copies.bytes += static_cast<uint64_t>(program.tensors[tensor].type.size_bytes());
  }
  return copies;
}

}  // namespace qplan::memory
