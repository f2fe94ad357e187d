// Steps of random_network.h that are layers of weights, and the pads in front of them: convolutions and fully
// connected layers in every way of writing them.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_LAYERS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_LAYERS_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/packer/pipeline/naive_interpreter.h"
#include "tests/packer/pipeline/network_pair.h"

namespace qplan::naive {

class RandomLayers : public NetworkPair {
 protected:
  using NetworkPair::NetworkPair;

  // ---- pads ----
  ir::ValueId pad_literal(int32_t value, ir::DType dtype) {
    if (chance(0.3)) return main_.scalar(static_cast<float>(value));
    if (chance(0.5)) return main_.scalar(value);
    if (dtype == ir::kInt8) return main_.constant<int8_t>(dtype, {}, {static_cast<int8_t>(value)});
    return main_.constant<uint8_t>(dtype, {}, {static_cast<uint8_t>(value)});
  }
  // Padding height and width of a layout, all axes where it is empty.
  Value padded(Value& from, const std::string& data_layout, bool with_zero_point) {
    std::vector<ir::Ints> widths;
    for (size_t i = 0; i < from.shape.size(); ++i) {
      const bool pads = data_layout.empty() ? chance(0.4) : data_layout[i] == 'H' || data_layout[i] == 'W';
      widths.push_back(pads ? ir::Ints{integer(0, 2), integer(0, 2)} : ir::Ints{0, 0});
    }
    const int32_t value = with_zero_point ? from.q.zero_point
                                          : static_cast<int32_t>(integer(from.dtype.min(), from.dtype.max()));
    Value to = from;
    const ir::Attrs attrs = {{"pad_width", widths}};
    to.meaning = n("nn.pad", {from.meaning, meaning_.scalar(value)}, attrs);
    const bool in_float = chance(0.3);
    to.integer = to.real = {};
    if (in_float) {
      const float real = static_cast<float>(value - from.q.zero_point) * from.q.scale;
      to.real = m("nn.pad", {real_of(from), main_.scalar(real)}, attrs);
    } else {
      to.integer = m("nn.pad", {integer_of(from), pad_literal(value, from.dtype)}, attrs);
    }
    to.shape = meaning().type(to.meaning).shape;
    return to;
  }
  void pad() { add(padded(values_[pick()], "", chance(0.5))); }

  // ---- layers ----
  struct Weights {
    ir::ValueId integer_main, integer_meaning, real;  // real: in main, under a qnn.dequantize
    std::vector<float> scales;                        // one, or one per channel
    int32_t zero_point = 0;
  };

  ir::ValueId scales(ir::Builder& b, const std::vector<float>& values) {
    if (values.size() == 1) return b.scalar(values[0]);
    return b.constant<float>(ir::kFloat32, {static_cast<int64_t>(values.size())}, values);
  }

  Weights weights(const ir::Shape& shape, size_t output_axis, bool in_float) {
    Weights w;
    const auto channels = static_cast<size_t>(shape[output_axis]);
    const bool per_channel = channels > 1 && chance(0.4);
    const ir::DType dtype = per_channel || chance(0.6) ? ir::kInt8 : ir::kUint8;
    w.zero_point = per_channel || chance(0.5) ? 0 : zero_point(dtype);
    for (size_t i = 0; i < (per_channel ? channels : 1); ++i) w.scales.push_back(scale(0.02));
    const ir::ConstantRef constant = bytes(dtype, shape);
    w.integer_meaning = meaning_.function().add_constant(constant);
    const auto axis = static_cast<int64_t>(output_axis);
    w.integer_main = main_.function().add_constant(constant);
    if (chance(0.4)) {  // floats at rest
      const Tensor t = from_constant(*constant);
      std::vector<float> values;
      for_each_index(shape, [&](const ir::Ints& index) {
        const size_t o = per_channel ? static_cast<size_t>(index[output_axis]) : 0;
        values.push_back(static_cast<float>(t.v[values.size()] - w.zero_point) * w.scales[o]);
      });
      w.integer_main = m("qnn.quantize",
                         {main_.constant<float>(ir::kFloat32, shape, values), scales(main_, w.scales),
                          main_.scalar(w.zero_point)},
                         with_contract({{"out_dtype", ir::to_string(dtype)}, {"axis", axis}}));
    }
    if (in_float) {
      w.real = m("qnn.dequantize", {w.integer_main, scales(main_, w.scales), main_.scalar(w.zero_point)},
                 with_contract({{"axis", axis}}));
    }
    return w;
  }

  // The layer's accumulator becomes an 8-bit value. sums: of weights per output, to choose scales that fill
  // the range.
  void layer(Value& x, const std::string& op, const Weights& w, const ir::Attrs& attrs, int64_t channel_axis,
             int64_t channels, int64_t products, bool in_float) {
    std::vector<float> accumulator_scales;
    for (const float s : w.scales) accumulator_scales.push_back(x.q.scale * s);
    std::optional<std::vector<int32_t>> bias;
    if (chance(0.7)) bias = random_.integers<int32_t>(static_cast<size_t>(channels), -5000, 5000);
    Value y;
    y.dtype = dtype8();
    const double spread = 60.0 * 70.0 * std::sqrt(static_cast<double>(products)) / 60.0;
    y.q = quantisation(y.dtype, static_cast<double>(accumulator_scales[0]) * spread);

    // What it means.
    ir::ValueId value =
        n("qnn." + op,
          {x.meaning, w.integer_meaning, meaning_.scalar(x.q.zero_point), meaning_.scalar(w.zero_point),
           meaning_.scalar(x.q.scale), scales(meaning_, w.scales)},
          attrs);
    if (bias) {
      value = n("nn.bias_add", {value, meaning_.constant<int32_t>(ir::kInt32, {channels}, *bias)},
                {{"axis", channel_axis}});
    }
    ir::Attrs tail = {{"out_dtype", ir::to_string(y.dtype)}, {"contract", contract_}, {"axis", channel_axis}};
    const bool product_f32 = contract_ == "tfl2" && !in_float && chance(0.3);
    if (product_f32) tail.set("multiplier", std::string("product_f32"));
    value = n("qnn.requantize",
              {value, scales(meaning_, accumulator_scales), meaning_.scalar(0), meaning_.scalar(y.q.scale),
               meaning_.scalar(y.q.zero_point)},
              tail);
    double lo = static_cast<double>(y.dtype.min()), hi = static_cast<double>(y.dtype.max());
    if (chance(0.5)) {
      lo = static_cast<double>(y.q.zero_point);
      if (chance(0.4)) hi = static_cast<double>(integer(y.q.zero_point, y.dtype.max()));
    }
    y.meaning = n("clip", {value}, {{"a_min", lo}, {"a_max", hi}});

    y.integer = in_float ? float_layer(x, op, w, attrs, channel_axis, accumulator_scales, bias, y, lo, hi)
                         : integer_layer(x, op, w, attrs, channel_axis, accumulator_scales, bias, y, lo, hi,
                                         product_f32);
    add(y);
  }

  ir::ValueId integer_layer(Value& x, const std::string& op, const Weights& w, const ir::Attrs& attrs,
                            int64_t channel_axis, const std::vector<float>& accumulator_scales,
                            const std::optional<std::vector<int32_t>>& bias, const Value& y, double lo,
                            double hi, bool product_f32) {
    ir::ValueId value = m("qnn." + op,
                          {integer_of(x), w.integer_main, main_.scalar(x.q.zero_point),
                           main_.scalar(w.zero_point), main_.scalar(x.q.scale), scales(main_, w.scales)},
                          attrs);
    if (bias) {
      const auto channels = static_cast<int64_t>(bias->size());
      ir::ValueId constant = main_.constant<int32_t>(ir::kInt32, {channels}, *bias);
      if (chance(0.3)) {  // at rest as floats
        std::vector<float> reals;
        for (size_t o = 0; o < bias->size(); ++o) {
          reals.push_back(static_cast<float>((*bias)[o]) *
                          accumulator_scales[accumulator_scales.size() == 1 ? 0 : o]);
        }
        constant = m("qnn.quantize",
                     {main_.constant<float>(ir::kFloat32, {channels}, reals),
                      scales(main_, accumulator_scales), main_.scalar(0)},
                     with_contract({{"out_dtype", std::string("int32")}, {"axis", int64_t{0}}}));
      }
      value = m("nn.bias_add", {value, constant}, {{"axis", channel_axis}});
    }
    const bool through_int32 = chance(0.4);
    ir::Attrs tail = with_contract({{"axis", channel_axis}});
    tail.set("out_dtype", through_int32 ? std::string("int32") : ir::to_string(y.dtype));
    if (product_f32) tail.set("multiplier", std::string("product_f32"));
    value = m("qnn.requantize",
              {value, scales(main_, accumulator_scales), main_.scalar(0), main_.scalar(y.q.scale),
               main_.scalar(y.q.zero_point)},
              tail);
    const auto least = static_cast<double>(y.dtype.min()), most = static_cast<double>(y.dtype.max());
    const bool clips = lo != least || hi != most;
    if (through_int32) {
      const bool twice = clips && chance(0.5);
      value = m("clip", {value}, {{"a_min", twice ? least : lo}, {"a_max", twice ? most : hi}});
      value = m("cast", {value}, {{"dtype", ir::to_string(y.dtype)}});
      if (!twice) return value;
    }
    if (!clips && !chance(0.2)) return value;
    // A clip may name bounds beyond the dtype.
    return m("clip", {value},
             {{"a_min", lo == least && chance(0.5) ? lo - 3 : lo},
              {"a_max", hi == most && chance(0.5) ? hi + 9 : hi}});
  }

  ir::ValueId float_layer(Value& x, const std::string& op, const Weights& w, const ir::Attrs& attrs,
                          int64_t channel_axis, const std::vector<float>& accumulator_scales,
                          const std::optional<std::vector<int32_t>>& bias, const Value& y, double lo,
                          double hi) {
    ir::ValueId value = m("nn." + op, {real_of(x), w.real}, attrs);
    if (bias) {
      const auto channels = static_cast<int64_t>(bias->size());
      std::vector<float> reals;
      for (size_t o = 0; o < bias->size(); ++o) {
        reals.push_back(static_cast<float>((*bias)[o]) *
                        accumulator_scales[accumulator_scales.size() == 1 ? 0 : o]);
      }
      if (chance(0.3)) {
        const ir::ValueId integers = main_.constant<int32_t>(ir::kInt32, {channels}, *bias);
        value = m("nn.bias_add",
                  {value, m("qnn.dequantize", {integers, scales(main_, accumulator_scales), main_.scalar(0)},
                            {{"axis", int64_t{0}}})},
                  {{"axis", channel_axis}});
      } else if (chance(0.4)) {
        ir::Shape shape(main_.function().type(value).shape.size() - static_cast<size_t>(channel_axis), 1);
        shape[0] = channels;
        const ir::ValueId addend = main_.constant<float>(ir::kFloat32, shape, reals);
        value = chance(0.5) ? m("add", {value, addend}) : m("add", {addend, value});
      } else {
        value = m("nn.bias_add", {value, main_.constant<float>(ir::kFloat32, {channels}, reals)},
                  {{"axis", channel_axis}});
      }
    }
    const auto real = [&](double q) {
      return static_cast<double>(static_cast<float>(q - y.q.zero_point) * y.q.scale);
    };
    const auto least = static_cast<double>(y.dtype.min()), most = static_cast<double>(y.dtype.max());
    if (lo == y.q.zero_point && hi == most && chance(0.7)) {
      value = m("nn.relu", {value});
    } else if (lo != least || hi != most) {
      value = m("clip", {value}, {{"a_min", real(lo)}, {"a_max", real(hi)}});
    }
    return quantize(value, y.q, y.dtype);
  }

  void conv2d() {
    const std::string data_layout = layout();
    Value x = values_[pick_rank4()];
    if (chance(0.3)) x = padded(x, chance(0.8) ? data_layout : "", chance(0.7));
    const auto at = [&](char letter) { return x.shape[data_layout.find(letter)]; };
    const int64_t in = at('C'), height = at('H'), width = at('W');
    int64_t groups = 1;
    if (chance(0.3)) groups = in;
    if (chance(0.15) && in % 2 == 0) groups = 2;
    const int64_t out = groups * integer(1, groups == 1 ? 6 : 2);
    const int64_t kh = integer(1, 3), kw = integer(1, 3), dh = integer(1, chance(0.2) ? 2 : 1), dw = dh;
    ir::Ints padding = {integer(0, 2), integer(0, 2), integer(0, 2), integer(0, 2)};
    if (chance(0.4)) padding = {0, 0, 0, 0};
    if (height + padding[0] + padding[2] < (kh - 1) * dh + 1) padding[0] = (kh - 1) * dh;
    if (width + padding[1] + padding[3] < (kw - 1) * dw + 1) padding[1] = (kw - 1) * dw;
    const std::string kernel_layout = random_.pick(std::vector<std::string>{"OIHW", "OHWI", "HWIO"});
    const ir::Shape shape = by_letters(kernel_layout, {{'O', out}, {'I', in / groups}, {'H', kh}, {'W', kw}});
    const bool in_float = chance(0.4);
    const Weights w = weights(shape, kernel_layout.find('O'), in_float);
    ir::Attrs attrs = {{"padding", padding}, {"kernel_layout", kernel_layout}, {"data_layout", data_layout}};
    if (chance(0.7) || groups != 1) attrs.set("groups", groups);
    if (chance(0.5)) attrs.set("strides", ir::Ints{integer(1, 3), integer(1, 2)});
    if (dh != 1) attrs.set("dilation", ir::Ints{dh, dw});
    if (chance(0.5)) attrs.set("channels", out);
    if (chance(0.5)) attrs.set("kernel_size", ir::Ints{kh, kw});
    if (!in_float && chance(0.1)) attrs.set("pad_value", integer(x.dtype.min(), x.dtype.max()));
    layer(x, "conv2d", w, attrs, static_cast<int64_t>(data_layout.find('C')), out, in / groups * kh * kw,
          in_float);
  }

  void dense() {
    Value x = values_[pick()];
    if (x.shape.size() != 2 || chance(0.3)) {
      const int64_t rows = x.shape[0];
      ir::Shape shape = {rows, -1};
      if (x.shape.size() == 4 && chance(0.2)) shape = {rows * x.shape[1], -1};
      movement(x, "reshape", {{"newshape", shape}});
      x = values_.back();
      if (x.shape.size() != 2) return;
    }
    const int64_t units = integer(1, 6);
    const bool in_float = chance(0.4);
    const Weights w = weights({units, x.shape[1]}, 0, in_float);
    layer(x, "dense", w, {}, 1, units, x.shape[1], in_float);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_LAYERS_H_
