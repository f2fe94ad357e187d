// From the steps of a program to buffers: which tensors share one, and from when to when each is needed.
#ifndef QPLAN_SRC_PACKER_MEMORY_LIFETIMES_H_
#define QPLAN_SRC_PACKER_MEMORY_LIFETIMES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/packer/memory/device_tensors.h"
#include "src/packer/memory/planner.h"
#include "src/packer/target/program.h"

namespace qplan::memory {

struct Lifetimes {
  std::vector<uint32_t> first;  // per tensor: index of the first and last step that needs it
  std::vector<uint32_t> last;
  // Per tensor: the tensor whose bytes it takes over in the step that writes it, kNone for most.
  std::vector<uint32_t> replaces;
  // Per tensor: the tensor of which it is a part (parts.h), kNone for most.
  std::vector<uint32_t> inside;
  std::vector<uint32_t> buffer;  // per tensor; kNone for constants
  std::vector<uint64_t> offset;  // per tensor: where it begins in its buffer
  std::vector<Buffer> buffers;
  std::vector<uint32_t> device;  // per buffer, as DeviceTensors
};

// Whether the step's output may be computed in the bytes of the step's input.
using InPlaceQuery = std::function<bool(uint32_t step, uint32_t output, uint32_t input)>;
// The offset of the smaller tensor in the other at which the step need not copy it; nullopt: there is none.
using PartOffsetQuery =
    std::function<std::optional<uint64_t>(uint32_t step, uint32_t output, uint32_t input)>;

struct SharingQueries {
  InPlaceQuery may_be_in_place;
  PartOffsetQuery part_offset;  // empty: nothing is a part
};

// Inputs of the function are needed from the first to the last step: they stay as they were written, so that
// a second invoke sees them, and nothing is computed in their place. Outputs are needed until the last step.
// In place goes what the query allows, where the input is an activation of the same size and bank that
// nothing needs afterwards. A region's inputs and outputs are needed from its step to the last of its
// fallback steps, which find the inputs unchanged whatever the device did.
Lifetimes find_lifetimes(const target::Program& program, const DeviceTensors& device_of,
                         const InPlaceQuery& may_be_in_place);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_LIFETIMES_H_
