#include "src/vta/compiler/streams/alu_steps.h"

#include <algorithm>
#include <array>

#include "src/vta/compiler/streams/layout.h"

namespace qplan::vta::compiler {
namespace {

using Source = AluStep::Source;

constexpr int32_t kMaxFoldedShift = 23;  // zp 2^r + 2^(r-1) + |v| < 2^31

class Sequence {
 public:
  explicit Sequence(size_t channels)
      : lanes_(static_cast<size_t>(blocks(static_cast<int64_t>(channels)) * kBlock)) {}

  void immediate(AluOp op, AccBlock dst, int32_t value) { add(AluStep::by_immediate(op, dst, value)); }
  void block(AluOp op, AccBlock dst, AccBlock src) { add(AluStep::by_block(op, dst, src)); }
  void constant(AluOp op, AccBlock dst, int64_t index) { add(AluStep::by_constant(op, dst, index)); }
  void copy(AccBlock dst, AccBlock src) {
    add(AluStep::reset(dst));
    block(AluOp::kAdd, dst, src);
  }
  // value(o) for each channel; the index of the constant.
  template <typename Value>
  int64_t add_constant(size_t channels, const Value& value) {
    std::vector<int32_t> values(lanes_, 0);
    for (size_t o = 0; o < channels; ++o) values[o] = value(o);
    result_.constants.push_back(std::move(values));
    return result_.num_constants() - 1;
  }
  Requantization finish() { return std::move(result_); }

 private:
  void add(const AluStep& step) { result_.steps.push_back(step); }

  size_t lanes_;
  Requantization result_;
};

}  // namespace

AluStep AluStep::by_immediate(AluOp op, AccBlock dst, int32_t value) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.immediate = static_cast<int16_t>(value);
  return step;
}

AluStep AluStep::by_block(AluOp op, AccBlock dst, AccBlock src) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.source = Source::kAccBlock;
  step.block = src;
  return step;
}

AluStep AluStep::by_constant(AluOp op, AccBlock dst, int64_t index) {
  AluStep step;
  step.op = op;
  step.dst = dst;
  step.source = Source::kConstant;
  step.constant = index;
  return step;
}

AluStep AluStep::reset(AccBlock dst) {
  AluStep step;
  step.dst = dst;
  step.source = Source::kReset;
  return step;
}

int64_t Requantization::num_alu_instructions() const {
  return std::ranges::count_if(steps, [](const AluStep& step) { return step.source != Source::kReset; });
}

int64_t Requantization::cycles_per_element() const {
  int64_t cycles = 0;
  for (const AluStep& step : steps)
    cycles += step.source == Source::kAccBlock || step.source == Source::kConstant ? 2 : 1;
  return cycles;
}

Requantization make_tfl2(std::span<const int32_t> bias, std::span<const QuantizedMultiplier> multipliers,
                         int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
  constexpr AccBlock a = AccBlock::kAccumulator, low = AccBlock::kLow, cross = AccBlock::kCross,
                     other = AccBlock::kOther;
  const size_t n = multipliers.size();
  // A multiplier of 0 gives v = 0, whatever the shifts are: it asks for none.
  const auto left = [&](size_t o) {
    return multipliers[o].multiplier == 0 ? 0 : std::max(multipliers[o].shift, 0);
  };
  const auto right = [&](size_t o) {
    return multipliers[o].multiplier == 0 ? 0 : std::max(-multipliers[o].shift, 0);
  };
  bool any_left = false, any_right = false, all_right = true;
  int32_t max_right = 0;
  for (size_t o = 0; o < n; ++o) {
    any_left |= left(o) > 0;
    any_right |= right(o) > 0;
    all_right &= right(o) > 0 || multipliers[o].multiplier == 0;
    max_right = std::max(max_right, right(o));
  }

  Sequence s(n);
  s.constant(AluOp::kAdd, a, s.add_constant(n, [&](size_t o) { return bias[o]; }));
  if (any_left) s.constant(AluOp::kMul, a, s.add_constant(n, [&](size_t o) { return 1 << left(o); }));
  s.copy(low, a);  // L
  s.immediate(AluOp::kShr, low, -17);
  s.immediate(AluOp::kShr, low, 17);
  s.immediate(AluOp::kAdd, a, 1 << 14);  // H
  s.immediate(AluOp::kShr, a, 15);
  const int64_t mh = s.add_constant(n, [&](size_t o) { return multipliers[o].multiplier >> 15; });
  const int64_t ml = s.add_constant(n, [&](size_t o) { return multipliers[o].multiplier & 0x7fff; });
  s.copy(cross, a);  // X
  s.constant(AluOp::kMul, cross, ml);
  s.copy(other, low);
  s.constant(AluOp::kMul, other, mh);
  s.block(AluOp::kAdd, cross, other);
  s.constant(AluOp::kMul, low, ml);
  s.immediate(AluOp::kShr, low, 15);
  s.block(AluOp::kAdd, cross, low);
  s.immediate(AluOp::kShr, cross, 15);
  s.constant(AluOp::kMul, a, mh);  // P
  s.block(AluOp::kAdd, a, cross);
  s.immediate(AluOp::kAdd, a, 1);
  s.immediate(AluOp::kShr, a, 1);  // v

  const bool is_folded = any_right && max_right <= kMaxFoldedShift;
  if (any_right) {
    s.copy(other, a);
    s.immediate(AluOp::kShr, other, 31);
    if (!all_right)
      s.constant(AluOp::kMul, other, s.add_constant(n, [&](size_t o) { return right(o) > 0 ? 1 : 0; }));
    s.block(AluOp::kAdd, a, other);
    s.constant(AluOp::kAdd, a, s.add_constant(n, [&](size_t o) {
      const int32_t r = right(o);
      return (r > 0 ? 1 << (r - 1) : 0) + (is_folded ? zero_point * (1 << r) : 0);
    }));
    s.constant(AluOp::kShr, a, s.add_constant(n, right));
  }
  if (!is_folded && zero_point != 0) s.immediate(AluOp::kAdd, a, zero_point);
  s.immediate(AluOp::kMax, a, clamp_min);
  s.immediate(AluOp::kMin, a, clamp_max);
  return s.finish();
}

Requantization make_acc32(std::span<const int32_t> bias) {
  Sequence s(bias.size());
  s.constant(AluOp::kAdd, AccBlock::kAccumulator,
             s.add_constant(bias.size(), [&](size_t o) { return bias[o]; }));
  Requantization result = s.finish();
  result.num_planes = sizeof(int32_t);
  return result;
}

void StepList::immediate(AluOp op, AccBlock dst, int32_t value) {
  steps_.push_back(AluStep::by_immediate(op, dst, value));
}

int64_t StepList::constant_index(int32_t value) {
  const auto found = std::ranges::find(constants_, value);
  if (found != constants_.end()) return found - constants_.begin();
  constants_.push_back(value);
  return static_cast<int64_t>(constants_.size()) - 1;
}

void StepList::constant(AluOp op, AccBlock dst, int32_t value) {
  steps_.push_back(AluStep::by_constant(op, dst, constant_index(value)));
}

void StepList::immediate_or_constant(AluOp op, AccBlock dst, int32_t value) {
  if (value >= INT16_MIN && value <= INT16_MAX) {
    immediate(op, dst, value);
  } else {
    constant(op, dst, value);
  }
}

void StepList::block(AluOp op, AccBlock dst, AccBlock src) {
  steps_.push_back(AluStep::by_block(op, dst, src));
}

void StepList::copy(AccBlock dst, AccBlock src) {
  steps_.push_back(AluStep::reset(dst));
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

}  // namespace qplan::vta::compiler
