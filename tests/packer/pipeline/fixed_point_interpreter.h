// operator_interpreter.h with the operators that TFLite computes in the fixed point of gemmlowp: softmax and
// division of 8 bits. Written from docs/numerics/softmax.md and div.md.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_FIXED_POINT_INTERPRETER_H_
#define QPLAN_TESTS_PACKER_PIPELINE_FIXED_POINT_INTERPRETER_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/packer/pipeline/operator_interpreter.h"

namespace qplan::naive {

class FixedPointInterpreter : public OperatorInterpreter {
 public:
  using OperatorInterpreter::OperatorInterpreter;

 protected:
  static constexpr int64_t kOne = int64_t{1} << 31;
  static int64_t times(int64_t a, int64_t b) { return (a * b + (int64_t{1} << 30)) >> 31; }
  static int64_t sat(int64_t x) { return std::clamp<int64_t>(x, -kOne, kOne - 1); }
  // x / 2^k, half away; 0 for k of 32 or more.
  static int64_t shifted(int64_t x, int64_t k) {
    if (k >= 32) return 0;
    const int64_t magnitude = (std::abs(x) + (k == 0 ? 0 : int64_t{1} << (k - 1))) >> k;
    return x < 0 ? -magnitude : magnitude;
  }
  static int64_t floor_log2(int64_t x) { return std::bit_width(static_cast<uint64_t>(x)) - 1; }

  // 1 / (1 + a)
  static int64_t reciprocal(int64_t a) {
    const int64_t half = (a + kOne) >> 1;
    int64_t x = 1515870810 + times(half, -1010580540);
    for (int i = 0; i < 3; ++i) x += sat(times(x, (int64_t{1} << 29) - times(half, x)) * 4);
    return sat(2 * x);
  }

  static int64_t exponential(int64_t a) {
    if (a == 0) return kOne - 1;
    constexpr int64_t kQuarter = int64_t{1} << 24;
    int64_t rest = ((a % kQuarter) + kQuarter) % kQuarter - kQuarter;  // [-2^24, 0)
    const int64_t quarters = (rest - a) / kQuarter;
    const int64_t x = rest * 32 + (int64_t{1} << 28);
    const int64_t x2 = times(x, x), x3 = times(x2, x), x4 = times(x2, x2);
    const int64_t tail = shifted(times(shifted(x4, 2) + x3, 715827883) + x2, 1);
    int64_t y = 1895147668 + times(1895147668, x + tail);
    const int64_t factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    for (int k = 0; k < 7; ++k) {
      if ((quarters >> k & 1) != 0) y = times(y, factors[k]);
    }
    return y;
  }

  Tensor softmax(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    const double beta = node.attrs.get_double("beta", 1);
    const Multiplier by = quantize_multiplier(std::min(beta * scalar(node, 1) * 0x1p26, 0x1p31 - 1));
    const double diff_min = -std::floor(31 * 0x1p26 / std::ldexp(1.0, by.e));
    const auto depth = static_cast<size_t>(x.shape.back());
    const auto least = static_cast<double>(out.dtype.min());
    for (size_t row = 0; row < x.v.size(); row += depth) {
      const double most = *std::max_element(x.v.begin() + static_cast<std::ptrdiff_t>(row),
                                            x.v.begin() + static_cast<std::ptrdiff_t>(row + depth));
      std::vector<int64_t> e(depth, -1);  // -1: too small to count
      int64_t sum = 0;
      for (size_t i = 0; i < depth; ++i) {
        const double d = x.v[row + i] - most;
        if (d < diff_min) continue;
        e[i] = exponential(times(static_cast<int64_t>(d) * (int64_t{1} << by.e), by.m));
        sum = std::min(sum + shifted(e[i], 12), kOne - 1);
      }
      const int64_t p = floor_log2(sum) - 19, r = reciprocal((sum << (12 - p)) - kOne);
      for (size_t i = 0; i < depth; ++i) {
        const int64_t q = e[i] < 0 ? 0 : std::min<int64_t>(shifted(times(r, e[i]), p + 23), 255);
        out.v[row + i] = least + static_cast<double>(q);
      }
    }
    return out;
  }

  Tensor divide(const ir::Node& node) const {
    const ir::DType dtype = function_.type(node.results[0]).dtype;
    const Multiplier by =
        quantize_multiplier(static_cast<double>(scale(node, 2) / (scale(node, 4) * scale(node, 6))));
    return two(node, [&](double a, double b) {
      auto v = static_cast<int64_t>(a - scalar(node, 3)), w = static_cast<int64_t>(b - scalar(node, 5));
      if (w < 0) v = -v, w = -w;
      if (v == 0) return scalar(node, 7);
      if (w == 0) return static_cast<double>(v > 0 ? dtype.max() : dtype.min());
      const int64_t k = floor_log2(w);
      int64_t h = 23;
      while (h < 31 && v * (int64_t{1} << (h + 1)) < kOne && v * (int64_t{1} << (h + 1)) >= -kOne) ++h;
      const int64_t x = times(times(v * (int64_t{1} << h), reciprocal((w << (31 - k)) - kOne)), by.m);
      return saturate(scalar(node, 7) + static_cast<double>(shifted(x, k + h - by.e)), dtype);
    });
  }

  void execute(const ir::Node& node) override {
    Tensor& to = values_[node.results[0].index];
    if (node.op->name == "qnn.softmax") return void(to = softmax(node));
    if (node.op->name == "qnn.divide") return void(to = divide(node));
    OperatorInterpreter::execute(node);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_FIXED_POINT_INTERPRETER_H_
