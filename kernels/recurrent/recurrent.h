// Layers that carry a state over a sequence: lstm, float_lstm, float_gru, svdf.
#ifndef QPLAN_KERNELS_RECURRENT_RECURRENT_H_
#define QPLAN_KERNELS_RECURRENT_RECURRENT_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/layout.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// lstm, float_lstm: a layer of long short-term memory over a sequence. The gates are i (input), f (forget), g
// (the candidate for the cell) and o (output), in this order in all arrays; a coupled layer has no gate i.
//
// lstm, on int8 with a cell of int16, for each step of the sequence, x its input, h and c the state before
// it:
//
//   gate[r] = saturate16(requantize_tfl2(R, recurrent_multiplier, recurrent_shift)
//                        + saturate16(requantize_tfl2(X, input_multiplier, input_shift)))
//   X = input_bias[r] + sum over k of input_weights[r,k] * (x[k] + 128),  R likewise of h, modulo 2^32
//   f = logistic_q15(gate f, 3 integer bits), i and o likewise; g = tanh_q15(gate g, 3 integer bits)
//   i = 32767 - f where the layer is coupled
//   c = saturate16(rounding_shift_right(f * c, 15) + rounding_shift_right(i * g, 30 - cell_bits)),
//       held in +-cell_clip where that is not 0
//   h = clamp(output_zero_point + requantize_tfl2(o * tanh_q15(c, 15 - cell_bits), output_multiplier,
//   output_shift))
//
// The biases hold what the zero points of input and state contribute. logistic_q15, tanh_q15:
// kernels/numeric/fixed_point.h. Multipliers and shifts of gates: one for each gate.
//
// float_lstm, each operation rounded by itself, dots as chains from +0:
//
//   gate[r] = (bias[r] + dot(input_weights[r], x)) + dot(recurrent_weights[r], h)
//   f = logistic_f32(gate f), i and o likewise, g = tanh_f32(gate g); i = 1 - f where the layer is coupled
//   c = f * c + i * g, held in +-cell_clip where that is not 0;  h = o * tanh_f32(c)
//
// With weights of int8 (hybrid), x and h become int8 by the rule of dynamic_quantize, one scale a row, and
// dot = float(sum of integers) * (row's scale * weights' scale of the gate).
// docs/numerics/lstm.md.

constexpr uint32_t kLstmGates = 4;

// What both have. Rows of the gates: num_gates * cells, below 2^31.
struct LstmShape {
  uint32_t batch = 0;
  uint32_t steps = 0;
  uint32_t input_c = 0;
  uint32_t cells = 0;
  uint32_t num_gates = kLstmGates;  // 3 where the layer is coupled
  bool time_major = false;          // [steps, batch, ...], else [batch, steps, ...]
};

static inline uint32_t lstm_rows(const LstmShape& shape) { return shape.num_gates * shape.cells; }
// Row number of the sequence, of input and output alike.
static inline uint64_t lstm_row(const LstmShape& shape, uint32_t sample, uint32_t step) {
  return shape.time_major ? uint64_t{step} * shape.batch + sample : uint64_t{sample} * shape.steps + step;
}

struct LstmArgs {
  LstmShape shape;
  const int8_t* input = nullptr;
  const int8_t* input_weights = nullptr;      // [rows, input_c] in weights_layout
  const int8_t* recurrent_weights = nullptr;  // [rows, cells], likewise
  const int32_t* input_bias = nullptr;        // layout_channels(weights_layout, rows)
  const int32_t* recurrent_bias = nullptr;
  const int8_t* first_output = nullptr;  // [batch, cells]: h before the first step, and
  const int16_t* first_cell = nullptr;   // c
  int8_t* output = nullptr;              // h after each step
  int8_t* last_output = nullptr;         // h after the last step, may be where first_output is
  int16_t* last_cell = nullptr;          // likewise
  int32_t input_multiplier[kLstmGates] = {};
  int32_t input_shift[kLstmGates] = {};
  int32_t recurrent_multiplier[kLstmGates] = {};
  int32_t recurrent_shift[kLstmGates] = {};
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t output_zero_point = 0;
  uint32_t cell_bits = 0;       // [9, 15]: fraction bits of the cell
  int32_t cell_clip = 0;        // [0, 32767]
  uint16_t weights_layout = 0;  // ohwi or o16k4
};

struct FloatLstmArgs {
  LstmShape shape;
  const float* input = nullptr;
  const void* input_weights = nullptr;  // float32 in blocks of kFloatBlock rows (float.h), or int8
                                        // [rows, k] in weights_layout
  const void* recurrent_weights = nullptr;
  const float* input_scales = nullptr;  // these two: [num_gates], of int8 weights
  const float* recurrent_scales = nullptr;
  const float* bias = nullptr;  // [rows rounded up to kFloatBlock]
  const float* first_output = nullptr;
  const float* first_cell = nullptr;
  float* output = nullptr;
  float* last_output = nullptr;
  float* last_cell = nullptr;
  float cell_clip = 0.0f;  // a number that is not negative
  bool is_hybrid = false;
  bool symmetric = false;
  uint16_t weights_layout = 0;  // of int8 weights: ohwi or o16k4
};

// Best first, those of float_lstm of each form; the reference, which computes all that is bound, is the last.
// Work items: samples of the batch.
#define QPLAN_LSTM_VARIANTS \
  QPLAN_DOT_VARIANTS(lstm)  \
  QPLAN_VARIANT(lstm_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_LSTM_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_lstm) \
  QPLAN_DOT_VARIANTS(hybrid_lstm) \
  QPLAN_VARIANT(float_lstm_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, LstmArgs)
QPLAN_LSTM_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatLstmArgs)
QPLAN_FLOAT_LSTM_VARIANTS
#undef QPLAN_VARIANT

// float_gru: a layer of gated recurrent units over a sequence, on float32. The gates are z (update), r
// (reset) and n (the candidate), in this order in all arrays. For each step of the sequence, x its input, h
// the state before it, each operation rounded by itself, dots as chains from +0:
//
//   in[row] = input_bias[row] + dot(input_weights[row], x)
//   st[row] = recurrent_bias[row] + dot(recurrent_weights[row], h)
//   z = logistic_f32(in z + st z),  r = logistic_f32(in r + st r)
//   n = tanh_f32(in n + r * st n)                                                     where reset_after
//   n = tanh_f32(in n + (recurrent_bias n + dot(recurrent_weights n, r * h)))         else
//   h = (1 - z) * n + z * h
//
// docs/numerics/lstm.md.

constexpr uint32_t kGruGates = 3;

// Ranges that bind has checked: rows of the gates, kGruGates * cells, and input_c are below 2^31.
struct FloatGruArgs {
  uint32_t batch = 0;
  uint32_t steps = 0;
  uint32_t input_c = 0;
  uint32_t cells = 0;
  bool time_major = false;                   // [steps, batch, ...], else [batch, steps, ...]
  bool reset_after = false;                  // the reset gate acts on the product, not on the state
  const float* input = nullptr;              // the sequence
  const float* input_weights = nullptr;      // [rows, input_c] in blocks of kFloatBlock rows (float.h)
  const float* recurrent_weights = nullptr;  // [rows, cells], likewise
  const float* input_bias = nullptr;         // [rows rounded up to kFloatBlock]
  const float* recurrent_bias = nullptr;     // likewise
  const float* first_state = nullptr;        // [batch, cells]: h before the first step
  float* output = nullptr;                   // h after each step
  float* last_state = nullptr;               // h after the last step, may be where first_state is
};

static inline uint32_t gru_rows(const FloatGruArgs& a) { return kGruGates * a.cells; }
// Row number of the sequence, of input and output alike.
static inline uint64_t gru_row(const FloatGruArgs& a, uint32_t sample, uint32_t step) {
  return a.time_major ? uint64_t{step} * a.batch + sample : uint64_t{sample} * a.steps + step;
}

// Best first; the reference is the last. Work items: samples of the batch.
#define QPLAN_FLOAT_GRU_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_gru) \
  QPLAN_VARIANT(float_gru_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatGruArgs)
QPLAN_FLOAT_GRU_VARIANTS
#undef QPLAN_VARIANT

// svdf: a layer that is a fully connected layer of `rank` filters for each unit, each a product over the
// input and one over time. The state has the last `memory` results of each filter, the oldest first.
//
//   new[f]  = saturate(requantize_tfl2(feature_bias[f] + sum over k of feature_weights[f,k] * x[k],
//   feature_multiplier,
//                                      feature_shift))
//   state   = state without its oldest, then new[f]
//   y[u]    = clamp(output_zero_point + requantize_tfl2(bias[u] + sum over r < rank and t of
//                   time_weights[u*rank + r, t] * state[u*rank + r, t], output_multiplier, output_shift),
//                   -128, 127)
//
// Sums are taken modulo 2^32. feature_bias holds what the input's zero point contributes. The state and the
// weights over time are int8 or int16, to which new[f] is saturated. docs/numerics/lstm.md.
struct SvdfArgs {
  const int8_t* input = nullptr;            // [batch, input_c]
  const int8_t* feature_weights = nullptr;  // [filters, input_c]
  const void* time_weights = nullptr;       // [filters, memory]
  const int32_t* feature_bias = nullptr;    // [filters]
  const int32_t* bias = nullptr;            // [filters / rank]
  const void* first_state = nullptr;        // [batch, filters, memory]
  int8_t* output = nullptr;                 // [batch, filters / rank]
  void* last_state = nullptr;               // may be first_state
  uint32_t batch = 0;
  uint32_t input_c = 0;
  uint32_t filters = 0;  // batch * filters is below 2^31
  uint32_t rank = 1;     // divides filters
  uint32_t memory = 0;
  int32_t feature_multiplier = 0;
  int32_t feature_shift = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t output_zero_point = 0;
  Dtype state_dtype = Dtype::kOther;  // kS8, kS16
};

// Work items: units, sample * (filters / rank) + u.
#define QPLAN_SVDF_VARIANTS QPLAN_VARIANT(svdf_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SvdfArgs)
QPLAN_SVDF_VARIANTS
#undef QPLAN_VARIANT

// ---- What a step of an LSTM does with its gates, one cell at a time, and its state. Shared by the variants;
// internal linkage only.

// The memory of one sample's state, which holds it between steps and, after the last one, is the result.
template <typename Output, typename Cell>
struct LstmStateOf {
  Output* output;
  Cell* cell;
};
using LstmState = LstmStateOf<int8_t, int16_t>;
using FloatLstmState = LstmStateOf<float, float>;

template <typename State, typename Args>
static inline State lstm_first_state(const Args& a, uint32_t sample) {
  const uint64_t first = uint64_t{sample} * a.shape.cells;
  const State state = {a.last_output + first, a.last_cell + first};
  for (uint32_t i = 0; i < a.shape.cells; ++i) {
    state.output[i] = a.first_output[first + i];
    state.cell[i] = a.first_cell[first + i];
  }
  return state;
}

static inline int16_t lstm_gate(const LstmArgs& a, uint32_t gate, int32_t of_input, int32_t of_state) {
  const int32_t first =
      saturate_s16(requantize_tfl2(of_input, a.input_multiplier[gate], a.input_shift[gate]));
  // Both modulo 2^32.
  const int32_t second = requantize_tfl2(of_state, a.recurrent_multiplier[gate], a.recurrent_shift[gate]);
  return static_cast<int16_t>(saturate_s16(wrap_add(second, first)));
}

// The output goes to the state and to the sequence.
static inline void lstm_update(const LstmArgs& a, const int16_t* gates, const LstmState& state,
                               int8_t* output) {
  const uint32_t cells = a.shape.cells;
  const bool is_coupled = a.shape.num_gates < kLstmGates;
  const int16_t* forget_gate = gates + (is_coupled ? 0 : cells);
  for (uint32_t i = 0; i < cells; ++i) {
    const int32_t forget = logistic_q15(forget_gate[i], 3);
    const int32_t input = is_coupled ? 32767 - forget : logistic_q15(gates[i], 3);
    const int32_t candidate = tanh_q15(forget_gate[cells + i], 3);
    const int32_t kept = rounding_shift_right(forget * state.cell[i], 15);
    const int32_t added = rounding_shift_right(input * candidate, 30 - static_cast<int32_t>(a.cell_bits));
    int32_t cell = saturate_s16(kept + added);
    if (a.cell_clip > 0) cell = cell < -a.cell_clip ? -a.cell_clip : cell > a.cell_clip ? a.cell_clip : cell;
    state.cell[i] = static_cast<int16_t>(cell);
    const int32_t product = logistic_q15(forget_gate[2 * uint64_t{cells} + i], 3) *
                            tanh_q15(cell, 15 - static_cast<int32_t>(a.cell_bits));
    const int32_t scaled = requantize_tfl2(product, a.output_multiplier, a.output_shift);
    output[i] = state.output[i] = static_cast<int8_t>(add_clamp(scaled, a.output_zero_point, -128, 127));
  }
}

static inline void lstm_update(const FloatLstmArgs& a, const float* gates, const FloatLstmState& state,
                               float* output) {
  const uint32_t cells = a.shape.cells;
  const bool is_coupled = a.shape.num_gates < kLstmGates;
  const float* forget_gate = gates + (is_coupled ? 0 : cells);
  for (uint32_t i = 0; i < cells; ++i) {
    const float forget = logistic_f32(forget_gate[i]);
    const float input = is_coupled ? 1.0f - forget : logistic_f32(gates[i]);
    const float candidate = tanh_f32(forget_gate[cells + i]);
    const float kept = forget * state.cell[i];
    const float added = input * candidate;
    float cell = kept + added;
    if (a.cell_clip > 0.0f)
      cell = cell < -a.cell_clip ? -a.cell_clip : a.cell_clip < cell ? a.cell_clip : cell;
    state.cell[i] = cell;
    output[i] = state.output[i] = logistic_f32(forget_gate[2 * uint64_t{cells} + i]) * tanh_f32(cell);
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_RECURRENT_RECURRENT_H_
