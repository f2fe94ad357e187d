// How a kernel goes about its work, as far as a plan may say: a step's schedule is eight bytes
// (format/plan.fbs, KernelStep). Byte i is the setting of the variant's knob i, byte 7 a QPLAN_ISA_* beyond
// which no variant is wanted for the step. 0, and whatever a variant does not know, is its own choice: every
// schedule is legal and gives the same bytes. docs/schedules.md tells what there is to choose. ISA files
// include this: nothing in it has external linkage.
#ifndef QPLAN_KERNELS_SCHEDULE_H_
#define QPLAN_KERNELS_SCHEDULE_H_

#include <stdint.h>

namespace qplan {

// kTile: a size, which tells by the work items that come out whether it changes anything; kOrder: of loops.
enum class KnobKind : uint8_t { kTile, kOrder };

struct Knob {
  const char* name;  // "block_pixels"
  KnobKind kind;
  uint8_t num_values;
  uint16_t values[8];  // setting s, from 1, means values[s - 1]
};

// Knobs have the bytes below this one.
constexpr uint32_t kMaxKnobs = 7;

// The value that the schedule sets knob `index` to, or 0: the variant's own choice.
static constexpr uint32_t knob_value(uint64_t schedule, const Knob* knobs, uint32_t index) {
  const uint64_t setting = (schedule >> (8 * index)) & 0xff;
  return setting >= 1 && setting <= knobs[index].num_values ? knobs[index].values[setting - 1] : 0;
}

static constexpr uint32_t schedule_isa(uint64_t schedule) { return static_cast<uint32_t>(schedule >> 56); }

}  // namespace qplan

#endif  // QPLAN_KERNELS_SCHEDULE_H_
