#include "src/vta/compiler/step_list.h"

#include <algorithm>
#include <array>

namespace qplan::target::vta {

using ::qplan::vta::AluOp;

void StepList::immediate(AluOp op, AccBlock dst, int32_t value) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.immediate = static_cast<int16_t>(value);
  steps_.push_back(step);
}

int64_t StepList::constant_index(int32_t value) {
  const auto found = std::ranges::find(constants_, value);
  if (found != constants_.end()) return found - constants_.begin();
  constants_.push_back(value);
  return static_cast<int64_t>(constants_.size()) - 1;
}

void StepList::constant(AluOp op, AccBlock dst, int32_t value) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.source = AluStep::Source::kConstant;
  step.constant = constant_index(value);
  steps_.push_back(step);
}

void StepList::immediate_or_constant(AluOp op, AccBlock dst, int32_t value) {
  if (value >= INT16_MIN && value <= INT16_MAX) {
    immediate(op, dst, value);
  } else {
    constant(op, dst, value);
  }
}

void StepList::block(AluOp op, AccBlock dst, AccBlock src) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.source = AluStep::Source::kAccBlock;
  step.block = src;
  steps_.push_back(step);
}

void StepList::copy(AccBlock dst, AccBlock src) {
  AluStep step;
  step.dst = dst;
  step.source = AluStep::Source::kReset;
  steps_.push_back(step);
  block(AluOp::kAdd, dst, src);
}

void StepList::clamp(int32_t min, int32_t max) {
  if (min > -128) immediate(AluOp::kMax, AccBlock::kAccumulator, min);
  if (max < 127) immediate(AluOp::kMin, AccBlock::kAccumulator, max);
}

void StepList::finish_affine(const AffineForm& form, int32_t min, int32_t max) {
  constexpr AccBlock a = AccBlock::kAccumulator;
  if (form.offset != 0) immediate_or_constant(AluOp::kAdd, a, form.offset);
  if (form.shift != 0) immediate(AluOp::kShr, a, form.shift);
  if (form.least < min) immediate(AluOp::kMax, a, min);
  if (form.most > max) immediate(AluOp::kMin, a, max);
}

void StepList::requantize_tfl2(int32_t bias, const QuantizedMultiplier& multiplier, int32_t zero_point,
                               int32_t min, int32_t max) {
  std::array<int32_t, kBlock> biases;
  std::array<QuantizedMultiplier, kBlock> multipliers;
  biases.fill(bias);
  multipliers.fill(multiplier);
  const Requantization sequence = make_tfl2(biases, multipliers, zero_point, min, max);
  for (AluStep step : sequence.steps) {
    if (step.source == AluStep::Source::kConstant)
      step.constant = constant_index(sequence.constants[static_cast<size_t>(step.constant)].front());
    steps_.push_back(step);
  }
}

}  // namespace qplan::target::vta
