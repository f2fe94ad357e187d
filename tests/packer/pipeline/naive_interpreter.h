// Executes quantised functions node by node, straight from docs/numerics: plain loops over float64 values
// that hold every int8, uint8, int32 and float32 exactly, float32 arithmetic rounded step by step. Shares
// nothing with kernels, passes or lowerings; only for functions of integer operators and their border.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_NAIVE_INTERPRETER_H_
#define QPLAN_TESTS_PACKER_PIPELINE_NAIVE_INTERPRETER_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"

namespace qplan::naive {

struct Tensor {
  ir::DType dtype;
  ir::Shape shape;
  std::vector<double> v;

  int64_t size() const {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return n;
  }
};

template <typename T>
void read_bytes(const ir::Constant& constant, Tensor* to) {
  for (const T value : constant.as<T>()) to->v.push_back(static_cast<double>(value));
}

inline Tensor from_constant(const ir::Constant& constant) {
  Tensor t{constant.type().dtype, constant.type().shape, {}};
  if (t.dtype == ir::kInt8) read_bytes<int8_t>(constant, &t);
  if (t.dtype == ir::kUint8) read_bytes<uint8_t>(constant, &t);
  if (t.dtype == ir::kInt16) read_bytes<int16_t>(constant, &t);
  if (t.dtype == ir::kInt32) read_bytes<int32_t>(constant, &t);
  if (t.dtype == ir::kInt64) read_bytes<int64_t>(constant, &t);  // below 2^53
  if (t.dtype == ir::kFloat32) read_bytes<float>(constant, &t);
  return t;
}

template <typename T>
ir::ConstantRef write_bytes(const Tensor& t) {
  std::vector<T> values;
  for (const double value : t.v) values.push_back(static_cast<T>(value));
  return ir::make_constant(t.dtype, t.shape, values);
}

inline ir::ConstantRef to_constant(const Tensor& t) {
  if (t.dtype == ir::kInt8) return write_bytes<int8_t>(t);
  if (t.dtype == ir::kUint8) return write_bytes<uint8_t>(t);
  if (t.dtype == ir::kInt16) return write_bytes<int16_t>(t);
  if (t.dtype == ir::kInt32) return write_bytes<int32_t>(t);
  return write_bytes<float>(t);
}

// ---- indices ----

inline int64_t flat(const ir::Shape& shape, const ir::Ints& index) {
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
  return offset;
}

template <typename Visit>
void for_each_index(const ir::Shape& shape, const Visit& visit) {
  ir::Ints index(shape.size(), 0);
  for (;;) {
    visit(index);
    size_t i = shape.size();
    while (i > 0 && ++index[i - 1] == shape[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

// "NHWC", {{'N', 0}, ...} -> index; letters of a layout in its order.
inline ir::Ints by_letters(const std::string& layout,
                           std::initializer_list<std::pair<char, int64_t>> positions) {
  ir::Ints index;
  for (const char letter : layout) {
    for (const auto& [name, position] : positions) {
      if (name == letter) index.push_back(position);
    }
  }
  return index;
}
inline int64_t extent(const Tensor& t, const std::string& layout, char letter) {
  return t.shape[layout.find(letter)];
}

// ---- the arithmetic of the contracts ----

inline double half_even(double x) {
  if (std::isinf(x)) return x;
  const double down = std::floor(x), rest = x - down;
  if (rest != 0.5) return rest < 0.5 ? down : down + 1;
  return std::fmod(down, 2.0) == 0 ? down : down + 1;
}
inline double half_away(double x) { return x < 0 ? -std::floor(-x + 0.5) : std::floor(x + 0.5); }

inline double saturate(double x, ir::DType dtype) {
  return std::clamp(x, static_cast<double>(dtype.min()), static_cast<double>(dtype.max()));
}

struct Multiplier {
  int64_t m = 0;
  int e = 0;
};
inline Multiplier quantize_multiplier(double real) {
  int e = 0;
  auto m = static_cast<int64_t>(std::floor(std::frexp(real, &e) * 0x1p31 + 0.5));
  if (m == int64_t{1} << 31) m /= 2, ++e;
  return e < -31 ? Multiplier{} : Multiplier{m, e};
}

inline int64_t tfl2(int64_t a, Multiplier by) {
  const int left = std::max(by.e, 0), right = std::max(-by.e, 0);
  const auto x = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << left));
  const int64_t v = (x * by.m + (int64_t{1} << 30)) >> 31;
  const int64_t scale = int64_t{1} << right;
  // v / 2^right, half away from zero
  const int64_t magnitude = (std::abs(v) * 2 + scale) / (2 * scale);
  return v < 0 ? -magnitude : magnitude;
}

// ---- operators ----

class Interpreter {
 public:
  explicit Interpreter(const ir::Function& function) : function_(function), values_(function.num_values()) {}
  virtual ~Interpreter() = default;

  std::vector<Tensor> run(const std::vector<ir::ConstantRef>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      values_[function_.params()[i].index] = from_constant(*inputs[i]);
    }
    for (uint32_t i = 0; i < function_.num_values(); ++i) {
      const ir::Value& value = function_.value({i});
      if (value.kind == ir::ValueKind::kConstant) values_[i] = from_constant(*value.constant);
    }
    for (const ir::Node& node : function_.nodes()) execute(node);
    std::vector<Tensor> outputs;
    for (const ir::ValueId output : function_.outputs()) outputs.push_back(values_[output.index]);
    return outputs;
  }

 protected:
  const Tensor& in(const ir::Node& node, size_t i) const { return values_[node.operands[i].index]; }
  // A scale or zero point: one, or one per channel.
  double scalar(const ir::Node& node, size_t i, size_t channel = 0) const {
    const std::vector<double>& v = in(node, i).v;
    return v[v.size() == 1 ? 0 : channel];
  }
  float scale(const ir::Node& node, size_t i, size_t channel = 0) const {
    return static_cast<float>(scalar(node, i, channel));
  }
  static bool f32e(const ir::Node& node) { return node.attrs.get_string("contract", "tfl2") == "f32e"; }
  Tensor empty_result(const ir::Node& node, size_t i = 0) const {
    const ir::TensorType& type = function_.type(node.results[i]);
    Tensor t{type.dtype, type.shape, {}};
    t.v.resize(static_cast<size_t>(t.size()));
    return t;
  }

  // y = f(x) element by element; the channel is the index along `axis`.
  template <typename F>
  Tensor map(const ir::Node& node, const F& f) const {
    Tensor out = empty_result(node);
    const Tensor& x = in(node, 0);
    int64_t axis = node.attrs.get_int("axis", node.op->name == "nn.bias_add" ? 1 : -1);
    if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
    for_each_index(x.shape, [&](const ir::Ints& index) {
      const auto i = static_cast<size_t>(flat(x.shape, index));
      out.v[i] = f(x.v[i], index.empty() ? 0 : static_cast<size_t>(index[static_cast<size_t>(axis)]));
    });
    return out;
  }

  Tensor quantize(const ir::Node& node) const {
    const ir::DType dtype = function_.type(node.results[0]).dtype;
    const std::string rule = node.attrs.get_string("rule", "");
    return map(node, [&](double x, size_t c) {
      const float s = scale(node, 1, c), value = static_cast<float>(x);
      const float real = rule == "mul_even" ? value * (1.0f / s) : value / s;
      if (std::isnan(real)) return scalar(node, 2, c);
      const bool even = rule.empty() ? f32e(node) : rule != "div_away";
      return saturate((even ? half_even(real) : half_away(real)) + scalar(node, 2, c), dtype);
    });
  }

  Tensor dequantize(const ir::Node& node) const {
    return map(node, [&](double x, size_t c) {
      return static_cast<double>(static_cast<float>(x - scalar(node, 2, c)) * scale(node, 1, c));
    });
  }

  // The real multiplier of TFL2 for an accumulator: formed from the scales of the layer that made it.
  double real_multiplier(const ir::Node& node, size_t c) const {
    const ir::Node* layer = function_.producer(node.operands[0]);
    while (layer != nullptr && layer->op->name == "nn.bias_add")
      layer = function_.producer(layer->operands[0]);
    const double output = scalar(node, 3, c);
    if (layer == nullptr || (!layer->op->name.starts_with("qnn.conv2d") && layer->op->name != "qnn.dense"))
      return scalar(node, 1, c) / output;
    if (node.attrs.get_string("multiplier", "product_f64") == "product_f32")
      return static_cast<double>(scale(*layer, 4) * scale(*layer, 5, c)) / output;
    return scalar(*layer, 4) * scalar(*layer, 5, c) / output;
  }

  Tensor requantize(const ir::Node& node) const {
    const ir::DType dtype = function_.type(node.results[0]).dtype;
    const bool accumulator = in(node, 0).dtype == ir::kInt32;
    return map(node, [&](double x, size_t c) {
      const double centred = x - scalar(node, 2, c);
      const bool in_float = node.attrs.get_string("multiplier", "") == "none";
      if (!f32e(node) && !in_float) {
        const double real = accumulator ? real_multiplier(node, c) : scalar(node, 1, c) / scalar(node, 3, c);
        const int64_t value = tfl2(static_cast<int64_t>(centred), quantize_multiplier(real));
        return saturate(static_cast<double>(value) + scalar(node, 4, c), dtype);
      }
      const float s_in = scale(node, 1, c), s_out = scale(node, 3, c), value = static_cast<float>(centred);
      const float real = accumulator ? value * (s_in / s_out) : (value * s_in) / s_out;
      return saturate((f32e(node) ? half_even(real) : half_away(real)) + scalar(node, 4, c), dtype);
    });
  }

  struct Window {
    int64_t kh, kw, sh, sw, dh, dw, top, left;
  };
  static Window window(const ir::Node& node, int64_t kh, int64_t kw) {
    const auto two = [&](const char* name) {
      ir::Ints values = node.attrs.get_ints(name, {1, 1});
      if (values.size() == 1) values.push_back(values[0]);
      return values;
    };
    const ir::Ints padding = node.attrs.get_ints("padding", {0, 0, 0, 0});
    const ir::Ints strides = two("strides"), dilation = two("dilation");
    return {kh,          kw,          strides[0], strides[1],
            dilation[0], dilation[1], padding[0], padding.size() == 1 ? padding[0] : padding[1]};
  }

  Tensor conv2d(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &w = in(node, 1);
    const std::string data = node.attrs.get_string("data_layout", "NCHW");
    const std::string kernel = node.attrs.get_string("kernel_layout", "OIHW");
    const Window win = window(node, extent(w, kernel, 'H'), extent(w, kernel, 'W'));
    const int64_t groups = node.attrs.get_int("groups", 1);
    const int64_t per_group_in = extent(w, kernel, 'I'), per_group_out = extent(w, kernel, 'O') / groups;
    const double outside =
        static_cast<double>(node.attrs.get_int("pad_value", static_cast<int64_t>(scalar(node, 2))));
    Tensor out = empty_result(node);
    const int64_t height = extent(x, data, 'H'), width = extent(x, data, 'W');
    for (int64_t n = 0; n < extent(out, data, 'N'); ++n)
      for (int64_t y = 0; y < extent(out, data, 'H'); ++y)
        for (int64_t xx = 0; xx < extent(out, data, 'W'); ++xx)
          for (int64_t o = 0; o < extent(out, data, 'C'); ++o) {
            double sum = 0;
            for (int64_t ky = 0; ky < win.kh; ++ky)
              for (int64_t kx = 0; kx < win.kw; ++kx)
                for (int64_t i = 0; i < per_group_in; ++i) {
                  const int64_t iy = y * win.sh + ky * win.dh - win.top;
                  const int64_t ix = xx * win.sw + kx * win.dw - win.left;
                  const bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
                  const int64_t c = o / per_group_out * per_group_in + i;
                  const double value =
                      inside ? x.v[static_cast<size_t>(flat(
                                   x.shape, by_letters(data, {{'N', n}, {'H', iy}, {'W', ix}, {'C', c}})))]
                             : outside;
                  const double weight = w.v[static_cast<size_t>(
                      flat(w.shape, by_letters(kernel, {{'O', o}, {'H', ky}, {'W', kx}, {'I', i}})))];
                  sum += (value - scalar(node, 2)) * (weight - scalar(node, 3, static_cast<size_t>(o)));
                }
            out.v[static_cast<size_t>(
                flat(out.shape, by_letters(data, {{'N', n}, {'H', y}, {'W', xx}, {'C', o}})))] = sum;
          }
    return out;
  }

  Tensor dense(const ir::Node& node) const {
    const Tensor &x = in(node, 0), &w = in(node, 1);
    Tensor out = empty_result(node);
    const size_t k = static_cast<size_t>(w.shape[1]), units = static_cast<size_t>(w.shape[0]);
    for (size_t row = 0; row < x.v.size() / k; ++row)
      for (size_t o = 0; o < units; ++o) {
        double sum = 0;
        for (size_t i = 0; i < k; ++i)
          sum += (x.v[row * k + i] - scalar(node, 2)) * (w.v[o * k + i] - scalar(node, 3, o));
        out.v[row * units + o] = sum;
      }
    return out;
  }

  Tensor binary(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const Tensor &a = in(node, 0), &b = in(node, 1);
    const auto element = [&](const Tensor& t, const ir::Ints& index) {
      ir::Ints own(t.shape.size());
      for (size_t i = 0; i < own.size(); ++i) {
        own[i] = t.shape[i] == 1 ? 0 : index[index.size() - own.size() + i];
      }
      return t.v[static_cast<size_t>(flat(t.shape, own))];
    };
    const float sa = scale(node, 2), sb = scale(node, 4), so = scale(node, 6);
    const double za = scalar(node, 3), zb = scalar(node, 5), zo = scalar(node, 7);
    const bool mul = node.op->name == "qnn.mul", minus = node.op->name == "qnn.subtract";
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const double qa = element(a, index) - za, qb = element(b, index) - zb;
      double value = 0;
      if (f32e(node)) {
        const float ra = static_cast<float>(qa) * sa, rb = static_cast<float>(qb) * sb;
        const float real = mul ? ra * rb : minus ? ra - rb : ra + rb;
        value = half_even(real / so);
      } else if (mul) {
        const float real = sa * sb / so;
        value = static_cast<double>(
            tfl2(static_cast<int64_t>(qa * qb), quantize_multiplier(static_cast<double>(real))));
      } else {
        const double twice = 2 * std::max(static_cast<double>(sa), static_cast<double>(sb));
        const auto part = [&](double q, float s) {
          return tfl2(static_cast<int64_t>(q * 0x1p20), quantize_multiplier(static_cast<double>(s) / twice));
        };
        const int64_t sum = part(qa, sa) + (minus ? -part(qb, sb) : part(qb, sb));
        value =
            static_cast<double>(tfl2(sum, quantize_multiplier(twice / (0x1p20 * static_cast<double>(so)))));
      }
      out.v[static_cast<size_t>(flat(out.shape, index))] = saturate(value + zo, out.dtype);
    });
    return out;
  }

  Tensor batch_matmul(const ir::Node& node) const {
    const Tensor &a = in(node, 0), &b = in(node, 1);
    const bool transposed = node.attrs.get_bool("transpose_b", false);
    Tensor out = empty_result(node);
    const size_t rank = out.shape.size();
    const auto element = [&](const Tensor& t, const ir::Ints& index, int64_t row, int64_t column) {
      ir::Ints own(t.shape.size());
      for (size_t i = 0; i + 2 < own.size(); ++i) own[i] = t.shape[i] == 1 ? 0 : index[rank - own.size() + i];
      own[own.size() - 2] = row;
      own[own.size() - 1] = column;
      return t.v[static_cast<size_t>(flat(t.shape, own))];
    };
    const float product = scale(node, 2) * scale(node, 4);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const int64_t row = index[rank - 2], column = index[rank - 1];
      double sum = 0;
      for (int64_t k = 0; k < a.shape.back(); ++k) {
        sum += (element(a, index, row, k) - scalar(node, 3)) *
               (element(b, index, transposed ? column : k, transposed ? k : column) - scalar(node, 5));
      }
      double value = 0;
      if (f32e(node)) {
        value = half_even(static_cast<float>(sum) * (product / scale(node, 6)));
      } else {
        const Multiplier by = quantize_multiplier(static_cast<double>(product) / scalar(node, 6));
        value = static_cast<double>(tfl2(static_cast<int64_t>(sum), by));
      }
      out.v[static_cast<size_t>(flat(out.shape, index))] = saturate(value + scalar(node, 7), out.dtype);
    });
    return out;
  }

  Tensor pool(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const std::string layout = node.attrs.get_string("layout", "NCHW");
    ir::Ints size = node.attrs.get_ints("pool_size", {});
    if (size.size() == 1) size.push_back(size[0]);
    const Window win = window(node, size[0], size[1]);
    const bool max = node.op->name == "nn.max_pool2d";
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      const auto at = [&](char letter) { return index[layout.find(letter)]; };
      double most = -1e9, sum = 0, count = 0;
      for (int64_t ky = 0; ky < win.kh; ++ky)
        for (int64_t kx = 0; kx < win.kw; ++kx) {
          const int64_t iy = at('H') * win.sh + ky - win.top, ix = at('W') * win.sw + kx - win.left;
          if (iy < 0 || ix < 0 || iy >= extent(x, layout, 'H') || ix >= extent(x, layout, 'W')) continue;
          const double value = x.v[static_cast<size_t>(
              flat(x.shape, by_letters(layout, {{'N', at('N')}, {'H', iy}, {'W', ix}, {'C', at('C')}})))];
          most = std::max(most, value);
          sum += value;
          ++count;
        }
      double& to = out.v[static_cast<size_t>(flat(out.shape, index))];
      if (max) {
        to = most;
      } else if (f32e(node)) {
        const double n =
            node.attrs.get_bool("count_include_pad", false) ? static_cast<double>(win.kh * win.kw) : count;
        const float factor = scale(node, 1) / (scale(node, 3) * static_cast<float>(n));
        const float real = static_cast<float>(sum - count * scalar(node, 2)) * factor;
        to = saturate(half_even(real) + scalar(node, 4), out.dtype);
      } else {
        to = half_away(sum / count);  // at most 255 * count: a quotient next to a tie is a tie
      }
    });
    return out;
  }

  Tensor mean(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    std::vector<bool> reduced(x.shape.size(), node.attrs.get_ints("axis", {}).empty());
    for (const int64_t axis : node.attrs.get_ints("axis", {})) {
      reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape.size()) : axis)] = true;
    }
    ir::Shape kept = x.shape;
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = reduced[i] ? 1 : kept[i];
    Tensor out = empty_result(node);  // without the axes of extent 1 the elements are in the same order
    std::fill(out.v.begin(), out.v.end(), 0.0);
    for_each_index(x.shape, [&](const ir::Ints& index) {
      ir::Ints to = index;
      for (size_t i = 0; i < to.size(); ++i) to[i] = reduced[i] ? 0 : to[i];
      out.v[static_cast<size_t>(flat(kept, to))] +=
          x.v[static_cast<size_t>(flat(x.shape, index))] - scalar(node, 2);
    });
    const auto n = static_cast<int64_t>(x.v.size() / out.v.size());
    for (double& value : out.v) {
      if (f32e(node)) {
        const float factor = scale(node, 1) / (scale(node, 3) * static_cast<float>(n));
        value = half_even(static_cast<float>(value) * factor);
      } else {
        Multiplier by = quantize_multiplier(scalar(node, 1) / scalar(node, 3));
        const int k =
            std::min({static_cast<int>(std::floor(std::log2(static_cast<double>(n)))), 32, 31 + by.e});
        by = {(by.m << k) / n, by.e - k};
        value = static_cast<double>(tfl2(static_cast<int64_t>(value), by));
      }
      value = saturate(value + scalar(node, 4), out.dtype);
    }
    return out;
  }

  Tensor transpose(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const ir::Ints axes = node.attrs.get_ints("axes", {});
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      ir::Ints from(index.size());
      for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(axes[i])] = index[i];
      out.v[static_cast<size_t>(flat(out.shape, index))] = x.v[static_cast<size_t>(flat(x.shape, from))];
    });
    return out;
  }

  Tensor strided_slice(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const ir::Ints begin = node.attrs.get_ints("begin", {}), strides = node.attrs.get_ints("strides", {});
    Tensor out = empty_result(node);
    for_each_index(out.shape, [&](const ir::Ints& index) {
      ir::Ints from = index;
      for (size_t i = 0; i < from.size(); ++i) from[i] = begin[i] + index[i] * strides[i];
      out.v[static_cast<size_t>(flat(out.shape, index))] = x.v[static_cast<size_t>(flat(x.shape, from))];
    });
    return out;
  }

  Tensor pad(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    const std::vector<ir::Ints> widths = node.attrs.get_int_lists("pad_width", {});
    Tensor out = empty_result(node);
    std::fill(out.v.begin(), out.v.end(), in(node, 1).v[0]);
    for_each_index(x.shape, [&](const ir::Ints& index) {
      ir::Ints to = index;
      for (size_t i = 0; i < to.size(); ++i) to[i] += widths[i][0];
      out.v[static_cast<size_t>(flat(out.shape, to))] = x.v[static_cast<size_t>(flat(x.shape, index))];
    });
    return out;
  }

  static size_t axis_of(const ir::Node& node, size_t rank) {
    const int64_t axis = node.attrs.get_int("axis", 0);
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }

  Tensor concatenate(const ir::Node& node) const {
    Tensor out = empty_result(node);
    const size_t axis = axis_of(node, out.shape.size());
    int64_t begin = 0;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Tensor& part = in(node, k);
      for_each_index(part.shape, [&](const ir::Ints& index) {
        ir::Ints to = index;
        to[axis] += begin;
        out.v[static_cast<size_t>(flat(out.shape, to))] =
            part.v[static_cast<size_t>(flat(part.shape, index))];
      });
      begin += part.shape[axis];
    }
    return out;
  }

  void split(const ir::Node& node) {
    const Tensor& x = in(node, 0);
    const size_t axis = axis_of(node, x.shape.size());
    int64_t begin = 0;
    for (size_t k = 0; k < node.results.size(); ++k) {
      Tensor part = empty_result(node, k);
      for_each_index(part.shape, [&](const ir::Ints& index) {
        ir::Ints from = index;
        from[axis] += begin;
        part.v[static_cast<size_t>(flat(part.shape, index))] = x.v[static_cast<size_t>(flat(x.shape, from))];
      });
      begin += part.shape[axis];
      values_[node.results[k].index] = std::move(part);
    }
  }

  virtual void execute(const ir::Node& node) {
    const std::string& name = node.op->name;
    Tensor& to = values_[node.results[0].index];
    if (name == "split") return split(node);
    if (name == "qnn.quantize") return void(to = quantize(node));
    if (name == "qnn.dequantize") return void(to = dequantize(node));
    if (name == "qnn.requantize") return void(to = requantize(node));
    if (name == "qnn.conv2d") return void(to = conv2d(node));
    if (name == "qnn.dense") return void(to = dense(node));
    if (name == "qnn.add" || name == "qnn.subtract" || name == "qnn.mul") return void(to = binary(node));
    if (name == "qnn.avg_pool2d" || name == "nn.max_pool2d") return void(to = pool(node));
    if (name == "qnn.mean") return void(to = mean(node));
    if (name == "qnn.batch_matmul") return void(to = batch_matmul(node));
    if (name == "transpose") return void(to = transpose(node));
    if (name == "strided_slice") return void(to = strided_slice(node));
    if (name == "nn.pad") return void(to = pad(node));
    if (name == "concatenate") return void(to = concatenate(node));
    if (name == "reshape") return void(to = map(node, [](double x, size_t) { return x; }));
    if (name == "nn.bias_add")
      return void(to = map(node, [&](double x, size_t c) { return x + in(node, 1).v[c]; }));
    if (name == "clip") {
      const double min = node.attrs.get_double("a_min", 0), max = node.attrs.get_double("a_max", 0);
      return void(to = map(node, [&](double x, size_t) { return std::min(std::max(x, min), max); }));
    }
    if (name == "cast") return void(to = map(node, [](double x, size_t) { return x; }));  // in range
    if (name == "qnn.lookup") {
      return void(to = map(node, [&](double x, size_t) {
                    return in(node, 1).v[static_cast<size_t>(static_cast<int64_t>(x) & 255)];
                  }));
    }
    throw std::logic_error("the naive interpreter does not know '" + name + "'");
  }

  const ir::Function& function_;
  std::vector<Tensor> values_;  // by value
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_NAIVE_INTERPRETER_H_
