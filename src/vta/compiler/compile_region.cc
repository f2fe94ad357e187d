#include "src/vta/compiler/compile_region.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/packer/ir/cat.h"
#include "src/vta/compiler/blob_writer.h"
#include "src/vta/compiler/border.h"
#include "src/vta/compiler/join.h"
#include "src/vta/compiler/region_plan.h"
#include "src/vta/compiler/scratch.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

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
      throw PackError(QPLAN_INTERNAL, cat("vta: '", value.name, "' of ", type, " does not lie as rows of ",
                                          layout.w, " positions"));
  }
  result.origin = static_cast<uint64_t>(layout.element(0, 0) * kInpBytes);
  result.byte_stride = value.is_int32 ? static_cast<uint64_t>(layout.bytes()) : 1;
  result.size = static_cast<uint64_t>(value.bytes());
  result.fill = static_cast<uint8_t>(value.border_value.value_or(0));
  result.flip = value.is_unsigned ? 0x80 : 0;
  return result;
}

uint32_t carried_alignment(isa::RegionKind kind) {
  return kind == isa::RegionKind::kWeights ? static_cast<uint32_t>(kWgtBytes)
                                           : static_cast<uint32_t>(kAccBytes);
}

class RegionCompiler {
 public:
  RegionCompiler(const Config& config, const ir::Module& module, const ir::Function& region)
      : config_(config), region_(region), plan_(plan_region(config, module, region)) {}

  CompiledRegion run() {
    place_values();
    for (const RegionUnit& unit : plan_.units) add(unit);
    if (!refused_.empty()) throw RegionRefused(std::move(refused_));
    return finish();
  }

 private:
  [[noreturn]] static void refuse(const RegionUnit& unit, const char* id, std::string text,
                                  std::string hint) {
    throw RegionRefused(unit.node, {id, std::move(text), std::move(hint)});
  }

  // ---- buffers
  uint32_t add_slot(isa::RegionKind kind, format::NpuUse use, uint32_t index, const std::string& name,
                    Arrangement arrangement) {
    Region region;
    region.kind = kind;
    region.name = name;
    region.bytes = arrangement.size;
    region.alignment = kBufferAlignment;
    const auto slot = static_cast<uint32_t>(regions_.size());
    regions_.push_back(std::move(region));
    result_.slots.push_back({slot, use, index, std::move(arrangement), kBufferAlignment});
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
        places_[v].region = add_slot(isa::RegionKind::kInput, format::NpuUse_INPUT, *value.param,
                                     cat("input ", *value.param), arrange(value, type));
      } else if (value.output) {
        places_[v].region = add_slot(isa::RegionKind::kOutput, format::NpuUse_OUTPUT, *value.output,
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
        add_slot(isa::RegionKind::kScratch, format::NpuUse_SCRATCH, 0, "scratch", std::move(arrangement));
    for (size_t i = 0; i < inner.size(); ++i) places_[inner[i]] = {slot, scratch.offsets[i]};
  }

  // All of one buffer: what goes beyond its end is the unit's that writes it.
  void check_scratch(const ScratchPlan& scratch, std::span<const ScratchInterval> intervals) const {
    for (size_t i = 0; i < intervals.size(); ++i) {
      const uint64_t end = scratch.offsets[i] + intervals[i].bytes;
      if (end <= static_cast<uint64_t>(kMaxBufferBytes)) continue;
      refuse(plan_.units[intervals[i].first], "vta.region.scratch",
             cat("what stays on the device between its units takes ", scratch.bytes,
                 " bytes at a time, one buffer holds ", kMaxBufferBytes),
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
  // nullopt: refused.
  std::optional<CompiledUnit> compile(const RegionUnit& unit) {
    std::vector<ActivationLayout> inputs;
    for (const size_t value : unit.inputs) inputs.push_back(plan_.values[value].layout);
    try {
      return unit.plan.compile(config_, inputs, plan_.values[unit.output].layout);
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      refused_.push_back(
          {unit.node, {"vta.region.unit", error.what(), "use a configuration with larger memories"}});
      return std::nullopt;
    }
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
    UnitCycles& cycles = result_.units.emplace_back();
    cycles.name = unit.plan.name;
    if (unit.plan.compile) {
      if (std::optional<CompiledUnit> compiled = compile(unit)) {
        cycles.alu_instructions_per_tile = static_cast<uint64_t>(compiled->alu_instructions_per_tile);
        join(unit, *std::move(compiled));
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
    // The last unit has FINISH; renames behind it have nothing.
    const size_t last = ends_.back();
    const Stream stream = joiner_.finish();
    std::ranges::replace(ends_, last, stream.instructions.size());
    const std::vector<uint64_t> times = cycles_at(config_, stream.instructions, ends_);
    for (size_t u = 0; u < times.size(); ++u)
      result_.units[u].cycles = times[u] - (u == 0 ? 0 : times[u - 1]);
    result_.cycles = times.back();
    result_.format = isa::kBlobMagic;
    result_.program_bytes = stream.instructions.size() * isa::kInstructionBytes;
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
  std::map<std::pair<isa::RegionKind, std::string>, size_t> carried_;
  StreamJoiner joiner_;
  std::vector<size_t> ends_;  // instructions when each unit was joined
  std::vector<RefusedNode> refused_;
  CompiledRegion result_;
};

}  // namespace

CompiledRegion compile_region(const Config& config, const ir::Module& module, const ir::Function& region) {
  return RegionCompiler(config, module, region).run();
}

}  // namespace qplan::target::vta
