// A plan as text, for people and for tools.
#ifndef QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
#define QPLAN_SRC_PACKER_INSPECT_INSPECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/ir/json.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::inspect {

// What `qplan inspect --json` prints. Keys: version, file_bytes, content_digest, provenance, targets,
// functions, inputs, outputs, memory, banks, regions, tensors, steps. Two spaces of indentation; keys are
// only ever added.
std::string inspect_json(const format::PlanView& view);

// What `qplan disasm` prints: one line for each step and for each buffer of a region on a device; "|" before
// the steps that run where the region does not:
//   0  conv2d  'conv1'  %0 arena+0 uint8 1x96x96x3, ... -> %5 arena+27648 uint8 1x48x48x8  {stride_h=2, ...}
std::string disassemble(const format::PlanView& view);

// Opens plans for tools that show them.

// A verified plan; misaligned bytes are copied first. PackError with the runtime's status and text.
class PlanReader {
 public:
  explicit PlanReader(std::span<const uint8_t> bytes);
  const format::PlanView& view() const { return view_; }

 private:
  AlignedBytes copy_;
  format::PlanView view_;
};

// "conv2d", or "kernel 900" when this build does not know it.
std::string kernel_name(uint16_t kernel);
std::string shape_text(const format::Tensor& tensor);  // "1x96x96x3"
std::string dtype_text(const format::Tensor& tensor);  // "int8"

// The parameters of a step by name, in the order of the schema: {"stride_h", "2"}.
std::vector<std::pair<std::string, std::string>> step_params(const format::KernelStep& step);

// Why its model can share no arena with others (`qplan link`); "" where it can.
std::string arena_refusal(const format::PlanView& view);

// Bounds of the stack that a session takes below its caller's frame on processors of 32 bits. open: to open
// the plan, and qplan_session_init. Without the application's own functions, such as hooks and operators.
struct StackBytes {
  uint32_t open = 0, invoke = 0;
};
StackBytes stack_bytes(const format::PlanView& view, const format::Function& main);

// SHA-256, hexadecimal, of what is executed: format version, required features, the root and the constants.
std::string content_digest(const format::PlanView& view);
std::string hexadecimal(const uint8_t* bytes, size_t size);

// Steps that run on devices, for tools that show plans.

// Per step of the plan: whether it runs only where a region does not.
std::vector<bool> alternative_steps(const format::PlanView& view);

// Multiply-accumulates of one inference of the function: those of fallback steps are their region's.
uint64_t macs_of(const format::PlanView& view, const format::Function& function);

// The tensor that a bind carries; UINT32_MAX: scratch.
uint32_t bound_tensor(const format::NpuStep& step, const format::NpuBind& bind);

std::string target_name(const format::PlanView& view, uint32_t target);

// "slot 0: input %3 bank2+64, 4096 bytes, strides 1x2, ..."
std::string bind_text(const format::PlanView& view, const format::NpuStep& step, const format::NpuBind& bind);

// What the cost model (target/profile.h) counts of a kernel's step: {"work": "convolution", "macs", "bytes",
// "weight_bytes"}; its activations and its constants apart. Null where it knows nothing of the kernel, and of
// cascades.
ir::Json cost_json(const StepView& step);

// Schedules of steps by the names of what they set: {"block_pixels": 24, "isa": "avx2"}.

// The grains that a schedule may have beside 1.
inline constexpr double kGrains[] = {0.25, 0.5, 2, 4};

// The knobs of the family's variants, which share them. Empty: none, or no such family.
std::span<const Knob> knobs_of(uint16_t kernel);

// What differs from the default. Bytes that mean nothing are left out.
ir::Json schedule_json(uint16_t kernel, const target::StepSchedule& schedule);
// "block_pixels=24, isa=avx2"; "" for the default.
std::string schedule_text(uint16_t kernel, const target::StepSchedule& schedule);

// The other way. PackError (QPLAN_INVALID_ARGUMENT) naming what is unknown: "conv2d has no knob 'tile', only
// ...".
target::StepSchedule parse_schedule(uint16_t kernel, const ir::Json& settings);

// Which variant of its family each instruction set of a plan's target would run a step with, and why not a
// better one.
struct RefusingVariant {
  const KernelVariant* variant;
  std::string reason;  // "it does not read weights in this layout"
};

// What a machine takes whose best instruction set is `isa`.
struct IsaVariant {
  uint32_t isa;                         // QPLAN_ISA_*
  const KernelVariant* variant;         // as choose_variant, with all the scratch that it wants
  std::vector<RefusingVariant> better;  // the variants that come before it on that machine, best first
};

// isas: QPLAN_ISA_*, lowest first; the result has the best first.
std::vector<IsaVariant> variants_by_isa(const KernelFamily& family, const void* args,
                                        std::span<const uint32_t> isas, uint64_t schedule);

// The CPU that the plan was packed for; nullopt where this build does not know that target.
std::optional<target::TargetProfile> target_profile(const format::PlanView& view);
// Its instruction sets, lowest first. Empty where it is not known.
std::vector<uint32_t> target_isas(const format::PlanView& view);

// Elementary operations that each further range of a cascade's rows computes again, of rows that the range
// before it had in its tiles: one range for each thread, and for each piece of a run that yields. 0: the step
// is no cascade, or one that a kernel refuses, or in place, which has one range.
uint64_t repeated_work(const format::PlanView& view, uint32_t index);

// The same of a kernel's step, without addresses or with them:
//   [{"isa": "avx2", "kernel": "conv2d_ref", "refused": [{"kernel": "conv2d_avx2", "reason": "it ..."}]},
//   ...]
// Null where this build does not know the kernel, or where the kernel refuses the step.
ir::Json variants_json(const StepView& step, std::span<const uint32_t> isas);
// Adds "variants" of step `index` to its object; of a cascade also "layers": [{"op", "variants"}, ...].
void add_variants(const format::PlanView& view, uint32_t index, std::span<const uint32_t> isas,
                  ir::Json* json);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
