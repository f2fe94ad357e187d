// The memory plan of a program: when each buffer lives, which activations are in the memory of a device, so
// that its programs work on them in place, and an offset for every activation and every buffer of a device,
// checked before it is handed out.
#ifndef QPLAN_SRC_PACKER_MEMORY_ARENA_H_
#define QPLAN_SRC_PACKER_MEMORY_ARENA_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/checked.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::memory {

inline constexpr uint32_t kNone = UINT32_MAX;

// Offsets for buffers whose lifetimes are known: as few bytes as can be found, the same on every machine.

struct Buffer {
  uint64_t size = 0;   // bytes
  uint32_t first = 0;  // index of the first and last step that need it, both included
  uint32_t last = 0;
  // Position of an earlier, larger buffer whose offset it has: what is left of that one. It begins to live
  // after the other has ended. kNone for most.
  uint32_t rest_of = kNone;
};

struct PlannerOptions {
  uint64_t alignment = 64;         // bytes, of every buffer
  uint32_t iterations = 0;         // hill climbing; 0: kDefaultIterations
  uint64_t max_work = UINT64_MAX;  // buffers and pairs that hill climbing may visit; 0: the sweep alone
};
inline constexpr uint32_t kDefaultIterations = 4096;

struct Placement {
  std::vector<uint64_t> offsets;  // one per buffer
  uint64_t peak = 0;              // bytes: end of the highest buffer
  uint64_t lower_bound = 0;       // bytes: no placement needs less
  uint64_t work = 0;              // buffers and pairs that hill climbing has visited
};

// The most bytes that are needed at the same time, each buffer rounded up to the alignment.
uint64_t live_bytes_peak(std::span<const Buffer> buffers, uint64_t alignment);

// Each buffer goes into the first gap between those placed before it that are alive at the same time; the
// order of placing decides the result. Several orders are tried, then the best one is changed by swaps near
// the peak for as long as this helps, until the lower bound is met or the iterations are used.
Placement place_buffers(std::span<const Buffer> buffers, const PlannerOptions& options);

// Placement in the order of execution, as an allocator would do it while the steps run: for any number of
// buffers.

// Offsets, one per buffer. Takes time n log n plus the number of gaps that are skipped.
std::vector<uint64_t> place_by_sweep(std::span<const Buffer> buffers, uint64_t alignment);

// Which device's memory a bank is, and of which class.
struct BankKey {
  uint32_t device = 0;  // position in Program::devices
  format::MemoryClass memory_class = format::MemoryClass_ANY;
  auto operator<=>(const BankKey&) const = default;
};
// Ascending: one bank for each class that the slots of a device's regions name. A device without slots has
// one of any class.
std::vector<BankKey> device_banks(const target::Program& program);
// Position of the bank of a slot of a region.
uint32_t bank_of_slot(const std::vector<BankKey>& banks, const target::ProgramStep& step,
                      const target::RegionSlot& slot);

// Per tensor: the position in device_banks of the bank that contains it; kNone: the arena, or a
// constant.
using DeviceTensors = std::vector<uint32_t>;

// A tensor that only slots of one bank have, all of them as packed bytes, is in that bank, where steps of the
// CPU reach it. All other tensors at a region's boundary are copied.
DeviceTensors find_device_tensors(const target::Program& program);

// Whether the bank of each device has room for all its tensors and buffers, even if all of them are needed at
// the same time. If not, the memory plan decides (arena.h).
bool fit_side_by_side(const target::Program& program, const DeviceTensors& device_of);

// The tensor of a slot of the step's region; kNone: scratch.
uint32_t slot_tensor(const target::ProgramStep& step, const target::RegionSlot& slot);

// Per step and slot of its region: NpuBind::kept of format/plan.fbs. No entries: a step of the CPU.
using KeptSlots = std::vector<std::vector<uint32_t>>;

// The copied tensors that stay in a device's bank between the region that writes them and later ones that
// read them in the same arrangement.
KeptSlots find_kept_slots(const target::Program& program, const DeviceTensors& device_of);
// As many zeros.
KeptSlots no_kept_slots(const target::Program& program);
// The last step that reads what the slot keeps; the step itself where it keeps nothing.
uint32_t last_reader(const target::Program& program, const KeptSlots& kept, uint32_t step, uint32_t slot);

// The tensors that the session copies before and after the step's job.
struct BoundaryCopies {
  uint32_t count = 0;
  uint64_t bytes = 0;  // of the tensors
};
BoundaryCopies boundary_copies(const target::Program& program, const DeviceTensors& device_of,
                               const KeptSlots& kept, uint32_t step);

// From the steps of a program to buffers: which tensors share one, and from when to when each is needed.

struct Lifetimes {
  std::vector<uint32_t> first;  // per tensor: index of the first and last step that needs it
  std::vector<uint32_t> last;
  // Per tensor: the tensor whose bytes it takes over in the step that writes it, kNone for most.
  std::vector<uint32_t> replaces;
  // Per tensor: the tensor of which it is a part (below), kNone for most.
  std::vector<uint32_t> inside;
  std::vector<uint32_t> buffer;  // per tensor; kNone for constants
  std::vector<uint64_t> offset;  // per tensor: where it begins in its buffer
  std::vector<Buffer> buffers;
  std::vector<uint32_t> device;  // per buffer, as DeviceTensors
};

// Whether the step's output may be computed in the bytes of the step's input.
using InPlaceQuery = std::function<bool(uint32_t step, uint32_t output, uint32_t input)>;
// The offset of the smaller tensor in the other at which the step need not copy it; nullopt if it must.
using PartOffsetQuery =
    std::function<std::optional<uint64_t>(uint32_t step, uint32_t output, uint32_t input)>;

struct SharingQueries {
  InPlaceQuery may_be_in_place;
  PartOffsetQuery part_offset;  // empty: nothing is a part
  // Whether the step's output may be written over the beginning of its larger input; empty: never.
  InPlaceQuery may_overwrite = nullptr;
};

// Inputs of the function are needed from the first to the last step: they stay as they were written, so that
// a second invoke sees them, but for programs that overwrite them. Nothing is computed in their place.
// Outputs are needed until the last step. So are states and their next values, which may be the same bytes
// where all that read the value run before the step that writes the next. In place goes what the query
// allows, where the input is an activation of the same size and bank that nothing needs afterwards; where it
// is larger, and neither is bound by a caller, a buffer of the output's size goes on where the input's ends.
// A region's inputs and outputs are needed from its step to the last of its fallback steps, which find the
// inputs unchanged whatever the device did.
Lifetimes find_lifetimes(const target::Program& program, const DeviceTensors& device_of,
                         const InPlaceQuery& may_be_in_place, const InPlaceQuery& may_overwrite = nullptr);

// Which buffers are alive at the same time.

// An undirected graph as adjacency lists in one array.
class Conflicts {
 public:
  // nullopt when there are more than max_pairs pairs.
  static std::optional<Conflicts> find(std::span<const Buffer> buffers, size_t max_pairs);

  std::span<const uint32_t> of(uint32_t buffer) const {
    return std::span(neighbours_).subspan(begin_[buffer], begin_[buffer + 1] - begin_[buffer]);
  }
  size_t num_pairs() const { return neighbours_.size() / 2; }

 private:
  std::vector<size_t> begin_;
  std::vector<uint32_t> neighbours_;
};

// How many bytes are needed at each step, while buffers come and go.

// A tree over the steps: each node has what is alive all over its steps, and the most below it.
class LiveBytes {
 public:
  LiveBytes(uint32_t num_steps, uint64_t alignment) : alignment_(alignment) {
    while (leaves_ < num_steps) leaves_ *= 2;
    throughout_.assign(2 * leaves_, 0);
    most_.assign(2 * leaves_, 0);
  }

  void add(const Buffer& buffer) { change(buffer, round_up(buffer.size, alignment_)); }
  void remove(const Buffer& buffer) { change(buffer, 0 - round_up(buffer.size, alignment_)); }
  uint64_t peak() const { return most_[1]; }
  // The first step with the most bytes.
  uint32_t peak_step() const {
    size_t node = 1;
    while (node < leaves_) node = 2 * node + (most_[2 * node] >= most_[2 * node + 1] ? 0 : 1);
    return static_cast<uint32_t>(node - leaves_);
  }
  uint64_t at(uint32_t step) const {
    uint64_t bytes = 0;
    for (size_t node = leaves_ + step; node != 0; node /= 2) bytes += throughout_[node];
    return bytes;
  }

 private:
  // Unsigned differences wrap back.
  void change(const Buffer& buffer, uint64_t bytes) {
    size_t begin = leaves_ + buffer.first, end = leaves_ + buffer.last + 1;
    for (size_t low = begin, high = end; low < high; low /= 2, high /= 2) {
      if (low % 2 != 0) cover(low++, bytes);
      if (high % 2 != 0) cover(--high, bytes);
    }
    for (const size_t leaf : {begin, end - 1}) {
      for (size_t node = leaf / 2; node != 0; node /= 2) {
        most_[node] = throughout_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
      }
    }
  }
  void cover(size_t node, uint64_t bytes) {
    throughout_[node] += bytes;
    most_[node] += bytes;
  }

  const uint64_t alignment_;
  size_t leaves_ = 1;
  std::vector<uint64_t> throughout_, most_;
};

// Tensors that are parts of others, so that a concatenation or a split copies nothing.

// Joins the buffers of parts with those of their wholes, where
// - the part's bytes stay as they are for as long as the part or the whole is needed, by the steps that
//   compute in place, too; what computes in place goes first;
// - neither is an input or output of the function, which a caller may bind to other memory, nor crosses the
//   border of a region on a device;
// - no more bytes are needed at the same time than without: a whole takes its place from the first of its
//   parts on, and a part keeps it to its end. Of too many parts those that lengthen its life most stay out.
void place_parts(const target::Program& program, const DeviceTensors& device_of,
                 const PartOffsetQuery& part_offset, Lifetimes* lifetimes);

// ---- offsets ----

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
