// Weights w1, w2 are right where some offset lies at or above all of f 2^s - w1 x1 - w2 x2 (else the result
// is too small somewhere) and below all of (f + 1) 2^s - w1 x1 - w2 x2 (else it is too large). The room
// between the two is a concave function of the weights, so that climbing finds where there is some. It needs
// only those inputs whose real number is close to where the rounding changes.
//
// That also covers ties that round away from zero, which a shift does not do by itself: weights a little too
// large move ties away from zero and nothing else, as long as the next number is farther away.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "src/vta/compiler/streams/alu_steps.h"

namespace qplan::vta::compiler {
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
