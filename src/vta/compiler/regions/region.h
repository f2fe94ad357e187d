// A region of a module as one program for VTA: its units, one layout for each value between them, the units'
// streams as one.
#ifndef QPLAN_SRC_VTA_COMPILER_REGIONS_REGION_H_
#define QPLAN_SRC_VTA_COMPILER_REGIONS_REGION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/target/region.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/layout.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

using target::Arrangement;
using target::CompiledRegion;
using target::NodeAttempts;
using target::RegionRefused;

// A parameter of the region's function or a result of one of its nodes.
struct RegionValue {
  ir::ValueId id;  // of the region's function
  std::string name;
  // The border is the widest of its readers'.
  ActivationLayout layout;
  // What the border holds; nullopt: it matters to nobody.
  std::optional<int8_t> border_value;
  bool is_unsigned = false, is_int32 = false;
  std::optional<uint32_t> param, output;  // of the region's function
  // The value whose bytes it shares: itself, or of what renames join the one that crosses the region's
  // border, else the first. first and last of one in scratch are those of all that lie there.
  size_t storage = 0;
  uint32_t first = 0, last = 0;  // units that write it and read it; without reader: the writer

  bool has_border() const {
    return layout.top != 0 || layout.left != 0 || layout.bottom != 0 || layout.right != 0;
  }
  int64_t bytes() const { return layout.bytes() * (is_int32 ? 4 : 1); }
};

struct RegionUnit {
  uint32_t node = 0;  // of the region's function
  UnitPlan plan;
  std::vector<size_t> inputs;  // values, one for each of plan.inputs
  size_t output = 0;
};

struct RegionPlan {
  std::vector<RegionUnit> units;
  std::vector<RegionValue> values;
};

// RegionRefused for a node that has no unit, or whose demands on a value cannot be met together with others'.
RegionPlan plan_region(const Config& config, const ir::Module& module, const ir::Function& region);

// ---- streams of units, one after the other, as one stream
//
// Between two units there is a barrier: a no-op of the compute module takes the token of the last STORE,
// which FINISH would have taken, and gives one to the load module, whose first LOAD of an activation takes
// it. So nothing of a unit's data is read or overwritten before it is complete in DRAM. Weights are no unit's
// data: what a unit loads of them before its first activation waits only for the last GEMM before the
// barrier.

// What a region of a unit becomes: bytes from `offset` on of a region of the blob. A multiple of the size of
// every element that the unit transfers there.
struct RegionPlace {
  uint32_t region = 0;
  uint64_t offset = 0;
};

// A stream with the places of its regions.
struct Part {
  CompiledUnit unit;
  std::vector<RegionPlace> places;
};

class StreamJoiner {
 public:
  // Parts of one step: they do not read each other's data, so that the LOADs of all of them wait for the step
  // before only.
  void add(std::span<const Part> parts);
  // At least one step was added.
  Stream finish();
  // Instructions so far, without FINISH.
  size_t size() const { return stream_.instructions.size(); }

 private:
  void add_part(const Part& part, bool waits_for_stores, bool gives_to_loads, bool waits_for_token);

  Stream stream_;
  // The last GEMM that reads WGT, since the load module last took a barrier's token.
  std::optional<size_t> last_gemm_;
};

// ---- the program

// region: a function of the module whose nodes are operators or calls of composites of the target's table.
// Values between its nodes stay in the device's memory, in one scratch buffer; inputs and outputs are buffers
// of their own. RegionRefused names a node that the device cannot take: vta.region.unit (no compiler, or it
// does not fit), vta.region.layout, vta.region.border_value, vta.region.buffer, vta.region.scratch.
CompiledRegion compile_region(const Config& config, const ir::Module& module, const ir::Function& region);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_REGIONS_REGION_H_
