#include "src/packer/memory/arena.h"

#include <utility>

#include "format/memory_layout.h"
#include "src/packer/memory/overlap_checker.h"

namespace qplan::memory {
namespace {

void check(const target::Program& program, const Arena& arena) {
  std::vector<PlacedValue> values;
  std::vector<uint32_t> index_of(program.tensors.size(), kNone);
  for (uint32_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] == kNone) continue;
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
    if (arena.lifetimes.replaces[t] != kNone)
      values[index_of[t]].replaces = index_of[arena.lifetimes.replaces[t]];
  }
  check_no_overlap(values, arena.size, format::kArenaAlignment);
}

}  // namespace

Arena plan_arena(const target::Program& program, const InPlaceQuery& may_be_in_place, uint32_t iterations) {
  Arena arena;
  arena.lifetimes = find_lifetimes(program, may_be_in_place);
  PlannerOptions options;
  options.alignment = format::kArenaAlignment;
  options.iterations = iterations;
  const Placement placement = place_buffers(arena.lifetimes.buffers, options);
  arena.offsets.assign(program.tensors.size(), 0);
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    if (arena.lifetimes.buffer[t] != kNone) arena.offsets[t] = placement.offsets[arena.lifetimes.buffer[t]];
  }
  arena.size = placement.peak;
  arena.lower_bound = placement.lower_bound;
  check(program, arena);
  return arena;
}

}  // namespace qplan::memory
