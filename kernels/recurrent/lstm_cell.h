// What a step of an LSTM does with its gates, one cell at a time, and its state. Shared by the variants;
// internal linkage only.
#ifndef QPLAN_KERNELS_RECURRENT_LSTM_CELL_H_
#define QPLAN_KERNELS_RECURRENT_LSTM_CELL_H_

#include <stdint.h>

#include "kernels/layout.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/float_functions.h"
#include "kernels/numeric/requantize.h"
#include "kernels/recurrent/recurrent.h"

namespace qplan {

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

#endif  // QPLAN_KERNELS_RECURRENT_LSTM_CELL_H_
