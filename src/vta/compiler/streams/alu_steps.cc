#include "src/vta/compiler/streams/alu_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "src/vta/compiler/streams/stream.h"

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

// ---- exact affine forms
//
// Weights w1, w2 are right where some offset lies at or above all of f 2^s - w1 x1 - w2 x2 (else the
// result is too small somewhere) and below all of (f + 1) 2^s - w1 x1 - w2 x2 (else it is too large). The
// room between the two is a concave function of the weights, so that climbing finds where there is some. It
// needs only those inputs whose real number is close to where the rounding changes.
//
// That also covers ties that round away from zero, which a shift does not do by itself: weights a little too
// large move ties away from zero and nothing else, as long as the next number is farther away.

namespace {

// Fraction of an output: inputs closer than this to a change of rounding take part in the climb.
constexpr double kNear = 1.0 / 64;
constexpr int64_t kNoLimit = INT64_MAX / 4;

class Finder {
 public:
  explicit Finder(const AffineProblem& problem) : p_(problem) {}

  std::optional<AffineForm> find() {
    if (!choose_shift()) return std::nullopt;
    collect();
    climb();
    const Room room = room_of(w1_, w2_);
    if (room.size() < 0) return std::nullopt;
    form_.weight1 = static_cast<int32_t>(w1_);
    form_.weight2 = static_cast<int32_t>(w2_);
    const int64_t offset = room.middle(ideal_offset());
    if (offset < INT32_MIN || offset > INT32_MAX) return std::nullopt;
    form_.offset = static_cast<int32_t>(offset);
    return is_proved() ? std::optional(form_) : std::nullopt;
  }

 private:
  // An input, and what the sum must at least be there, or must stay below.
  struct Limit {
    int32_t x1, x2;
    int64_t sum;
  };
  struct Room {
    int64_t least = -kNoLimit, most = kNoLimit;  // offsets
    int64_t size() const { return most - least; }
    int64_t middle(int64_t ideal) const {
      if (least == -kNoLimit || most == kNoLimit) return std::clamp(ideal, least, most);
      return least + (most - least) / 2;
    }
  };

  double real(int32_t x1, int32_t x2) const {
    return p_.zero_point + p_.x1.slope * (x1 - p_.x1.zero_point) + p_.x2.slope * (x2 - p_.x2.zero_point);
  }
  int64_t one() const { return int64_t{1} << form_.shift; }

  bool choose_shift() {
    double largest = 0.0;
    for (const int32_t x1 : {p_.x1.min, p_.x1.max}) {
      for (const int32_t x2 : {p_.x2.min, p_.x2.max}) largest = std::max(largest, std::abs(real(x1, x2)));
    }
    constexpr int kMaxShift = 30;
    for (form_.shift = kMaxShift; form_.shift > 0; --form_.shift) {
      // 2: rounding, and room for other weights.
      if (std::ldexp(largest + 2.0, form_.shift) >= 2147483648.0) continue;
      w1_ = std::llround(std::ldexp(p_.x1.slope, form_.shift));
      w2_ = std::llround(std::ldexp(p_.x2.slope, form_.shift));
      if (std::max(std::abs(w1_), std::abs(w2_)) < int64_t{1} << 30) return true;
    }
    return false;
  }

  void collect() {
    for (int32_t x1 = p_.x1.min; x1 <= p_.x1.max; ++x1) {
      for (int32_t x2 = p_.x2.min; x2 <= p_.x2.max; ++x2) {
        const int32_t f = p_.f(x1, x2);
        const double fraction = real(x1, x2) + 0.5 - f;
        if (f > p_.lo && fraction < kNear) at_least_.push_back({x1, x2, f * one()});
        if (f < p_.hi && fraction > 1.0 - kNear) at_most_.push_back({x1, x2, (f + 1) * one() - 1});
      }
    }
  }

  Room room_of(int64_t w1, int64_t w2) const {
    Room room;
    for (const Limit& l : at_least_) room.least = std::max(room.least, l.sum - w1 * l.x1 - w2 * l.x2);
    for (const Limit& l : at_most_) room.most = std::min(room.most, l.sum - w1 * l.x1 - w2 * l.x2);
    return room;
  }

  // Until there is room: along both weights, each alone, and against each other, in ever smaller steps, never
  // so far that the inputs left out could matter.
  void climb() {
    const int32_t range = std::max(p_.x1.max - p_.x1.min, p_.x2.max - p_.x2.min);
    const int64_t reach = std::max<int64_t>(std::llround(static_cast<double>(one()) * kNear / range), 1);
    const int64_t first1 = w1_, first2 = w2_;
    int64_t best = room_of(w1_, w2_).size();
    for (int64_t step = reach; step > 0; step /= 2) {
      for (bool is_better = true; is_better;) {
        is_better = false;
        for (const auto& [d1, d2] : {std::pair{1, 1}, {1, 0}, {0, 1}, {1, -1}}) {
          for (const int64_t sign : {1, -1}) {
            if (best >= 0) return;
            const int64_t w1 = w1_ + sign * d1 * step;
            const int64_t w2 = w2_ + (p_.x2.min == p_.x2.max ? 0 : sign * d2 * step);
            if (std::abs(w1 - first1) > reach || std::abs(w2 - first2) > reach) continue;
            const int64_t size = room_of(w1, w2).size();
            if (size <= best) continue;
            best = size;
            w1_ = w1;
            w2_ = w2;
            is_better = true;
          }
        }
      }
    }
  }

  int64_t ideal_offset() const {
    return std::llround(std::ldexp(p_.zero_point + 0.5, form_.shift)) - w1_ * p_.x1.zero_point -
           w2_ * p_.x2.zero_point;
  }

  bool is_proved() {
    form_.least = INT32_MAX;
    form_.most = INT32_MIN;
    for (int32_t x1 = p_.x1.min; x1 <= p_.x1.max; ++x1) {
      for (int32_t x2 = p_.x2.min; x2 <= p_.x2.max; ++x2) {
        const int64_t sum = w1_ * x1 + w2_ * x2 + form_.offset;
        if (sum < INT32_MIN || sum > INT32_MAX) return false;
        const auto result = static_cast<int32_t>(sum >> form_.shift);
        if (std::clamp(result, p_.lo, p_.hi) != p_.f(x1, x2)) return false;
        form_.least = std::min(form_.least, result);
        form_.most = std::max(form_.most, result);
      }
    }
    return true;
  }

  const AffineProblem& p_;
  AffineForm form_;
  int64_t w1_ = 0, w2_ = 0;
  std::vector<Limit> at_least_, at_most_;
};

}  // namespace

std::optional<AffineForm> find_affine_form(const AffineProblem& problem) { return Finder(problem).find(); }

}  // namespace qplan::vta::compiler
