// Steps of random_operators.h that are layers with a state, and layers of int8 weights whose data becomes
// int8 while the network runs.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_RECURRENT_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_RECURRENT_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tests/packer/pipeline/random_functions.h"

namespace qplan::naive {

class RandomRecurrent : public RandomFunctions {
 protected:
  using RandomFunctions::RandomFunctions;

  ir::ValueId constant(ir::DType dtype, const ir::Shape& extents) {
    return b_.function().add_constant(data(dtype, extents));
  }
  ir::ValueId biases(int64_t count, int64_t most) {
    return b_.constant<int32_t>(ir::kInt32, {count},
                                random_.integers<int32_t>(static_cast<size_t>(count), -most, most));
  }
  // A state: a constant, or a value of the network where one fits.
  ir::ValueId state(ir::DType dtype, const ir::Shape& extents) {
    const Value* value = find([&](const Value& v) { return v.dtype == dtype && v.shape == extents; });
    return value != nullptr && chance(0.5) ? value->id : constant(dtype, extents);
  }

  void recurrent(const Value& v) {
    if (v.dtype == ir::kFloat32) return chance(0.4) ? dynamic_layer(v) : float_recurrent(v);
    if (v.dtype != ir::kInt8) return;
    if (v.shape.size() == 3) return integer_lstm(v);
    if (v.shape.size() == 2) return svdf(v);
    // As rows of the last axis, or as the samples of a sequence.
    const int64_t last = v.shape.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < v.shape.size(); ++i) rows *= v.shape[i];
    Value as = v;
    as.shape = chance(0.5) ? ir::Shape{rows, last} : ir::Shape{v.shape.front(), rows / v.shape.front(), last};
    if (v.shape.size() == 1) as.shape = {1, last};
    as.id = call("reshape", {v.id}, {{"newshape", as.shape}});
    recurrent(as);
  }

  // ---- long short-term memory, gated units ----
  struct Sequence {
    bool time_major;
    int64_t batch, channels, cells;
    ir::Shape state;
  };
  Sequence sequence_of(const Value& v) {
    Sequence s = {chance(0.4), 0, v.shape[2], channels(5), {}};
    s.batch = v.shape[s.time_major ? 1 : 0];
    s.state = {s.batch, s.cells};
    return s;
  }
  // Each of the results, or some of them.
  void add_results(const std::vector<ir::ValueId>& results, Value like) {
    for (size_t i = results.size(); i > 0; --i) {
      if (i != 1 && chance(0.5)) continue;
      add(results[i - 1], like);
    }
  }

  void integer_lstm(const Value& v) {
    const Sequence s = sequence_of(v);
    const bool coupled = chance(0.3);
    const int64_t gates = coupled ? 3 : 4, rows = gates * s.cells;
    const auto list = [&](int64_t least, int64_t most) {
      ir::Ints values;
      for (int64_t i = 0; i < gates; ++i) values.push_back(integer(least, most));
      return values;
    };
    ir::Attrs attrs = {{"input_multiplier", list(1 << 30, INT32_MAX)},
                       {"input_shift", list(-5, 3)},
                       {"recurrent_multiplier", list(1 << 30, INT32_MAX)},
                       {"recurrent_shift", list(-5, 3)},
                       {"output_multiplier", integer(1 << 30, INT32_MAX)},
                       {"output_shift", integer(-24, -18)},
                       {"output_zero_point", integer(-128, 127)},
                       {"cell_bits", integer(9, 15)},
                       {"coupled", coupled},
                       {"time_major", s.time_major}};
    if (chance(0.3)) attrs.set("cell_clip", integer(100, 32767));
    Value y = v;
    y.scale = scale(0.01);
    y.zero_point = static_cast<int32_t>(attrs.get_int("output_zero_point", 0));
    const std::vector<ir::ValueId> results =
        all("nn.integer_lstm",
            {v.id, constant(ir::kInt8, {rows, s.channels}), constant(ir::kInt8, {rows, s.cells}),
             biases(rows, 50000), biases(rows, 50000), state(ir::kInt8, s.state), state(ir::kInt16, s.state)},
            attrs);
    add_results(results, y);
  }

  void float_recurrent(const Value& from) {
    Value v = from;
    if (v.shape.size() != 3) {
      int64_t rows = 1;
      for (size_t i = 0; i + 1 < v.shape.size(); ++i) rows *= v.shape[i];
      v.shape = {1, rows, v.shape.back()};
      v.id = call("reshape", {v.id}, {{"newshape", v.shape}});
    }
    const Sequence s = sequence_of(v);
    ir::Attrs attrs = {{"time_major", s.time_major}};
    if (chance(0.4)) {
      attrs.set("reset_after", chance(0.5));
      const int64_t rows = 3 * s.cells;
      return add_results(all("nn.gru",
                             {v.id, floats({rows, s.channels}), floats({rows, s.cells}), floats({rows}),
                              floats({rows}), state(ir::kFloat32, s.state)},
                             attrs),
                         v);
    }
    const bool coupled = chance(0.3), hybrid = chance(0.5);
    attrs.set("coupled", coupled);
    if (chance(0.3)) attrs.set("cell_clip", 0.5 * static_cast<double>(integer(1, 4)));
    const int64_t gates = coupled ? 3 : 4, rows = gates * s.cells;
    std::vector<float> scales;
    for (int64_t i = 0; i < 2 * gates; ++i) scales.push_back(hybrid ? scale(0.01) : 1.0f);
    if (hybrid) {
      attrs.set("symmetric", chance(0.5));
      v.id = call("clip", {v.id}, {{"a_min", -6.0}, {"a_max", 6.0}});  // infinities have no scale
    }
    const ir::DType dtype = hybrid ? ir::kInt8 : ir::kFloat32;
    const auto first = [&] {
      const ir::ValueId id = state(ir::kFloat32, s.state);
      return hybrid ? call("clip", {id}, {{"a_min", -6.0}, {"a_max", 6.0}}) : id;
    };
    const ir::ValueId output = first(), cell = first();
    add_results(all("nn.lstm",
                    {v.id, constant(dtype, {rows, s.channels}), constant(dtype, {rows, s.cells}),
                     floats({rows}), b_.constant<float>(ir::kFloat32, {2 * gates}, scales), output, cell},
                    attrs),
                v);
  }

  // ---- filters ----
  void svdf(const Value& v) {
    const int64_t rank = integer(1, 2), filters = rank * channels(4), memory = integer(1, 5);
    const ir::DType dtype = chance(0.5) ? ir::kInt8 : ir::kInt16;
    const ir::Attrs attrs = {{"rank", rank},
                             {"feature_multiplier", integer(1 << 30, INT32_MAX)},
                             {"feature_shift", integer(-9, -2)},
                             {"output_multiplier", integer(1 << 30, INT32_MAX)},
                             {"output_shift", dtype == ir::kInt8 ? integer(-10, -4) : integer(-24, -18)},
                             {"output_zero_point", integer(-128, 127)}};
    Value y = v;
    y.scale = scale(0.05);
    y.zero_point = static_cast<int32_t>(attrs.get_int("output_zero_point", 0));
    add_results(all("nn.integer_svdf",
                    {v.id, constant(ir::kInt8, {filters, v.shape[1]}), constant(dtype, {filters, memory}),
                     biases(filters, 50000), biases(filters / rank, 50000),
                     state(dtype, {v.shape[0], filters, memory})},
                    attrs),
                y);
  }

  // ---- int8 weights between floats ----
  void dynamic_layer(const Value& x) {
    const bool is_dense = x.shape.size() != 4 || chance(0.4);
    if (is_dense && x.shape.size() < 2) return;
    const int64_t out = channels(5), k = is_dense ? 1 : integer(1, 2), channels = x.shape.back();
    ir::Shape form = {out, channels};
    if (!is_dense) form = {out, k, k, channels};
    const ir::ConstantRef weights = data(ir::kInt8, form);
    std::vector<int32_t> sums(static_cast<size_t>(out));
    const Tensor values = from_constant(*weights);
    for (size_t i = 0; i < values.v.size(); ++i)
      sums[i / (values.v.size() / sums.size())] += static_cast<int32_t>(values.v[i]);
    std::vector<float> scales;
    for (int64_t o = 0; o < out; ++o) scales.push_back(scale(0.02));
    const int64_t rows = is_dense ? rank_of(x) - 1 : 1;
    ir::Attrs quantised = {{"rows", rows}, {"symmetric", chance(0.5)}};
    if (!is_dense) quantised.set("padding", ir::Ints{k - 1, 0, integer(0, k - 1), k - 1});
    const ir::ValueId finite = call("clip", {x.id}, {{"a_min", -6.0}, {"a_max", 6.0}});
    const std::vector<ir::ValueId> q = all("nn.dynamic_quantize", {finite}, quantised);
    const ir::Attrs layout = {{"data_layout", std::string("NHWC")}, {"kernel_layout", std::string("OHWI")}};
    ir::ValueId id = call(is_dense ? "qnn.dense" : "qnn.conv2d",
                          {q[0], b_.function().add_constant(weights), b_.scalar(0), b_.scalar(0),
                           b_.scalar(1.0f), b_.scalar(1.0f)},
                          is_dense ? ir::Attrs{} : layout);
    id = call("nn.dynamic_dequantize",
              {id, q[1], q[2], b_.constant<float>(ir::kFloat32, {out}, scales),
               b_.constant<int32_t>(ir::kInt32, {out}, sums)},
              {{"rows", rows}, {"in_turn", chance(0.5)}});
    Value y = x;
    y.dequantized = false;
    finish_layer(id, out, static_cast<int64_t>(type(id).shape.size()) - 1, y);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_RECURRENT_H_
