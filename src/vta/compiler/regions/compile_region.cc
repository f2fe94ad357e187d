#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "src/packer/ir/cat.h"
#include "src/vta/compiler/streams/stream.h"
#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler {
namespace {

// ---- scratch: places of the values between units, by the units that write and read them

// The interval in which a value is in use, from candidate `first` to candidate `last`, both included.
struct ScratchInterval {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};
struct ScratchPlan {
  std::vector<uint64_t> offsets;  // one per interval, multiples of kScratchAlignment
  uint64_t bytes = 0;
};
constexpr uint64_t kScratchAlignment = 64;

// The largest first, each at the lowest offset that no value in use at the same time covers.
ScratchPlan plan_scratch(std::span<const ScratchInterval> intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return intervals[i].bytes; });
  ScratchPlan plan;
  plan.offsets.resize(intervals.size());
  std::vector<size_t> placed;
  for (const size_t i : order) {
    std::vector<std::pair<uint64_t, uint64_t>> taken;  // begin, end
    for (const size_t other : placed) {
      if (intervals[other].first <= intervals[i].last && intervals[i].first <= intervals[other].last)
        taken.emplace_back(plan.offsets[other], plan.offsets[other] + intervals[other].bytes);
    }
    std::ranges::sort(taken);
    uint64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + intervals[i].bytes <= begin) break;
      at = std::max(at, (end + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment);
    }
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, at + intervals[i].bytes);
    placed.push_back(i);
  }
  return plan;
}

// ---- the program

constexpr uint32_t kBufferAlignment = 64;

// The element's place in the buffer, for each axis of the tensor: its last axis is channels, those before are
// the rows of the layout and what lies within one.
Arrangement arrange(const RegionValue& value, const ir::TensorType& type) {
  const ActivationLayout& layout = value.layout;
  Arrangement result;
  result.strides.assign(type.shape.size(), 0);
  const auto position = static_cast<uint64_t>(layout.channel_blocks() * kInpBytes);
  const auto row = static_cast<uint64_t>(layout.row_elements() * kInpBytes);
  int64_t inner = 1;  // positions of a step along the axis
  for (size_t axis = type.shape.size(); axis-- > 0;) {
    if (axis + 1 == type.shape.size()) {
      result.strides[axis] = 1;
      continue;
    }
    const bool is_within_row = inner < layout.w;
    result.strides[axis] = is_within_row ? static_cast<uint64_t>(inner) * position
                                         : static_cast<uint64_t>(inner / layout.w) * row;
    inner *= type.shape[axis];
    if (is_within_row && inner > layout.w)
      throw PackError(QPLAN_INTERNAL, cat("vta: '", value.name, "' of ", type, " is not stored as rows of ",
                                          layout.w, " positions"));
  }
  result.origin = static_cast<uint64_t>(layout.element(0, 0) * kInpBytes);
  result.byte_stride = value.is_int32 ? static_cast<uint64_t>(layout.bytes()) : 1;
  result.size = static_cast<uint64_t>(value.bytes());
  result.fill = static_cast<uint8_t>(value.border_value.value_or(0));
  result.flip = value.is_unsigned ? 0x80 : 0;
  return result;
}

uint32_t carried_alignment(RegionKind kind) {
  return kind == RegionKind::kWeights ? static_cast<uint32_t>(kWgtBytes) : static_cast<uint32_t>(kAccBytes);
}

class RegionCompiler {
 public:
  RegionCompiler(const Config& config, const ir::Module& module, const ir::Function& region)
      : config_(config), region_(region), plan_(plan_region(config, module, region)) {}

  CompiledRegion run() {
    place_values();
    for (const RegionUnit& unit : plan_.units) add(unit);
    attempts_.check();
    return finish();
  }

 private:
  [[noreturn]] static void refuse(const RegionUnit& unit, const char* id, std::string text,
                                  std::string hint) {
    throw RegionRefused(unit.node, {id, std::move(text), std::move(hint)});
  }

  // ---- buffers
  uint32_t add_slot(RegionKind kind, format::NpuUse use, uint32_t index, const std::string& name,
                    Arrangement arrangement) {
    Region region;
    region.kind = kind;
    region.name = name;
    region.bytes = arrangement.size;
    region.alignment = kBufferAlignment;
    const auto slot = static_cast<uint32_t>(regions_.size());
    regions_.push_back(std::move(region));
    // LOAD and STORE are for DRAM; what is fast is on the chip.
    result_.slots.push_back(
        {slot, use, index, std::move(arrangement), kBufferAlignment, format::MemoryClass_DRAM});
    return slot;
  }

  void place_values() {
    places_.resize(plan_.values.size());
    std::vector<size_t> inner;
    std::vector<ScratchInterval> intervals;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      const RegionValue& value = plan_.values[v];
      const ir::TensorType& type = region_.type(value.id);
      if (value.storage != v) continue;
      if (value.param) {
        places_[v].region = add_slot(RegionKind::kInput, format::NpuUse_INPUT, *value.param,
                                     cat("input ", *value.param), arrange(value, type));
      } else if (value.output) {
        places_[v].region = add_slot(RegionKind::kOutput, format::NpuUse_OUTPUT, *value.output,
                                     cat("output ", *value.output), arrange(value, type));
      } else {
        inner.push_back(v);
        intervals.push_back({static_cast<uint64_t>(value.bytes()), value.first, value.last});
      }
    }
    if (!inner.empty()) place_in_scratch(inner, intervals);
    for (size_t v = 0; v < plan_.values.size(); ++v) places_[v] = places_[plan_.values[v].storage];
  }

  void place_in_scratch(const std::vector<size_t>& inner, std::span<const ScratchInterval> intervals) {
    const ScratchPlan scratch = plan_scratch(intervals);
    check_scratch(scratch, intervals);
    Arrangement arrangement;
    arrangement.size = scratch.bytes;
    const uint32_t slot =
        add_slot(RegionKind::kScratch, format::NpuUse_SCRATCH, 0, "scratch", std::move(arrangement));
    for (size_t i = 0; i < inner.size(); ++i) places_[inner[i]] = {slot, scratch.offsets[i]};
  }

  // All of one buffer: what goes beyond its end is the unit's that writes it.
  void check_scratch(const ScratchPlan& scratch, std::span<const ScratchInterval> intervals) const {
    for (size_t i = 0; i < intervals.size(); ++i) {
      const uint64_t end = scratch.offsets[i] + intervals[i].bytes;
      if (end <= static_cast<uint64_t>(kMaxBufferBytes)) continue;
      refuse(plan_.units[intervals[i].first], "vta.region.scratch",
             cat("what stays on the device between its layers takes ", scratch.bytes,
                 " bytes at a time, one buffer has ", kMaxBufferBytes),
             "use a smaller input, or pin some operators to the CPU");
    }
  }

  RegionPlace carry(const UnitRegion& unit_region) {
    const uint32_t alignment = carried_alignment(unit_region.blob_kind);
    const auto [at, is_new] =
        carried_.try_emplace({unit_region.blob_kind, unit_region.name}, regions_.size());
    const auto begin_of = [&, &at = at] {
      return (regions_[at->second].data.size() + alignment - 1) / alignment * alignment;
    };
    const bool is_full =
        !is_new && begin_of() + unit_region.data.size() > static_cast<size_t>(kMaxBufferBytes);
    if (is_new || is_full) {
      at->second = regions_.size();
      Region region;
      region.kind = unit_region.blob_kind;
      region.name = unit_region.name;
      region.alignment = alignment;
      regions_.push_back(std::move(region));
    }
    const size_t begin = begin_of();
    std::vector<uint8_t>& data = regions_[at->second].data;
    data.resize(begin);
    data.insert(data.end(), unit_region.data.begin(), unit_region.data.end());
    return {static_cast<uint32_t>(at->second), begin};
  }

  // ---- units
  CompiledUnit compile(const RegionUnit& unit) const {
    std::vector<ActivationLayout> inputs;
    for (const size_t value : unit.inputs) inputs.push_back(plan_.values[value].layout);
    return unit.plan.compile(config_, inputs, plan_.values[unit.output].layout);
  }

  Part make_part(const RegionUnit& unit, CompiledUnit compiled) {
    Part part;
    for (const UnitRegion& region : compiled.regions) {
      if (region.kind == UnitRegion::Kind::kCarried) {
        part.places.push_back(carry(region));
      } else {
        const bool is_input = region.kind == UnitRegion::Kind::kInput;
        part.places.push_back(places_[is_input ? unit.inputs[region.operand] : unit.output]);
      }
    }
    part.unit = std::move(compiled);
    return part;
  }

  void add(const RegionUnit& unit) {
    target::UnitCycles& cycles = result_.units.emplace_back();
    cycles.name = unit.plan.name;
    if (unit.plan.compile) {
      CompiledUnit compiled;
      if (attempts_.attempt(unit.node, [&] { compiled = compile(unit); })) {
        cycles.alu_instructions_per_tile = static_cast<uint64_t>(compiled.alu_instructions_per_tile);
        join(unit, std::move(compiled));
      }
    }
    ends_.push_back(joiner_.size());
  }

  void join(const RegionUnit& unit, CompiledUnit compiled) {
    std::vector<Part> parts;
    const RegionValue& output = plan_.values[unit.output];
    if (output.has_border()) {
      parts.push_back(make_part(unit, compile_border(config_, output.layout, output.border_value.value_or(0),
                                                     cat(compiled.name, " (border)"))));
    }
    parts.push_back(make_part(unit, std::move(compiled)));
    joiner_.add(parts);
  }

  CompiledRegion finish() {
    // The last unit has FINISH; renames after it have nothing.
    const size_t last = ends_.back();
    const Stream stream = joiner_.finish();
    std::ranges::replace(ends_, last, stream.instructions.size());
    const std::vector<uint64_t> times = cycles_at(config_, stream.instructions, ends_);
    for (size_t u = 0; u < times.size(); ++u)
      result_.units[u].cycles = times[u] - (u == 0 ? 0 : times[u - 1]);
    result_.cycles = times.back();
    result_.format = kBlobMagic;
    result_.program_bytes = stream.instructions.size() * kInstructionBytes;
    for (const Region& region : regions_) {
      if (region.data.empty()) continue;
      result_.program_bytes =
          (result_.program_bytes + region.alignment - 1) / region.alignment * region.alignment +
          region.data.size();
    }
    result_.blob = write_blob(config_, stream, regions_, result_.cycles);
    return std::move(result_);
  }

  const Config& config_;
  const ir::Function& region_;
  const RegionPlan plan_;
  std::vector<RegionPlace> places_;  // of values
  std::vector<Region> regions_;      // of the blob
  std::map<std::pair<RegionKind, std::string>, size_t> carried_;
  StreamJoiner joiner_;
  std::vector<size_t> ends_;  // instructions when each unit was joined
  NodeAttempts attempts_{"vta.region.unit", "use a configuration with larger memories"};
  CompiledRegion result_;
};

}  // namespace

CompiledRegion compile_region(const Config& config, const ir::Module& module, const ir::Function& region) {
  return RegionCompiler(config, module, region).run();
}

}  // namespace qplan::vta::compiler
