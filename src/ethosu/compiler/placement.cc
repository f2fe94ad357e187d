#include <algorithm>
#include <functional>
#include <numeric>

#include "src/ethosu/compiler/region.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
namespace {

constexpr uint64_t kRegionAlignment = 16;
constexpr uint32_t kScratchRegion = Placement::kScratch;
// Constants and scratch have a region each.
constexpr size_t kMaxBorder = kMaxRegions - 2;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
}

// The largest first, each at the lowest offset that no value in use at the same time covers.
uint64_t place_in_arena(const std::vector<size_t>& values, const RegionPlan& plan,
                        std::vector<Placement::Place>* places) {
  std::vector<size_t> order = values, placed;
  std::ranges::stable_sort(order, std::greater(), [&](size_t v) { return plan.values[v].storage_bytes(); });
  uint64_t size = 0;
  for (const size_t v : order) {
    const RegionValue& value = plan.values[v];
    std::vector<std::pair<uint64_t, uint64_t>> taken;  // begin, end
    for (const size_t other : placed) {
      const RegionValue& o = plan.values[other];
      const bool meets = o.first <= value.last && value.first <= o.last;
      const uint64_t begin = (*places)[other].offset;
      if (meets) taken.emplace_back(begin, begin + o.storage_bytes());
    }
    const uint64_t at = first_gap(std::move(taken), value.storage_bytes());
    (*places)[v] = {kScratchRegion, at};
    size = std::max(size, at + aligned(value.storage_bytes()));
    placed.push_back(v);
  }
  return size;
}

BlobRegion region_of(RegionKind kind, uint64_t bytes) { return {static_cast<uint32_t>(kind), 0, bytes, 0}; }

}  // namespace

uint64_t first_gap(std::vector<std::pair<uint64_t, uint64_t>> taken, uint64_t bytes) {
  std::ranges::sort(taken);
  uint64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (at + bytes <= begin) break;
    at = std::max(at, aligned(end));
  }
  return at;
}

void Placement::grow_scratch(uint64_t bytes) {
  if (bytes <= scratch_bytes) return;
  scratch_bytes = regions[kScratch].bytes = bytes;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].usage == QPLAN_NPU_USE_SCRATCH) slots[s].bytes = plan_slots[s].arrangement.size = bytes;
  }
}

Placement::BasePointers Placement::make_room_for_fast_memory() {
  BasePointers pointers;
  std::iota(pointers.begin(), pointers.end(), 0u);
  // An arena has inputs and outputs in it; it is the only region beside the constants.
  if (regions.size() <= kFastMemoryRegion) return pointers;
  std::vector<BlobRegion> moved = regions;
  if (scratch_bytes > 0) {
    std::swap(pointers[kScratch], pointers[kFastMemoryRegion]);
  } else {
    for (uint32_t r = kFastMemoryRegion; r < regions.size(); ++r) pointers[r] = r + 1;
    moved.push_back({});
    moved[kFastMemoryRegion] = region_of(RegionKind::kConstants, 0);
  }
  for (size_t r = 0; r < regions.size(); ++r) moved[pointers[r]] = regions[r];
  for (BlobSlot& slot : slots) slot.region = pointers[slot.region];
  regions = std::move(moved);
  return pointers;
}

Placement place_values(const RegionPlan& plan, uint64_t constant_bytes) {
  Placement result;
  result.places.resize(plan.values.size());
  std::vector<size_t> border, inner;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].whole != v) continue;
    (plan.values[v].is_border() ? border : inner).push_back(v);
  }
  // Parameters, then results, each in their order.
  std::ranges::stable_sort(border, std::less(), [&](size_t v) {
    const RegionValue& value = plan.values[v];
    return value.param ? uint64_t{*value.param} : uint64_t{1} << 32 | *value.output;
  });
  result.regions.push_back(region_of(RegionKind::kConstants, constant_bytes));

  const auto add_slot = [&](const RegionValue& value, uint32_t region, uint64_t offset) {
    const auto slot = static_cast<uint32_t>(result.slots.size());
    const bool is_input = value.param.has_value();
    result.slots.push_back(
        {is_input ? QPLAN_NPU_USE_INPUT : QPLAN_NPU_USE_OUTPUT, region, offset, value.bytes()});
    result.plan_slots.push_back({slot, is_input ? format::NpuUse_INPUT : format::NpuUse_OUTPUT,
                                 is_input ? *value.param : *value.output,
                                 target::packed_arrangement(value.type),
                                 static_cast<uint32_t>(kRegionAlignment)});
  };
  if (border.size() > kMaxBorder) {
    // More tensors than base pointers: the driver copies them to and from an arena.
    RegionPlan all = plan;
    for (const size_t v : border) {
      if (all.values[v].param) all.values[v].first = 0;
      if (all.values[v].output) all.values[v].last = UINT32_MAX;
      inner.push_back(v);
    }
    result.scratch_bytes = place_in_arena(inner, all, &result.places);
    result.regions.push_back(region_of(RegionKind::kArena, result.scratch_bytes));
    for (const size_t v : border) add_slot(plan.values[v], kScratchRegion, result.places[v].offset);
    return result;
  }
  const uint64_t scratch = result.scratch_bytes = place_in_arena(inner, plan, &result.places);
  if (scratch > 0) result.regions.push_back(region_of(RegionKind::kBound, scratch));
  for (const size_t v : border) {
    const auto region = static_cast<uint32_t>(result.regions.size());
    result.regions.push_back(region_of(RegionKind::kBound, plan.values[v].bytes()));
    result.places[v] = {region, 0};
    add_slot(plan.values[v], region, 0);
  }
  if (scratch > 0) {
    const auto slot = static_cast<uint32_t>(result.slots.size());
    result.slots.push_back({QPLAN_NPU_USE_SCRATCH, kScratchRegion, 0, scratch});
    target::Arrangement arrangement;
    arrangement.size = scratch;
    result.plan_slots.push_back(
        {slot, format::NpuUse_SCRATCH, 0, std::move(arrangement), static_cast<uint32_t>(kRegionAlignment)});
  }
  return result;
}

Placement anywhere(const RegionPlan& plan) {
  Placement placement;
  placement.places.assign(plan.values.size(), {Placement::kScratch, 0});
  return placement;
}

FeatureMap map_of(const RegionPlan& plan, const Placement& placement, size_t v) {
  const RegionValue& value = plan.values[v];
  FeatureMap map = map_of_type(value.type);
  if (value.whole == v) {
    map.region = placement.places[v].region;
    map.base[0] = placement.places[v].offset;
    if (value.is_nhcwb16) {
      const uint64_t brick = uint64_t{16} * map.element_bytes();
      map.is_nhcwb16 = true;
      map.stride_x = brick, map.stride_c = brick * map.w;
    }
    return map;
  }
  const FeatureMap whole = map_of(plan, placement, value.whole);
  if (value.view) return view_of(whole, *value.view, map);
  map.region = whole.region;
  std::copy_n(whole.base, 4, map.base);
  return map;
}

UnitMaps maps_of(const RegionPlan& plan, const Placement& placement, const RegionUnit& unit) {
  UnitMaps maps;
  for (const size_t v : unit.inputs) maps.inputs.push_back(map_of(plan, placement, v));
  for (const size_t v : unit.outputs) maps.outputs.push_back(map_of(plan, placement, v));
  for (const size_t v : unit.scratch) maps.scratch.push_back(map_of(plan, placement, v));
  return maps;
}

// ---- formats: which values inside a region are NHCWB16, bricks of 16 channels, neighbouring columns side by
// side

namespace {

constexpr int kFormatPasses = 2;

class FormatChooser {
 public:
  FormatChooser(const Config& config, RegionPlan* plan)
      : config_(config), plan_(*plan), placement_(anywhere(*plan)), users_(plan->values.size()) {
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const RegionUnit& unit = plan_.units[u];
      for (const std::vector<size_t>* const values : {&unit.inputs, &unit.outputs, &unit.scratch}) {
        for (const size_t v : *values) {
          if (std::ranges::count(users_[v], u) == 0) users_[v].push_back(u);
        }
      }
    }
  }

  void run() {
    std::vector<size_t> values;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      if (may_have_bricks(v)) values.push_back(v);
    }
    bool is_better = true;
    for (int pass = 0; pass < kFormatPasses && is_better; ++pass) {
      is_better = false;
      for (const size_t v : values) {
        bool& is_nhcwb16 = plan_.values[v].is_nhcwb16;
        const uint64_t before = cycles(v);
        is_nhcwb16 = !is_nhcwb16;
        if (cycles(v) < before) {
          is_better = true;
        } else {
          is_nhcwb16 = !is_nhcwb16;
        }
      }
    }
  }

 private:
  // Values that only the region knows, as large in bricks as in rows of channels, and not the same. No other
  // value is in their bytes.
  bool may_have_bricks(size_t v) const {
    const RegionValue& value = plan_.values[v];
    const std::optional<Image> image = image_of(value.type);
    if (value.is_border() || value.whole != v || value.type.dtype.bits != 8 || !image || image->d % 16 != 0 ||
        image->d == 16 || image->w == 1 || users_[v].empty())
      return false;
    for (size_t other = 0; other < plan_.values.size(); ++other) {
      if (other != v && plan_.values[other].whole == v) return false;
    }
    return std::ranges::all_of(users_[v], [&](size_t u) { return plan_.units[u].unit.takes_bricks; });
  }

  // What the units that use a value take, with weights in fast memory: what flash takes is not the maps'
  // part.
  uint64_t cycles(size_t v) const {
    uint64_t sum = 0;
    for (const size_t u : users_[v]) {
      const RegionUnit& unit = plan_.units[u];
      const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
      ConstantData constants;
      StreamWriter stream(config_);
      try {
        unit.unit.emit({config_, inputs, outputs, constants, stream, true, 0, scratch, true});
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        return 0;  // the compiler says so when it comes to the unit
      }
      sum += stream.cycles();
    }
    return sum;
  }

  const Config& config_;
  RegionPlan& plan_;
  const Placement placement_;
  std::vector<std::vector<size_t>> users_;  // units of each value
};

}  // namespace

void choose_formats(const Config& config, RegionPlan* plan) { FormatChooser(config, plan).run(); }

}  // namespace qplan::ethosu::compiler
