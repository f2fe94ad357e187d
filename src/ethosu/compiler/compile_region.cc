#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "src/ethosu/compiler/region.h"
#include "src/ethosu/compiler/target.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"

namespace qplan::ethosu::compiler {
namespace {

using target::CompiledRegion;
using target::RefusedNode;
using target::RegionRefused;

class RegionCompiler {
 public:
  RegionCompiler(const Config& config, uint64_t sram_bytes, const ir::Module& module,
                 const ir::Function& region)
      : config_(config),
        region_(region),
        copy_bytes_(own_bytes(sram_bytes, module, region, Waiting::kBesideItsBorder)),
        plan_(plan_region(config, module, region)),
        stream_(config) {
    choose_formats(config, &plan_);
    if (sram_bytes == 0) return;
    const uint64_t limit = own_bytes(sram_bytes, module, region, Waiting::kWhileItRuns);
    fit_into(limit);
    const uint64_t bytes = bytes_of(plan_);
    if (bytes <= limit) return;
    result_.warning = cat("its buffers take ", bytes, " bytes with the cascades that need least");
    if (limit != sram_bytes) {
      result_.warning += cat(" beside ", waiting_bytes(module, region, Waiting::kWhileItRuns),
                             " bytes of tensors that wait for other regions");
    }
    result_.warning += cat(", sram= allows ", sram_bytes);
  }

  CompiledRegion run() {
    // Constants are not placed among the values: their region's size does not matter here.
    placement_ = place_values(plan_, 0);
    std::vector<RefusedNode> refused;
    auto cascade = cascades_.begin();
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const bool is_cascade = cascade != cascades_.end() && cascade->first == u;
      try {
        is_cascade ? plan_cascade(*cascade) : plan_unit(at_ = u);
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        refused.push_back({plan_.units[at_].node,
                           {"ethosu.region.unit", error.what(), "use a configuration with more SHRAM"}});
      }
      if (is_cascade) u = cascade++->last;
    }
    if (!refused.empty()) throw RegionRefused(std::move(refused));
    write();
    return finish();
  }

 private:
  // What is left of the limit beside other regions' values. 0: there is no limit.
  static uint64_t own_bytes(uint64_t sram_bytes, const ir::Module& module, const ir::Function& region,
                            Waiting which) {
    if (sram_bytes == 0) return 0;
    const uint64_t waiting = waiting_bytes(module, region, which);
    return sram_bytes > waiting ? sram_bytes - waiting : 1;
  }

  // Inputs, outputs and scratch memory, each at a multiple of 64 bytes as in the plan.
  static uint64_t bytes_of(const Placement& placement) {
    uint64_t bytes = 0;
    for (const BlobRegion& region : placement.regions) bytes += plan_aligned(region.bytes);
    return bytes;
  }
  static uint64_t bytes_of(const RegionPlan& plan) { return bytes_of(place_values(plan, 0)); }

  // Values that are placed need more memory than what is in use at a time: then the limit is lowered by that.
  void fit_into(uint64_t sram_bytes) {
    constexpr int kTries = 8;
    const RegionPlan whole = plan_;
    uint64_t limit = sram_bytes, least = bytes_of(whole);
    for (int i = 0; i < kTries && least > sram_bytes; ++i) {
      RegionPlan plan = whole;
      std::vector<Cascade> cascades = choose_cascades(config_, limit, &plan);
      const uint64_t bytes = bytes_of(plan);
      if (bytes < least) least = bytes, plan_ = std::move(plan), cascades_ = std::move(cascades);
      if (bytes <= sram_bytes || bytes - sram_bytes >= limit) break;
      limit -= bytes - sram_bytes;
    }
  }

  // ---- operations, with constants that are drafts

  void plan_unit(size_t u) {
    const RegionUnit& unit = plan_.units[u];
    (void)cycles_of(unit);
    if (unit.is_renamed) return;
    if (!unit.unit.emit) {
      // A reshape between two tensors that are known outside: in the shape of the result.
      const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
      FeatureMap from = outputs[0];
      from.region = inputs[0].region;
      std::copy(inputs[0].base, inputs[0].base + 4, from.base);
      std::vector<Operation> operations;
      StreamWriter stream(config_, &operations);
      add_kernel({config_, inputs, outputs, drafts_, stream, false}, unit.unit.name,
                 copy_kernel(from, outputs[0]));
      return add(u, std::move(operations), {});
    }
    std::vector<Operation> operations = operations_of(unit, {}), fast;
    const auto* const kernel = std::get_if<Kernel>(operations.data());
    const bool is_layer = kernel != nullptr && kernel->is_convolution();
    if (is_layer) {
      const auto block_of = [](const Operation& operation) {
        const auto& k = std::get<Kernel>(operation);
        return std::tuple(k.block_h, k.block_w, k.block_d, k.is_part_kernel_first);
      };
      fast = operations_of(unit, {.is_estimate = true, .has_fast_weights = true});
      if (block_of(fast[0]) == block_of(operations[0])) {
        fast.clear();
      } else {
        fast = operations_of(unit, {.has_fast_weights = true});
      }
    }
    add(u, std::move(operations), fast);
    if (is_layer) add_slicings(unit, &operations_.back());
  }

  // Where a layer with its weights in fast memory takes fewer cycles: a half, a quarter, an eighth of its
  // output channels at a time.
  void add_slicings(const RegionUnit& unit, PlannedOperation* planned) {
    const Memories memories = default_memories(config_);
    const auto cycles = [&](const Kernel& k) { return operation_cost(config_, memories, k).cycles(); };
    const Kernel& kernel = *planned->convolution();
    if (cycles(with_weights_at(planned->fast_kernel(), Placement::kScratch, 0)) >= cycles(kernel)) return;
    uint32_t before = kernel.ofm.d;
    for (const uint32_t parts : {2, 4, 8}) {
      const uint32_t depth = round_up(ceil_div(kernel.ofm.d, parts), 16);
      if (depth >= before) continue;
      before = depth;
      std::vector<Kernel>& slicing = planned->slicings.emplace_back();
      for (Operation& slice : operations_of(unit, {.has_fast_weights = true, .slice_depth = depth}))
        slicing.push_back(std::get<Kernel>(std::move(slice)));
    }
  }

  struct Wanted {
    bool is_estimate = false, has_fast_weights = false;
    uint32_t block_rows = 0, slice_depth = 0;
  };
  std::vector<Operation> operations_of(const RegionUnit& unit, const Wanted& wanted) {
    const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
    std::vector<Operation> operations;
    StreamWriter stream(config_, &operations);
    unit.unit.emit({config_, inputs, outputs, drafts_, stream, wanted.is_estimate, wanted.block_rows, scratch,
                    wanted.has_fast_weights, wanted.slice_depth});
    return operations;
  }

  void add(size_t u, std::vector<Operation> operations, const std::vector<Operation>& fast) {
    const uint32_t node = plan_.units[u].node;
    for (size_t i = 0; i < operations.size(); ++i) {
      PlannedOperation& planned = operations_.emplace_back();
      planned.operation = std::move(operations[i]);
      if (!fast.empty()) planned.fast = std::get<Kernel>(fast[i]);
      planned.unit = u;
      planned.first_node = planned.last_node = node;
    }
  }

  // The kernel of a unit of a cascade, as a whole; its block is for so many rows at a time.
  Kernel whole_kernel(const RegionUnit& unit, const Wanted& wanted) {
    return std::get<Kernel>(operations_of(unit, wanted).at(0));
  }

  void plan_cascade(const Cascade& cascade) {
    std::vector<Kernel> kernels;
    for (at_ = cascade.first; at_ <= cascade.last; ++at_)
      kernels.push_back(whole_kernel(plan_.units[at_], {.is_estimate = true, .has_fast_weights = true}));
    const std::vector<CascadeStep> steps = cascade_steps(cascade, kernels);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const RegionUnit& unit = plan_.units[at_ = cascade.first + i];
      kernels[i] = whole_kernel(unit, {.has_fast_weights = true, .block_rows = usual_rows(steps, i)});
    }
    std::map<std::tuple<size_t, uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> extents;
    for (const CascadeStep& step : steps) {
      const size_t i = step.index;
      at_ = cascade.first + i;
      // Which of the kernel's inputs is the value between it and the unit before.
      const auto rows_of = [&](const FeatureMap& map) -> uint32_t {
        if (i == 0) return 0;
        const FeatureMap& between = kernels[i - 1].ofm;
        const bool is_it = map.region == between.region && map.base[0] == between.base[0];
        return is_it ? cascade.buffer_rows[i - 1] : 0;
      };
      const std::string& name = cycles_of(plan_.units[at_]).name;
      Kernel k = kernel_of_rows(kernels[i], step.output, rows_of(kernels[i].ifm), rows_of(kernels[i].ifm2),
                                i + 1 < kernels.size() ? cascade.buffer_rows[i] : 0);
      const auto [extent, is_new] = extents.try_emplace({i, k.ofm.h, k.ifm.h});
      if (is_new) {
        if (!choose_block_extent(config_, &k))
          refuse_unit(name, "no block of its rows fits the device's SHRAM");
        extent->second = {k.block_h, k.block_w};
      }
      std::tie(k.block_h, k.block_w) = extent->second;
      PlannedOperation& planned = operations_.emplace_back();
      planned.operation = std::move(k);
      planned.unit = at_;
      planned.first_node = plan_.units[cascade.first].node;
      planned.last_node = plan_.units[cascade.last].node;
      planned.is_in_cascade = true;
    }
  }

  // ---- the stream

  void write() {
    const uint64_t others = bytes_of(placement_) - plan_aligned(placement_.scratch_bytes);
    std::vector<WeightCopy> copies;
    if (placement_.scratch_bytes > 0) {
      // Without a limit, what the values need anyway.
      const uint64_t room =
          copy_bytes_ > others ? (copy_bytes_ - others) / kPlanAlignment * kPlanAlignment : 0;
      copies = choose_weight_copies(config_, plan_, placement_, operations_,
                                    std::max(placement_.scratch_bytes, room));
    }
    for (const WeightCopy& copy : copies) placement_.grow_scratch(copy.offset + copy.bytes);
    if (config_.is_u65) pointers_ = placement_.make_room_for_fast_memory();
    std::map<size_t, size_t> first;  // operation of a unit
    for (size_t i = operations_.size(); i-- > 0;) first[operations_[i].unit] = i;
    visit_stream(
        operations_, copies,
        [&](const WeightCopy& copy, size_t slice) {
          const PlannedOperation& planned = operations_[first[copy.unit]];
          const ByteRange from = constants_of(planned.unit, slice, sliced_kernel(planned, copy, slice));
          add(planned, Transfer{from, false, {Placement::kScratch, copy.slice_offset(slice), from.bytes}});
        },
        [&](size_t i, const WeightCopy* copy, size_t slice) {
          const PlannedOperation& planned = operations_[i];
          if (const auto* const transfer = std::get_if<Transfer>(&planned.operation)) {
            Transfer moved = *transfer;
            moved.from = constants_.add(draft(transfer->from));
            return add(planned, moved);
          }
          if (planned.convolution() == nullptr) return add(planned, with_constants(planned));
          if (copy != nullptr)
            return add(planned, with_weights_at(sliced_kernel(planned, *copy, slice), Placement::kScratch,
                                                copy->slice_offset(slice)));
          const Kernel& kernel = *planned.convolution();
          const ByteRange at = constants_of(planned.unit, 0, kernel);
          add(planned, with_weights_at(kernel, at.region, at.begin));
        });
  }

  // The kernel, whose operands may be constants.
  Kernel with_constants(const PlannedOperation& planned) {
    Kernel kernel = std::get<Kernel>(planned.operation);
    for (FeatureMap* const map : {&kernel.ifm, &kernel.ifm2}) {
      if (map->region != ConstantData::kRegion || (map == &kernel.ifm2 && !kernel.has_ifm2)) continue;
      ByteRange ranges[4];
      (void)tile_ranges(*map, ranges);
      map->base[0] = constants_.add(draft(ranges[0])).begin;
    }
    return kernel;
  }

  std::span<const uint8_t> draft(const ByteRange& range) const {
    return std::span(drafts_.bytes()).subspan(range.begin, range.bytes);
  }
  // Where the weights and scales of a unit, or of a slice of it, are, one after the other.
  ByteRange constants_of(size_t unit, size_t slice, const Kernel& kernel) {
    const auto [at, is_new] = weights_.try_emplace({unit, slice});
    if (!is_new) return at->second;
    std::vector<uint8_t> bytes;
    for (uint32_t core = 0; core < kernel.cores; ++core) {
      for (const ByteRange& range : {kernel.weights[core], kernel.scales[core]}) {
        const auto part = draft(range);
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    }
    return at->second = constants_.add(bytes);
  }

  template <typename T>
  void add(const PlannedOperation& planned, const T& operation) {
    target::UnitCycles& cycles = cycles_of(plan_.units[planned.unit]);
    const uint64_t before = stream_.cycles();
    label(cycles.name, planned.is_in_cascade ? kMaxLabels / 2 : kMaxLabels);
    stream_.add(with_pointers(operation));
    cycles.cycles += stream_.cycles() - before;
  }

  // The operation with base pointers in the place of the placement's regions.
  Kernel with_pointers(Kernel kernel) const {
    for (FeatureMap* const map : {&kernel.ifm, &kernel.ifm2, &kernel.ofm})
      map->region = pointers_[map->region];
    for (uint32_t core = 0; core < kernel.cores; ++core) {
      for (ByteRange* const range : {&kernel.weights[core], &kernel.scales[core]})
        range->region = pointers_[range->region];
    }
    return kernel;
  }
  Transfer with_pointers(Transfer transfer) const {
    transfer.from.region = pointers_[transfer.from.region];
    if (!transfer.to_shram) transfer.to.region = pointers_[transfer.to.region];
    return transfer;
  }

  // Once for operations of one name that follow each other; beyond so many labels there are no more.
  void label(const std::string& name, size_t most) {
    const bool is_other = stream_.labels().empty() || stream_.labels().back().name != name;
    if (is_other && stream_.labels().size() < most) stream_.label(name);
  }

  // What the unit's node takes, which may have several units.
  target::UnitCycles& cycles_of(const RegionUnit& unit) {
    if (result_.units.size() <= unit.node) result_.units.resize(unit.node + 1);
    result_.units[unit.node].name = unit.unit.name;
    return result_.units[unit.node];
  }

  // The rows that most steps of a unit have.
  static uint32_t usual_rows(const std::vector<CascadeStep>& steps, size_t index) {
    std::map<uint32_t, uint32_t> counts;
    for (const CascadeStep& step : steps) {
      if (step.index == index) ++counts[step.output.end - step.output.begin];
    }
    return std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  }

  CompiledRegion finish() {
    BlobParts parts;
    parts.regions = placement_.regions;
    parts.regions[0].bytes = constants_.bytes().size();
    parts.slots = placement_.slots;
    parts.constants = constants_.bytes();
    result_.cycles = std::max<uint64_t>(1, stream_.cycles());
    parts.cycles = stream_.total_cycles();
    parts.labels = stream_.labels();
    parts.payload = payload_of(config_, stream_.finish());
    if (parts.payload.size() > kMaxStreamBytes)
      throw RegionRefused(
          0, {"ethosu.region.stream", cat("a command stream of ", parts.payload.size(), " bytes"),
              "pin some operators to the CPU"});
    result_.format = kBlobMagic;
    result_.program_bytes = parts.payload.size() + parts.constants.size();
    for (const BlobRegion& region : parts.regions) {
      if (region.kind == static_cast<uint32_t>(RegionKind::kArena)) result_.program_bytes += region.bytes;
    }
    result_.slots = placement_.plan_slots;
    state_memories(default_memories(config_), &parts, &result_.slots);
    result_.memory_class = static_cast<format::MemoryClass>(parts.regions[0].memory_class);
    result_.blob = write_blob(config_, parts);
    check();
    return std::move(result_);
  }

  // The loader's own checks, hazards too.
  void check() const {
    Blob blob;
    qplan_npu_reason why = {};
    if (read_blob(result_.blob.data(), result_.blob.size(), config_, &blob, &why) == QPLAN_NPU_OK) return;
    throw PackError(QPLAN_INTERNAL, cat("ethosu: region '", region_.name(), "': ", why.text, " at word ",
                                        why.place, " (", why.actual, ", ", why.limit, ")"));
  }

  const Config& config_;
  const ir::Function& region_;
  const uint64_t copy_bytes_;  // of the region, with copies of weights
  RegionPlan plan_;
  std::vector<Cascade> cascades_;
  Placement placement_;
  Placement::BasePointers pointers_ = {0, 1, 2, 3, 4, 5, 6, 7};
  ConstantData drafts_;  // of all operations that were thought of
  std::vector<PlannedOperation> operations_;
  std::map<std::pair<size_t, size_t>, ByteRange> weights_;  // of units' slices, in constants_
  ConstantData constants_;
  StreamWriter stream_;
  size_t at_ = 0;  // the unit whose kernels are made
  CompiledRegion result_;
};

}  // namespace

CompiledRegion compile_region(const Config& config, uint64_t sram_bytes, const ir::Module& module,
                              const ir::Function& region) {
  const ir::Node& first = region.nodes()[0];
  if (first.op != nullptr && first.op->name == op::kProgramOperator) return compile_program(config, region);
  return RegionCompiler(config, sram_bytes, module, region).run();
}

}  // namespace qplan::ethosu::compiler
