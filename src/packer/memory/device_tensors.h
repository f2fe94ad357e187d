// Decides which activations are in the memory of a device, so that its programs work on them in place.
#ifndef QPLAN_SRC_PACKER_MEMORY_DEVICE_TENSORS_H_
#define QPLAN_SRC_PACKER_MEMORY_DEVICE_TENSORS_H_

#include <cstdint>
#include <vector>

#include "src/packer/target/program.h"

namespace qplan::memory {

inline constexpr uint32_t kNone = UINT32_MAX;

// Per tensor: the position in Program::devices of the device whose bank contains it; kNone: the arena, or a
// constant.
using DeviceTensors = std::vector<uint32_t>;

// A tensor that only regions of one device read or write, all of them as packed bytes, is in the bank of that
// device, where steps of the CPU reach it. All other tensors at a region's boundary are copied.
DeviceTensors find_device_tensors(const target::Program& program);

// Whether the bank of each device has room for all its tensors and buffers, even if all of them are needed at
// the same time. If not, the memory plan decides (arena.h).
bool fit_side_by_side(const target::Program& program, const DeviceTensors& device_of);

// The tensor of a slot of the step's region; kNone: scratch.
uint32_t slot_tensor(const target::ProgramStep& step, const target::RegionSlot& slot);

// The tensors that the session copies before and after the step's job.
struct BoundaryCopies {
  uint32_t count = 0;
  uint64_t bytes = 0;  // of the tensors
};
BoundaryCopies boundary_copies(const target::Program& program, const DeviceTensors& device_of,
                               const target::ProgramStep& step);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_DEVICE_TENSORS_H_
