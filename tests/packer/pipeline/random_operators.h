// Random networks of operators that are no layers (operator_interpreter.h knows them): values of int8, uint8,
// int16, int32, int64 and float32, of rank 1 to 5, compared, chosen, moved by position, reduced, added up,
// turned into one another. One function, which says itself what it means.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_OPERATORS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_OPERATORS_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/packer/pipeline/random_recurrent.h"

namespace qplan::naive {

class RandomOperators : public RandomRecurrent {
 public:
  explicit RandomOperators(uint64_t seed) : RandomRecurrent(seed) {
    const int64_t inputs = integer(1, 3), steps = integer(1, 12);
    for (int64_t i = 0; i < inputs; ++i) add_input("x" + std::to_string(i));
    for (int64_t i = 0; i < steps; ++i) step();
    std::vector<ir::ValueId> outputs = {values_.back().id};
    for (int64_t more = integer(0, 2); more > 0; --more) outputs.push_back(pick().id);
    b_.function().set_outputs(outputs);
  }

 private:
  // ---- steps ----
  void step() {
    const Value v = pick();
    switch (integer(0, 24)) {
      case 0:
        return extremum(v);
      case 1:
        return take(v);
      case 2:
        return slice(v);
      case 3:
        return reduce(v);
      case 4:
        return choose(v);
      case 5:
        return position(v);
      case 6:
        return largest(v);
      case 7:
        return convert(v);
      case 8:
        return blocks(v);
      case 9:
        return chance(0.5) ? pad(v) : repeat(v);
      case 10:
        return chance(0.5) ? resize(v) : gather_nd(v);
      case 11:
        return chance(0.5) ? split(v) : another_shape(v);
      case 12:
      case 13:
      case 14:
        return any_function(v);
      case 15:
      case 16:
        return recurrent(v);
      default:
        if (v.dtype == ir::kInt64) return convert(v);
        if (v.dtype == ir::kInt32) return integers(v);
        if (v.dtype == ir::kFloat32) return reals(v);
        return quantised(v);
    }
  }

  void extremum(const Value& a) {
    if (a.dtype == ir::kInt64) return;
    add(call(pick_name({"maximum", "minimum"}), {a.id, partner(a).id}), a);
  }

  // Reversed, mirrored, repeated, nearest, any list of positions; a list of rank 0 to 2; or computed ones.
  void take(const Value& v) {
    const int64_t axis = integer(0, rank_of(v) - 1), extent = v.shape[static_cast<size_t>(axis)];
    const ir::Attrs attrs = {{"axis", chance(0.3) ? axis - rank_of(v) : axis}};
    const auto positions = [&](const Value& x) {
      return x.dtype == ir::kInt32 && x.shape.size() + v.shape.size() <= 6;
    };
    if (const Value* computed = chance(0.3) ? find(positions) : nullptr)
      return add(call("take", {v.id, computed->id}, attrs), v);
    std::vector<int32_t> list;
    ir::Shape form;
    const int64_t kind = integer(0, 3), count = integer(1, 6);
    for (int64_t i = 0; i < (kind == 0 ? extent : count); ++i) {
      const int64_t at = kind == 0   ? extent - 1 - i
                         : kind == 1 ? i * extent / count
                         : kind == 2 ? std::abs((i + 1) % (2 * extent) - extent) % extent
                                     : integer(0, extent - 1);
      list.push_back(static_cast<int32_t>(at));
    }
    form = {std::ssize(list)};
    if (list.size() == 1 && chance(0.6)) form = {};
    if (list.size() % 2 == 0 && chance(0.3)) form = {2, std::ssize(list) / 2};
    if (v.shape.size() + form.size() > 6) return;
    add(call("take", {v.id, b_.constant<int32_t>(ir::kInt32, form, list)}, attrs), v);
  }

  void gather_nd(const Value& v) {
    const int64_t named = integer(1, rank_of(v));
    ir::Shape form = shape(integer(0, 2));
    form.push_back(named);
    const ir::ConstantRef indices =
        ir::make_constant(ir::kInt32, form,
                          random_.integers<int32_t>(
                              static_cast<size_t>(ir::TensorType{ir::kInt32, form}.num_elements()), -7, 7));
    add(call("gather_nd", {v.id, b_.function().add_constant(indices)}), v);
  }

  void slice(const Value& v) {
    ir::Ints begin, end, strides, axes;
    for (int64_t axis = 0; axis < rank_of(v); ++axis) {
      if (chance(0.4)) continue;
      const int64_t extent = v.shape[static_cast<size_t>(axis)], first = integer(0, extent - 1);
      const bool back = chance(0.4);
      axes.push_back(axis);
      begin.push_back(chance(0.3) ? first - extent : first);
      strides.push_back(back ? -integer(1, 2) : integer(1, 3));
      const int64_t last = integer(0, back ? first : extent - 1 - first);  // this far from the first
      end.push_back(back ? (last == first ? -extent - 1 : first - last - 1) : first + last + 1);
    }
    if (axes.empty()) return;
    add(call("strided_slice", {v.id}, {{"begin", begin}, {"end", end}, {"strides", strides}, {"axes", axes}}),
        v);
  }

  ir::Attrs axes_of(const Value& v) {
    ir::Ints axes;
    for (int64_t axis = 0; axis < rank_of(v); ++axis) {
      if (chance(0.5)) axes.push_back(chance(0.3) ? axis - rank_of(v) : axis);
    }
    return {{"axis", axes}, {"keepdims", chance(0.5)}};
  }
  void pool_of_integers(const Value& v) {
    ir::Attrs attrs = window(v);
    if (chance(0.5)) return add(call("nn.max_pool2d", {v.id}, attrs), v);
    Value y = v;
    if (is_8_bit(v.dtype) && chance(0.5)) {
      attrs.set("contract", std::string("f32e"));
      if (chance(0.4)) attrs.set("count_include_pad", true);
      y.scale = scale(static_cast<double>(v.scale) * 0.6);
      y.zero_point = zero_point(y.dtype);
    }
    add(quantized_one("qnn.avg_pool2d", v, y, attrs), y);
  }
  void reduce(const Value& v) {
    const ir::Attrs attrs = axes_of(v);
    if (is_number(v.dtype)) return;
    if (v.shape.size() == 4 && chance(0.3) && v.dtype != ir::kFloat32) return pool_of_integers(v);
    if (chance(0.4)) return add(call(pick_name({"max", "min"}), {v.id}, attrs), v);
    if (v.dtype == ir::kFloat32) return add(call(pick_name({"sum", "prod", "mean"}), {v.id}, attrs), v);
    Value y = v;
    y.scale = scale(static_cast<double>(v.scale) * 2);
    y.zero_point = zero_point(v.dtype);
    const std::string name = pick_name({"qnn.sum", "qnn.prod", "qnn.mean"});
    if (name == "qnn.prod") y.scale = scale(1.0);
    add(quantized_one(name, v, y, attrs), y);
  }

  // Conditions and what they choose; logic is a choice between conditions.
  ir::ValueId condition(const Value& a) {
    const std::string name = pick_name({"less", "less_equal", "equal"});
    const Value b = partner(a);
    return chance(0.5) ? call(name, {a.id, b.id}) : call(name, {b.id, a.id});
  }
  void choose(const Value& v) {
    ir::ValueId c = condition(v);
    if (chance(0.3)) {
      const ir::ValueId no = call("cast", {b_.scalar(0)}, {{"dtype", std::string("bool")}});
      const ir::ValueId other = condition(v);
      if (!broadcast({type(c).shape, type(other).shape})) return;
      c = chance(0.5) ? call("where", {c, other, no}) : call("where", {c, no, other});
    }
    if (chance(0.3)) {  // the condition as numbers
      const std::string to = pick_name({"int8", "uint8", "int32", "int64", "float32"});
      return add(call("cast", {c}, {{"dtype", to}}), {});
    }
    Value a = v;
    if (chance(0.4)) {
      const Value* other = find([&](const Value& x) { return x.shape == v.shape; });
      if (other != nullptr) a = *other;
    }
    const Value b = partner(a);
    if (!broadcast({type(c).shape, a.shape, b.shape})) return;
    add(chance(0.5) ? call("where", {c, a.id, b.id}) : call("where", {c, b.id, a.id}), a);
  }
  void position(const Value& v) {
    if (v.dtype == ir::kInt16) return;
    const std::string name = v.dtype == ir::kFloat32 ? "argmax" : pick_name({"argmax", "argmin"});
    const int64_t axis = integer(0, rank_of(v) - 1);
    ir::Attrs attrs = {{"axis", chance(0.3) ? axis - rank_of(v) : axis}, {"keepdims", chance(0.5)}};
    if (chance(0.3)) attrs.set("dtype", std::string("int64"));
    add(call(name, {v.id}, attrs), {});
  }
  void largest(const Value& v) {
    if (v.dtype == ir::kInt64) return;
    const std::vector<ir::ValueId> results = all("topk", {v.id}, {{"k", integer(1, v.shape.back())}});
    if (chance(0.7)) add(results[0], v);
    add(results[1], {});
  }

  // From one dtype to another.
  void convert(const Value& v) {
    Value y = v;
    if (chance(0.4)) {
      std::vector<std::string> dtypes = {"int8", "uint8", "int16", "int32", "float32"};
      if (v.dtype != ir::kFloat32) dtypes.push_back("int64");
      return add(call("cast", {v.id}, {{"dtype", random_.pick(dtypes)}}), y);
    }
    if (is_number(v.dtype)) return add(call("cast", {v.id}, {{"dtype", std::string("float32")}}), {});
    const std::string contract = v.dequantized || chance(0.5) ? "f32e" : "tfl2";
    if (v.dtype == ir::kFloat32) {
      y.dtype =
          random_.pick(std::vector<ir::DType>{ir::kInt8, ir::kUint8, v.dequantized ? ir::kInt8 : ir::kInt16});
      y.scale = scale(y.dtype == ir::kInt16 ? 0.0002 : 0.04);
      y.zero_point = zero_point(y.dtype);
      return add(quantize(v.id, y, y.dtype == ir::kInt16 ? "tfl2" : contract), y);
    }
    y.dequantized = true;
    add(dequantize(v), y);
  }

  // Space to depth, depth to space: an axis in two, transposed, two axes as one.
  void blocks(const Value& v) {
    ir::Shape parts = v.shape;
    for (size_t i = 0; i < parts.size() && parts.size() < 6; ++i) {
      if (parts[i] % 2 != 0 || !chance(0.6)) continue;
      parts[i] /= 2;
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i) + (chance(0.5) ? 1 : 0), 2);
      ++i;
    }
    ir::Ints axes;
    for (int64_t i = 0; i < std::ssize(parts); ++i) axes.push_back(i);
    for (size_t i = axes.size(); i > 1; --i)
      std::swap(axes[i - 1], axes[static_cast<size_t>(integer(0, static_cast<int64_t>(i) - 1))]);
    ir::ValueId id = call("transpose", {call("reshape", {v.id}, {{"newshape", parts}})}, {{"axes", axes}});
    ir::Shape whole = type(id).shape;
    while (whole.size() > 1 && (whole.size() > 5 || chance(0.5))) {
      const auto i = static_cast<size_t>(integer(0, std::ssize(whole) - 2));
      whole[i] *= whole[i + 1];
      whole.erase(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    add(call("reshape", {id}, {{"newshape", whole}}), v);
  }

  void repeat(const Value& v) {
    std::vector<ir::ValueId> parts(static_cast<size_t>(integer(2, 3)), v.id);
    const Value* other = find([&](const Value& x) { return x.dtype == v.dtype && x.shape == v.shape; });
    if (other != nullptr && chance(0.5)) parts.back() = other->id;
    add(call("concatenate", parts, {{"axis", integer(-rank_of(v), rank_of(v) - 1)}}), v);
  }
  void pad(const Value& v) {
    if (v.dtype == ir::kInt64) return;
    std::vector<ir::Ints> widths;
    for (size_t i = 0; i < v.shape.size(); ++i) {
      const bool pads = chance(0.4);
      widths.push_back({pads ? integer(0, 2) : 0, pads ? integer(0, 2) : 0});
    }
    add(call("nn.pad", {v.id, constant(v.dtype, {})}, {{"pad_width", widths}}), v);
  }
  void resize(const Value& v) {
    if (v.dtype == ir::kInt16 || is_number(v.dtype) || v.shape.size() != 4) return;
    const std::string mode = pick_name({"half_pixel", "align_corners", "asymmetric"});
    add(call("image.resize2d", {v.id},
             {{"size", ir::Ints{integer(1, 9), integer(1, 9)}},
              {"layout", pick_name({"NHWC", "NCHW"})},
              {"coordinate_transformation_mode", mode}}),
        v);
  }

  void split(const Value& v) {
    const int64_t axis = integer(0, rank_of(v) - 1), extent = v.shape[static_cast<size_t>(axis)];
    ir::Attrs attrs = {{"axis", chance(0.3) ? axis - rank_of(v) : axis}};
    if (extent > 1 && chance(0.6)) {
      attrs.set("indices_or_sections", ir::Ints{integer(1, extent - 1)});
    } else {
      attrs.set("indices_or_sections", extent);
    }
    for (const ir::ValueId part : all("split", {v.id}, attrs)) add(part, v);
  }
  // Shapes without their own operator in other formats.
  void another_shape(const Value& v) {
    const std::string name = pick_name({"squeeze", "expand_dims", "nn.batch_flatten"});
    if (name == "expand_dims" && v.shape.size() == 5) return;
    if (name == "nn.batch_flatten" && v.shape.size() == 1) return;
    ir::Attrs attrs;
    if (name == "expand_dims") attrs.set("axis", integer(0, rank_of(v)));
    add(call(name, {v.id}, attrs), v);
  }

  // ---- by kind of number ----
  void integers(const Value& a) {
    if (chance(0.25)) {
      const int64_t axis = integer(-rank_of(a), rank_of(a) - 1);
      return add(
          call("cumsum", {a.id}, {{"axis", axis}, {"exclusive", chance(0.5)}, {"reverse", chance(0.5)}}), a);
    }
    if (chance(0.25))
      return add(call(pick_name({"max", "min", "sum", "prod", "mean"}), {a.id}, axes_of(a)), a);
    const std::string name =
        pick_name({"add", "subtract", "multiply", "divide", "floor_divide", "floor_mod"});
    const Value b = partner(a);
    add(chance(0.5) ? call(name, {a.id, b.id}) : call(name, {b.id, a.id}), a);
  }

  void reals(const Value& a) {
    if (chance(0.35)) return float_layer(a);
    if (chance(0.2)) {
      const int64_t axis = integer(-rank_of(a), rank_of(a) - 1);
      return add(
          call("cumsum", {a.id}, {{"axis", axis}, {"exclusive", chance(0.5)}, {"reverse", chance(0.5)}}), a);
    }
    if (chance(0.5)) {
      const std::string name = pick_name({"nn.relu", "nn.leaky_relu", "negative", "abs", "floor", "ceil",
                                          "round", "sqrt", "rsqrt", "clip", "hard_sigmoid"});
      ir::Attrs attrs;
      if (name == "nn.leaky_relu") attrs.set("alpha", 0.0625 * static_cast<double>(integer(1, 20)));
      if (name == "clip")
        attrs = {{"a_min", 0.0 - 0.5 * static_cast<double>(integer(0, 4))}, {"a_max", 1.75}};
      return add(call(name, {a.id}, attrs), a);
    }
    const std::string name = pick_name({"add", "subtract", "multiply", "divide"});
    const Value b = partner(a);
    add(chance(0.5) ? call(name, {a.id, b.id}) : call(name, {b.id, a.id}), a);
  }

  void quantised(const Value& a) {
    if (a.dtype == ir::kInt16 && chance(0.3)) return layer_of_int16(a);
    if (a.shape.size() == 4 && chance(0.3)) return transposed_convolution(a);
    if (is_8_bit(a.dtype) && a.shape.size() > 1 && chance(0.15)) return matrix_product(a);
    if (is_8_bit(a.dtype) && chance(0.2)) return float_operator_between(a);
    if (chance(0.15)) return requantize(a);
    std::vector<std::string> names = {"qnn.add", "qnn.subtract", "qnn.mul", "qnn.prelu"};
    if (is_8_bit(a.dtype)) names.insert(names.end(), {"qnn.squared_difference", "qnn.divide"});
    std::string name = pick_name(names);
    const Value b = partner(a);
    if (name == "qnn.prelu" && !broadcasts_to(b.shape, a.shape)) name = "qnn.mul";
    Value y = a;
    const double sa = static_cast<double>(a.scale), sb = static_cast<double>(b.scale);
    const bool sum = name == "qnn.add" || name == "qnn.subtract";
    y.scale = scale(name == "qnn.mul" ? sa * sb * 40 : name == "qnn.squared_difference" ? 40 * sa * sa : sa);
    if (sum) y.scale = std::max({y.scale, a.scale, b.scale}) * 1.01f;
    if (name == "qnn.divide") y.scale = scale(0.1);
    y.zero_point = zero_point(y.dtype);
    add(call(name,
             {a.id, b.id, b_.scalar(a.scale), b_.scalar(a.zero_point), b_.scalar(b.scale),
              b_.scalar(b.zero_point), b_.scalar(y.scale), b_.scalar(y.zero_point)},
             {{"contract", std::string("tfl2")}}),
        y);
  }

  void matrix_product(const Value& a) {
    const bool transposed = chance(0.5);
    const int64_t depth = a.shape.back(), columns = channels(5);
    Value b = a;  // times its own transpose
    if (!transposed || chance(0.5)) {
      b.shape = {transposed ? columns : depth, transposed ? depth : columns};
      b.id = constant(a.dtype, b.shape);
      b.scale = scale(0.05);
      b.zero_point = zero_point(b.dtype);
    }
    Value y = a;
    y.scale = scale(static_cast<double>(a.scale * b.scale) * 60);
    y.zero_point = zero_point(y.dtype);
    add(call("qnn.batch_matmul",
             {a.id, b.id, b_.scalar(a.scale), b_.scalar(a.zero_point), b_.scalar(b.scale),
              b_.scalar(b.zero_point), b_.scalar(y.scale), b_.scalar(y.zero_point)},
             {{"transpose_b", transposed}, {"contract", pick_name({"tfl2", "f32e"})}}),
        y);
  }

  // A fully connected layer, or a convolution, with accumulators of 32 bits.
  void layer_of_int16(const Value& x) {
    const bool is_dense = x.shape.size() != 4 || chance(0.4);
    if (is_dense && x.shape.size() < 2) return;
    const int64_t out = channels(4), k = is_dense ? 1 : integer(1, 2);
    ir::Shape form = {out, x.shape.back()};
    if (!is_dense) form = {out, k, k, x.shape.back()};
    const ir::Attrs attrs = {{"data_layout", std::string("NHWC")},
                             {"kernel_layout", std::string("OHWI")},
                             {"padding", ir::Ints{k - 1, 0, 0, k - 1}}};
    const float weight_scale = scale(0.02);
    ir::ValueId id = call(is_dense ? "qnn.dense" : "qnn.conv2d",
                          {x.id, b_.function().add_constant(data(ir::kInt8, form)), b_.scalar(0),
                           b_.scalar(0), b_.scalar(x.scale), b_.scalar(weight_scale)},
                          is_dense ? ir::Attrs{} : attrs);
    Value y = x;
    y.scale = scale(static_cast<double>(x.scale * weight_scale) * 200);
    id = call("qnn.requantize",
              {id, b_.scalar(x.scale * weight_scale), b_.scalar(0), b_.scalar(y.scale), b_.scalar(0)},
              {{"out_dtype", std::string("int16")}, {"contract", std::string("tfl2")}});
    add(id, y);
  }

  void transposed_convolution(const Value& x) {
    const int64_t kh = integer(1, 3), kw = integer(1, 3), out = channels(4);
    const ir::Ints strides = {integer(1, 3), integer(1, 2)};
    const ir::Ints crop = {integer(0, kh - 1), integer(0, kw - 1)};
    const ir::Ints size = {
        std::max<int64_t>(1, (x.shape[1] - 1) * strides[0] + kh - crop[0] - integer(0, 1)),
        std::max<int64_t>(1, (x.shape[2] - 1) * strides[1] + kw - crop[1] - integer(0, 1))};
    const ir::Shape form = {out, kh, kw, x.shape[3]};
    const bool per_channel = chance(0.5);
    std::vector<float> scales, products;
    for (int64_t o = 0; o < (per_channel ? out : 1); ++o) scales.push_back(scale(0.02));
    for (const float s : scales) products.push_back(x.scale * s);
    const auto constant = [&](const std::vector<float>& values) {
      return per_channel ? b_.constant<float>(ir::kFloat32, {out}, values) : b_.scalar(values[0]);
    };
    ir::ValueId id = call("qnn.conv2d_transpose",
                          {x.id, b_.function().add_constant(data(ir::kInt8, form)), b_.scalar(x.zero_point),
                           b_.scalar(0), b_.scalar(x.scale), constant(scales)},
                          {{"strides", strides}, {"crop", crop}, {"output_size", size}});
    const std::vector<int32_t> bias = random_.integers<int32_t>(static_cast<size_t>(out), -5000, 5000);
    if (chance(0.6))
      id = call("nn.bias_add", {id, b_.constant<int32_t>(ir::kInt32, {out}, bias)}, {{"axis", int64_t{3}}});
    Value y;
    y.dtype = x.dtype == ir::kInt16 || chance(0.7) ? x.dtype : chance(0.5) ? ir::kInt8 : ir::kUint8;
    y.scale = scale(static_cast<double>(products[0]) * 200);
    y.zero_point = zero_point(y.dtype);
    id = call(
        "qnn.requantize", {id, constant(products), b_.scalar(0), b_.scalar(y.scale), b_.scalar(y.zero_point)},
        {{"axis", int64_t{3}}, {"out_dtype", ir::to_string(y.dtype)}, {"contract", std::string("tfl2")}});
    add(id, y);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_OPERATORS_H_
