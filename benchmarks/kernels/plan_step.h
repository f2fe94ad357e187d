// One step of a packed model with memory for its tensors: what any kernel family's variants run on.
#ifndef QPLAN_BENCHMARKS_KERNELS_PLAN_STEP_H_
#define QPLAN_BENCHMARKS_KERNELS_PLAN_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/common/packed_model.h"
#include "benchmarks/kernels/layers.h"
#include "src/runtime/bind/family.h"

namespace qplan::benchmarks {

class PlanStep {
 public:
  // model must outlive the step. std::runtime_error where the family refuses it.
  PlanStep(const PackedModel& model, uint32_t step);
  PlanStep(const PlanStep&) = delete;
  PlanStep& operator=(const PlanStep&) = delete;

  [[nodiscard]] const KernelFamily& family() const { return *family_; }
  [[nodiscard]] const void* args() const { return args_; }
  [[nodiscard]] uint64_t macs() const { return view_.step->macs(); }
  // Bytes of inputs, constants and outputs.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // "1x112x112x32_uint8>1x56x56x64_uint8,contract=TFL2,...": steps of one family and text are the same work.
  [[nodiscard]] std::string shape() const;

 private:
  void place(uint32_t tensor);

  const KernelFamily* family_;
  std::vector<void*> data_;
  std::vector<Buffer> buffers_;
  StepView view_;
  uint64_t bytes_ = 0;
  alignas(kArgsAlignment) uint8_t args_[kMaxArgsBytes] = {};
};

}  // namespace qplan::benchmarks

#endif  // QPLAN_BENCHMARKS_KERNELS_PLAN_STEP_H_
