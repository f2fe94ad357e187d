// A region's units and values, where the values are in the device's regions, in which format, which units run
// as cascades, and which weights are copied.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_REGION_H_
#define QPLAN_SRC_ETHOSU_COMPILER_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/blob.h"

namespace qplan::ethosu::compiler {

// A parameter of the region's function or a result of one of its nodes.
struct RegionValue {
  ir::ValueId id;
  std::string name;
  ir::TensorType type;
  std::optional<uint32_t> param, output;  // of the region's function
  // The value whose bytes it is in: itself, or another one that it is a part of or another shape of.
  size_t whole = 0;
  std::optional<View> view;      // of the whole; none: as many bytes as the whole
  uint32_t first = 0, last = 0;  // units that write it and read it
  // Rows of the image that are in memory at a time, row y at y modulo this; 0: all of them.
  uint32_t buffer_rows = 0;
  bool is_nhcwb16 = false;

  bool is_border() const { return param || output; }
  uint64_t bytes() const { return static_cast<uint64_t>(type.size_bytes()); }
  uint64_t storage_bytes() const {
    return buffer_rows == 0 ? bytes() : bytes() / static_cast<uint64_t>(image_of(type)->h) * buffer_rows;
  }
};

struct RegionUnit {
  uint32_t node = 0;  // of the region's function
  Unit unit;
  std::vector<size_t> inputs, outputs, scratch;  // values
  bool is_renamed = false;                       // a reshape that copies nothing
};

struct RegionPlan {
  std::vector<RegionUnit> units;
  std::vector<RegionValue> values;
};

// RegionRefused for nodes that have no unit.
RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region);

// Bytes of values that other regions of the target use, and that are in its memory while this one runs, or
// also those that are there together with one of its inputs and outputs: a plan cannot always place them
// where this region's scratch memory is.
enum class Waiting : uint8_t { kWhileItRuns, kBesideItsBorder };
uint64_t waiting_bytes(const ir::Module& module, const ir::Function& region, Waiting waiting);
// Plans have the device's buffers at multiples of this.
constexpr uint64_t kPlanAlignment = 64;
constexpr uint64_t plan_aligned(uint64_t bytes) {
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}

// Where values are, and what the regions are.
struct Placement {
  static constexpr uint32_t kScratch = 1;  // the region of scratch memory, where there is any
  struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
  };
  std::vector<Place> places;  // of values that are their own whole
  std::vector<BlobRegion> regions;
  std::vector<BlobSlot> slots;
  std::vector<target::RegionSlot> plan_slots;
  uint64_t scratch_bytes = 0;  // 0: no region has scratch memory

  // Where there is some.
  void grow_scratch(uint64_t bytes);

  // A base pointer for each region, by which regions and slots go from then on. What Arm's driver puts its
  // fast memory in the place of is scratch memory that no slot copies to, or has no bytes.
  using BasePointers = std::array<uint32_t, kMaxRegions>;
  BasePointers make_room_for_fast_memory();
};
// The lowest place for so many bytes beside ranges [begin, end) in any order, at a multiple of 16.
uint64_t first_gap(std::vector<std::pair<uint64_t, uint64_t>> taken, uint64_t bytes);
Placement place_values(const RegionPlan& plan, uint64_t constant_bytes);
// All values in scratch memory, at the same place: for estimates.
Placement anywhere(const RegionPlan& plan);
// The map of a value, whole or part.
FeatureMap map_of(const RegionPlan& plan, const Placement& placement, size_t value);
// The maps of all values of a unit.
struct UnitMaps {
  std::vector<FeatureMap> inputs, outputs, scratch;
};
UnitMaps maps_of(const RegionPlan& plan, const Placement& placement, const RegionUnit& unit);

// Sets is_nhcwb16 of values with which their units take fewer cycles by the cost model.
void choose_formats(const Config& config, RegionPlan* plan);

// ---- cascades: consecutive units computed a few rows at a time, so that what is between them needs a few
// rows of memory.

// Rows of a unit's output, and those of its input that they need.
struct RowRange {
  uint32_t begin = 0, end = 0;
};
RowRange input_rows(const Kernel& kernel, RowRange output);
// The kernel for some rows of its output. ifm_rows, ifm2_rows, ofm_rows: rows that the memory of the map has,
// row y at y modulo that number; 0: all of them. Rows of the output do not go round the end of its
// memory.
Kernel kernel_of_rows(const Kernel& kernel, RowRange output, uint32_t ifm_rows, uint32_t ifm2_rows,
                      uint32_t ofm_rows);

// Units [first, last] of the region. Each but the last has one reader, the next unit, which reads rows of
// `buffer_rows` of the value between them.
struct Cascade {
  size_t first = 0, last = 0;
  uint32_t rows = 1;  // of the last unit's output at a time
  std::vector<uint32_t> buffer_rows;
};

// The order in which a cascade's kernels run: rows of unit first + index.
struct CascadeStep {
  size_t index = 0;
  RowRange output;
};
// kernels: the units', as a whole.
std::vector<CascadeStep> cascade_steps(const Cascade& cascade, const std::vector<Kernel>& kernels);

// Cascades that bring the memory of the region's values to at most `bytes` at a time, or as near as they can;
// plan.values get their buffer_rows and lifetimes.
std::vector<Cascade> choose_cascades(const Config& config, uint64_t bytes, RegionPlan* plan);

// ---- weights that transfers copy to scratch memory before their kernels read them there, instead of in
// place

// An operation of a region before its stream is written.
struct PlannedOperation {
  Operation operation;
  // The kernel for weights in scratch memory, where its block is another one.
  std::optional<Kernel> fast;
  size_t unit = 0;  // of the region's plan
  // Values that are in use from one of these nodes to the other keep their bytes: the operation's node, or
  // the nodes of its cascade.
  uint32_t first_node = 0, last_node = 0;
  bool is_in_cascade = false;

  // nullptr unless it is a convolution.
  const Kernel* convolution() const {
    const Kernel* const kernel = std::get_if<Kernel>(&operation);
    return kernel != nullptr && kernel->is_convolution() ? kernel : nullptr;
  }
  const Kernel& fast_kernel() const { return fast ? *fast : std::get<Kernel>(operation); }
  // The same layer as kernels for some channels each.
  std::vector<std::vector<Kernel>> slicings;
};

// Weights and scales of a kernel's cores, which follow each other.
uint64_t weight_bytes(const Kernel& kernel);
// The kernel with them at a place.
Kernel with_weights_at(Kernel kernel, uint32_t region, uint64_t offset);

constexpr size_t kBeforeAll = SIZE_MAX, kWhole = SIZE_MAX;
// The weights of a unit, in scratch memory.
struct WeightCopy {
  size_t unit = 0;
  size_t after = kBeforeAll;  // the first transfer starts after this operation
  uint64_t offset = 0, bytes = 0;
  uint32_t first_node = 0, last_node = 0;  // while it is there
  // Which of the operation's slicings runs: its kernels' weights take the two halves of the memory in turn,
  // each copied while the kernel before it runs.
  size_t slicing = kWhole;

  uint64_t slice_offset(size_t slice) const {
    return slicing == kWhole ? offset : offset + slice % 2 * (bytes / 2);
  }
};
// The kernel that reads a copy, before its weights are there.
const Kernel& sliced_kernel(const PlannedOperation& planned, const WeightCopy& copy, size_t slice);

// The copies with which the region takes fewer cycles by the cost model, beside the values that are placed,
// in scratch memory of at most so many bytes. In the order of their transfers.
std::vector<WeightCopy> choose_weight_copies(const Config& config, const RegionPlan& plan,
                                             const Placement& placement,
                                             const std::vector<PlannedOperation>& operations,
                                             uint64_t scratch_bytes);

// Visits what the stream has, in its order: on_transfer(copy, slice) and on_operation(operation, copy or
// null, slice).
template <typename OnTransfer, typename OnOperation>
void visit_stream(const std::vector<PlannedOperation>& operations, const std::vector<WeightCopy>& copies,
                  const OnTransfer& on_transfer, const OnOperation& on_operation) {
  std::map<size_t, const WeightCopy*> of_units;
  for (const WeightCopy& copy : copies) of_units[copy.unit] = &copy;
  size_t next = 0;
  // Copies before everything first: kBeforeAll + 1 is 0.
  for (size_t i = 0;; ++i) {
    while (next < copies.size() && copies[next].after + 1 == i) on_transfer(copies[next++], 0);
    if (i == operations.size()) return;
    const PlannedOperation& planned = operations[i];
    const auto found = planned.convolution() == nullptr ? of_units.end() : of_units.find(planned.unit);
    const WeightCopy* const copy = found == of_units.end() ? nullptr : found->second;
    const bool is_sliced = copy != nullptr && copy->slicing != kWhole;
    const size_t slices = is_sliced ? planned.slicings[copy->slicing].size() : 1;
    for (size_t slice = 0; slice < slices; ++slice) {
      on_operation(i, copy, slice);
      if (slice + 1 < slices) on_transfer(*copy, slice + 1);
    }
  }
}

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_REGION_H_
