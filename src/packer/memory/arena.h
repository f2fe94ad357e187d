// The memory plan of a program: an offset for every activation and every buffer of a device, checked before
// it is handed out.
#ifndef QPLAN_SRC_PACKER_MEMORY_ARENA_H_
#define QPLAN_SRC_PACKER_MEMORY_ARENA_H_

#include <cstdint>
#include <vector>

#include "src/packer/memory/lifetimes.h"
#include "src/packer/target/program.h"

namespace qplan::memory {

// Memory that a device reaches: the tensors it works on in place, and the buffers of its regions.
struct DeviceBank {
  uint64_t size = 0;  // bytes
  uint64_t lower_bound = 0;
  uint32_t alignment = 64;  // bytes, of the bank and of everything in it
};

struct Arena {
  Lifetimes lifetimes;
  DeviceTensors device_of;          // per tensor
  std::vector<uint64_t> offsets;    // per tensor, in its bank; 0 for constants
  uint64_t size = 0;                // bytes
  uint64_t lower_bound = 0;         // bytes
  std::vector<DeviceBank> devices;  // as Program::devices
  // Per step, per slot of its region: the offset in the device's bank. A slot whose tensor is in that bank
  // has the tensor's offset; all others have bytes of their own while their step runs.
  std::vector<std::vector<uint64_t>> slot_offsets;
};

// Of the arena and all devices' banks.
uint64_t total_bytes(const Arena& arena);

// Tensors leave the bank of a device that has no room for all of them (ProgramDevice::max_bank_bytes);
// PackError (QPLAN_MODEL_UNSUPPORTED) where its regions' buffers alone exceed it.
// Parts are inside their wholes unless the arena is smaller otherwise. iterations: of the planner's hill
// climbing, 0 for its default. PackError (QPLAN_INTERNAL) when a checker refuses the result.
Arena plan_arena(const target::Program& program, const SharingQueries& sharing, uint32_t iterations);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_ARENA_H_
