// The formulas of recurrent.h as they stand there.
#include "kernels/float/float.h"
#include "kernels/layout.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "kernels/quantization/quantization.h"
#include "kernels/recurrent/recurrent.h"

namespace qplan {

namespace lstm_ref {
namespace {

int32_t sum_of_row(const int8_t* weights, uint16_t layout, uint32_t num_rows, uint32_t row, const int8_t* x,
                   uint32_t count, int32_t bias) {
  auto sum = static_cast<uint32_t>(bias);
  for (uint32_t k = 0; k < count; ++k) {
    const int32_t w = weights[layout_index(layout, row, k, num_rows, count)];
    sum += static_cast<uint32_t>(w * (x[k] + 128));
  }
  return static_cast<int32_t>(sum);
}

}  // namespace

Refusal accepts(const LstmArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const LstmArgs& args) {
  return (size_t{lstm_rows(args.shape)} * sizeof(int16_t) + 63) / 64 * 64;
}
uint32_t work_items(const LstmArgs& args) { return args.shape.batch; }

void run(const LstmArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  auto* gates = static_cast<int16_t*>(scratch);
  const LstmShape& shape = a.shape;
  for (uint32_t sample = begin; sample < end; ++sample) {
    const auto state = lstm_first_state<LstmState>(a, sample);
    for (uint32_t step = 0; step < shape.steps; ++step) {
      const int8_t* x = a.input + lstm_row(shape, sample, step) * shape.input_c;
      for (uint32_t row = 0; row < lstm_rows(shape); ++row) {
        const int32_t of_input = sum_of_row(a.input_weights, a.weights_layout, lstm_rows(shape), row, x,
                                            shape.input_c, a.input_bias[row]);
        const int32_t of_state = sum_of_row(a.recurrent_weights, a.weights_layout, lstm_rows(shape), row,
                                            state.output, shape.cells, a.recurrent_bias[row]);
        gates[row] = lstm_gate(a, row / shape.cells, of_input, of_state);
      }
      lstm_update(a, gates, state, a.output + lstm_row(shape, sample, step) * shape.cells);
    }
  }
}

}  // namespace lstm_ref

namespace float_lstm_ref {
namespace {

float dot(const float* weights, uint32_t row, const float* x, uint32_t count) {
  const float* block = weights + uint64_t{row / kFloatBlock} * count * kFloatBlock + row % kFloatBlock;
  float sum = 0.0f;
  for (uint32_t k = 0; k < count; ++k) {
    const float product = block[uint64_t{k} * kFloatBlock] * x[k];
    sum = sum + product;
  }
  return sum;
}

struct Row {
  const float* values;
  int8_t* quantized;
  uint32_t count;
  DynamicScale scale;
};

void quantize_row(const FloatLstmArgs& a, Row* row) {
  float least = 0.0f, most = 0.0f;
  for (uint32_t k = 0; k < row->count; ++k) {
    least = row->values[k] < least ? row->values[k] : least;
    most = row->values[k] > most ? row->values[k] : most;
  }
  row->scale = dynamic_scale(least, most, a.symmetric);
  for (uint32_t k = 0; k < row->count; ++k)
    row->quantized[k] = dynamic_quantized(row->values[k], row->scale, a.symmetric);
}

uint32_t hybrid_product(const int8_t* weights, uint16_t layout, uint32_t num_rows, uint32_t row,
                        const Row& x) {
  uint32_t sum = 0;
  if (layout == kLayout_ohwi) {
    const int8_t* w = weights + uint64_t{row} * x.count;
    for (uint32_t k = 0; k < x.count; ++k)
      sum += static_cast<uint32_t>(w[k] * (x.quantized[k] - x.scale.zero_point));
    return sum;
  }
  for (uint32_t k = 0; k < x.count; ++k) {
    const int32_t w = weights[layout_index(layout, row, k, num_rows, x.count)];
    sum += static_cast<uint32_t>(w * (x.quantized[k] - x.scale.zero_point));
  }
  return sum;
}

float hybrid_dot(const FloatLstmArgs& a, const void* weights, uint32_t row, const Row& x,
                 float weight_scale) {
  const uint32_t sum =
      hybrid_product(static_cast<const int8_t*>(weights), a.weights_layout, lstm_rows(a.shape), row, x);
  const float scale = x.scale.scale * weight_scale;
  return static_cast<float>(static_cast<int32_t>(sum)) * scale;
}

}  // namespace

Refusal accepts(const FloatLstmArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatLstmArgs& args) {
  const size_t bytes = size_t{lstm_rows(args.shape)} * sizeof(float) +
                       (args.is_hybrid ? size_t{args.shape.input_c} + args.shape.cells : 0);
  return (bytes + 63) / 64 * 64;
}
uint32_t work_items(const FloatLstmArgs& args) { return args.shape.batch; }

void run(const FloatLstmArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const LstmShape& shape = a.shape;
  auto* gates = static_cast<float*>(scratch);
  auto* bytes = static_cast<int8_t*>(static_cast<void*>(gates + lstm_rows(shape)));
  for (uint32_t sample = begin; sample < end; ++sample) {
    const auto state = lstm_first_state<FloatLstmState>(a, sample);
    for (uint32_t step = 0; step < shape.steps; ++step) {
      Row x = {a.input + lstm_row(shape, sample, step) * shape.input_c, bytes, shape.input_c, {}};
      Row h = {state.output, bytes + shape.input_c, shape.cells, {}};
      if (a.is_hybrid) {
        quantize_row(a, &x);
        quantize_row(a, &h);
      }
      for (uint32_t row = 0; row < lstm_rows(shape); ++row) {
        const uint32_t gate = row / shape.cells;
        float of_input = 0.0f, of_state = 0.0f;
        if (a.is_hybrid) {
          of_input = hybrid_dot(a, a.input_weights, row, x, a.input_scales[gate]);
          of_state = hybrid_dot(a, a.recurrent_weights, row, h, a.recurrent_scales[gate]);
        } else {
          of_input = dot(static_cast<const float*>(a.input_weights), row, x.values, x.count);
          of_state = dot(static_cast<const float*>(a.recurrent_weights), row, h.values, h.count);
        }
        const float sum = a.bias[row] + of_input;
        gates[row] = sum + of_state;
      }
      lstm_update(a, gates, state, a.output + lstm_row(shape, sample, step) * shape.cells);
    }
  }
}

}  // namespace float_lstm_ref

namespace float_gru_ref {
namespace {

float sum_of_row(const float* weights, const float* bias, uint32_t row, const float* x, uint32_t count) {
  const float* block = weights + uint64_t{row / kFloatBlock} * count * kFloatBlock + row % kFloatBlock;
  float sum = 0.0f;
  for (uint32_t k = 0; k < count; ++k) {
    const float product = block[uint64_t{k} * kFloatBlock] * x[k];
    sum = sum + product;
  }
  return bias[row] + sum;
}

float of_input(const FloatGruArgs& a, uint32_t row, const float* x) {
  return sum_of_row(a.input_weights, a.input_bias, row, x, a.input_c);
}
float of_state(const FloatGruArgs& a, uint32_t row, const float* h) {
  return sum_of_row(a.recurrent_weights, a.recurrent_bias, row, h, a.cells);
}

}  // namespace

Refusal accepts(const FloatGruArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatGruArgs& args) {
  return (size_t{gru_rows(args)} * sizeof(float) + 63) / 64 * 64;
}
uint32_t work_items(const FloatGruArgs& args) { return args.batch; }

void run(const FloatGruArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const uint32_t cells = a.cells;
  auto* update = static_cast<float*>(scratch);
  float* candidate = update + cells;
  float* reset_state = candidate + cells;  // r * h
  for (uint32_t sample = begin; sample < end; ++sample) {
    float* h = a.last_state + uint64_t{sample} * cells;
    for (uint32_t i = 0; i < cells; ++i) h[i] = a.first_state[uint64_t{sample} * cells + i];
    for (uint32_t step = 0; step < a.steps; ++step) {
      const uint64_t row = gru_row(a, sample, step);
      const float* x = a.input + row * a.input_c;
      for (uint32_t i = 0; i < cells; ++i) {
        update[i] = logistic_f32(of_input(a, i, x) + of_state(a, i, h));
        const float reset = logistic_f32(of_input(a, cells + i, x) + of_state(a, cells + i, h));
        candidate[i] = of_input(a, 2 * cells + i, x);
        reset_state[i] = reset * (a.reset_after ? of_state(a, 2 * cells + i, h) : h[i]);
      }
      for (uint32_t i = 0; i < cells; ++i) {
        const float part = a.reset_after ? reset_state[i] : of_state(a, 2 * cells + i, reset_state);
        candidate[i] = tanh_f32(candidate[i] + part);
      }
      for (uint32_t i = 0; i < cells; ++i) {
        const float added = (1.0f - update[i]) * candidate[i];
        const float kept = update[i] * h[i];
        a.output[row * cells + i] = h[i] = added + kept;
      }
    }
  }
}

}  // namespace float_gru_ref

namespace svdf_ref {
namespace {

// Brings the filter's state forward by one step and returns its sum over time.
template <typename T>
uint32_t filter_sum(const SvdfArgs& a, const int8_t* x, uint32_t filter, const T* from, T* to) {
  const int8_t* weights = a.feature_weights + uint64_t{filter} * a.input_c;
  auto feature = static_cast<uint32_t>(a.feature_bias[filter]);
  for (uint32_t k = 0; k < a.input_c; ++k) feature += static_cast<uint32_t>(weights[k] * x[k]);
  const int32_t scaled =
      requantize_tfl2(static_cast<int32_t>(feature), a.feature_multiplier, a.feature_shift);
  const T* time_weights = static_cast<const T*>(a.time_weights) + uint64_t{filter} * a.memory;
  uint32_t sum = 0;
  for (uint32_t t = 0; t < a.memory; ++t) {
    // `to` may be `from`: an element is read before the one at its place is written.
    to[t] = t + 1 < a.memory
                ? from[t + 1]
                : static_cast<T>(clamp_s32(scaled, dtype_min(a.state_dtype), dtype_max(a.state_dtype)));
    sum += static_cast<uint32_t>(time_weights[t] * to[t]);
  }
  return sum;
}

template <typename T>
void run_units(const SvdfArgs& a, uint32_t begin, uint32_t end) {
  const uint32_t units = a.filters / a.rank;
  for (uint32_t item = begin; item < end; ++item) {
    const uint32_t sample = item / units, unit = item % units;
    const int8_t* x = a.input + uint64_t{sample} * a.input_c;
    auto sum = static_cast<uint32_t>(a.bias[unit]);
    for (uint32_t r = 0; r < a.rank; ++r) {
      const uint32_t filter = unit * a.rank + r;
      const uint64_t at = (uint64_t{sample} * a.filters + filter) * a.memory;
      sum += filter_sum(a, x, filter, static_cast<const T*>(a.first_state) + at,
                        static_cast<T*>(a.last_state) + at);
    }
    const int32_t scaled = requantize_tfl2(static_cast<int32_t>(sum), a.output_multiplier, a.output_shift);
    a.output[item] = static_cast<int8_t>(add_clamp(scaled, a.output_zero_point, -128, 127));
  }
}

}  // namespace

Refusal accepts(const SvdfArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const SvdfArgs&) { return 0; }
uint32_t work_items(const SvdfArgs& args) { return args.batch * (args.filters / args.rank); }

void run(const SvdfArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.state_dtype == Dtype::kS8) {
    run_units<int8_t>(args, begin, end);
  } else {
    run_units<int16_t>(args, begin, end);
  }
}

}  // namespace svdf_ref
}  // namespace qplan
