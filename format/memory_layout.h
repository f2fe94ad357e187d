// How the bytes of bank 0 are laid out: the one formula that the packer prints, memory_needs answers and init
// uses. pointer_size is 4 or 8: the device's, which need not be the packer's.
//
//   [session][step records][kept arguments][tensor addresses][NPU records][activations (arena size)][scratch
//   of worker 0][of worker 1]...
//
// Every part begins at a multiple of kArenaAlignment, where pointers have 32 bits of kSmallAlignment, and the
// memory itself is aligned to kArenaAlignment. With pointers of 32 bits, the scratch of one worker may be in
// the arena (plan.fbs, Function).
#ifndef QPLAN_FORMAT_MEMORY_LAYOUT_H_
#define QPLAN_FORMAT_MEMORY_LAYOUT_H_

#include <stdint.h>

#include "src/base/checked.h"

namespace qplan::format {

inline constexpr uint64_t kArenaAlignment = 64;
// On small devices, whose kernels load words and pairs of them.
inline constexpr uint32_t kSmallAlignment = 16;
inline constexpr uint32_t kMaxWorkers = 4096;

// Bytes of the session struct; runtime/session.h asserts that it fits on each kind of device.
constexpr uint64_t session_bytes(uint64_t pointer_size) { return pointer_size == 4 ? 288 : 576; }
// A session keeps the arguments of its kernels where pointers have 64 bits. On a device of 32 bits, whose
// memory is short, they are filled from the plan again before each run of a step
// (docs/decisions/0008-arguments-are-kept-on-64-bits.md).
constexpr bool keeps_args(uint64_t pointer_size) { return pointer_size == 8; }
// Family, variant and, where arguments are kept, where they are.
constexpr uint64_t step_record_bytes(uint64_t pointer_size) {
  return (keeps_args(pointer_size) ? 3 : 2) * pointer_size;
}
inline constexpr uint64_t kKeptStepBytes = 16;  // how the step's work is divided, before its arguments
// Room for the arguments of a kernel, with 64-bit pointers; make_family (src/runtime/bind/family.h) asserts
// that they fit.
constexpr uint64_t kept_args_bytes(uint16_t kernel) {
  constexpr uint16_t kBytes[] = {
      0,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) args_bytes,
#include "format/kernels.def"
#undef QPLAN_KERNEL
  };
  return kernel < sizeof(kBytes) / sizeof(kBytes[0]) ? kBytes[kernel] : 512;
}

// Records of the regions of a function that run on devices, with room to grow; the same on all kinds of
// device, since texts and 64-bit counters make most of them. No bytes at all where there are no regions.
inline constexpr uint64_t kNpuStateBytes = 192;
inline constexpr uint64_t kNpuDeviceBytes = 448;
inline constexpr uint64_t kNpuRegionBytes = 384;

struct MemoryCounts {
  uint64_t num_steps = 0;            // of the function
  uint64_t num_tensors = 0;          // of the plan
  uint64_t num_leading_tensors = 0;  // those whose addresses a session keeps where pointers have 32 bits
  uint64_t arena_bytes = 0;          // of bank 0's activations
  uint64_t scratch_bytes = 0;        // per worker
  uint64_t num_regions = 0;          // NpuSteps of the function
  uint64_t num_devices = 0;          // their targets
  uint64_t kept_bytes = 0;           // of all steps, where arguments are kept
  bool scratch_in_arena = false;     // of the only worker, where pointers have 32 bits
};

struct MemoryLayout {
  uint64_t steps = 0;  // offsets in bank 0
  uint64_t kept = 0;
  uint64_t tensors = 0;
  uint64_t npu = 0;  // state, devices, regions
  uint64_t arena = 0;
  uint64_t scratch = 0;
  uint64_t total = 0;
};

// Every part begins at a multiple of so many bytes.
constexpr uint64_t part_alignment(uint64_t pointer_size) {
  return pointer_size == 4 ? uint64_t{kSmallAlignment} : kArenaAlignment;
}

// A session whose activations and scratch are in an arena that other sessions use, too: what it keeps from
// run to run is in a memory of its own, states included.
struct SharedLayout {
  uint64_t states = 0;  // offset in the session's own memory
  uint64_t own = 0;     // bytes of that memory
  uint64_t arena = 0;   // bytes of the arena
};
// state_bytes: PlanView::state_bytes.
inline SharedLayout shared_layout(const MemoryLayout& layout, uint64_t state_bytes) {
  return {layout.arena, layout.arena + state_bytes, layout.total - layout.arena};
}

// False when a size does not fit into 64 bits.
[[nodiscard]] inline bool memory_layout(const MemoryCounts& counts, uint64_t pointer_size,
                                        uint64_t num_workers, MemoryLayout* layout) {
  constexpr uint64_t kLimit = uint64_t{1} << 48;
  if (counts.num_steps > kLimit / 64 || counts.num_tensors > kLimit / 64 ||
      counts.num_leading_tensors > counts.num_tensors || counts.arena_bytes > kLimit ||
      counts.scratch_bytes > kLimit / kMaxWorkers || num_workers > kMaxWorkers ||
      counts.kept_bytes > kLimit || counts.num_regions > kLimit / 1024 ||
      counts.num_devices > counts.num_regions) {
    return false;
  }
  const uint64_t alignment = part_alignment(pointer_size);
  uint64_t at = round_up(session_bytes(pointer_size), alignment);
  layout->steps = at;
  at += round_up(counts.num_steps * step_record_bytes(pointer_size), alignment);
  layout->kept = at;
  if (keeps_args(pointer_size)) at += round_up(counts.kept_bytes, alignment);
  layout->tensors = at;
  at += round_up((pointer_size == 4 ? counts.num_leading_tensors : counts.num_tensors) * pointer_size,
                 alignment);
  layout->npu = at;
  if (counts.num_regions > 0) {
    at += kNpuStateBytes + counts.num_devices * kNpuDeviceBytes + counts.num_regions * kNpuRegionBytes;
  }
  layout->arena = at;
  at += round_up(counts.arena_bytes, alignment);
  layout->scratch = at;
  const bool is_in_arena = pointer_size == 4 && num_workers == 1 && counts.scratch_in_arena;
  if (!is_in_arena) at += round_up(counts.scratch_bytes, kArenaAlignment) * num_workers;
  layout->total = at;
  return true;
}

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_MEMORY_LAYOUT_H_
