// function_interpreter.h with layers that have a state, and with 8-bit integers whose scales the data gives.
// Written from docs/numerics/lstm.md and dynamic_quantize.md; the functions on 16 bits are those of gemmlowp.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RECURRENT_INTERPRETER_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RECURRENT_INTERPRETER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/packer/pipeline/function_interpreter.h"

namespace qplan::naive {

// ---- fixed point of 16 bits ----

inline int64_t times16(int64_t a, int64_t b) { return saturate16((a * b + (1 << 14)) >> 15); }
inline int64_t away(int64_t x, int k) {  // x / 2^k
  return static_cast<int64_t>(half_away(std::ldexp(static_cast<double>(x), -k)));
}

// exp(a) of a <= 0 with m integer bits.
inline int64_t exp16(int64_t a, int m) {
  if (a == 0) return 32767;
  const int fraction = 15 - m;
  if (m > 5 && a < -(int64_t{32} << fraction)) return 0;
  const int64_t quarter = int64_t{1} << (fraction - 2);
  const int64_t rest = ((a % quarter) + quarter) % quarter - quarter;  // [-1/4, 0)
  const int64_t quarters = (rest - a) / quarter;
  const int64_t x = rest * (int64_t{1} << m) + (1 << 12);
  const int64_t x2 = times16(x, x), x3 = times16(x2, x), x4 = times16(x2, x2);
  const int64_t tail = away(times16(away(x4, 2) + x3, 10923) + x2, 1);
  int64_t y = saturate16(28918 + times16(28918, x + tail));
  const int64_t factors[] = {25520, 19875, 12055, 4435, 600, 11, 0};
  for (int k = 0; k < 7 && k - 2 < m; ++k) {
    if ((quarters >> k & 1) != 0) y = times16(y, factors[k]);
  }
  return y;
}

// 2 / (1 + a) with 13 fraction bits.
inline int64_t reciprocal16(int64_t a) {
  const int64_t half = (a + 32767 + 1) >> 1;
  int64_t x = 23130 + times16(half, -15420);
  for (int i = 0; i < 3; ++i)
    x = static_cast<int16_t>(x + saturate16(times16(x, (1 << 13) - times16(half, x)) * 4));
  return x;
}

inline int64_t logistic16(int64_t v, int m) {
  if (v == 0) return 1 << 14;
  const int64_t y = saturate16(reciprocal16(exp16(-std::abs(v), m)) * 2);
  return v > 0 ? y : 32767 - y;
}

inline int64_t tanh16(int64_t v, int m) {
  if (v == 0) return 0;
  const int64_t y = saturate16((reciprocal16(exp16(-std::abs(v), m + 1)) - (1 << 13)) * 4);
  return v > 0 ? y : -y;
}

class RecurrentInterpreter : public FunctionInterpreter {
 public:
  using FunctionInterpreter::FunctionInterpreter;

 private:
  using Reals = std::vector<double>;

  // ---- sequences ----
  // The place of a step's row of one sample in a sequence.
  static size_t row_at(const ir::Node& node, const Tensor& sequence, int64_t sample, int64_t step) {
    const bool time_major = node.attrs.get_bool("time_major", false);
    const int64_t first = time_major ? step : sample, second = time_major ? sample : step;
    return static_cast<size_t>((first * sequence.shape[1] + second) * sequence.shape[2]);
  }
  static Reals part(const Tensor& t, size_t begin, int64_t count) {
    const auto from = t.v.begin() + static_cast<std::ptrdiff_t>(begin);
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }
  static void put(const Reals& row, size_t begin, Tensor* to) {
    std::ranges::copy(row, to->v.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  // For each sample: its states run through the steps. step(x, states) changes them; states[0] is the output.
  template <typename Step>
  void sequence(const ir::Node& node, size_t first_state, size_t num_states, const Step& step) {
    const Tensor& x = in(node, 0);
    const bool time_major = node.attrs.get_bool("time_major", false);
    const int64_t batch = x.shape[time_major ? 1 : 0], steps = x.shape[time_major ? 0 : 1];
    std::vector<Tensor> results;
    for (size_t i = 0; i <= num_states; ++i) results.push_back(empty_result(node, i));
    const int64_t cells = results[0].shape[2];
    for (int64_t sample = 0; sample < batch; ++sample) {
      const auto place = static_cast<size_t>(sample * cells);
      std::vector<Reals> states;
      for (size_t i = 0; i < num_states; ++i) states.push_back(part(in(node, first_state + i), place, cells));
      for (int64_t t = 0; t < steps; ++t) {
        step(part(x, row_at(node, x, sample, t), x.shape[2]), &states);
        put(states[0], row_at(node, results[0], sample, t), &results[0]);
      }
      for (size_t i = 0; i < num_states; ++i) put(states[i], place, &results[i + 1]);
    }
    for (size_t i = 0; i <= num_states; ++i) values_[node.results[i].index] = std::move(results[i]);
  }

  // Exact sums of integers, modulo 2^32.
  static int64_t wrapped_sum(const Tensor& weights, size_t row, const Reals& x, double from) {
    double sum = from;
    for (size_t k = 0; k < x.size(); ++k) sum += weights.v[row * x.size() + k] * x[k];
    return static_cast<int32_t>(static_cast<int64_t>(sum));
  }
  static double chain(const Tensor& weights, size_t row, const Reals& x) {
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k) sum = f32(sum + f32(weights.v[row * x.size() + k] * x[k]));
    return sum;
  }

  // ---- long short-term memory ----
  void integer_lstm(const ir::Node& node) {
    const auto list = [&](const char* name, size_t gate) { return node.attrs.get_ints(name, {})[gate]; };
    const auto number = [&](const char* name) { return node.attrs.get_int(name, 0); };
    const bool coupled = node.attrs.get_bool("coupled", false);
    const auto bits = static_cast<int>(number("cell_bits"));
    const Multiplier output = {number("output_multiplier"), static_cast<int>(number("output_shift"))};
    sequence(node, 5, 2, [&](const Reals& x, std::vector<Reals>* states) {
      const Reals h = (*states)[0];
      const size_t cells = h.size();
      const auto gate = [&](size_t index, size_t cell) {
        const size_t row = index * cells + cell;
        const int64_t from_x =
            saturate16(tfl2(wrapped_sum(in(node, 1), row, x, in(node, 3).v[row]),
                            {list("input_multiplier", index), static_cast<int>(list("input_shift", index))}));
        const int64_t from_h =
            tfl2(wrapped_sum(in(node, 2), row, h, in(node, 4).v[row]),
                 {list("recurrent_multiplier", index), static_cast<int>(list("recurrent_shift", index))});
        return saturate16(static_cast<int32_t>(from_x + from_h));
      };
      for (size_t cell = 0; cell < cells; ++cell) {
        const size_t forget = coupled ? 0 : 1;
        const int64_t f = logistic16(gate(forget, cell), 3), g = tanh16(gate(forget + 1, cell), 3);
        const int64_t o = logistic16(gate(forget + 2, cell), 3);
        const int64_t i = coupled ? 32767 - f : logistic16(gate(0, cell), 3);
        const auto before = static_cast<int64_t>((*states)[1][cell]);
        int64_t c = saturate16(away(f * before, 15) + away(i * g, 30 - bits));
        if (const int64_t clip = number("cell_clip"); clip != 0) c = std::clamp(c, -clip, clip);
        (*states)[1][cell] = static_cast<double>(c);
        const int64_t y = number("output_zero_point") + tfl2(o * tanh16(c, 15 - bits), output);
        (*states)[0][cell] = saturate(static_cast<double>(y), ir::kInt8);
      }
    });
  }

  // A row as int8, by its own elements.
  struct Row8 {
    Reals q;
    double scale = 1, zero_point = 0;
  };
  static Row8 quantized_row(const Reals& x, bool symmetric) {
    double least = 0, most = 0;
    for (const double v : x) {
      if (v < least) least = v;
      if (v > most) most = v;
    }
    Row8 row;
    row.q.assign(x.size(), 0);
    if (least == 0 && most == 0) return row;
    double inverse = 0;
    if (symmetric) {
      const double range = std::max(-least, most);
      row.scale = f32(range / 127);
      inverse = f32(127 / range);
    } else {
      const double s = (most - least) / 255;
      row.scale = f32(s);
      inverse = f32(1 / row.scale);
      const double below = std::fabs(least / s), above = std::fabs(most / s);
      const double place = 128 + below < 127 + above ? -128 - least / s : 127 - most / s;
      row.zero_point = half_away(std::clamp(place, -128.0, 127.0));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double place = f32(row.zero_point + f32(x[i] * inverse));
      row.q[i] = std::isnan(place) ? 0 : half_away(std::clamp(place, symmetric ? -127.0 : -128.0, 127.0));
    }
    return row;
  }

  void float_lstm(const ir::Node& node) {
    const bool coupled = node.attrs.get_bool("coupled", false);
    const bool hybrid = in(node, 1).dtype == ir::kInt8, symmetric = node.attrs.get_bool("symmetric", true);
    const double clip = f32(node.attrs.get_double("cell_clip", 0));
    sequence(node, 5, 2, [&](const Reals& x, std::vector<Reals>* states) {
      const Reals h = (*states)[0];
      const size_t cells = h.size(), gates = coupled ? 3 : 4;
      const Row8 rows[] = {quantized_row(x, symmetric), quantized_row(h, symmetric)};
      const auto dot = [&](size_t side, size_t row) {
        if (!hybrid) return chain(in(node, 1 + side), row, side == 0 ? x : h);
        Reals centred;
        for (const double q : rows[side].q) centred.push_back(q - rows[side].zero_point);
        const double sum = f32(static_cast<double>(wrapped_sum(in(node, 1 + side), row, centred, 0)));
        return f32(sum * f32(rows[side].scale * in(node, 4).v[side * gates + row / cells]));
      };
      const auto gate = [&](size_t index, size_t cell) {
        const size_t row = index * cells + cell;
        return f32(f32(in(node, 3).v[row] + dot(0, row)) + dot(1, row));
      };
      for (size_t cell = 0; cell < cells; ++cell) {
        const size_t forget = coupled ? 0 : 1;
        const double f = float_logistic(gate(forget, cell)), g = float_tanh(gate(forget + 1, cell));
        const double o = float_logistic(gate(forget + 2, cell));
        const double i = coupled ? f32(1 - f) : float_logistic(gate(0, cell));
        double c = f32(f32(f * (*states)[1][cell]) + f32(i * g));
        if (clip != 0) c = c < -clip ? -clip : clip < c ? clip : c;
        (*states)[1][cell] = c;
        (*states)[0][cell] = f32(o * float_tanh(c));
      }
    });
  }

  void gru(const ir::Node& node) {
    const bool after = node.attrs.get_bool("reset_after", false);
    sequence(node, 5, 1, [&](const Reals& x, std::vector<Reals>* states) {
      const Reals h = (*states)[0];
      const size_t cells = h.size();
      const auto from_x = [&](size_t row) { return f32(in(node, 3).v[row] + chain(in(node, 1), row, x)); };
      const auto from_h = [&](size_t row, const Reals& state) {
        return f32(in(node, 4).v[row] + chain(in(node, 2), row, state));
      };
      const auto gate = [&](size_t row) { return float_logistic(f32(from_x(row) + from_h(row, h))); };
      Reals reset;
      for (size_t cell = 0; cell < cells; ++cell) reset.push_back(gate(cells + cell));
      Reals kept;
      for (size_t cell = 0; cell < cells; ++cell) kept.push_back(f32(reset[cell] * h[cell]));
      for (size_t cell = 0; cell < cells; ++cell) {
        const size_t row = 2 * cells + cell;
        const double state = after ? f32(reset[cell] * from_h(row, h)) : from_h(row, kept);
        const double n = float_tanh(f32(from_x(row) + state)), z = gate(cell);
        (*states)[0][cell] = f32(f32(f32(1 - z) * n) + f32(z * h[cell]));
      }
    });
  }

  // ---- filters ----
  void svdf(const ir::Node& node) {
    const Tensor &x = in(node, 0), &feature = in(node, 1), &time = in(node, 2);
    const auto number = [&](const char* name) { return node.attrs.get_int(name, 0); };
    const Multiplier first = {number("feature_multiplier"), static_cast<int>(number("feature_shift"))};
    const Multiplier second = {number("output_multiplier"), static_cast<int>(number("output_shift"))};
    const auto filters = static_cast<size_t>(time.shape[0]), memory = static_cast<size_t>(time.shape[1]);
    const auto rank = static_cast<size_t>(node.attrs.get_int("rank", 1));
    Tensor out = empty_result(node), state = in(node, 5);
    for (size_t sample = 0; sample < static_cast<size_t>(x.shape[0]); ++sample) {
      const Reals row = part(x, sample * static_cast<size_t>(x.shape[1]), x.shape[1]);
      for (size_t f = 0; f < filters; ++f) {
        const auto line = state.v.begin() + static_cast<std::ptrdiff_t>((sample * filters + f) * memory);
        std::rotate(line, line + 1, line + static_cast<std::ptrdiff_t>(memory));
        const int64_t sum = wrapped_sum(feature, f, row, in(node, 3).v[f]);
        line[static_cast<std::ptrdiff_t>(memory) - 1] =
            saturate(static_cast<double>(tfl2(sum, first)), state.dtype);
      }
      for (size_t u = 0; u < filters / rank; ++u) {
        int64_t sum = static_cast<int64_t>(in(node, 4).v[u]);
        for (size_t k = u * rank * memory; k < (u + 1) * rank * memory; ++k)
          sum += static_cast<int64_t>(time.v[k] * state.v[sample * filters * memory + k]);
        const int64_t y = number("output_zero_point") + tfl2(static_cast<int32_t>(sum), second);
        out.v[sample * (filters / rank) + u] = saturate(static_cast<double>(y), ir::kInt8);
      }
    }
    values_[node.results[0].index] = std::move(out);
    values_[node.results[1].index] = std::move(state);
  }

  // ---- scales that the data gives ----
  void dynamic_quantize(const ir::Node& node) {
    const Tensor& x = in(node, 0);
    const ir::Ints padding = node.attrs.get_ints("padding", {0, 0, 0, 0});
    Tensor q = empty_result(node), scales = empty_result(node, 1), zero_points = empty_result(node, 2);
    const size_t rows = scales.v.size(), count = x.v.size() / rows;
    for (size_t r = 0; r < rows; ++r) {
      const Row8 row = quantized_row(part(x, r * count, static_cast<int64_t>(count)),
                                     node.attrs.get_bool("symmetric", false));
      scales.v[r] = row.scale;
      zero_points.v[r] = row.zero_point;
      const size_t to = r * (q.v.size() / rows);
      std::fill_n(q.v.begin() + static_cast<std::ptrdiff_t>(to), q.v.size() / rows, row.zero_point);
      for (size_t i = 0; i < count; ++i) {
        size_t place = to + i;
        if (q.v.size() != x.v.size()) {
          const auto w = static_cast<size_t>(x.shape[2]), c = static_cast<size_t>(x.shape[3]);
          const size_t h = i / c / w + static_cast<size_t>(padding[0]);
          const size_t column = i / c % w + static_cast<size_t>(padding[1]);
          place = to + (h * static_cast<size_t>(q.shape[2]) + column) * c + i % c;
        }
        q.v[place] = row.q[i];
      }
    }
    values_[node.results[0].index] = std::move(q);
    values_[node.results[1].index] = std::move(scales);
    values_[node.results[2].index] = std::move(zero_points);
  }

  Tensor dynamic_dequantize(const ir::Node& node) const {
    const Tensor& x = in(node, 0);
    Tensor out = empty_result(node);
    const size_t channels = in(node, 3).v.size(), per_row = x.v.size() / in(node, 1).v.size();
    for (size_t i = 0; i < x.v.size(); ++i) {
      const size_t o = i % channels, r = i / per_row;
      const double offset = in(node, 2).v[r] * in(node, 4).v[o];
      const double sum = f32(static_cast<int32_t>(static_cast<int64_t>(x.v[i] - offset)));
      const double row_scale = in(node, 1).v[r], weight_scale = in(node, 3).v[o];
      out.v[i] = node.attrs.get_bool("in_turn", false) ? f32(f32(sum * weight_scale) * row_scale)
                                                       : f32(sum * f32(weight_scale * row_scale));
    }
    return out;
  }

  void execute(const ir::Node& node) override {
    const std::string& name = node.op->name;
    if (name == "nn.integer_lstm") return integer_lstm(node);
    if (name == "nn.lstm") return float_lstm(node);
    if (name == "nn.gru") return gru(node);
    if (name == "nn.integer_svdf") return svdf(node);
    if (name == "nn.dynamic_quantize") return dynamic_quantize(node);
    if (name == "nn.dynamic_dequantize")
      return void(values_[node.results[0].index] = dynamic_dequantize(node));
    FunctionInterpreter::execute(node);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RECURRENT_INTERPRETER_H_
