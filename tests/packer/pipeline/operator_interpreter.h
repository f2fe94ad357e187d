// naive_interpreter.h with the operators that random_operators.h draws: numbers without scales (int32,
// float32, bool), comparisons, choices by position, reductions, and the quantised operators beyond layers and
// pools. Written from docs/numerics; float32 arithmetic is rounded step by step.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_OPERATOR_INTERPRETER_H_
#define QPLAN_TESTS_PACKER_PIPELINE_OPERATOR_INTERPRETER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/packer/pipeline/float_functions.h"

namespace qplan::naive {

// Modulo 2^bits, read as a number of the dtype.
inline double wrapped(int64_t x, ir::DType dtype) {
  if (dtype == ir::kInt8) return static_cast<int8_t>(x);
  if (dtype == ir::kUint8) return static_cast<uint8_t>(x);
  if (dtype == ir::kInt16) return static_cast<int16_t>(x);
  if (dtype == ir::kInt64) return static_cast<double>(x);
  return static_cast<int32_t>(x);
}

// Accumulators of 64 bits: one rounding, a multiplier of 16 bits.
inline int64_t tfl2_64(int64_t a, Multiplier by) {
  const int64_t m16 = std::min<int64_t>((by.m + (1 << 15)) >> 16, (1 << 15) - 1);
  const auto product = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(m16) +
                                            (uint64_t{1} << (14 - by.e)));
  return static_cast<int32_t>(product >> (15 - by.e));
}

class OperatorInterpreter : public Interpreter {
 public:
  using Interpreter::Interpreter;

 protected:
  static double at(const Tensor& t, const ir::Ints& index) {  // broadcast as NumPy does
    ir::Ints own(t.shape.size());
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = t.shape[i] == 1 ? 0 : index[index.size() - own.size() + i];
    return t.v[static_cast<size_t>(flat(t.shape, own))];
  }

  template <typename F>
  Tensor two(const ir::Node& node, const F& f) const {
    Tensor out = empty_result(node);
    const Tensor &a = in(node, 0), &b = in(node, 1);
    size_t i = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) { out.v[i++] = f(at(a, index), at(b, index)); });
    return out;
  }

  template <typename F>
  Tensor one(const ir::Node& node, const F& f) const {
    Tensor out = empty_result(node);
    std::transform(in(node, 0).v.begin(), in(node, 0).v.end(), out.v.begin(), f);
    return out;
  }

  // ---- numbers ----
  Tensor arithmetic(const ir::Node& node) const {
    const std::string& name = node.op->name;
    const ir::DType dtype = in(node, 0).dtype;
    if (dtype == ir::kFloat32) {
      // With one constant number: a clamp, which keeps a NaN.
      const auto constant = [&](size_t i) {
        return function_.value(node.operands[i]).kind == ir::ValueKind::kConstant &&
               in(node, i).v.size() == 1;
      };
      const bool clamps = constant(1) && in(node, 0).shape == function_.type(node.results[0]).shape;
      return two(node, [&](double a, double b) {
        if (name == "maximum") return clamps ? (a < b ? b : a) : b < a ? a : b;
        if (name == "minimum") return clamps ? (b < a ? b : a) : a < b ? a : b;
        return f32(name == "add"        ? a + b
                   : name == "subtract" ? a - b
                   : name == "multiply" ? a * b  // exact in double, rounded once
                                        : a / b);
      });
    }
    return two(node, [&](double x, double y) {
      const auto a = static_cast<int64_t>(x), b = static_cast<int64_t>(y);
      if (name == "maximum") return std::max(x, y);
      if (name == "minimum") return std::min(x, y);
      const int64_t quotient = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      if (name == "floor_divide") return wrapped(quotient, dtype);
      if (name == "divide") return wrapped(b == 0 ? 0 : a / b, dtype);
      if (name == "floor_mod") return wrapped(b == 0 ? 0 : a - b * quotient, dtype);
      return wrapped(name == "add" ? a + b : name == "subtract" ? a - b : a * b, dtype);
    });
  }

  Tensor compared(const ir::Node& node) const {
    const std::string& name = node.op->name;
    return two(node, [&](double a, double b) -> double {
      return name == "less" ? a < b : name == "equal" ? a == b : a <= b;
    });
  }

  Tensor where(const ir::Node& node) const {
    Tensor out = empty_result(node);
    size_t i = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      out.v[i++] = at(in(node, at(in(node, 0), index) != 0 ? 1 : 2), index);
    });
    return out;
  }

  Tensor cast(const ir::Node& node) const {
    const ir::DType from = in(node, 0).dtype, to = function_.type(node.results[0]).dtype;
    return one(node, [&](double x) {
      if (to == ir::kBool) return x != 0 ? 1.0 : 0.0;
      if (to == ir::kFloat32) return from == ir::kFloat32 ? x : f32(x) + 0.0;  // integers have no -0
      if (from == ir::kFloat32) return std::isnan(x) ? 0.0 : saturate(std::trunc(x), to) + 0.0;
      return wrapped(static_cast<int64_t>(x), to);
    });
  }

  // One real number; of float32 one operation, or a function that is rounded once.
  Tensor unary(const ir::Node& node) const {
    const std::string& name = node.op->name;
    const double alpha = node.attrs.get_double("alpha", name == "nn.elu"         ? 1
                                                        : name == "hard_sigmoid" ? 0.2
                                                                                 : 0.01);
    return one(node, [&](double x) {
      if (name == "nn.relu") return x < 0 ? 0.0 : x;
      if (name == "nn.leaky_relu") return x < 0 ? f32(x * alpha) : x;
      if (name == "nn.elu") return x < 0 ? f32(alpha * std::expm1(x)) : x;
      if (name == "negative") return -x;
      if (name == "abs") return std::fabs(x);
      if (name == "hard_sigmoid") {
        const double y = f32(f32(x * f32(alpha)) + 0.5);
        return y < 0 ? 0.0 : 1 < y ? 1.0 : y;
      }
      if (name == "floor") return std::floor(x);
      if (name == "ceil") return std::ceil(x);
      if (name == "round") return std::copysign(half_even(x), x);
      if (name == "sqrt") return f32(std::sqrt(x));
      if (name == "rsqrt") return f32(1 / f32(std::sqrt(x)));
      if (name == "exp") return f32(std::exp(x));
      if (name == "log") return f32(std::log(x));
      if (name == "tanh") return f32(std::tanh(x));
      if (name == "sigmoid") return f32(1 / (1 + std::exp(-x)));
      if (name == "erf") return f32(std::erf(x));
      if (std::fabs(x) >= 0x1p30) return std::nan("");  // sin and cos
      if (name == "sin") return f32(std::sin(x));
      return f32(std::cos(x));
    });
  }

  // ---- whole axes ----
  // For each output of a reduction its elements in the input's order.
  std::vector<std::vector<double>> reduced_elements(const ir::Node& node, const ir::Ints& axes) const {
    const Tensor& x = in(node, 0);
    std::vector<bool> reduced(x.shape.size(), axes.empty());
    for (const int64_t axis : axes)
      reduced[static_cast<size_t>(axis < 0 ? axis + std::ssize(x.shape) : axis)] = true;
    ir::Shape kept = x.shape;
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = reduced[i] ? 1 : kept[i];
    std::vector<std::vector<double>> lines(
        static_cast<size_t>(std::accumulate(kept.begin(), kept.end(), int64_t{1}, std::multiplies<>())));
    size_t i = 0;
    for_each_index(x.shape, [&](const ir::Ints& index) {
      ir::Ints to = index;
      for (size_t k = 0; k < to.size(); ++k) to[k] = reduced[k] ? 0 : to[k];
      lines[static_cast<size_t>(flat(kept, to))].push_back(x.v[i++]);
    });
    return lines;
  }

  Tensor reduction(const ir::Node& node) const {
    const std::string& name = node.op->name;
    Tensor out = empty_result(node);
    // Sums of a mean of integers do not wrap.
    const auto rounded = [&](double v) {
      if (out.dtype == ir::kFloat32) return f32(v);
      return name == "mean" ? std::trunc(v) : wrapped(static_cast<int64_t>(v), out.dtype);
    };
    size_t i = 0;
    for (const std::vector<double>& line : reduced_elements(node, node.attrs.get_ints("axis", {}))) {
      double v = name == "prod" ? 1.0 : name == "max" || name == "min" ? line[0] : 0.0;
      for (const double e : line) {
        if (name == "max") v = v < e ? e : v;
        if (name == "min") v = e < v ? e : v;
        if (name == "sum" || name == "mean") v = rounded(v + e);
        if (name == "prod") v = rounded(v * e);
      }
      out.v[i++] = name == "mean" ? rounded(v / f32(static_cast<double>(line.size()))) : v;
    }
    return out;
  }

  Tensor quantized_reduction(const ir::Node& node) const {
    const std::string& name = node.op->name;
    Tensor out = empty_result(node);
    size_t i = 0;
    for (const std::vector<double>& line : reduced_elements(node, node.attrs.get_ints("axis", {}))) {
      const auto n = static_cast<int64_t>(line.size());
      double q = 0;
      if (name == "qnn.prod") {
        const double root = std::exp(std::log(scalar(node, 3)) / static_cast<double>(n));
        const Multiplier by = quantize_multiplier(scalar(node, 1) / root);
        // The first factor is not scaled, and the last product is scaled twice.
        int64_t p = 0;
        for (size_t k = 0; k < line.size(); ++k) {
          const auto factor = static_cast<int64_t>(line[k] - scalar(node, 2));
          p = k == 0 ? factor : tfl2_64(p * factor, by);
        }
        q = static_cast<double>(tfl2_64(p, by));
      } else {
        double sum = 0;
        for (const double e : line) sum += e - scalar(node, 2);
        Multiplier by = quantize_multiplier(scalar(node, 1) / scalar(node, 3));
        if (name == "qnn.mean") {
          const int k =
              std::min({static_cast<int>(std::floor(std::log2(static_cast<double>(n)))), 32, 31 + by.e});
          by = {(by.m << k) / n, by.e - k};
        }
        q = static_cast<double>(tfl2(static_cast<int64_t>(sum), by));
      }
      out.v[i++] = saturate(q + scalar(node, 4), out.dtype);
    }
    return out;
  }

  Tensor position(const ir::Node& node) const {
    const bool most = node.op->name == "argmax";
    Tensor out = empty_result(node);
    size_t i = 0;
    for (const std::vector<double>& line : reduced_elements(node, {node.attrs.get_int("axis", 0)})) {
      size_t best = 0;
      bool found = false;
      for (size_t k = 0; k < line.size(); ++k) {
        if (std::isnan(line[k])) continue;
        if (!found || (most ? line[k] > line[best] : line[k] < line[best])) best = k;
        found = true;
      }
      out.v[i++] = static_cast<double>(best);
    }
    return out;
  }

  Tensor cumsum(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    Tensor out = empty_result(node);
    const size_t axis = axis_of(node, x.shape.size());
    const bool exclusive = node.attrs.get_bool("exclusive", false),
               reverse = node.attrs.get_bool("reverse", false);
    for_each_index(x.shape, [&](const ir::Ints& index) {
      double sum = 0;
      const int64_t here = index[axis], last = x.shape[axis] - 1;
      const int64_t count = (reverse ? last - here : here) + (exclusive ? 0 : 1);
      ir::Ints from = index;
      for (int64_t k = 0; k < count; ++k) {
        from[axis] = reverse ? last - k : k;
        sum += x.v[static_cast<size_t>(flat(x.shape, from))];
        sum = x.dtype == ir::kFloat32 ? f32(sum) : wrapped(static_cast<int64_t>(sum), x.dtype);
      }
      out.v[static_cast<size_t>(flat(x.shape, index))] = sum;
    });
    return out;
  }

  void topk(const ir::Node& node) {
    const Tensor& x = in(node, 0);
    Tensor values = empty_result(node), positions = empty_result(node, 1);
    const auto row = static_cast<size_t>(x.shape.back()), k = static_cast<size_t>(node.attrs.get_int("k", 1));
    for (size_t r = 0; r < x.v.size() / row; ++r) {
      std::vector<size_t> order(row);
      std::iota(order.begin(), order.end(), size_t{0});
      const auto more = [&](size_t a, size_t b) {  // a NaN is less than every number
        const double x_a = x.v[r * row + a], x_b = x.v[r * row + b];
        return x_a > x_b || (std::isnan(x_b) && !std::isnan(x_a));
      };
      std::stable_sort(order.begin(), order.end(), more);
      for (size_t i = 0; i < k; ++i) {
        values.v[r * k + i] = x.v[r * row + order[i]];
        positions.v[r * k + i] = static_cast<double>(order[i]);
      }
    }
    values_[node.results[0].index] = std::move(values);
    values_[node.results[1].index] = std::move(positions);
  }

  // ---- layers and pools of float32: one chain of products and sums ----
  Tensor float_conv2d(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &w = in(node, 1);
    const std::string data = node.attrs.get_string("data_layout", "NCHW");
    const std::string kernel = node.attrs.get_string("kernel_layout", "OIHW");
    const Window win = window(node, extent(w, kernel, 'H'), extent(w, kernel, 'W'));
    const int64_t channels = extent(w, kernel, 'I');
    const int64_t per_group = extent(w, kernel, 'O') / node.attrs.get_int("groups", 1);
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const auto letter = [&](char name) { return index[data.find(name)]; };
      double sum = 0;
      for_each_index({win.kh, win.kw, channels}, [&](const ir::Ints& tap) {
        const int64_t y = letter('H') * win.sh + tap[0] * win.dh - win.top;
        const int64_t xx = letter('W') * win.sw + tap[1] * win.dw - win.left;
        if (y < 0 || xx < 0 || y >= extent(x, data, 'H') || xx >= extent(x, data, 'W')) return;
        const int64_t c = letter('C') / per_group * channels + tap[2];
        const ir::Ints from = by_letters(data, {{'N', letter('N')}, {'H', y}, {'W', xx}, {'C', c}});
        const ir::Ints by =
            by_letters(kernel, {{'O', letter('C')}, {'H', tap[0]}, {'W', tap[1]}, {'I', tap[2]}});
        sum = f32(sum + f32(x.v[static_cast<size_t>(flat(x.shape, from))] *
                            w.v[static_cast<size_t>(flat(w.shape, by))]));
      });
      out.v[static_cast<size_t>(flat(out.shape, index))] = sum;
    });
    return out;
  }

  // nn.dense: rows by the rows of the weights. nn.batch_matmul: leading axes broadcast.
  Tensor float_product(const ir::Node& node) const {
    const Tensor &a = in(node, 0), &b = in(node, 1);
    const bool is_dense = node.op->name == "nn.dense";
    const bool transposed = is_dense || node.attrs.get_bool("transpose_b", false);
    Tensor out = empty_result(node);
    const size_t rank = out.shape.size();
    size_t i = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      double sum = 0;
      ir::Ints left = index, right = index;
      for (int64_t k = 0; k < a.shape.back(); ++k) {
        left[rank - 1] = k;
        right[rank - 2] = transposed ? index[rank - 1] : k;
        right[rank - 1] = transposed ? k : index[rank - 1];
        sum = f32(sum + f32(element(a, left) * element(b, right)));
      }
      out.v[i++] = sum;
    });
    return out;
  }
  // As at(), of matrices: their own two axes do not broadcast.
  static double element(const Tensor& t, const ir::Ints& index) {
    ir::Ints own(t.shape.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const bool broadcasts = i + 2 < own.size() && t.shape[i] == 1;
      own[i] = broadcasts ? 0 : index[index.size() - own.size() + i];
    }
    return t.v[static_cast<size_t>(flat(t.shape, own))];
  }

  Tensor float_pool(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const bool max = node.op->name == "nn.max_pool2d", all = node.op->name == "nn.global_avg_pool2d";
    const std::string layout = node.attrs.get_string("layout", "NCHW");
    ir::Ints size = node.attrs.get_ints("pool_size", {});
    if (all) size = {extent(x, layout, 'H'), extent(x, layout, 'W')};
    const Window win = window(node, size[0], size[1]);
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const auto letter = [&](char name) { return index[layout.find(name)]; };
      double most = -HUGE_VAL, sum = 0, count = 0;
      for_each_index({win.kh, win.kw}, [&](const ir::Ints& tap) {
        const int64_t y = letter('H') * win.sh + tap[0] - win.top,
                      xx = letter('W') * win.sw + tap[1] - win.left;
        if (y < 0 || xx < 0 || y >= extent(x, layout, 'H') || xx >= extent(x, layout, 'W')) return;
        const ir::Ints from =
            by_letters(layout, {{'N', letter('N')}, {'H', y}, {'W', xx}, {'C', letter('C')}});
        const double e = x.v[static_cast<size_t>(flat(x.shape, from))];
        most = most < e ? e : most;
        sum = f32(sum + e);
        ++count;
      });
      if (node.attrs.get_bool("count_include_pad", false)) count = static_cast<double>(win.kh * win.kw);
      out.v[static_cast<size_t>(flat(out.shape, index))] = max ? most : f32(sum / count);
    });
    return out;
  }

  Tensor float_bias(const ir::Node& node) const {
    return map(node, [&](double x, size_t c) { return f32(x + in(node, 1).v[c]); });
  }

  // ---- positions ----
  Tensor take(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &indices = in(node, 1);
    const size_t axis = axis_of(node, x.shape.size()), rank = indices.shape.size();
    Tensor out = empty_result(node);
    size_t i = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const auto begin = index.begin() + static_cast<std::ptrdiff_t>(axis);
      const auto end = begin + static_cast<std::ptrdiff_t>(rank);
      auto position = static_cast<int64_t>(indices.v[static_cast<size_t>(flat(indices.shape, {begin, end}))]);
      if (position < 0) position += x.shape[axis];
      ir::Ints from(index.begin(), begin);
      from.push_back(std::clamp<int64_t>(position, 0, x.shape[axis] - 1));
      from.insert(from.end(), end, index.end());
      out.v[i++] = x.v[static_cast<size_t>(flat(x.shape, from))];
    });
    return out;
  }

  Tensor gather_nd(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &indices = in(node, 1);
    const auto named = static_cast<size_t>(indices.shape.back());
    const size_t rows_rank = indices.shape.size() - 1;
    Tensor out = empty_result(node);
    size_t i = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      ir::Ints row(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(rows_rank)), from;
      row.push_back(0);
      for (size_t k = 0; k < named; ++k) {
        row.back() = static_cast<int64_t>(k);
        auto position = static_cast<int64_t>(indices.v[static_cast<size_t>(flat(indices.shape, row))]);
        if (position < 0) position += x.shape[k];
        from.push_back(std::clamp<int64_t>(position, 0, x.shape[k] - 1));
      }
      from.insert(from.end(), index.begin() + static_cast<std::ptrdiff_t>(rows_rank), index.end());
      out.v[i++] = x.v[static_cast<size_t>(flat(x.shape, from))];
    });
    return out;
  }

  // Strides of either sign along some axes; begins may count from behind.
  Tensor slice(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const ir::Ints begin = node.attrs.get_ints("begin", {}), strides = node.attrs.get_ints("strides", {});
    ir::Ints axes = node.attrs.get_ints("axes", {});
    for (size_t i = axes.size(); i < begin.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    Tensor out = empty_result(node);
    size_t to = 0;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      ir::Ints from = index;
      for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(axes[i]);
        from[axis] = (begin[i] < 0 ? begin[i] + x.shape[axis] : begin[i]) + index[axis] * strides[i];
      }
      out.v[to++] = x.v[static_cast<size_t>(flat(x.shape, from))];
    });
    return out;
  }

  // ---- quantised ----
  Tensor quantized_pair(const ir::Node& node) const {
    const std::string& name = node.op->name;
    const double sa = scalar(node, 2), sb = scalar(node, 4), so = scalar(node, 6);
    const float fa = scale(node, 2), fb = scale(node, 4), fo = scale(node, 6);
    const ir::DType dtype = function_.type(node.results[0]).dtype;
    const int left = name == "qnn.squared_difference" ? 7 : dtype == ir::kInt16 ? 15 : 20;
    const double twice = 2 * std::max(sa, sb);
    const auto part = [&](double q, double s) {
      return tfl2(static_cast<int64_t>(q) << left, quantize_multiplier(s / twice));
    };
    const auto value = [&](int64_t a, int64_t b) -> int64_t {
      if (name == "qnn.prelu") {
        if (a >= 0) return tfl2(a, quantize_multiplier(static_cast<double>(fa / fo)));
        return tfl2(a * b, quantize_multiplier(static_cast<double>(fa * fb / fo)));
      }
      if (name == "qnn.mul") return tfl2(a * b, quantize_multiplier(static_cast<double>(fa * fb / fo)));
      const int64_t x = part(static_cast<double>(a), sa), y = part(static_cast<double>(b), sb);
      if (name == "qnn.squared_difference") {
        const int64_t d = static_cast<int32_t>(x - y);
        return tfl2(static_cast<int32_t>(d * d), quantize_multiplier(twice * twice / (0x1p14 * so)));
      }
      return tfl2(name == "qnn.subtract" ? x - y : x + y,
                  quantize_multiplier(twice / (std::ldexp(1.0, left) * so)));
    };
    return two(node, [&](double a, double b) {
      const int64_t q =
          value(static_cast<int64_t>(a - scalar(node, 3)), static_cast<int64_t>(b - scalar(node, 5)));
      return saturate(static_cast<double>(q) + scalar(node, 7), dtype);
    });
  }

  Tensor conv2d_transpose(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &w = in(node, 1);
    const ir::Ints strides = node.attrs.get_ints("strides", {1, 1}),
                   crop = node.attrs.get_ints("crop", {0, 0});
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& o) {
      double sum = 0;
      for_each_index(x.shape, [&](const ir::Ints& i) {
        const int64_t ky = o[1] + crop[0] - i[1] * strides[0], kx = o[2] + crop[1] - i[2] * strides[1];
        if (i[0] != o[0] || ky < 0 || kx < 0 || ky >= w.shape[1] || kx >= w.shape[2]) return;
        sum += (x.v[static_cast<size_t>(flat(x.shape, i))] - scalar(node, 2)) *
               (w.v[static_cast<size_t>(flat(w.shape, {o[3], ky, kx, i[3]}))] -
                scalar(node, 3, static_cast<size_t>(o[3])));
      });
      out.v[static_cast<size_t>(flat(out.shape, o))] = sum;
    });
    return out;
  }

  // int8: TFL_INTEGER, places in 1/1024 and exact sums. uint8: TFL_FLOAT. float32: height, then width.
  struct Place {
    int64_t lower, upper;
    double distance;
  };
  static Place place(int64_t o, int64_t in_n, int64_t out_n, const std::string& mode, bool integer) {
    const bool aligned = mode == "align_corners" && out_n > 1, half = mode == "half_pixel";
    const int64_t from = aligned ? in_n - 1 : in_n, to = aligned ? out_n - 1 : out_n;
    if (integer) {
      const int64_t s = (1024 * from + to / 2) / to, p = o * s + (half ? s / 2 - 512 : 0);
      const int64_t lower = std::min(std::max<int64_t>(p / 1024, 0), in_n - 1);
      return {lower, std::min((p + 1023) / 1024, in_n - 1), static_cast<double>(p - 1024 * lower)};
    }
    const double s = f32(static_cast<double>(from) / static_cast<double>(to)), at = static_cast<double>(o);
    const double p = half ? f32(f32((at + 0.5) * s) - 0.5) : f32(at * s);
    const double lower = std::min(std::max(std::floor(p), 0.0), static_cast<double>(in_n - 1));
    const double upper = std::clamp(std::ceil(p), 0.0, static_cast<double>(in_n - 1));
    return {static_cast<int64_t>(lower), static_cast<int64_t>(upper), f32(p - lower)};
  }
  Tensor resize(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const std::string mode = node.attrs.get_string("coordinate_transformation_mode", "half_pixel");
    const std::string layout = node.attrs.get_string("layout", "NCHW");
    Tensor out = empty_result(node);
    const bool integer = x.dtype == ir::kInt8, real = x.dtype == ir::kFloat32;
    const auto round = [&](double v) { return integer ? v : f32(v); };
    const double one = integer ? 1024 : 1;
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const auto letter = [&](char name) { return index[layout.find(name)]; };
      const Place h = place(letter('H'), extent(x, layout, 'H'), extent(out, layout, 'H'), mode, integer);
      const Place w = place(letter('W'), extent(x, layout, 'W'), extent(out, layout, 'W'), mode, integer);
      const auto value = [&](int64_t y, int64_t xx) {
        return x.v[static_cast<size_t>(flat(
            x.shape, by_letters(layout, {{'N', letter('N')}, {'H', y}, {'W', xx}, {'C', letter('C')}})))];
      };
      const double dy = h.distance, dx = w.distance, ey = round(one - dy), ex = round(one - dx);
      double& to = out.v[static_cast<size_t>(flat(out.shape, index))];
      if (real) {
        const auto along = [&](double a, double b, double d, double e) {
          return f32(f32(a * e) + f32(b * d));
        };
        to = along(along(value(h.lower, w.lower), value(h.upper, w.lower), dy, ey),
                   along(value(h.lower, w.upper), value(h.upper, w.upper), dy, ey), dx, ex);
        return;
      }
      const auto term = [&](double v, double a, double b) { return round(round(v * a) * b); };
      double sum = round(term(value(h.lower, w.lower), ey, ex) + term(value(h.upper, w.lower), dy, ex));
      sum = round(sum + term(value(h.lower, w.upper), ey, dx));
      sum = round(sum + term(value(h.upper, w.upper), dy, dx));
      to = integer ? half_away(sum / 0x1p20) : std::trunc(round(sum + 0.5));
    });
    return out;
  }

  void execute(const ir::Node& node) override {
    using Make = Tensor (OperatorInterpreter::*)(const ir::Node&) const;
    static const std::vector<std::pair<Make, std::vector<std::string>>> kOperators = {
        {&OperatorInterpreter::arithmetic,
         {"add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "floor_mod"}},
        {&OperatorInterpreter::compared, {"less", "less_equal", "equal"}},
        {&OperatorInterpreter::where, {"where"}},
        {&OperatorInterpreter::cast, {"cast"}},
        {&OperatorInterpreter::unary,
         {"nn.relu", "nn.leaky_relu", "nn.elu", "negative", "abs", "floor", "ceil", "round", "hard_sigmoid",
          "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "erf", "sin", "cos"}},
        {&OperatorInterpreter::reduction, {"max", "min", "sum", "prod", "mean"}},
        {&OperatorInterpreter::quantized_reduction, {"qnn.sum", "qnn.prod", "qnn.mean"}},
        {&OperatorInterpreter::position, {"argmax", "argmin"}},
        {&OperatorInterpreter::cumsum, {"cumsum"}},
        {&OperatorInterpreter::take, {"take"}},
        {&OperatorInterpreter::gather_nd, {"gather_nd"}},
        {&OperatorInterpreter::slice, {"strided_slice"}},
        {&OperatorInterpreter::quantized_pair,
         {"qnn.prelu", "qnn.squared_difference", "qnn.add", "qnn.subtract", "qnn.mul"}},
        {&OperatorInterpreter::conv2d_transpose, {"qnn.conv2d_transpose"}},
        {&OperatorInterpreter::resize, {"image.resize2d"}},
        {&OperatorInterpreter::float_conv2d, {"nn.conv2d"}},
        {&OperatorInterpreter::float_product, {"nn.dense", "nn.batch_matmul"}},
        {&OperatorInterpreter::float_pool, {"nn.avg_pool2d", "nn.global_avg_pool2d"}},
    };
    if (node.op->name == "topk") return topk(node);
    const bool is_float = in(node, 0).dtype == ir::kFloat32;
    if (is_float && node.op->name == "nn.max_pool2d")
      return void(values_[node.results[0].index] = float_pool(node));
    if (is_float && node.op->name == "nn.bias_add")
      return void(values_[node.results[0].index] = float_bias(node));
    for (const auto& [make, names] : kOperators) {
      if (std::ranges::find(names, node.op->name) == names.end()) continue;
      return void(values_[node.results[0].index] = (this->*make)(node));
    }
    Interpreter::execute(node);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_OPERATOR_INTERPRETER_H_
