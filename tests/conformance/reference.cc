// The CPU's answer: docs/numerics.md by plain loops over the arithmetic that all kernels share.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/requantize.h"
#include "qplan/npu_oplist.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {
namespace {

class Reference {
 public:
  explicit Reference(const qplan_npu_op& op) : op_(op), x_(*op.inputs[0]), y_(*op.output) {}

  void run() {
    switch (op_.op) {
      case QPLAN_NPU_OP_CONV2D:
        return conv2d();
      case QPLAN_NPU_OP_DENSE:
        return dense();
      case QPLAN_NPU_OP_ADD:
        return each([this](int64_t i) { return sum(at(x_, i), at(*op_.inputs[1], i)); });
      case QPLAN_NPU_OP_CLIP:
        return each([this](int64_t i) { return clamp(at(x_, i)); });
      case QPLAN_NPU_OP_MUL:
        return each([this](int64_t i) { return product(at(x_, i), at(*op_.inputs[1], i)); });
      case QPLAN_NPU_OP_MAXIMUM:
        return each([this](int64_t i) { return std::max(at(x_, i), at(*op_.inputs[1], i)); });
      case QPLAN_NPU_OP_MINIMUM:
        return each([this](int64_t i) { return std::min(at(x_, i), at(*op_.inputs[1], i)); });
      case QPLAN_NPU_OP_LOOKUP:
        return each([this](int64_t i) { return at(*op_.weights, at(x_, i) & 0xff); });
      case QPLAN_NPU_OP_RESHAPE:
        return each([this](int64_t i) { return at(x_, i); });
      case QPLAN_NPU_OP_MEAN:
        return mean();
      case QPLAN_NPU_OP_PAD:
        return pad();
      case QPLAN_NPU_OP_CONCAT:
      case QPLAN_NPU_OP_CONCAT_N:
        return concat();
      case QPLAN_NPU_OP_CONV2D_TRANSPOSE:
        return conv2d_transpose();
      case QPLAN_NPU_OP_SOFTMAX:
        return softmax();
      case QPLAN_NPU_OP_RESIZE_NEAREST:
        return resize(
            [this](const Place& p, const Shares& y, const Shares& x) { return pixel(p, y.lower, x.lower); });
      case QPLAN_NPU_OP_RESIZE_BILINEAR:
        return resize(
            [this](const Place& p, const Shares& y, const Shares& x) { return interpolated(p, y, x); });
      case QPLAN_NPU_OP_ADD_BROADCAST:
        return each([this](int64_t i) { return sum(repeated(x_, i), repeated(*op_.inputs[1], i)); });
      case QPLAN_NPU_OP_MUL_BROADCAST:
        return each([this](int64_t i) { return product(repeated(x_, i), repeated(*op_.inputs[1], i)); });
      default:
        return pool2d();
    }
  }

 private:
  static int32_t at(const DLTensor& t, int64_t i) {
    const auto* bytes = static_cast<const uint8_t*>(t.data);
    return t.dtype.code == kDLInt ? int32_t{static_cast<int8_t>(bytes[i])} : int32_t{bytes[i]};
  }
  void store(int64_t i, int32_t value) const {
    if (op_.contract == QPLAN_NPU_ACC32) {
      static_cast<int32_t*>(y_.data)[i] = value;
    } else {
      static_cast<uint8_t*>(y_.data)[i] = static_cast<uint8_t>(value);
    }
  }
  int32_t clamp(int64_t v) const {
    return static_cast<int32_t>(std::clamp<int64_t>(v, op_.clamp_min, op_.clamp_max));
  }
  int32_t quantize(float real) const {
    return quantize_f32e(real, op_.output_zero_point, op_.clamp_min, op_.clamp_max);
  }
  bool is_f32e() const { return op_.contract == QPLAN_NPU_F32E; }

  template <typename Value>
  void each(Value value) const {
    for (int64_t i = 0; i < qplan_npu_op_elements(&y_); ++i) store(i, value(i));
  }

  int32_t result(uint32_t accumulator, int64_t o) const {
    const auto a = static_cast<int32_t>(accumulator);
    if (op_.contract == QPLAN_NPU_ACC32) return a;
    const int64_t k = op_.num_scales > 1 ? o : 0;
    if (is_f32e()) return quantize(static_cast<float>(a) * op_.scales[k]);
    const int32_t m = op_.multipliers[k], e = op_.shifts[k];
    const int32_t q = op_.contract == QPLAN_NPU_TFL1 ? requantize_tfl1(a, m, e) : requantize_tfl2(a, m, e);
    return clamp(int64_t{q} + op_.output_zero_point);
  }
  uint32_t bias(int64_t o) const {
    return op_.bias == nullptr ? 0 : static_cast<uint32_t>(static_cast<const int32_t*>(op_.bias->data)[o]);
  }
  uint32_t term(int32_t value, int32_t weight) const {
    return static_cast<uint32_t>((value - op_.input_zero_points[0]) * (weight - op_.weights_zero_point));
  }

  // Goes input by input; positions outside the input are padding.
  void conv2d() const {
    const DLTensor& w = *op_.weights;
    const int64_t in_h = x_.shape[1], in_w = x_.shape[2], in_c = x_.shape[3];
    const int64_t out_c = y_.shape[3], depth = w.shape[3];
    const bool has_value = (op_.flags & QPLAN_NPU_OP_PAD_VALUE) != 0;
    each([&](int64_t i) {
      const int64_t o = i % out_c, column = i / out_c % y_.shape[2];
      const int64_t row = i / out_c / y_.shape[2] % y_.shape[1], n = i / out_c / y_.shape[2] / y_.shape[1];
      uint32_t acc = bias(o);
      for (int64_t k = 0; k < w.shape[1] * w.shape[2] * depth; ++k) {
        const int64_t c = o / (out_c / op_.groups) * depth + k % depth;
        const int64_t iy = row * op_.strides[0] + k / depth / w.shape[2] * op_.dilations[0] - op_.pads[0];
        const int64_t ix = column * op_.strides[1] + k / depth % w.shape[2] * op_.dilations[1] - op_.pads[1];
        int32_t value = has_value ? op_.pad_value : op_.input_zero_points[0];
        if (iy >= 0 && iy < in_h && ix >= 0 && ix < in_w)
          value = at(x_, ((n * in_h + iy) * in_w + ix) * in_c + c);
        acc += term(value, at(w, o * w.shape[1] * w.shape[2] * depth + k));
      }
      return result(acc, o);
    });
  }

  void dense() const {
    const int64_t num_o = op_.weights->shape[0], depth = op_.weights->shape[1];
    each([&](int64_t i) {
      uint32_t acc = bias(i % num_o);
      for (int64_t k = 0; k < depth; ++k)
        acc += term(at(x_, i / num_o * depth + k), at(*op_.weights, i % num_o * depth + k));
      return result(acc, i % num_o);
    });
  }

  int32_t sum(int32_t a, int32_t b) const {
    a -= op_.input_zero_points[0];
    b -= op_.input_zero_points[1];
    if (is_f32e()) {
      const float left = static_cast<float>(a) * op_.scales[0], right = static_cast<float>(b) * op_.scales[1];
      return quantize((left + right) / op_.scales[2]);
    }
    const auto scaled = [&](int32_t v, int k) {
      return requantize_tfl2(v * (1 << op_.left_shift), op_.multipliers[k], op_.shifts[k]);
    };
    return clamp(int64_t{requantize_tfl2(scaled(a, 0) + scaled(b, 1), op_.multipliers[2], op_.shifts[2])} +
                 op_.output_zero_point);
  }

  int32_t product(int32_t a, int32_t b) const {
    a -= op_.input_zero_points[0];
    b -= op_.input_zero_points[1];
    if (!is_f32e()) return result(static_cast<uint32_t>(a * b), 0);
    const float left = static_cast<float>(a) * op_.scales[0], right = static_cast<float>(b) * op_.scales[1];
    return quantize(left * right / op_.scales[2]);
  }

  void mean() const {
    const int64_t pixels = x_.shape[1] * x_.shape[2], channels = x_.shape[3];
    each([&](int64_t i) {
      int32_t total = 0;
      for (int64_t k = 0; k < pixels; ++k)
        total += at(x_, (i / channels * pixels + k) * channels + i % channels) - op_.input_zero_points[0];
      return result(static_cast<uint32_t>(total), 0);
    });
  }

  void pad() const {
    const int64_t in_h = x_.shape[1], in_w = x_.shape[2], channels = x_.shape[3];
    each([&](int64_t i) {
      const int64_t column = i / channels % y_.shape[2] - op_.pads[1];
      const int64_t row = i / channels / y_.shape[2] % y_.shape[1] - op_.pads[0];
      const int64_t n = i / channels / y_.shape[2] / y_.shape[1];
      if (row < 0 || row >= in_h || column < 0 || column >= in_w) return op_.pad_value;
      return at(x_, ((n * in_h + row) * in_w + column) * channels + i % channels);
    });
  }

  // The position of the output's element i along each of its axes.
  std::vector<int64_t> position(int64_t i) const {
    std::vector<int64_t> result(static_cast<size_t>(y_.ndim));
    for (int32_t axis = y_.ndim; axis-- > 0; i /= y_.shape[axis])
      result[static_cast<size_t>(axis)] = i % y_.shape[axis];
    return result;
  }
  static int32_t at(const DLTensor& t, const std::vector<int64_t>& position) {
    int64_t i = 0;
    for (int32_t axis = 0; axis < t.ndim; ++axis) i = i * t.shape[axis] + position[static_cast<size_t>(axis)];
    return at(t, i);
  }

  void concat() const {
    const bool is_of_two = op_.op == QPLAN_NPU_OP_CONCAT;
    const size_t axis = is_of_two ? static_cast<size_t>(y_.ndim - 1) : op_.axis;
    const uint32_t count = is_of_two ? 2 : op_.num_inputs;
    each([&](int64_t i) {
      std::vector<int64_t> place = position(i);
      for (uint32_t k = 0; k < count; ++k) {
        const DLTensor& x = k < 2 ? *op_.inputs[k] : *op_.more_inputs[k - 2];
        if (place[axis] < x.shape[axis]) return at(x, place);
        place[axis] -= x.shape[axis];
      }
      return 0;
    });
  }

  int32_t repeated(const DLTensor& t, int64_t i) const {
    std::vector<int64_t> place = position(i);
    place.erase(place.begin(), place.end() - t.ndim);
    for (int32_t axis = 0; axis < t.ndim; ++axis)
      place[static_cast<size_t>(axis)] = std::min(place[static_cast<size_t>(axis)], t.shape[axis] - 1);
    return at(t, place);
  }

  // Goes input by input, and adds each to the outputs of its window.
  void conv2d_transpose() const {
    const DLTensor& w = *op_.weights;
    const int64_t in_c = x_.shape[3], out_c = y_.shape[3];
    std::vector<uint32_t> sums(static_cast<size_t>(qplan_npu_op_elements(&y_)));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = bias(static_cast<int64_t>(i) % out_c);
    for (int64_t i = 0; i < qplan_npu_op_elements(&x_); ++i) {
      const int64_t c = i % in_c, column = i / in_c % x_.shape[2];
      const int64_t row = i / in_c / x_.shape[2] % x_.shape[1], n = i / in_c / x_.shape[2] / x_.shape[1];
      for (int64_t k = 0; k < w.shape[1] * w.shape[2]; ++k) {
        const int64_t oy = row * op_.strides[0] + k / w.shape[2] - op_.pads[0];
        const int64_t ox = column * op_.strides[1] + k % w.shape[2] - op_.pads[1];
        if (oy < 0 || oy >= y_.shape[1] || ox < 0 || ox >= y_.shape[2]) continue;
        const int64_t to = ((n * y_.shape[1] + oy) * y_.shape[2] + ox) * out_c;
        for (int64_t o = 0; o < out_c; ++o)
          sums[static_cast<size_t>(to + o)] +=
              term(at(x_, i), at(w, (o * w.shape[1] * w.shape[2] + k) * in_c + c));
      }
    }
    each([&](int64_t i) { return result(sums[static_cast<size_t>(i)], i % out_c); });
  }

  // ---- softmax
  void softmax() const {
    const int64_t depth = y_.shape[y_.ndim - 1];
    std::vector<int32_t> row(static_cast<size_t>(depth));
    for (int64_t begin = 0; begin < qplan_npu_op_elements(&y_); begin += depth) {
      for (int64_t i = 0; i < depth; ++i) row[static_cast<size_t>(i)] = at(x_, begin + i);
      const int32_t most = *std::max_element(row.begin(), row.end());
      for (int32_t& v : row) v -= most;
      const std::vector<int32_t> shares = is_f32e() ? float_shares(row) : fixed_shares(row);
      for (int64_t i = 0; i < depth; ++i) store(begin + i, shares[static_cast<size_t>(i)]);
    }
  }
  // differences: to the largest element of a row.
  std::vector<int32_t> float_shares(const std::vector<int32_t>& differences) const {
    const float* const table = op_.scales + 1;
    float sum = 0;
    for (const int32_t d : differences) sum += table[-d];
    std::vector<int32_t> result;
    for (const int32_t d : differences) result.push_back(quantize(table[-d] / sum / op_.scales[0]));
    return result;
  }
  std::vector<int32_t> fixed_shares(const std::vector<int32_t>& differences) const {
    const int64_t diff_min = -((int64_t{31} << 26) >> op_.shifts[0]);
    const auto exponential = [&](int32_t d) {
      return fixed_exp_negative<5>(
          doubling_high_mul(static_cast<int32_t>(d * (int64_t{1} << op_.shifts[0])), op_.multipliers[0]));
    };
    uint64_t sum = 0;
    for (const int32_t d : differences) {
      if (d >= diff_min) sum += static_cast<uint32_t>(rounding_shift_right(exponential(d), 12));
    }
    sum = std::min<uint64_t>(sum, INT32_MAX);
    const int power = std::bit_width(sum) - 20;  // sum is from 2^19 on
    const int32_t inverse =
        fixed_reciprocal_one_plus(static_cast<int32_t>((sum << (12 - power)) - (uint64_t{1} << 31)));
    std::vector<int32_t> result;
    for (const int32_t d : differences) {
      const bool counts = d >= diff_min && power + 23 < 32;
      const int32_t share =
          counts ? rounding_shift_right(doubling_high_mul(inverse, exponential(d)), power + 23) : 0;
      result.push_back(op_.output_zero_point + std::min(share, 255));
    }
    return result;
  }

  // ---- resizes
  // Batch and channel of an output, and where it is along an axis of the input.
  struct Place {
    int64_t n, c;
  };
  struct Shares {
    int64_t lower = 0, upper = 0;
    int64_t part = 0;  // of the upper one, in 1/1024
    float real = 0;    // RESIZE_FLOAT
  };
  template <typename Value>
  void resize(Value value) const {
    each([&](int64_t i) {
      const std::vector<int64_t> p = position(i);
      return value(Place{p[0], p[3]}, shares(1, p[1]), shares(2, p[2]));
    });
  }
  bool has(uint32_t flag) const { return (op_.flags & flag) != 0; }
  Shares shares(int32_t axis, int64_t o) const {
    const int64_t in = x_.shape[axis], out = y_.shape[axis];
    if (op_.op == QPLAN_NPU_OP_RESIZE_NEAREST) return {nearest(in, out, o)};
    return has(QPLAN_NPU_OP_RESIZE_FLOAT) ? float_shares(in, out, o) : integer_shares(in, out, o);
  }
  int64_t nearest(int64_t in, int64_t out, int64_t o) const {
    const bool aligns = has(QPLAN_NPU_OP_ALIGN_CORNERS) && out > 1;
    const bool has_centers = has(QPLAN_NPU_OP_HALF_PIXEL_CENTERS);
    // place + 1/2 or place, in units of 1 / (2 * denominator).
    const int64_t denominator = aligns ? out - 1 : out, numerator = aligns ? in - 1 : in;
    const int64_t twice = 2 * o * numerator + (has_centers ? numerator : 0) + (aligns ? denominator : 0);
    return twice / (2 * denominator);
  }
  Shares integer_shares(int64_t in, int64_t out, int64_t o) const {
    const bool aligns = has(QPLAN_NPU_OP_ALIGN_CORNERS) && out > 1;
    const int64_t scale =
        aligns ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
    const int64_t p = has(QPLAN_NPU_OP_HALF_PIXEL_CENTERS) ? o * scale + scale / 2 - 512 : o * scale;
    const int64_t lower = std::clamp<int64_t>(p / 1024, 0, in - 1);
    return {lower, std::clamp<int64_t>((p + 1023) / 1024, 0, in - 1), p - 1024 * lower};
  }
  Shares float_shares(int64_t in, int64_t out, int64_t o) const {
    const bool aligns = has(QPLAN_NPU_OP_ALIGN_CORNERS) && out > 1;
    const float scale = aligns ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                               : static_cast<float>(in) / static_cast<float>(out);
    const auto place = static_cast<float>(o);
    const float p = has(QPLAN_NPU_OP_HALF_PIXEL_CENTERS) ? (place + 0.5f) * scale - 0.5f : place * scale;
    const int64_t lower = std::clamp(static_cast<int64_t>(std::floor(p)), int64_t{0}, in - 1);
    const int64_t upper = std::clamp(static_cast<int64_t>(std::ceil(p)), int64_t{0}, in - 1);
    return {lower, upper, 0, p - static_cast<float>(lower)};
  }
  int32_t pixel(const Place& p, int64_t y, int64_t x) const {
    return at(x_, ((p.n * x_.shape[1] + y) * x_.shape[2] + x) * x_.shape[3] + p.c);
  }
  int32_t interpolated(const Place& p, const Shares& y, const Shares& x) const {
    return has(QPLAN_NPU_OP_RESIZE_FLOAT)
               ? static_cast<int32_t>(weighted<float>(p, y, x, y.real, x.real, 1.0f) + 0.5f)
               : halves_away(weighted<int64_t>(p, y, x, y.part, x.part, 1024));
  }
  template <typename T>
  T weighted(const Place& p, const Shares& y, const Shares& x, T dy, T dx, T one) const {
    const T x00 = static_cast<T>(pixel(p, y.lower, x.lower)),
            x10 = static_cast<T>(pixel(p, y.upper, x.lower));
    const T x01 = static_cast<T>(pixel(p, y.lower, x.upper)),
            x11 = static_cast<T>(pixel(p, y.upper, x.upper));
    return x00 * (one - dy) * (one - dx) + x10 * dy * (one - dx) + x01 * (one - dy) * dx + x11 * dy * dx;
  }
  static int32_t halves_away(int64_t sum) {
    constexpr int64_t kOne = int64_t{1} << 20;
    return static_cast<int32_t>((sum + (sum > 0 ? kOne / 2 : -kOne / 2)) / kOne);
  }

  void pool2d() const {
    const int64_t in_h = x_.shape[1], in_w = x_.shape[2], channels = x_.shape[3];
    each([&](int64_t i) {
      const int64_t c = i % channels, column = i / channels % y_.shape[2];
      const int64_t row = i / channels / y_.shape[2] % y_.shape[1],
                    n = i / channels / y_.shape[2] / y_.shape[1];
      std::vector<int32_t> values;
      for (int64_t k = 0; k < int64_t{op_.window[0]} * op_.window[1]; ++k) {
        const int64_t iy = row * op_.strides[0] - op_.pads[0] + k / op_.window[1];
        const int64_t ix = column * op_.strides[1] - op_.pads[1] + k % op_.window[1];
        if (iy >= 0 && iy < in_h && ix >= 0 && ix < in_w)
          values.push_back(at(x_, ((n * in_h + iy) * in_w + ix) * channels + c));
      }
      if (op_.op == QPLAN_NPU_OP_MAX_POOL2D) return clamp(*std::max_element(values.begin(), values.end()));
      return average(values);
    });
  }

  int32_t average(const std::vector<int32_t>& values) const {
    int64_t total = 0;
    for (const int32_t v : values) total += v;
    const auto count = static_cast<int64_t>(values.size());
    if (!is_f32e()) return clamp((total + (total > 0 ? count / 2 : -(count / 2))) / count);
    const bool whole = (op_.flags & QPLAN_NPU_OP_COUNT_INCLUDE_PAD) != 0;
    const int64_t divisor = whole ? int64_t{op_.window[0]} * op_.window[1] : count;
    const float scale = op_.scales[0] / (op_.scales[1] * static_cast<float>(divisor));
    return quantize(static_cast<float>(total - count * op_.input_zero_points[0]) * scale);
  }

  const qplan_npu_op& op_;
  const DLTensor& x_;
  const DLTensor& y_;
};

}  // namespace

void compute_reference(const qplan_npu_op& op) { Reference(op).run(); }

}  // namespace qplan::conformance
