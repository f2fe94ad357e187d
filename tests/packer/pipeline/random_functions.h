// Steps of random_operators.h that are functions: of one number (tables of TFLite's importer and of chains of
// float operators, functions of int16 and float32), of rows (softmax and its relatives), and quantised pairs
// whose operator is one of floats.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FUNCTIONS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FUNCTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/packer/pipeline/random_float_layers.h"
#include "tests/packer/pipeline/tflite_functions.h"

namespace qplan::naive {

class RandomFunctions : public RandomFloatLayers {
 public:
  // What the tables of some qnn.lookup stand for.
  const TfliteFunctions& tflite_functions() const { return tflite_functions_; }

 protected:
  using RandomFloatLayers::RandomFloatLayers;

  ir::ValueId quantize(ir::ValueId real, const Value& y, const std::string& contract) {
    return call("qnn.quantize", {real, b_.scalar(y.scale), b_.scalar(y.zero_point)},
                {{"out_dtype", ir::to_string(y.dtype)}, {"contract", contract}});
  }
  ir::ValueId dequantize(const Value& v) {
    return call("qnn.dequantize", {v.id, b_.scalar(v.scale), b_.scalar(v.zero_point)});
  }
  ir::ValueId quantized_one(const std::string& name, const Value& v, const Value& y, ir::Attrs attrs) {
    if (attrs.find("contract") == nullptr) attrs.set("contract", std::string("tfl2"));
    return call(
        name,
        {v.id, b_.scalar(v.scale), b_.scalar(v.zero_point), b_.scalar(y.scale), b_.scalar(y.zero_point)},
        attrs);
  }

  void any_function(const Value& v) {
    if (is_8_bit(v.dtype)) {
      const int64_t kind = integer(0, 9);
      return kind < 4   ? tflite_function_of(v)
             : kind < 5 ? any_table(v)
             : kind < 6 ? logistic(v)
             : kind < 8 ? rows(v)
                        : table(dequantize(v), v);
    }
    if (v.dtype == ir::kInt16) return chance(0.4) ? rows(v) : function_of_int16(v);
    if (v.dtype == ir::kFloat32) return float_function(v);
  }

  // ---- tables ----
  // Functions of one 8-bit number, as ONNX has them.
  void table(ir::ValueId real, Value y) {
    for (int64_t count = integer(1, 2); count > 0; --count) {
      const std::string name =
          pick_name({"nn.relu", "nn.leaky_relu", "nn.elu", "negative", "abs", "floor", "ceil", "round", "exp",
                     "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt"});
      ir::Attrs attrs;
      if (name == "nn.leaky_relu") attrs.set("alpha", 0.0625 * static_cast<double>(integer(1, 20)));
      real = call(name, {real}, attrs);
    }
    y.dtype = chance(0.5) ? ir::kInt8 : ir::kUint8;
    y.scale = scale(0.03);
    y.zero_point = zero_point(y.dtype);
    add(quantize(real, y, "f32e"), y);
  }

  void tflite_function_of(const Value& v) {
    std::vector<tflite::BuiltinOperator> operators = {
        tflite::BuiltinOperator_HARD_SWISH, tflite::BuiltinOperator_LEAKY_RELU, tflite::BuiltinOperator_TANH,
        tflite::BuiltinOperator_GELU};
    if (v.dtype == ir::kInt8)
      operators.insert(operators.end(), {tflite::BuiltinOperator_EXP, tflite::BuiltinOperator_ELU,
                                         tflite::BuiltinOperator_LOG, tflite::BuiltinOperator_SQRT,
                                         tflite::BuiltinOperator_ABS, tflite::BuiltinOperator_RSQRT});
    Value y = v;
    y.zero_point = zero_point(y.dtype);
    TfliteFunction f = {random_.pick(operators), v.dtype, v.scale, y.scale, v.zero_point, y.zero_point};
    const bool keeps_range = f.op == tflite::BuiltinOperator_HARD_SWISH ||
                             f.op == tflite::BuiltinOperator_LEAKY_RELU ||
                             f.op == tflite::BuiltinOperator_GELU || f.op == tflite::BuiltinOperator_ABS;
    if (!keeps_range || chance(0.6)) f.out_scale = scale(keeps_range ? static_cast<double>(v.scale) : 0.02);
    f.alpha = chance(0.1) ? 0.0f : scale(0.3);
    f.approximate = chance(0.5);
    const std::vector<uint8_t> entries = imported_table(f);
    if (entries.empty()) return;  // refused: docs/numerics says which scales are
    y.scale = f.out_scale;
    tflite_functions_.insert({"n" + std::to_string(next_name_), f});
    add(call("qnn.lookup", {v.id, b_.constant<uint8_t>(v.dtype, {256}, entries)}), y);
  }

  void any_table(const Value& v) {
    Value y = v;
    y.dtype = chance(0.5) ? ir::kInt8 : ir::kUint8;
    y.zero_point = zero_point(y.dtype);
    add(call("qnn.lookup", {v.id, b_.function().add_constant(data(y.dtype, {256}))}), y);
  }

  // TFLite fixes the output's quantisation, ONNX does not.
  void logistic(const Value& v) {
    const bool free = chance(0.4);
    Value y = v;
    y.scale = free ? scale(0.004) : 1.0f / 256;
    y.zero_point = free ? zero_point(y.dtype) : static_cast<int32_t>(v.dtype.min());
    add(quantized_one("qnn.sigmoid", v, y, {{"contract", std::string(free ? "f32e" : "tfl2")}}), y);
  }

  void function_of_int16(const Value& v) {
    Value from = v;
    if (chance(0.3)) from.scale = chance(0.5) ? 0x1p-11f : 0x1p-12f;
    if (from.scale > 2) from.scale = 0.001f;
    Value y = v;
    y.scale = 0x1p-15f;
    add(quantized_one(pick_name({"qnn.sigmoid", "qnn.tanh"}), from, y, {}), y);
  }

  // ---- rows ----
  void rows(const Value& v) {
    Value y = v;
    if (v.dtype == ir::kInt16 || (v.dtype == ir::kInt8 && chance(0.2))) {
      Value from = v;
      if (v.dtype == ir::kInt16) from.scale = scale(0.0005);
      ir::Attrs attrs = {{"input_scale", static_cast<double>(from.scale)}};
      if (chance(0.4)) attrs.set("beta", 0.25 * static_cast<double>(integer(1, 12)));
      return add(call("nn.integer_softmax", {v.id}, attrs), y);
    }
    const std::string name = pick_name({"qnn.softmax", "qnn.log_softmax", "qnn.l2_normalize"});
    ir::Attrs attrs;
    if (name == "qnn.softmax") {
      y.scale = 1.0f / 256;
      y.zero_point = static_cast<int32_t>(v.dtype.min());
      if (chance(0.3)) {
        attrs.set("contract", std::string("f32e"));
        y.scale = scale(0.004);
        y.zero_point = zero_point(v.dtype);
      } else if (chance(0.4)) {
        attrs.set("beta", 0.25 * static_cast<double>(integer(1, 12)));
      }
    } else if (name == "qnn.log_softmax") {
      y.scale = 1.0f / 16;
      y.zero_point = static_cast<int32_t>(v.dtype.max());
    } else {
      y.scale = 1.0f / 128;
      y.zero_point = v.dtype == ir::kInt8 ? 0 : 128;
    }
    add(quantized_one(name, v, y, attrs), y);
  }

  // ---- float32 ----
  void float_function(const Value& v) {
    if (chance(0.3)) {
      ir::Attrs attrs = {{"axis", integer(-rank_of(v), rank_of(v) - 1)}};
      const std::string name = v.dequantized ? "nn.log_softmax" : pick_name({"nn.softmax", "nn.log_softmax"});
      if (name == "nn.softmax" && chance(0.4)) attrs.set("beta", 0.25 * static_cast<double>(integer(1, 12)));
      return add(call(name, {v.id}, attrs), v);
    }
    if (chance(0.2)) return batch_norm(v);
    if (chance(0.2)) {
      const Value b = partner(v);
      return add(chance(0.5) ? call("power", {v.id, b.id}) : call("power", {b.id, v.id}), v);
    }
    if (v.dequantized) return;  // with a quantisation after it, it may be a table of the real function
    const std::string name = pick_name({"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "nn.elu"});
    ir::Attrs attrs;
    if (name == "nn.elu" && chance(0.5)) attrs.set("alpha", 0.25 * static_cast<double>(integer(1, 8)));
    add(call(name, {v.id}, attrs), v);
  }

  // Its data is made by no layer: a layer would take the factors into its weights.
  void batch_norm(const Value& v) {
    const int64_t axis = integer(0, rank_of(v) - 1), channels = v.shape[static_cast<size_t>(axis)];
    std::vector<float> variances;
    for (int64_t i = 0; i < channels; ++i) variances.push_back(scale(1.0));
    const ir::ValueId data = call("negative", {v.id});
    add(call("nn.batch_norm",
             {data, floats({channels}), floats({channels}), floats({channels}),
              b_.constant<float>(ir::kFloat32, {channels}, variances)},
             {{"axis", chance(0.3) ? axis - rank_of(v) : axis}}),
        v);
  }

  // ---- quantised pairs of a float operator ----
  // Float operators of numbers that integers stand for, and 8 bits made of the result. Sums over windows are
  // left out: the integer operator that they become is rounded at other places (docs/numerics.md).
  void float_operator_between(const Value& a) {
    const auto fits = [&](const Value& v) { return is_8_bit(v.dtype) && broadcast({v.shape, a.shape}); };
    const Value* other = chance(0.6) ? find(fits) : nullptr;
    const Value b = other != nullptr ? *other : partner(a);
    const ir::ValueId left = dequantize(a), right = dequantize(b);
    const std::string name = pick_name({"add", "subtract", "multiply", "divide", "maximum", "minimum"});
    ir::ValueId real = chance(0.5) ? call(name, {left, right}) : call(name, {right, left});
    if (chance(0.3)) real = call("nn.relu", {real});
    if (chance(0.2)) real = call("clip", {real}, {{"a_min", 0.25}, {"a_max", 1.75}});
    if (chance(0.2)) real = call("add", {real, left});
    Value y = a;
    y.dtype = chance(0.7) ? a.dtype : chance(0.5) ? ir::kInt8 : ir::kUint8;
    y.scale = scale(name == "multiply" ? static_cast<double>(a.scale * b.scale) * 40
                                       : static_cast<double>(a.scale + b.scale));
    y.zero_point = zero_point(y.dtype);
    add(quantize(real, y, "f32e"), y);
  }

  // 8 bits, or others, to other ones.
  void requantize(const Value& v) {
    Value y = v;
    if (v.dtype != ir::kInt16) y.dtype = chance(0.5) ? ir::kInt8 : ir::kUint8;
    y.scale = scale(static_cast<double>(v.scale));
    y.zero_point = zero_point(y.dtype);
    const std::string contract = is_8_bit(v.dtype) && chance(0.4) ? "f32e" : "tfl2";
    ir::ValueId id = quantized_one("qnn.requantize", v, y,
                                   {{"out_dtype", ir::to_string(y.dtype)}, {"contract", contract}});
    if (chance(0.4)) {
      const int64_t least = integer(y.dtype.min(), y.dtype.max());
      id = call("clip", {id},
                {{"a_min", static_cast<double>(least)},
                 {"a_max", static_cast<double>(integer(least, y.dtype.max()))}});
    }
    add(id, y);
  }

 private:
  TfliteFunctions tflite_functions_;
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FUNCTIONS_H_
