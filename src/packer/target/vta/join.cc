#include "src/packer/target/vta/join.h"

#include <algorithm>
#include <utility>

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

// As the public runtime writes them: a LOAD of nothing, of a memory of the module's.
isa::Instruction no_op(isa::Memory memory) {
  isa::Instruction instruction;
  instruction.opcode = isa::Opcode::kLoad;
  instruction.memory = memory;
  return instruction;
}

bool is_load(const isa::Instruction& instruction) {
  return isa::module_of(instruction) == isa::Module::kLoad;
}

}  // namespace

void StreamJoiner::add_barrier(bool for_loads) {
  isa::Instruction barrier = no_op(isa::Memory::kUop);
  barrier.pop_next = true;
  barrier.push_prev = for_loads;
  stream_.instructions.push_back(barrier);
}

void StreamJoiner::add(const CompiledUnit& unit, std::span<const RegionPlace> places) {
  const std::span<const isa::Instruction> code(unit.stream.instructions.data(),
                                               unit.stream.instructions.size() - 1);  // without FINISH
  const auto begin = static_cast<uint32_t>(stream_.instructions.size());
  const auto first_load = std::ranges::find_if(code, is_load);
  const bool waits = !begins_.empty();
  begins_.push_back(begin);
  for (const Label& label : unit.stream.labels) {
    if (label.instruction == 0) stream_.labels.push_back({begin, label.name});
  }
  if (waits) add_barrier(first_load != code.end());
  std::vector<uint32_t> index(code.size());  // in the joined stream
  for (size_t i = 0; i < code.size(); ++i) {
    isa::Instruction instruction = code[i];
    if (waits && first_load - code.begin() == static_cast<ptrdiff_t>(i)) {
      // An instruction takes one token of a queue.
      if (instruction.pop_next) stream_.instructions.push_back(no_op(isa::Memory::kInp));
      (instruction.pop_next ? stream_.instructions.back() : instruction).pop_next = true;
    }
    index[i] = static_cast<uint32_t>(stream_.instructions.size());
    stream_.instructions.push_back(instruction);
  }
  for (const isa::BlobRelocation& relocation : unit.stream.relocations) {
    const RegionPlace& place = places[relocation.region];
    const uint32_t at = index[relocation.instruction];
    isa::Instruction& instruction = stream_.instructions[at];
    instruction.dram_base += static_cast<uint32_t>(place.offset / isa::element_bytes(instruction.memory));
    stream_.relocations.push_back({at, place.region});
  }
  for (const Label& label : unit.stream.labels) {
    if (label.instruction != 0) stream_.labels.push_back({index[label.instruction], label.name});
  }
}

Stream StreamJoiner::finish() {
  stream_.instructions.emplace_back().pop_next = true;  // FINISH
  return std::move(stream_);
}

}  // namespace qplan::target::vta
