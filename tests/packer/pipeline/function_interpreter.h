// fixed_point_interpreter.h with functions of single numbers (TFLite's tables, the logistic function and tanh
// of int16, those of float32) and of rows: logarithm of softmax, softmax of int16, vectors divided by their
// length. Written from docs/numerics/logistic.md, softmax.md and float32.md.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_FUNCTION_INTERPRETER_H_
#define QPLAN_TESTS_PACKER_PIPELINE_FUNCTION_INTERPRETER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/packer/pipeline/fixed_point_interpreter.h"
#include "tests/packer/pipeline/tflite_functions.h"

namespace qplan::naive {

class FunctionInterpreter : public FixedPointInterpreter {
 public:
  FunctionInterpreter(const ir::Function& function, TfliteFunctions functions)
      : FixedPointInterpreter(function), functions_(std::move(functions)) {}

 protected:
  // ---- 8 bits ----
  Tensor lookup(const ir::Node& node) const {
    const auto found = functions_.find(node.name);
    return one(node, [&](double x) {
      if (found != functions_.end())
        return static_cast<double>(tflite_function(found->second, static_cast<int64_t>(x)));
      return in(node, 1).v[static_cast<size_t>(static_cast<int64_t>(x) & 255)];
    });
  }

  Tensor logistic_of_8_bits(const ir::Node& node) const {
    const ir::DType dtype = in(node, 0).dtype;
    return one(node, [&](double x) {
      const float v = scale(node, 1) * static_cast<float>(x - scalar(node, 2));
      if (f32e(node)) {
        const auto real = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(v))));
        return saturate(half_even(real / scale(node, 3)) + scalar(node, 4), dtype);
      }
      const auto e = static_cast<float>(std::exp(-std::clamp(static_cast<double>(v), -88.0, 88.0)));
      const float part = 256.0f * (1.0f / (1.0f + e));
      return static_cast<double>(dtype.min()) + std::min(half_away(static_cast<double>(part)), 255.0);
    });
  }

  // ---- int16 ----
  // TFLite's table of the logistic function at i / 24.
  static int64_t logistic_entry(int64_t i) {
    // Where TFLite's entry is the integer above the nearest one.
    static const std::vector<int64_t> kAbove = {
        4,  8,  12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31,  33,  34,  35,  37,  39,
        40, 41, 43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};
    const double nearest = std::floor(0x1p16 / (1 + std::exp(-static_cast<double>(i) / 24)) + 0.5);
    return static_cast<int64_t>(nearest) + (std::ranges::find(kAbove, i) != kAbove.end() ? 1 : 0);
  }
  Tensor function_of_int16(const ir::Node& node) const {
    const bool is_tanh = node.op->name == "qnn.tanh";
    double multiplier = scalar(node, 1) * 4096 * 3;
    int shift = 0;
    const auto is_nearly = [&](double power) { return std::fabs(scalar(node, 1) / power - 1) < 0.00069; };
    if (is_nearly(0x1p-12) || is_nearly(0x1p-11)) {
      multiplier = is_nearly(0x1p-12) ? 3 : 6;
    } else {
      for (; multiplier <= 32767.0 / 2; multiplier *= 2) ++shift;
    }
    const auto m = static_cast<int64_t>(multiplier);
    return one(node, [&](double x) {
      const int64_t half = shift == 0 ? 0 : int64_t{1} << (shift - 1);
      const int64_t v = (static_cast<int64_t>(x) * m + half) >> shift, size = std::abs(v);
      const int bits = is_tanh ? 8 : 9;
      const int64_t h = size >> bits, t = size & ((1 << bits) - 1);
      int64_t f = (is_tanh ? 65535 << 8 : 32767 << 10);
      if (h < 255) f = logistic_entry(h) * (1 << bits) + t * (logistic_entry(h + 1) - logistic_entry(h));
      int64_t y = 0;
      if (is_tanh) {
        y = v >= 0 ? (f - (1 << 23) + (1 << 7)) >> 8 : ((1 << 23) - f + (1 << 7) - 1) >> 8;
      } else {
        y = v >= 0 ? (f + (1 << 9)) >> 10 : ((1 << 25) - f + (1 << 9) - 1) >> 10;
      }
      return static_cast<double>(y);
    });
  }

  // ---- rows of 8 and 16 bits ----
  static int64_t left(int64_t x, int64_t k) { return sat(x * (int64_t{1} << k)); }
  static int64_t zeros(int64_t x) { return 31 - floor_log2(x); }

  // log(a) in Q5.26 of a in Q12.19.
  static int64_t logarithm(int64_t a) {
    constexpr int64_t kSqrtHalf = 1518500250, kFourthRoot = 1805811301;
    const int64_t n = zeros(a), m = zeros(times(a, kSqrtHalf)) - 1;
    const int64_t r = std::min(left(times(left(a, n - 1), kSqrtHalf), 1), left(a, m));
    const int64_t k = std::max((12 - n) * (1 << 25) + (1 << 23), (12 - m) * (1 << 25) - (1 << 23));
    const int64_t q = 2 * (r - kFourthRoot), p = (r + kFourthRoot + 1) >> 1, q2 = times(q, q);
    const int64_t numerator = times(q, r) + times(times(q, q2), 117049297);
    const int64_t denominator = times(p, 1057819769 + q + times(127690142, q2)) + times(638450708, q);
    return left(times(k, 1488522236) + times(shifted(numerator, 6), reciprocal(denominator)), 1);
  }

  // What rows of softmax have in common: differences from the largest, in Q5.26.
  struct Row {
    std::vector<double> d;
    std::vector<int64_t> z, e;
    int64_t sum = 0;
  };
  Row row_of(const Tensor& x, size_t begin, Multiplier by, double diff_min) const {
    Row row;
    const auto first = x.v.begin() + static_cast<std::ptrdiff_t>(begin);
    const double most = *std::max_element(first, first + static_cast<std::ptrdiff_t>(x.shape.back()));
    for (int64_t i = 0; i < x.shape.back(); ++i) {
      row.d.push_back(first[i] - most);
      if (row.d.back() < diff_min) {
        row.z.push_back(0);
        row.e.push_back(0);
        continue;
      }
      row.z.push_back(times(static_cast<int64_t>(row.d.back()) * (int64_t{1} << by.e), by.m));
      row.e.push_back(exponential(row.z.back()));
      row.sum = std::min(row.sum + shifted(row.e.back(), 12), kOne - 1);
    }
    return row;
  }
  static Multiplier row_multiplier(double scale) {
    return quantize_multiplier(std::min(scale * 0x1p26, 0x1p31 - 1));
  }
  static double least_difference(Multiplier by) { return -std::floor(31 * 0x1p26 / std::ldexp(1.0, by.e)); }

  Tensor log_softmax(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    const Multiplier by = row_multiplier(scalar(node, 1));
    const double diff_min = least_difference(by);
    const Multiplier reverse = quantize_multiplier(std::ldexp(1.0, 31 - by.e) / static_cast<double>(by.m));
    const auto depth = static_cast<size_t>(x.shape.back());
    for (size_t begin = 0; begin < x.v.size(); begin += depth) {
      const Row row = row_of(x, begin, by, diff_min);
      const int64_t log = logarithm(row.sum);
      const double least = std::max(diff_min - 1, static_cast<double>(tfl2(log - kOne, reverse)));
      for (size_t i = 0; i < depth; ++i) {
        double y = static_cast<double>(out.dtype.min());
        if (row.d[i] > least)
          y = saturate(static_cast<double>(out.dtype.max() + shifted(row.z[i] - log, 22)), out.dtype);
        out.v[begin + i] = y;
      }
    }
    return out;
  }

  // Under F32E, in float32 with one exponential for each difference.
  Tensor softmax_in_float(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    const auto depth = static_cast<size_t>(x.shape.back());
    for (size_t begin = 0; begin < x.v.size(); begin += depth) {
      const auto first = x.v.begin() + static_cast<std::ptrdiff_t>(begin);
      const double most = *std::max_element(first, first + static_cast<std::ptrdiff_t>(depth));
      std::vector<double> e;
      double sum = 0;
      for (size_t i = 0; i < depth; ++i) {
        e.push_back(f32(std::exp(-scalar(node, 1) * (most - x.v[begin + i]))));
        sum = f32(sum + e.back());
      }
      for (size_t i = 0; i < depth; ++i) {
        const double real = f32(f32(e[i] / sum) / scalar(node, 3));
        out.v[begin + i] = saturate(half_even(real) + scalar(node, 4), out.dtype);
      }
    }
    return out;
  }

  Tensor l2_normalize(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    const auto depth = static_cast<size_t>(x.shape.back());
    for (size_t begin = 0; begin < x.v.size(); begin += depth) {
      double sum = 0;
      const auto v = [&](size_t i) { return x.v[begin + i] - scalar(node, 2); };
      for (size_t i = 0; i < depth; ++i) sum += v(i) * v(i);
      const Multiplier by = inverse_sqrt(static_cast<int64_t>(sum));
      for (size_t i = 0; i < depth; ++i) {
        const auto q = static_cast<int64_t>(v(i));
        const int64_t y = out.dtype == ir::kInt8 ? tfl2(q, {by.m, by.e + 7}) : 128 + tfl2(128 * q, by);
        out.v[begin + i] = saturate(static_cast<double>(y), out.dtype);
      }
    }
    return out;
  }

  // The function at 512 places and at the end, less half of the error in the middle between two.
  template <typename F>
  static int64_t line_entry(int64_t i, double first, double last, const F& f) {
    const double step = (last - first) / 512, at = first + static_cast<double>(i) * step;
    const double here = half_away(f(at) * 0x1p15);
    if (i == 512) return static_cast<int64_t>(std::clamp(here, -0x1p15, 0x1p15 - 1));
    const double next = f(at + step) * 0x1p15, middle = half_away(f(at + step / 2) * 0x1p15);
    const double error = half_away((next + here) / 2) - middle;
    return static_cast<int64_t>(std::clamp(here - half_away(error / 2), -0x1p15, 0x1p15 - 1));
  }
  template <typename F>
  static int64_t on_line(int64_t v, double first, double last, const F& f) {
    const int64_t j = 256 + (v >> 7), from = line_entry(j, first, last, f);
    return from + (((line_entry(j + 1, first, last, f) - from) * (v & 127) + 64) >> 7);
  }

  Tensor softmax_to_int16(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    const double input = node.attrs.get_double("input_scale", 1), beta = node.attrs.get_double("beta", 1);
    const auto depth = static_cast<size_t>(x.shape.back());
    const auto root = [](double v) { return std::exp(v); };
    const auto inverse = [](double v) { return 1 / (1 + v); };
    for (size_t begin = 0; begin < x.v.size(); begin += depth) {
      if (x.dtype == ir::kInt8) {
        const Multiplier by = row_multiplier(input * beta);
        const double diff_min = least_difference(by);
        const Row row = row_of(x, begin, by, diff_min);
        const int64_t p = floor_log2(row.sum) - 19, r = reciprocal((row.sum << (12 - p)) - kOne);
        for (size_t i = 0; i < depth; ++i) {
          const auto y = static_cast<double>(shifted(times(r, row.e[i]), p + 15));
          out.v[begin + i] = row.d[i] < diff_min ? -32768 : saturate(y - 32768, ir::kInt16);
        }
        continue;
      }
      const Multiplier by = quantize_multiplier(input * beta / (10.0 / 65535.0));
      const auto first = x.v.begin() + static_cast<std::ptrdiff_t>(begin);
      const double most = *std::max_element(first, first + static_cast<std::ptrdiff_t>(depth));
      std::vector<int64_t> e;
      int64_t sum = 0;
      for (size_t i = 0; i < depth; ++i) {
        const int64_t place = tfl2(static_cast<int64_t>(first[static_cast<std::ptrdiff_t>(i)] - most), by);
        e.push_back(on_line(saturate16(32767 + place), -10.0, 0.0, root));
        sum += e.back();
      }
      const int64_t h = zeros(sum);
      const int64_t rest = ((sum * (int64_t{1} << (h - 1)) + (1 << 13)) >> 14) - (1 << 15) - (1 << 16);
      const int64_t r = on_line(saturate16(rest), 0.0, 1.0, inverse);
      for (size_t i = 0; i < depth; ++i) {
        const int64_t y = (e[i] * r + (int64_t{1} << (30 - h))) >> (31 - h);
        out.v[begin + i] = static_cast<double>(std::clamp<int64_t>(y, 0, 32767));
      }
    }
    return out;
  }

  // ---- float32 ----
  // A chain of functions of an 8-bit number is a table, whose functions are real ones, rounded once
  // (operator_interpreter.h).
  bool is_in_table(const ir::Node& node) const {
    const ir::Node* from = function_.producer(node.operands[0]);
    while (from != nullptr && from->op->function != nullptr) from = function_.producer(from->operands[0]);
    return from != nullptr && from->op->name == "qnn.dequantize";
  }
  Tensor float_function(const ir::Node& node) const {
    const std::string& name = node.op->name;
    const double alpha = node.attrs.get_double("alpha", 1);
    return one(node, [&](double x) {
      if (name == "exp") return float_exp(x);
      if (name == "log") return float_log(x);
      if (name == "tanh") return float_tanh(x);
      if (name == "sigmoid") return float_logistic(x);
      if (name == "erf") return float_erf(x);
      return 0 < x ? x : f32(alpha * f32(std::expm1(x)));  // nn.elu
    });
  }

  Tensor float_softmax(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const bool is_log = node.op->name == "nn.log_softmax";
    const double beta = is_log ? 1 : f32(node.attrs.get_double("beta", 1));
    Tensor out = empty_result(node);
    const int64_t named = node.attrs.get_int("axis", -1);
    const auto axis = static_cast<size_t>(named < 0 ? named + std::ssize(x.shape) : named);
    for_each_index(x.shape, [&](const ir::Ints& index) {
      if (index[axis] != 0) return;
      std::vector<size_t> places;
      ir::Ints at = index;
      for (int64_t i = 0; i < x.shape[axis]; ++i) {
        at[axis] = i;
        places.push_back(static_cast<size_t>(flat(x.shape, at)));
      }
      double most = -HUGE_VAL, sum = 0;
      bool has_nan = false;
      for (const size_t i : places) {
        most = std::max(most, x.v[i]);
        has_nan = has_nan || std::isnan(x.v[i]);
      }
      if (has_nan || std::isinf(most)) most = std::nan("");
      std::vector<double> scaled, e;
      for (const size_t i : places) {
        scaled.push_back(f32(f32(x.v[i] - most) * beta));
        e.push_back(float_exp(scaled.back()));
        sum = f32(sum + e.back());
      }
      for (size_t i = 0; i < places.size(); ++i)
        out.v[places[i]] = is_log ? f32(scaled[i] - float_log(sum)) : f32(e[i] / sum);
    });
    return out;
  }
  // That of data that no layer makes: a product and a sum.
  Tensor batch_norm(const ir::Node& node) const {
    return map(node, [&](double x, size_t c) {
      const auto value = [&](size_t i) { return in(node, i).v[c]; };  // gamma, beta, mean, variance
      const double factor = value(1) / std::sqrt(value(4) + node.attrs.get_double("epsilon", 1e-5));
      return f32(f32(x * f32(factor)) + f32(value(2) - value(3) * factor));
    });
  }

  Tensor power(const ir::Node& node) const {
    return two(node, [](double a, double b) { return f32(std::pow(a, b)); });
  }

  Tensor same_elements(const ir::Node& node) const {
    Tensor out = empty_result(node);
    out.v = in(node, 0).v;
    return out;
  }

  void execute(const ir::Node& node) override {
    using Make = Tensor (FunctionInterpreter::*)(const ir::Node&) const;
    static const std::map<std::string, Make> kOperators = {
        {"qnn.lookup", &FunctionInterpreter::lookup},
        {"qnn.tanh", &FunctionInterpreter::function_of_int16},
        {"qnn.log_softmax", &FunctionInterpreter::log_softmax},
        {"qnn.l2_normalize", &FunctionInterpreter::l2_normalize},
        {"nn.integer_softmax", &FunctionInterpreter::softmax_to_int16},
        {"nn.softmax", &FunctionInterpreter::float_softmax},
        {"nn.log_softmax", &FunctionInterpreter::float_softmax},
        {"nn.batch_norm", &FunctionInterpreter::batch_norm},
        {"power", &FunctionInterpreter::power},
        {"squeeze", &FunctionInterpreter::same_elements},
        {"expand_dims", &FunctionInterpreter::same_elements},
        {"nn.batch_flatten", &FunctionInterpreter::same_elements},
    };
    static const std::vector<std::string> kChains = {"exp", "log", "tanh", "sigmoid", "erf", "nn.elu"};
    const std::string& name = node.op->name;
    Tensor& to = values_[node.results[0].index];
    if (const auto found = kOperators.find(name); found != kOperators.end())
      return void(to = (this->*found->second)(node));
    if (name == "qnn.softmax" && f32e(node)) return void(to = softmax_in_float(node));
    if (name == "qnn.sigmoid")
      return void(to = in(node, 0).dtype == ir::kInt16 ? function_of_int16(node) : logistic_of_8_bits(node));
    if (std::ranges::find(kChains, name) != kChains.end() && !is_in_table(node))
      return void(to = float_function(node));
    FixedPointInterpreter::execute(node);
  }

  TfliteFunctions functions_;
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_FUNCTION_INTERPRETER_H_
