// ALU steps (requantize.h) whose constants are the same for all channels.
#ifndef QPLAN_SRC_VTA_COMPILER_STEP_LIST_H_
#define QPLAN_SRC_VTA_COMPILER_STEP_LIST_H_

#include <cstdint>
#include <vector>

#include "src/vta/compiler/exact_affine.h"
#include "src/vta/compiler/requantize.h"

namespace qplan::target::vta {

class StepList {
 public:
  // Continues with the constants of other lists.
  explicit StepList(std::vector<int32_t> constants = {}) : constants_(std::move(constants)) {}

  void immediate(::qplan::vta::AluOp op, AccBlock dst, int32_t value);  // of 16 bits
  void constant(::qplan::vta::AluOp op, AccBlock dst, int32_t value);
  void immediate_or_constant(::qplan::vta::AluOp op, AccBlock dst, int32_t value);
  void block(::qplan::vta::AluOp op, AccBlock dst, AccBlock src);
  void copy(AccBlock dst, AccBlock src);
  // Of the accumulator; steps that change no int8 are left out.
  void clamp(int32_t min, int32_t max);
  // Offset, shift and clamp of the sum in the accumulator.
  void finish_affine(const AffineForm& form, int32_t min, int32_t max);
  // The same multiplier for all channels.
  void requantize_tfl2(int32_t bias, const QuantizedMultiplier& multiplier, int32_t zero_point, int32_t min,
                       int32_t max);

  const std::vector<AluStep>& steps() const { return steps_; }
  const std::vector<int32_t>& constants() const { return constants_; }

 private:
  int64_t constant_index(int32_t value);

  std::vector<AluStep> steps_;
  std::vector<int32_t> constants_;
};

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_STEP_LIST_H_
