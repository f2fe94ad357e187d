#include <algorithm>

#include "src/ethosu/compiler/blob_writer.h"
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
  RegionCompiler(const Config& config, const ir::Module& module, const ir::Function& region)
      : config_(config), region_(region), plan_(plan_region(config, module, region)), stream_(config) {}

  CompiledRegion run() {
    // Constants are not placed among the values: their region's size does not matter here.
    placement_ = place_values(plan_, 0);
    std::vector<RefusedNode> refused;
    for (const RegionUnit& unit : plan_.units) {
      try {
        emit(unit);
      } catch (const PackError& error) {
        if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
        refused.push_back(
            {unit.node, {"ethosu.region.unit", error.what(), "use a configuration with more SHRAM"}});
      }
    }
    if (!refused.empty()) throw RegionRefused(std::move(refused));
    return finish();
  }

 private:
  void emit(const RegionUnit& unit) {
    target::UnitCycles& cycles = result_.units.emplace_back();
    cycles.name = unit.unit.name;
    if (unit.is_renamed) return;
    std::vector<FeatureMap> inputs, outputs;
    for (const size_t v : unit.inputs) inputs.push_back(map_of(plan_, placement_, v));
    for (const size_t v : unit.outputs) outputs.push_back(map_of(plan_, placement_, v));
    const uint64_t before = stream_.cycles();
    stream_.label(unit.unit.name);
    if (unit.unit.emit) {
      unit.unit.emit({config_, inputs, outputs, constants_, stream_, false});
    } else {
      // A reshape between two tensors that are known outside: in the shape of the result.
      FeatureMap from = outputs[0];
      from.region = inputs[0].region;
      std::copy(inputs[0].base, inputs[0].base + 4, from.base);
      add_kernel({config_, inputs, outputs, constants_, stream_, false}, unit.unit.name,
                 copy_kernel(from, outputs[0]));
    }
    cycles.cycles = stream_.cycles() - before;
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
  const RegionPlan plan_;
  Placement placement_;
  ConstantData constants_;
  StreamWriter stream_;
  CompiledRegion result_;
};

}  // namespace

CompiledRegion compile_region(const Config& config, uint64_t /*sram_bytes*/, const ir::Module& module,
                              const ir::Function& region) {
  const ir::Node& first = region.nodes()[0];
  if (first.op != nullptr && first.op->name == op::kProgramOperator) return compile_program(config, region);
  return RegionCompiler(config, module, region).run();
}

}  // namespace qplan::ethosu::compiler
