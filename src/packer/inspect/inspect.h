// A plan as text, for people and for tools.
#ifndef QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
#define QPLAN_SRC_PACKER_INSPECT_INSPECT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"

namespace qplan::inspect {

// What `qplan inspect --json` prints. Keys: version, file_bytes, content_digest, provenance, targets,
// functions, inputs, outputs, memory, banks, regions, steps. Two spaces of indentation; keys are only ever
// added.
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
std::string four_characters(uint32_t format);  // "VTA1", or hexadecimal

// "slot 0: input %3 bank2+64, 4096 bytes, strides 1x2, ..."
std::string bind_text(const format::PlanView& view, const format::NpuStep& step, const format::NpuBind& bind);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_INSPECT_H_
