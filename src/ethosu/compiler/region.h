// A region's units and values, and where the values are in the device's regions.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_REGION_H_
#define QPLAN_SRC_ETHOSU_COMPILER_REGION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_REGION_H_
