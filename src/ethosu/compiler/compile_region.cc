#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "src/ethosu/compiler/blob_writer.h"
#include "src/ethosu/compiler/block_choice.h"
#include "src/ethosu/compiler/cascade.h"
#include "src/ethosu/compiler/program.h"
#include "src/ethosu/compiler/region.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/program.h"

namespace qplan::ethosu::compiler {
namespace {

using target::CompiledRegion;
using target::RefusedNode;
using target::RegionRefused;

class RegionCompiler {
 public:
  RegionCompiler(const Config& config, uint64_t sram_bytes, const ir::Module& module,
                 const ir::Function& region)
      : config_(config), region_(region), plan_(plan_region(config, module, region)), stream_(config) {
    if (sram_bytes == 0) return;
    fit_into(sram_bytes);
    const uint64_t bytes = bytes_of(plan_);
    if (bytes > sram_bytes)
      result_.warning = cat("its buffers take ", bytes,
                            " bytes with the cascades that need least, sram= allows ", sram_bytes);
  }

  CompiledRegion run() {
    // Constants are not placed among the values: their region's size does not matter here.
    placement_ = place_values(plan_, 0);
    std::vector<RefusedNode> refused;
    auto cascade = cascades_.begin();
    for (size_t u = 0; u < plan_.units.size(); ++u) {
      const bool is_cascade = cascade != cascades_.end() && cascade->first == u;
      try {
        is_cascade ? emit(*cascade) : emit(plan_.units[at_ = u]);
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        refused.push_back({plan_.units[at_].node,
                           {"ethosu.region.unit", error.what(), "use a configuration with more SHRAM"}});
      }
      if (is_cascade) u = cascade++->last;
    }
    if (!refused.empty()) throw RegionRefused(std::move(refused));
    return finish();
  }

 private:
  // Inputs, outputs and scratch memory, each at a multiple of 64 bytes as in the plan.
  static uint64_t bytes_of(const RegionPlan& plan) {
    constexpr uint64_t kAlignment = 64;
    uint64_t bytes = 0;
    for (const BlobRegion& region : place_values(plan, 0).regions)
      bytes += (region.bytes + kAlignment - 1) / kAlignment * kAlignment;
    return bytes;
  }

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

  void emit(const RegionUnit& unit) {
    target::UnitCycles& cycles = cycles_of(unit);
    if (unit.is_renamed) return;
    const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
    const uint64_t before = stream_.cycles();
    label(unit.unit.name, kMaxLabels);
    if (unit.unit.emit) {
      unit.unit.emit({config_, inputs, outputs, constants_, stream_, false, 0, scratch});
    } else {
      // A reshape between two tensors that are known outside: in the shape of the result.
      FeatureMap from = outputs[0];
      from.region = inputs[0].region;
      std::copy(inputs[0].base, inputs[0].base + 4, from.base);
      add_kernel({config_, inputs, outputs, constants_, stream_, false}, unit.unit.name,
                 copy_kernel(from, outputs[0]));
    }
    cycles.cycles += stream_.cycles() - before;
  }

  // Once for kernels of one name that follow each other; beyond so many labels there are no more.
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

  // The kernel of a unit of a cascade, as a whole; its block is for so many rows at a time.
  Kernel whole_kernel(const RegionUnit& unit, bool is_estimate, uint32_t block_rows) {
    const auto [inputs, outputs, scratch] = maps_of(plan_, placement_, unit);
    std::vector<Kernel> kernels;
    StreamWriter stream(config_, &kernels);
    unit.unit.emit({config_, inputs, outputs, constants_, stream, is_estimate, block_rows, scratch});
    return kernels.at(0);
  }

  void emit(const Cascade& cascade) {
    std::vector<Kernel> kernels;
    for (at_ = cascade.first; at_ <= cascade.last; ++at_)
      kernels.push_back(whole_kernel(plan_.units[at_], true, 0));
    const std::vector<CascadeStep> steps = cascade_steps(cascade, kernels);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const RegionUnit& unit = plan_.units[at_ = cascade.first + i];
      kernels[i] = whole_kernel(unit, false, usual_rows(steps, i));
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
      target::UnitCycles& cycles = cycles_of(plan_.units[at_]);
      const std::string& name = cycles.name;
      Kernel k = kernel_of_rows(kernels[i], step.output, rows_of(kernels[i].ifm), rows_of(kernels[i].ifm2),
                                i + 1 < kernels.size() ? cascade.buffer_rows[i] : 0);
      const auto [extent, is_new] = extents.try_emplace({i, k.ofm.h, k.ifm.h});
      if (is_new) {
        if (!choose_block_extent(config_, &k))
          refuse_unit(name, "no block of its rows fits the device's SHRAM");
        extent->second = {k.block_h, k.block_w};
      }
      std::tie(k.block_h, k.block_w) = extent->second;
      const uint64_t before = stream_.cycles();
      label(name, kMaxLabels / 2);
      stream_.add(k);
      cycles.cycles += stream_.cycles() - before;
    }
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
  RegionPlan plan_;
  std::vector<Cascade> cascades_;
  Placement placement_;
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
