// Random small quantised networks. Each is made twice: `main` as sources write it (layouts, fake
// quantisation, weights in float, pads and clips beside the layers, ...), `meaning` in integer operators that
// say the same and that naive_interpreter.h knows.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/ir/builder.h"
#include "tests/packer/pipeline/naive_interpreter.h"
#include "tests/support/random.h"

namespace qplan::naive {

// Scale and zero point as the generator knows them.
struct Quantisation {
  float scale = 1.0f;
  int32_t zero_point = 0;
};

// A value of the network. At least one of the two forms in main is there: the 8-bit value, or the float that
// its integers stand for.
struct Value {
  ir::ValueId meaning, integer, real;
  ir::DType dtype;
  ir::Shape shape;
  Quantisation q;
};

class RandomNetwork {
 public:
  RandomNetwork(uint64_t seed, std::string contract)
      : random_(seed),
        contract_(std::move(contract)),
        main_(&main_module_.add_function("main")),
        meaning_(&meaning_module_.add_function("main")) {
    const auto inputs = random_.integer(1, 2);
    for (int64_t i = 0; i < inputs; ++i) add_input("x" + std::to_string(i));
    const auto steps = random_.integer(1, 8);
    for (int64_t i = 0; i < steps; ++i) step();
    finish();
  }

  const ir::Module& main_module() const { return main_module_; }
  const ir::Function& meaning() const { return meaning_module_.main(); }
  // Bytes for the parameters, which both functions have alike.
  std::vector<ir::ConstantRef> inputs() {
    std::vector<ir::ConstantRef> result;
    for (const ir::ValueId param : meaning().params()) {
      const ir::TensorType& type = meaning().type(param);
      const auto count = static_cast<size_t>(type.num_elements());
      if (type.dtype == ir::kFloat32) {
        std::vector<float> values;
        for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random_.unit() * 8 - 4));
        result.push_back(ir::make_constant(type.dtype, type.shape, values));
      } else {
        result.push_back(ir::make_constant(type.dtype, type.shape, random_.full_range<uint8_t>(count)));
      }
    }
    return result;
  }

 private:
  using Two = std::pair<ir::ValueId, ir::ValueId>;  // in main, in meaning

  // ---- small choices ----
  bool chance(double p) { return random_.chance(p); }
  int64_t integer(int64_t lo, int64_t hi) { return random_.integer(lo, hi); }
  float scale(double around = 0.05) {
    return static_cast<float>(around * std::exp2(random_.unit() * 3 - 1.5));
  }
  ir::DType dtype8() { return chance(0.5) ? ir::kInt8 : ir::kUint8; }
  int32_t zero_point(ir::DType dtype) {
    if (chance(0.15)) return static_cast<int32_t>(dtype.min());
    if (chance(0.1)) return static_cast<int32_t>(dtype.max());
    const auto middle = (dtype.min() + dtype.max() + 1) / 2;
    return static_cast<int32_t>(middle + integer(-30, 30));
  }
  Quantisation quantisation(ir::DType dtype, double around = 0.05) {
    return {scale(around), zero_point(dtype)};
  }
  ir::Attrs with_contract(ir::Attrs attrs = {}) {
    if (contract_ != "tfl2" || chance(0.3)) attrs.set("contract", contract_);
    return attrs;
  }
  std::string layout() { return chance(0.5) ? "NCHW" : "NHWC"; }
  std::string name() { return "n" + std::to_string(next_name_++); }
  ir::ConstantRef bytes(ir::DType dtype, const ir::Shape& shape) {
    return ir::make_constant(
        dtype, shape,
        random_.full_range<uint8_t>(static_cast<size_t>(ir::TensorType{dtype, shape}.num_elements())));
  }

  // ---- nodes ----
  ir::ValueId m(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return main_.call(op, std::move(operands), std::move(attrs), name());
  }
  ir::ValueId n(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return meaning_.call(op, std::move(operands), std::move(attrs), name());
  }
  ir::ValueId real_of(Value& value) {
    if (!value.real.valid() || (value.integer.valid() && chance(0.3))) {
      value.real = m("qnn.dequantize",
                     {integer_of(value), main_.scalar(value.q.scale), main_.scalar(value.q.zero_point)},
                     with_contract());
    }
    return value.real;
  }
  ir::ValueId integer_of(Value& value) {
    if (!value.integer.valid()) value.integer = quantize(value.real, value.q, value.dtype);
    return value.integer;
  }
  ir::ValueId quantize(ir::ValueId real, Quantisation q, ir::DType dtype) {
    return m("qnn.quantize", {real, main_.scalar(q.scale), main_.scalar(q.zero_point)},
             with_contract({{"out_dtype", ir::to_string(dtype)}}));
  }
  ir::ValueId n_requantize(ir::ValueId x, Quantisation from, Quantisation to, ir::DType dtype) {
    return n("qnn.requantize",
             {x, meaning_.scalar(from.scale), meaning_.scalar(from.zero_point), meaning_.scalar(to.scale),
              meaning_.scalar(to.zero_point)},
             {{"out_dtype", ir::to_string(dtype)}, {"contract", contract_}});
  }
  void add(Value value) {
    value.shape = meaning().type(value.meaning).shape;
    value.dtype = meaning().type(value.meaning).dtype;
    if (meaning().type(value.meaning).num_elements() > 4000) return;
    values_.push_back(std::move(value));
  }
  // A copy: the vector grows. keep() writes forms that were made on the way back.
  size_t pick() {
    if (chance(0.6)) return values_.size() - 1;
    return static_cast<size_t>(integer(0, static_cast<int64_t>(values_.size()) - 1));
  }
  // Of this rank, reshaped where there is none.
  size_t pick_rank4() {
    for (int i = 0; i < 4; ++i) {
      const size_t at = pick();
      if (values_[at].shape.size() == 4) return at;
    }
    for (size_t i = values_.size(); i-- > 0;) {
      if (values_[i].shape.size() == 4) return i;
    }
    return 0;  // an input
  }

  // ---- the network's ends ----
  void add_input(const std::string& input) {
    const ir::Shape shape = {integer(1, 2), integer(1, 6), integer(1, 6), integer(1, 6)};
    Value value;
    value.dtype = dtype8();
    value.q = quantisation(value.dtype);
    if (chance(0.4)) {
      const ir::ValueId in_main = main_.function().add_param(input, {ir::kFloat32, shape});
      const ir::ValueId in_meaning = meaning_.function().add_param(input, {ir::kFloat32, shape});
      ir::Attrs attrs = {{"out_dtype", ir::to_string(value.dtype)}, {"contract", contract_}};
      if (chance(0.2)) attrs.set("rule", std::string(chance(0.5) ? "mul_even" : "div_away"));
      if (chance(0.2)) attrs.set("axis", int64_t{1});
      value.integer =
          m("qnn.quantize", {in_main, main_.scalar(value.q.scale), main_.scalar(value.q.zero_point)}, attrs);
      value.meaning =
          n("qnn.quantize", {in_meaning, meaning_.scalar(value.q.scale), meaning_.scalar(value.q.zero_point)},
            attrs);
    } else {
      value.integer = main_.function().add_param(input, {value.dtype, shape});
      value.meaning = meaning_.function().add_param(input, {value.dtype, shape});
    }
    add(value);
  }

  void finish() {
    std::vector<ir::ValueId> in_main, in_meaning;
    const auto count = integer(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      Value& value = values_[i == 0 ? values_.size() - 1 : pick()];
      if (!value.integer.valid() || chance(0.3)) {
        in_main.push_back(real_of(value));
        in_meaning.push_back(n("qnn.dequantize", {value.meaning, meaning_.scalar(value.q.scale),
                                                  meaning_.scalar(value.q.zero_point)}));
      } else {
        in_main.push_back(integer_of(value));
        in_meaning.push_back(value.meaning);
      }
    }
    main_.function().set_outputs(in_main);
    meaning_.function().set_outputs(in_meaning);
  }

  // ---- steps ----
  void step() {
    // The integers of a value may be meant by another scale in what follows.
    if (chance(0.05)) {
      Value& value = values_[pick()];
      integer_of(value);
      value.real = {};
      value.q = quantisation(value.dtype);
    }
    switch (integer(0, 15)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return conv2d();
      case 4:
      case 5:
        return dense();
      case 6:
      case 7:
        return binary();
      case 8:
        return max_pool();
      case 9:
        return average();
      case 10:
        return concatenate();
      case 11:
        return split();
      case 12:
        return transpose();
      case 13:
        return reshape();
      case 14:
        return chance(0.5) ? pad() : clip();
      default:
        return requantize();
    }
  }

  // Data that moves, in either form: the operator's name, attributes.
  void movement(Value& from, const std::string& op, const ir::Attrs& attrs) {
    Value to = from;
    to.meaning = n(op, {from.meaning}, attrs);
    const bool in_float = chance(0.4);
    to.integer = in_float ? ir::ValueId{} : m(op, {integer_of(from)}, attrs);
    to.real = in_float ? m(op, {real_of(from)}, attrs) : ir::ValueId{};
    add(to);
  }

  void transpose() {
    Value& from = values_[pick()];
    ir::Ints axes;
    for (size_t i = 0; i < from.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (axes.size() == 4 && chance(0.6)) {
      axes = chance(0.5) ? ir::Ints{0, 2, 3, 1} : ir::Ints{0, 3, 1, 2};
    } else {
      for (size_t i = axes.size(); i > 1; --i)
        std::swap(axes[i - 1], axes[static_cast<size_t>(integer(0, static_cast<int64_t>(i) - 1))]);
    }
    movement(from, "transpose", {{"axes", axes}});
  }

  void reshape() {
    Value& from = values_[pick()];
    ir::Shape shape = from.shape;
    if (chance(0.3) && shape.size() < 6) {
      shape.insert(shape.begin() + integer(0, static_cast<int64_t>(shape.size())), 1);
    } else if (chance(0.4)) {
      std::erase(shape, 1);
    } else if (shape.size() > 1) {
      const auto i = static_cast<size_t>(integer(0, static_cast<int64_t>(shape.size()) - 2));
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    if (shape.empty()) shape.push_back(1);
    if (shape.size() == 3 && chance(0.7)) shape.insert(shape.begin(), 1);
    movement(from, "reshape", {{"newshape", shape}});
  }

  // Clamps are written with the integers they end at.
  void clip() {
    Value& from = values_[pick()];
    const bool in_float = chance(0.4);
    double lo = static_cast<double>(integer(from.dtype.min() - 20, from.q.zero_point));
    double hi = static_cast<double>(integer(from.q.zero_point, from.dtype.max() + 20));
    Value to = from;
    if (in_float) {
      lo = std::clamp(lo, static_cast<double>(from.dtype.min()), static_cast<double>(from.dtype.max()));
      hi = std::clamp(hi, static_cast<double>(from.dtype.min()), static_cast<double>(from.dtype.max()));
      const auto real = [&](double q) {
        return static_cast<double>(static_cast<float>(q - from.q.zero_point) * from.q.scale);
      };
      to.real = m("clip", {real_of(from)}, {{"a_min", real(lo)}, {"a_max", real(hi)}});
      to.integer = {};
    } else {
      to.integer = m("clip", {integer_of(from)}, {{"a_min", lo}, {"a_max", hi}});
      to.real = {};
    }
    to.meaning = n("clip", {from.meaning}, {{"a_min", lo}, {"a_max", hi}});
    add(to);
  }

  void requantize() {
    Value& from = values_[pick()];
    Value to = from;
    to.dtype = dtype8();
    to.q = quantisation(to.dtype, static_cast<double>(from.q.scale));
    if (chance(0.4)) {  // re-signing, or nothing
      to.q = {from.q.scale, from.q.zero_point + static_cast<int32_t>(to.dtype.min() - from.dtype.min())};
    }
    to.real = {};
    if (chance(0.4)) {
      to.integer = quantize(real_of(from), to.q, to.dtype);
    } else {
      to.integer = m("qnn.requantize",
                     {integer_of(from), main_.scalar(from.q.scale), main_.scalar(from.q.zero_point),
                      main_.scalar(to.q.scale), main_.scalar(to.q.zero_point)},
                     with_contract({{"out_dtype", ir::to_string(to.dtype)}}));
    }
    to.meaning = n_requantize(from.meaning, from.q, to.q, to.dtype);
    add(to);
  }

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

  // ---- two operands ----
  void binary() {
    const size_t at = pick();
    Value a = values_[at];
    Value b = a;
    const bool with_constant = chance(0.4);
    if (with_constant) {
      ir::Shape shape = a.shape;
      for (int64_t& extent : shape) extent = chance(0.5) ? 1 : extent;
      while (!shape.empty() && chance(0.4)) shape.erase(shape.begin());
      b.dtype = dtype8();
      b.q = quantisation(b.dtype);
      const ir::ConstantRef constant = bytes(b.dtype, shape);
      b.meaning = meaning_.function().add_constant(constant);
      b.integer = main_.function().add_constant(constant);
      b.real = {};
    } else if (chance(0.8)) {
      for (const Value& other : values_) {
        if (other.shape == a.shape && chance(0.6)) b = other;
      }
    }
    const bool in_float = chance(0.4);
    Value y;
    y.dtype = in_float ? dtype8() : a.dtype;
    const int64_t kind = integer(0, 2);
    const bool mul = kind == 2;
    y.q = quantisation(y.dtype, mul ? static_cast<double>(a.q.scale * b.q.scale) * 40
                                    : static_cast<double>(std::max(a.q.scale, b.q.scale)) * 1.5);
    if (contract_ == "tfl2" && !mul) y.q.scale = std::max({y.q.scale, a.q.scale, b.q.scale}) * 1.01f;
    // One dtype: re-signed where they differ.
    const auto as = [&](Value v, ir::DType dtype) {
      if (v.dtype == dtype) return v;
      const Quantisation q = {v.q.scale, v.q.zero_point + static_cast<int32_t>(dtype.min() - v.dtype.min())};
      v.meaning = n_requantize(v.meaning, v.q, q, dtype);
      if (!in_float) {
        v.integer = m("qnn.requantize",
                      {integer_of(v), main_.scalar(v.q.scale), main_.scalar(v.q.zero_point),
                       main_.scalar(q.scale), main_.scalar(q.zero_point)},
                      with_contract({{"out_dtype", ir::to_string(dtype)}}));
        v.real = {};
      }
      v.q = q;
      v.dtype = dtype;
      return v;
    };
    if (in_float) {
      const char* const names[] = {"add", "subtract", "multiply"};
      const ir::ValueId left = real_of(a), right = real_of(b);
      const ir::ValueId real =
          chance(0.3) && kind != 1 ? m(names[kind], {right, left}) : m(names[kind], {left, right});
      y.integer = quantize(real, y.q, y.dtype);
    }
    const Value first = as(a, y.dtype), second = as(b, y.dtype);
    const char* const names[] = {"qnn.add", "qnn.subtract", "qnn.mul"};
    const auto operands = [&](ir::Builder& builder, ir::ValueId l, ir::ValueId r) {
      return std::vector<ir::ValueId>{l,
                                      r,
                                      builder.scalar(first.q.scale),
                                      builder.scalar(first.q.zero_point),
                                      builder.scalar(second.q.scale),
                                      builder.scalar(second.q.zero_point),
                                      builder.scalar(y.q.scale),
                                      builder.scalar(y.q.zero_point)};
    };
    y.meaning = n(names[kind], operands(meaning_, first.meaning, second.meaning), {{"contract", contract_}});
    if (!in_float) {
      Value l = first, r = second;
      y.integer = m(names[kind], operands(main_, integer_of(l), integer_of(r)), with_contract());
    }
    add(y);
  }

  // ---- windows ----
  ir::Attrs window(const Value& x, const std::string& data_layout) {
    const int64_t height = x.shape[data_layout.find('H')], width = x.shape[data_layout.find('W')];
    const int64_t kh = chance(0.3) ? height : integer(1, std::min<int64_t>(3, height));
    const int64_t kw = chance(0.3) ? width : integer(1, std::min<int64_t>(3, width));
    ir::Attrs attrs = {{"pool_size", ir::Ints{kh, kw}}, {"layout", data_layout}};
    if (chance(0.5)) attrs.set("strides", ir::Ints{integer(1, 3), integer(1, 2)});
    if (chance(0.4)) {
      attrs.set("padding",
                ir::Ints{integer(0, kh - 1), integer(0, kw - 1), integer(0, kh - 1), integer(0, kw - 1)});
    }
    return attrs;
  }

  void max_pool() {
    Value& x = values_[pick_rank4()];
    movement(x, "nn.max_pool2d", window(x, layout()));
  }

  void average() {
    const bool pool = chance(0.5);
    Value x = values_[pool ? pick_rank4() : pick()];
    Value y = x;
    y.real = {};
    ir::Attrs attrs;
    if (pool) {
      attrs = window(x, layout());
      if (contract_ == "f32e" && chance(0.3)) attrs.set("count_include_pad", true);
    } else {
      ir::Ints axes;
      for (size_t i = 0; i < x.shape.size(); ++i) {
        if (chance(0.5))
          axes.push_back(static_cast<int64_t>(i) - (chance(0.3) ? static_cast<int64_t>(x.shape.size()) : 0));
      }
      if (x.shape.size() == 4 && chance(0.5)) axes = chance(0.5) ? ir::Ints{2, 3} : ir::Ints{1, 2};
      attrs = {{"axis", axes}, {"keepdims", chance(0.5)}};
    }
    const bool same = pool && contract_ == "tfl2" ? true : chance(0.3);
    if (!same) y.q = quantisation(y.dtype, static_cast<double>(x.q.scale) * 0.6);
    const std::string op = pool ? "avg_pool2d" : "mean";
    ir::Attrs meant = attrs;
    meant.set("contract", contract_);
    const auto operands = [&](ir::Builder& b, ir::ValueId data) {
      return std::vector<ir::ValueId>{data, b.scalar(x.q.scale), b.scalar(x.q.zero_point),
                                      b.scalar(y.q.scale), b.scalar(y.q.zero_point)};
    };
    y.meaning = n("qnn." + op, operands(meaning_, x.meaning), meant);
    if (chance(0.4)) {
      y.integer = quantize(m(pool ? "nn.avg_pool2d" : "mean", {real_of(x)}, attrs), y.q, y.dtype);
    } else {
      y.integer = m("qnn." + op, operands(main_, integer_of(x)), meant);
    }
    if (meaning().type(y.meaning).shape.empty()) return;
    add(y);
  }

  // ---- parts ----
  void concatenate() {
    const size_t at = pick();
    std::vector<Value> parts = {values_[at]};
    const size_t rank = parts[0].shape.size();
    const auto axis = static_cast<size_t>(integer(0, static_cast<int64_t>(rank) - 1));
    for (const Value& other : values_) {
      if (other.shape.size() != rank || parts.size() == 4) continue;
      ir::Shape shape = other.shape;
      shape[axis] = parts[0].shape[axis];
      if (shape == parts[0].shape && chance(0.6)) parts.push_back(other);
    }
    Value y = parts[0];
    const bool in_float = chance(0.4);
    if (chance(0.5)) y.q = quantisation(y.dtype);
    std::vector<ir::ValueId> in_meaning, in_main;
    for (Value& part : parts) {
      const bool same =
          part.dtype == y.dtype && part.q.scale == y.q.scale && part.q.zero_point == y.q.zero_point;
      in_meaning.push_back(same ? part.meaning : n_requantize(part.meaning, part.q, y.q, y.dtype));
      if (in_float) {
        in_main.push_back(real_of(part));
      } else if (same) {
        in_main.push_back(integer_of(part));
      } else {
        in_main.push_back(m("qnn.requantize",
                            {integer_of(part), main_.scalar(part.q.scale), main_.scalar(part.q.zero_point),
                             main_.scalar(y.q.scale), main_.scalar(y.q.zero_point)},
                            with_contract({{"out_dtype", ir::to_string(y.dtype)}})));
      }
    }
    const int64_t written = static_cast<int64_t>(axis) - (chance(0.3) ? static_cast<int64_t>(rank) : 0);
    y.meaning = n("concatenate", in_meaning, {{"axis", written}});
    y.real = {};
    y.integer = m("concatenate", in_main, {{"axis", written}});
    if (in_float) y.integer = quantize(y.integer, y.q, y.dtype);
    add(y);
  }

  void split() {
    Value& from = values_[pick()];
    const auto rank = static_cast<int64_t>(from.shape.size());
    const int64_t axis = integer(0, rank - 1), extent = from.shape[static_cast<size_t>(axis)];
    ir::Attrs attrs = {{"axis", chance(0.3) ? axis - rank : axis}};
    if (extent > 1 && chance(0.6)) {
      ir::Ints indices;
      for (int64_t i = 1; i < extent; ++i) {
        if (chance(0.4)) indices.push_back(i);
      }
      attrs.set("indices_or_sections", indices);
    } else {
      attrs.set("indices_or_sections", chance(0.5) ? extent : int64_t{1});
    }
    const bool in_float = chance(0.4);
    const std::vector<ir::ValueId> in_meaning = meaning_.call_all("split", {from.meaning}, attrs, name());
    const std::vector<ir::ValueId> in_main =
        main_.call_all("split", {in_float ? real_of(from) : integer_of(from)}, attrs, name());
    const Value whole = from;
    for (size_t i = 0; i < in_main.size(); ++i) {
      Value part = whole;
      part.meaning = in_meaning[i];
      part.integer = in_float ? ir::ValueId{} : in_main[i];
      part.real = in_float ? in_main[i] : ir::ValueId{};
      add(part);
    }
  }

  testing::Random random_;
  const std::string contract_;
  ir::Module main_module_, meaning_module_;
  ir::Builder main_, meaning_;
  std::vector<Value> values_;
  int next_name_ = 0;
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_
