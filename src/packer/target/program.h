// A lowered function: tensors and steps as the plan will hold them, before memory is planned; and lowering,
// which makes it of a canonical function.
#ifndef QPLAN_SRC_PACKER_TARGET_PROGRAM_H_
#define QPLAN_SRC_PACKER_TARGET_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "src/packer/ir/module.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/region.h"
#include "src/packer/target/target.h"

namespace qplan::target {

// The parameters of a step as values: one struct for each table of parameters in format/plan.fbs.
// step_params.def lists their fields; src/packer/target/pack_step.cc writes them.

// Float requantisation beside multipliers and shifts (format/README.md, "Float requantisation"). The vectors
// are empty under FloatEpilogue_NONE.
struct FloatEpilogues {
  format::FloatEpilogue form = format::FloatEpilogue_NONE;
  std::vector<float> scale;
  std::vector<float> offset;
  bool operator==(const FloatEpilogues&) const = default;
};

using op::CustomOption;

#define QPLAN_PARAMS(table) struct table {
#define QPLAN_FIELD(type, name, shown) type name = {};
#define QPLAN_FLOAT_EPILOGUES(name) FloatEpilogues name = {};
#define QPLAN_PARAMS_END(table)                  \
  bool operator==(const table&) const = default; \
  }                                              \
  ;
#include "src/packer/target/step_params.def"

// The number of a table in the schema's union.
template <typename Table>
inline constexpr format::KernelParams kParamsType = format::KernelParams_NONE;
#define QPLAN_PARAMS(table)                                  \
  template <>                                                \
  inline constexpr format::KernelParams kParamsType<table> = \
      format::KernelParamsTraits<format::table>::enum_value;
#include "src/packer/target/step_params.def"

// One of the tables, or none. Copies share what they hold, which never changes. It is no std::variant: that
// would compile a copy and a comparison of every table again in each file that copies a step.
class StepParams {
 public:
  StepParams() = default;
  template <typename Table, format::KernelParams kType = kParamsType<Table>>
  requires(kType != format::KernelParams_NONE) StepParams(Table table)
      : type_(kType), table_(std::make_shared<const Table>(std::move(table))) {}

  format::KernelParams type() const { return type_; }
  // Null where it is another table.
  template <typename Table>
  const Table* get_if() const {
    return type_ == kParamsType<Table> ? static_cast<const Table*>(table_.get()) : nullptr;
  }
  // Equal tables of the same type.
  bool operator==(const StepParams& other) const;

 private:
  format::KernelParams type_ = format::KernelParams_NONE;
  std::shared_ptr<const void> table_;
};

using TensorId = uint32_t;
// A layer of a cascade names tile i as tensor kFirstTile + i.
inline constexpr TensorId kFirstTile = TensorId{1} << 31;
using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

struct Quantization {
  std::vector<float> scales;  // empty: not quantised
  std::vector<int32_t> zero_points;
  int32_t axis = 0;
  bool operator==(const Quantization&) const = default;
};

struct ProgramTensor {
  ir::TensorType type;
  std::string name;
  Bytes constant;  // null for activations
  Quantization quantization;
  // Quantisation of an activation between steps, as its operator states it, for reports. Scale 0: unknown.
  float scale = 0;
  int32_t zero_point = 0;

  bool is_constant() const { return constant != nullptr; }
  bool operator==(const ProgramTensor&) const = default;  // constants are equal where they share their bytes
};

// A region on a device, followed by num_alternative_steps steps that compute the same on the CPU.
struct NpuRegion {
  uint32_t target = 0;  // position in Program::devices
  uint32_t format = 0;
  TensorId blob = 0;              // a constant
  std::vector<RegionSlot> slots;  // index: of the step's inputs or outputs
  uint32_t num_alternative_steps = 0;
  uint32_t num_operators = 0;
  uint64_t estimated_cycles = 0;
  uint64_t program_bytes = 0;
  format::MemoryClass memory_class = format::MemoryClass_ANY;  // of the blob
};

// A convolution's last input is added to its output.
struct Residual {
  AddParams sum;
  bool is_input1 = false;  // of the sum; else it is input 2
  bool operator==(const Residual&) const = default;
};

// How a step goes about its work, never what it computes.
struct StepSchedule {
  uint64_t bytes = 0;  // KernelStep::schedule
  double grain = 1;    // factor of the packer's own min_units_per_task
  bool operator==(const StepSchedule&) const = default;
};

struct ProgramStep {
  std::shared_ptr<const NpuRegion> npu;  // null: a call of a kernel
  uint16_t kernel = 0;                   // kernels.def
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  StepParams params;
  std::optional<Residual> residual;  // of a convolution
  uint64_t macs = 0;
  std::string name;  // of the source operator
  // schedule/schedule.h fills these four.
  StepSchedule schedule;
  uint32_t min_units_per_task = 0;
  uint64_t scratch_bytes = 0;
  uint64_t in_place_scratch_bytes = 0;  // where the output takes the place of an input
  // The layers of a cascade, which has no parameters of its own.
  std::vector<ProgramStep> layers;
  std::vector<ProgramTensor> tiles;
  bool operator==(const ProgramStep&) const = default;
};

// A device that regions of a program run on, as the plan records it.
struct ProgramDevice {
  std::string name, options;
  uint64_t max_bank_bytes = 0;  // Target::max_bank_bytes
};

// What a program keeps between runs (format/plan.fbs, State).
struct ProgramState {
  TensorId input = 0;
  TensorId output = 0;
  TensorId initial = UINT32_MAX;  // a constant; else every byte is `fill`
  uint8_t fill = 0;
};

struct Program {
  std::string name;  // of the function: "main"
  std::vector<ProgramDevice> devices;
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramStep> steps;    // in the order of execution; each activation is written by one step
  std::vector<TensorId> inputs;      // activations, all different
  std::vector<TensorId> outputs;     // activations
  std::vector<ProgramState> states;  // activations that are no inputs or outputs, all different
  uint64_t scratch_per_worker = 0;   // bytes, a multiple of 64; filled with the schedules
  // For a device of 32 bits: scratch is planned in the arena, layers are computed in place row by row,
  // constants follow the other tensors.
  bool is_small = false;
  bool overwrites_inputs = false;  // plan.fbs, Function
  // This build lacks the target's kernels and asks others (src/packer/schedule/schedule.h).
  bool asks_substitutes = false;
};

// The KernelStep table of a step. Fields are added in the schema's order and vectors before their table,
// which is what fixes a plan's bytes.

// num_tensors: of the plan, whose indices from there on are the tiles of the step's layers.
flatbuffers::Offset<format::KernelStep> pack_kernel_step(const ProgramStep& step, size_t num_tensors,
                                                         flatbuffers::FlatBufferBuilder& builder);

// The table of a tensor that lies nowhere: dtype, shape and size.
flatbuffers::Offset<format::Tensor> pack_tile(const ProgramTensor& tile,
                                              flatbuffers::FlatBufferBuilder& builder);

// From a canonical function to the steps of a program.

// What stands for calls of a region's function.
struct RegionCode {
  uint32_t device = 0;                       // position in RegionCodes::devices
  const CompiledRegion* compiled = nullptr;  // checked (region.h)
  // The region as operators alone: what the CPU runs in its place.
  const ir::Function* body = nullptr;
};
struct RegionCodes {
  std::vector<ProgramDevice> devices;
  std::map<std::string, RegionCode, std::less<>> by_function;
  bool fallback = true;  // the CPU's steps are there too
};

// Reports progress in nodes; may be empty.
using LowerProgress = std::function<void(uint32_t done, uint32_t total)>;

// PackError (QPLAN_MODEL_UNSUPPORTED) naming every node that no kernel computes, each with its reason. A call
// of one of the regions becomes its step, followed by the CPU's steps for its body. Bodies are lowered in any
// case, but for programs that were compiled before: a plan without the steps is refused where the one with
// them would be.
Program lower_function(const ir::Function& function, const TargetProfile& profile,
                       const RegionCodes& regions = {}, const LowerProgress& progress = {});

// Why the CPU does not run a node and those that its pattern takes after it.
struct CpuRefusal {
  uint32_t node = 0;
  std::vector<Reason> reasons;  // all of them
};
std::vector<CpuRefusal> cpu_refusals(const ir::Function& function, const TargetProfile& profile);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_PROGRAM_H_
