// The CPU's answer: docs/numerics.md by plain loops over the arithmetic that all kernels share.
#include <algorithm>

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
        return concat();
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

  void concat() const {
    const DLTensor& z = *op_.inputs[1];
    const int64_t first = x_.shape[x_.ndim - 1], second = z.shape[z.ndim - 1];
    each([&](int64_t i) {
      const int64_t row = i / (first + second), c = i % (first + second);
      return c < first ? at(x_, row * first + c) : at(z, row * second + c - first);
    });
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
