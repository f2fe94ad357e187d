#include "qplan/npu_op.h"
#include "src/base/blob_format.h"
#include "src/base/printable.h"
#include "src/base/short_name.h"
#include "src/packer/inspect/inspect.h"

namespace qplan::inspect {
namespace {

using format::PlanView;

// Names come from models: a line stays a line.
std::string in_quotes(const char* name) { return "'" + printable(std::string(name)) + "'"; }

std::string place_text(const PlanView& view, uint32_t index) {
  const format::Tensor& tensor = view.tensor(index);
  const std::string bank = view.is_constant(index)             ? "constants"
                           : tensor.bank() == view.main_bank() ? "arena"
                                                               : "bank" + std::to_string(tensor.bank());
  return bank + "+" + std::to_string(tensor.offset());
}

std::string tensors_text(const PlanView& view, const flatbuffers::Vector<uint32_t>* tensors) {
  std::string text;
  for (uint32_t i = 0; i < format::count_of(tensors); ++i) {
    const uint32_t index = tensors->Get(i);
    const format::Tensor& tensor = view.tensor(index);
    text += (i == 0 ? "" : ", ") + std::string("%") + std::to_string(index) + " " + place_text(view, index) +
            " " + dtype_text(tensor) + " " + shape_text(tensor);
  }
  return text.empty() ? "nothing" : text;
}

// The region, then a line for each of its buffers; the device's own listing is `qplan npu disasm`.
std::string npu_step_text(const PlanView& view, uint32_t index, const format::NpuStep& step) {
  std::string text = std::to_string(index) + "  npu:" + target_name(view, step.target()) + "  " +
                     in_quotes(short_name(view.step_name(index)).c_str()) + "  " +
                     tensors_text(view, step.inputs()) + " -> " + tensors_text(view, step.outputs()) +
                     "  {program=" + four_characters(step.format()) + " " +
                     std::to_string(view.tensor(step.blob()).size()) + " bytes" +
                     (step.memory_class() == format::MemoryClass_ANY
                          ? ""
                          : std::string(" in ") + qplan_npu_memory_class_name(step.memory_class())) +
                     ", operators=" + std::to_string(step.num_operators()) +
                     ", cycles=" + std::to_string(step.estimated_cycles()) +
                     ", alternative_steps=" + std::to_string(step.num_alternative_steps()) + "}";
  if (step.macs() != 0) text += "  " + std::to_string(step.macs()) + " macs";
  text += "\n";
  for (uint32_t i = 0; i < format::count_of(step.binds()); ++i) {
    text += "       " + bind_text(view, step, *step.binds()->Get(i)) + "\n";
  }
  return text;
}

std::string step_text(const PlanView& view, uint32_t index, bool is_fallback) {
  if (const format::NpuStep* npu = view.npu_step(index)) return npu_step_text(view, index, *npu);
  const format::KernelStep& step = view.step(index);
  std::string text = std::string(is_fallback ? "| " : "") + std::to_string(index) + "  " +
                     kernel_name(step.kernel()) + "  " +
                     in_quotes(short_name(view.step_name(index)).c_str()) + "  " +
                     tensors_text(view, step.inputs()) + " -> " + tensors_text(view, step.outputs()) + "  {";
  bool first = true;
  for (const auto& [name, value] : step_params(step)) {
    text += (first ? "" : ", ") + name + "=" + value;
    first = false;
  }
  text += "}";
  if (step.macs() != 0) text += "  " + std::to_string(step.macs()) + " macs";
  const std::string schedule = schedule_text(step.kernel(), {.bytes = step.schedule()});
  if (!schedule.empty()) text += "  schedule {" + schedule + "}";
  return text + "\n";
}

std::string function_text(const PlanView& view, const format::Function& function) {
  std::string text = "function " + in_quotes(function.name()->c_str()) + "  " +
                     tensors_text(view, function.inputs()) + " -> " + tensors_text(view, function.outputs()) +
                     "  scratch " + std::to_string(function.scratch_per_worker()) + " bytes a worker\n";
  for (uint32_t i = 0; i < format::count_of(function.states()); ++i) {
    const format::State& state = *function.states()->Get(i);
    text += "  state %" + std::to_string(state.input()) + " <- %" + std::to_string(state.output()) + "  " +
            std::to_string(view.tensor(state.input()).size()) + " bytes, at first " +
            (state.initial() == format::kNoTensorIndex ? "all " + std::to_string(state.fill())
                                                       : "%" + std::to_string(state.initial())) +
            "\n";
  }
  if (const uint32_t count = format::count_of(function.self_checks()); count > 0)
    text += "  self-checks: " + std::to_string(count) + "\n";
  const std::vector<bool> is_fallback = alternative_steps(view);
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    const uint32_t s = function.first_step() + i;
    text += "  " + step_text(view, s, is_fallback[s]);
  }
  return text;
}

}  // namespace

std::string disassemble(const PlanView& view) {
  std::string text = "plan " + std::to_string(view.header().version_major) + "." +
                     std::to_string(view.header().version_minor) + "  " +
                     std::to_string(view.header().file_size) + " bytes, arena " +
                     std::to_string(view.bank(view.main_bank()).size()) + " bytes\n";
  for (uint32_t i = 0; i < view.num_functions(); ++i) text += function_text(view, view.function(i));
  return text;
}

}  // namespace qplan::inspect
