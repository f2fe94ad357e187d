// Random small quantised networks (network_pair.h): inputs and outputs, and every step that is no layer of
// weights.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/packer/pipeline/random_layers.h"

namespace qplan::naive {

class RandomNetwork : private RandomLayers {
 public:
  RandomNetwork(uint64_t seed, std::string contract, bool other_signedness = false)
      : RandomLayers(seed, std::move(contract), other_signedness) {
    const auto inputs = random_.integer(1, 2);
    for (int64_t i = 0; i < inputs; ++i) add_input("x" + std::to_string(i));
    const auto steps = random_.integer(1, 8);
    for (int64_t i = 0; i < steps; ++i) step();
    finish();
  }

  using NetworkPair::main_module;
  using NetworkPair::meaning;
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
    switch (integer(0, 17)) {
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
      case 15:
        return batch_matmul();
      case 16:
        return slice();
      default:
        return requantize();
    }
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
    const bool in_float = chance_of_tflites_floats();
    if (in_float || chance(0.4)) {
      to.integer = quantize(real_of(from), to.q, to.dtype, in_float);
    } else {
      to.integer = m("qnn.requantize",
                     {integer_of(from), main_.scalar(from.q.scale), main_.scalar(from.q.zero_point),
                      main_.scalar(to.q.scale), main_.scalar(to.q.zero_point)},
                     with_contract({{"out_dtype", ir::to_string(to.dtype)}}));
    }
    to.meaning = n_requantize(from.meaning, from.q, to.q, to.dtype, in_float);
    add(to);
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
      const ir::ConstantRef constant = data_bytes(b.dtype, shape);
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
    if (in_float) {
      const char* const names[] = {"add", "subtract", "multiply"};
      const ir::ValueId left = real_of(a), right = real_of(b);
      const ir::ValueId real =
          chance(0.3) && kind != 1 ? m(names[kind], {right, left}) : m(names[kind], {left, right});
      y.integer = quantize(real, y.q, y.dtype);
    }
    const char* const names[] = {"qnn.add", "qnn.subtract", "qnn.mul"};
    of_two_operands(names[kind], a, b, y, in_float);
  }

  // A product of matrices of two activations, or of one and a constant.
  void batch_matmul() {
    const Value a = values_[pick()];
    if (a.shape.size() < 2) return;
    const int64_t depth = a.shape.back();
    const bool transposed = chance(0.5);
    Value b = a;  // times its own transpose
    if (!transposed || chance(0.4)) {
      ir::Shape shape = {transposed ? integer(1, 6) : depth, transposed ? depth : integer(1, 6)};
      if (chance(0.5)) shape.insert(shape.begin(), a.shape.begin(), a.shape.end() - 2);
      b.dtype = dtype8();
      b.q = quantisation(b.dtype);
      const ir::ConstantRef constant = data_bytes(b.dtype, shape);
      b.meaning = meaning_.function().add_constant(constant);
      b.integer = main_.function().add_constant(constant);
      b.real = {};
    }
    const bool in_float = chance(0.4);
    Value y;
    y.dtype = in_float ? dtype8() : a.dtype;
    y.q = quantisation(
        y.dtype, static_cast<double>(a.q.scale * b.q.scale) * 40 * std::sqrt(static_cast<double>(depth)));
    const ir::Attrs attrs = {{"transpose_b", transposed}};
    if (in_float) {
      Value left = a, right = b;
      const ir::ValueId in_main = real_of(left);
      y.integer = quantize(m("nn.batch_matmul", {in_main, real_of(right)}, attrs), y.q, y.dtype);
    }
    of_two_operands("qnn.batch_matmul", a, b, y, in_float, attrs);
  }

  // Adds what an integer operator makes of two operands of one dtype, re-signed where they differ: to the
  // meaning, and to main unless it says so in floats.
  void of_two_operands(const char* op, const Value& a, const Value& b, Value y, bool in_float,
                       ir::Attrs attrs = {}) {
    Value first = resigned(a, y.dtype, in_float), second = resigned(b, y.dtype, in_float);
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
    ir::Attrs meant = attrs;
    meant.set("contract", contract_);
    y.meaning = n(op, operands(meaning_, first.meaning, second.meaning), meant);
    if (!in_float) {
      const ir::ValueId l = integer_of(first);
      y.integer = m(op, operands(main_, l, integer_of(second)), with_contract(attrs));
    }
    add(y);
  }

  Value resigned(Value v, ir::DType dtype, bool in_meaning_alone) {
    if (v.dtype == dtype) return v;
    const Quantisation q = {v.q.scale, v.q.zero_point + static_cast<int32_t>(dtype.min() - v.dtype.min())};
    v.meaning = n_requantize(v.meaning, v.q, q, dtype);
    if (!in_meaning_alone) {
      v.integer = m("qnn.requantize",
                    {integer_of(v), main_.scalar(v.q.scale), main_.scalar(v.q.zero_point),
                     main_.scalar(q.scale), main_.scalar(q.zero_point)},
                    with_contract({{"out_dtype", ir::to_string(dtype)}}));
      v.real = {};
    }
    v.q = q;
    v.dtype = dtype;
    return v;
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
  void slice() {
    Value& from = values_[pick()];
    ir::Ints begin, end, strides;
    for (const int64_t extent : from.shape) {
      const int64_t first = chance(0.5) ? 0 : integer(0, extent - 1);
      begin.push_back(first);
      end.push_back(chance(0.5) ? extent : integer(first + 1, extent));
      strides.push_back(chance(0.6) ? 1 : integer(1, 3));
    }
    movement(from, "strided_slice", {{"begin", begin}, {"end", end}, {"strides", strides}});
  }

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
    const bool in_tflites_floats = chance_of_tflites_floats(), in_float = in_tflites_floats || chance(0.4);
    if (chance(0.5)) y.q = quantisation(y.dtype);
    std::vector<ir::ValueId> in_meaning, in_main;
    for (Value& part : parts) {
      const bool same =
          part.dtype == y.dtype && part.q.scale == y.q.scale && part.q.zero_point == y.q.zero_point;
      in_meaning.push_back(same ? part.meaning
                                : n_requantize(part.meaning, part.q, y.q, y.dtype, in_tflites_floats));
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
    if (in_float) y.integer = quantize(y.integer, y.q, y.dtype, in_tflites_floats);
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
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_NETWORK_H_
