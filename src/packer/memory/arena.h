// The memory plan of a program: an offset for every activation and every buffer of a device, checked before
// it is handed out.
#ifndef QPLAN_SRC_PACKER_MEMORY_ARENA_H_
#define QPLAN_SRC_PACKER_MEMORY_ARENA_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/packer/memory/lifetimes.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::memory {

// Memory that a device reaches: the tensors it works on in place, and the buffers of its regions, of one
// class of memory.
struct DeviceBank {
  BankKey key;
  uint64_t size = 0;  // bytes
  uint64_t lower_bound = 0;
  uint32_t alignment = 64;  // bytes, of the bank and of everything in it
};

// An area beside the one of the session: activations alone.
struct AreaBank {
  std::string name;
  uint64_t size = 0;  // bytes
};

// A constant that a session reads from a copy in an area, after all activations and scratch.
struct ConstantCopy {
  target::TensorId tensor = 0;
  uint32_t area = 0;        // 0, or 1 + its position in Arena::areas
  uint64_t offset = 0;      // bytes, in the area
  uint64_t bytes_read = 0;  // of it, in one run
  uint64_t saved_cost = 0;  // of a run, in the unit of the target file
};

struct Arena {
  Lifetimes lifetimes;
  DeviceTensors device_of;          // per tensor
  std::vector<uint64_t> offsets;    // per tensor, in its bank; 0 for constants
  uint64_t size = 0;                // bytes
  uint64_t lower_bound = 0;         // bytes
  std::vector<DeviceBank> devices;  // as device_banks
  // Per step, per slot of its region: the offset in the slot's bank. A slot whose tensor is in that bank
  // has the tensor's offset; all others have bytes of their own while their step runs.
  std::vector<std::vector<uint64_t>> slot_offsets;
  // Slots that keep a tensor have their bytes until the last region that reads it there.
  KeptSlots kept;
  std::vector<uint64_t> scratch_offsets;  // per step; empty where scratch is not in the arena
  std::vector<uint64_t> scratch_sizes;    // as many
  // Per tensor that no device has: 0, or 1 + its position in `areas`. Empty: all are in the first area.
  std::vector<uint32_t> area_of;
  std::vector<AreaBank> areas;       // all but the first, whose size is `size`
  std::vector<ConstantCopy> copies;  // by rising tensor; sizes count them
  uint32_t area(uint32_t tensor) const { return area_of.empty() ? 0 : area_of[tensor]; }
  // Position in `devices` of the bank of a step's slot.
  uint32_t bank_of(const target::ProgramStep& step, const target::RegionSlot& slot) const;
};

// The bytes of the arena and of all devices' banks.
uint64_t total_bytes(const Arena& arena);

// Tensors leave the bank of a device that has no room for all of them (ProgramDevice::max_bank_bytes), kept
// ones first;
// PackError (QPLAN_MODEL_UNSUPPORTED) where its regions' buffers alone exceed it.
// Parts are inside their wholes unless the arena is smaller otherwise. iterations: of the planner's hill
// climbing, 0 for its default. PackError (QPLAN_INTERNAL) when a checker refuses the result.
// areas: where activations go, those with most traffic for each byte into the area of the least cost;
// PackError (QPLAN_MEMORY_TOO_SMALL) naming the step that finds no room.
Arena plan_arena(const target::Program& program, const SharingQueries& sharing, uint32_t iterations,
                 std::span<const target::MemoryArea> areas = {});

// The alignment of all that is in the arena, and in other areas.
uint64_t arena_alignment(const target::Program& program);

// A constant that may be copied, and an area that has room.
struct CopyCandidate {
  uint64_t size = 0;        // bytes
  uint64_t bytes_read = 0;  // of it, in one run
};
struct CopyRoom {
  uint64_t bytes = 0;
  uint64_t cost = 0;  // of a byte that is read
};

// Which candidates are copied where: per candidate the position in `rooms`, kNone where it stays. The areas
// that cost less than the constants do take their turns, the least cost first. Each takes those of the
// candidates left from which most bytes are read, among those sets that fit: an exact choice, since a few
// layers have most of the bytes, so that a choice by bytes read for each byte copied may leave much room
// unused. max_bytes: of all copies. alignment: of each.
std::vector<uint32_t> choose_copies(std::span<const CopyCandidate> candidates,
                                    std::span<const CopyRoom> rooms, uint64_t from_cost, uint64_t max_bytes,
                                    uint64_t alignment);

// Distributes the buffers of an arena among areas; area_of and areas are filled, offsets and sizes anew.
void spread(const target::Program& program, std::span<const target::MemoryArea> areas, uint64_t alignment,
            uint32_t iterations, Arena* arena);

// The second opinion on a memory plan: shares no code with the planner and runs on every pack.

// Bytes that hold one value from the step that writes it to the last step that reads it, both included.
struct PlacedValue {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  // Index of the value that this one overwrites in place at step `first`: the same bytes, or the first of
  // them, dead after that step.
  uint32_t replaces = UINT32_MAX;
  std::string name;
  uint64_t alignment = 64;
  // Index of the value that has this one as a part, inside_offset bytes from its beginning: whichever of the
  // two comes later is written without a change of the bytes that they share.
  uint32_t inside = UINT32_MAX;
  uint64_t inside_offset = 0;
  bool is_input = false;  // of the function: there before step 0, which may replace it
};

// Goes through the steps and keeps for every byte who wrote it last. PackError (QPLAN_INTERNAL) naming a
// value of which a byte is written by another while it is alive, and that other; or the value that reaches
// beyond the arena, is not aligned, or is not at its declared place.
void check_no_overlap(std::span<const PlacedValue> values, uint64_t arena_size);

// A second, independent check of the addresses of a region's tensors: whatever the device does with its
// outputs and buffers, the CPU steps after it find the inputs unchanged.

// Checks bytes alone, not lifetimes. PackError (QPLAN_INTERNAL) naming the step and the misplaced tensor.
void check_regions(const target::Program& program, const Arena& arena);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_ARENA_H_
