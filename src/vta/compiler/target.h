// VTA, the Versatile Tensor Accelerator, as a target: which composites it takes, under which conditions, how
// each becomes a unit, and how the units of a region become one program.
#ifndef QPLAN_SRC_VTA_COMPILER_TARGET_H_
#define QPLAN_SRC_VTA_COMPILER_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/stream.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta::compiler {

using target::append;
using target::Arrangement;
using target::Candidate;
using target::CompiledRegion;
using target::Constraint;
using target::kNothingToChange;
using target::kQuantizeTo8Bits;
using target::kRunThePasses;
using target::NodeAttempts;
using target::product;
using target::RegionRefused;
using Rows = std::vector<Constraint>;

// ---- constraints: under which conditions VTA computes a matched layer, to the bit, the rows of
// docs/supported_ops.md. Limits come from the fields of instructions, from the sizes of the memories, and
// from the ALU's sequence for TFL2.
//
// A condition is one row: id, requirement, hint, and what stands against it. It goes into the list of each
// composite that it holds for: constraints/weighted.cc has the layers of weights, constraints/alu.cc the
// other operators.

Rows conv2d_constraints(const Config& config);
Rows depthwise_constraints(const Config& config);
Rows dense_constraints(const Config& config);
// The same layers with int32 results, which the CPU requantises.
Rows conv2d_acc32_constraints(const Config& config);
Rows dense_acc32_constraints(const Config& config);
Rows add_constraints(const Config& config);
Rows max_pool2d_constraints(const Config& config);
Rows avg_pool2d_constraints(const Config& config);
Rows mean_constraints(const Config& config);
Rows clip_constraints(const Config& config);
Rows reshape_constraints(const Config& config);

// ---- what rows of several composites share

inline constexpr const char* kOtherMemories = "a configuration with larger memories takes it";

// The geometry of "product", "pool" or "mean". With an nn.pad before the layer, the input is the pad's
// result.
Geometry geometry_of(const Candidate& candidate);

// prefix: "vta.conv2d."
Constraint batch(const std::string& prefix);
// Rows of activations are reached by the 16-bit strides of LOAD and STORE.
Constraint row_stride(const std::string& prefix);
Constraint stride(const std::string& prefix, const Config& config);
// weight_bytes: in the device's layout.
Constraint buffers(const std::string& prefix, int64_t (*weight_bytes)(const Candidate&));
// What lets the device requantise the result of the node captured as `op`.
Rows requantization(const Config& config, const std::string& op);

// ---- the table of composites, and the target

struct Row {
  std::string_view composite;  // of target::composites()
  std::string_view note;       // for docs: how the device does it; may be ""
  Rows (*constraints)(const Config& config);
  UnitReader read;
};
std::span<const Row> rows();
std::vector<target::PatternRow> pattern_table(const Config& config);

// "vta": options sram= and mul=, memories uop, wgt, inp and acc. The costs are the configuration's, the
// priority is the default.
target::TargetKind target_kind();
target::Target make_target(const Config& config);
// What options and sizes of memories stand for. PackError (QPLAN_INVALID_ARGUMENT).
Config read_config(const target::TargetOptions& options, const std::optional<target::MemorySizes>& memories);

// ---- a region of a module as units, with one layout for each value between them

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

#endif  // QPLAN_SRC_VTA_COMPILER_TARGET_H_
