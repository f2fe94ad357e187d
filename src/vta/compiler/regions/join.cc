#include <algorithm>
#include <utility>
#include <vector>

#include "src/vta/compiler/regions/region.h"

namespace qplan::vta::compiler {
namespace {

// As the public runtime writes them: a LOAD of nothing, into a memory of the module's.
Instruction no_op(Memory memory) {
  Instruction instruction;
  instruction.opcode = Opcode::kLoad;
  instruction.memory = memory;
  return instruction;
}

bool is_load(const Instruction& instruction) { return module_of(instruction) == Module::kLoad; }
bool has_loads(const Part& part) { return std::ranges::any_of(part.unit.stream.instructions, is_load); }

}  // namespace

void StreamJoiner::add(std::span<const Part> parts) {
  const bool is_first = stream_.instructions.empty();
  const auto loading = static_cast<size_t>(std::ranges::find_if(parts, has_loads) - parts.begin());
  for (size_t p = 0; p < parts.size(); ++p) {
    const bool waits = !is_first || p > 0;
    add_part(parts[p], waits, !is_first && p == 0 && loading < parts.size(), !is_first && p == loading);
  }
}

void StreamJoiner::add_part(const Part& part, bool waits_for_stores, bool gives_to_loads,
                            bool waits_for_token) {
  const Stream& from = part.unit.stream;
  const std::span<const Instruction> code(from.instructions.data(),
                                          from.instructions.size() - 1);  // without FINISH
  std::vector<uint32_t> region(code.size(), UINT32_MAX);
  for (const BlobRelocation& relocation : from.relocations)
    region[relocation.instruction] = relocation.region;
  const auto is_weight_load = [&](size_t i) {
    return is_load(code[i]) && !code[i].pop_next && region[i] != UINT32_MAX &&
           part.unit.regions[region[i]].kind == UnitRegion::Kind::kCarried;
  };

  std::vector<Instruction>& out = stream_.instructions;
  for (const Label& label : from.labels) {
    if (label.instruction == 0) stream_.labels.push_back({static_cast<uint32_t>(out.size()), label.name});
  }
  if (waits_for_stores) {
    Instruction barrier = no_op(Memory::kUop);
    barrier.pop_next = true;
    barrier.push_prev = gives_to_loads;
    out.push_back(barrier);
  }
  bool weights_wait = waits_for_token && last_gemm_ && !out[*last_gemm_].push_prev;
  const bool weights_go_ahead = weights_wait;
  size_t label = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    Instruction instruction = code[i];
    if (waits_for_token && is_load(instruction)) {
      if (weights_go_ahead && is_weight_load(i)) {
        if (weights_wait) out[*last_gemm_].push_prev = instruction.pop_next = true;
        weights_wait = false;
      } else {
        // An instruction takes one token of a queue.
        if (instruction.pop_next) out.push_back(no_op(Memory::kInp));
        (instruction.pop_next ? out.back() : instruction).pop_next = true;
        waits_for_token = false;
        last_gemm_.reset();
      }
    }
    while (label < from.labels.size() && from.labels[label].instruction < i) ++label;
    if (i > 0 && label < from.labels.size() && from.labels[label].instruction == i)
      stream_.labels.push_back({static_cast<uint32_t>(out.size()), from.labels[label].name});
    if (region[i] != UINT32_MAX) {
      const RegionPlace& place = part.places[region[i]];
      instruction.dram_base += static_cast<uint32_t>(place.offset / element_bytes(instruction.memory));
      stream_.relocations.push_back({static_cast<uint32_t>(out.size()), place.region});
    }
    if (instruction.opcode == Opcode::kGemm && !instruction.reset) last_gemm_ = out.size();
    out.push_back(instruction);
  }
}

Stream StreamJoiner::finish() {
  stream_.instructions.emplace_back().pop_next = true;  // FINISH
  return std::move(stream_);
}

}  // namespace qplan::vta::compiler
