// What a step of a float_lstm does with the sums of its gates, by vectors of cells. Shared by its variants;
// internal linkage only.
#ifndef QPLAN_KERNELS_LSTM_FLOAT_LSTM_UPDATE_SIMD_H_
#define QPLAN_KERNELS_LSTM_FLOAT_LSTM_UPDATE_SIMD_H_

#include <stdint.h>

#include "kernels/lstm/lstm.h"
#include "kernels/lstm/lstm_cell.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

struct FloatLstmGates {
  const float* bias;
  const float* of_input;
  const float* of_state;

  VecF32 at(uint64_t row, uint32_t count) const {
    return add(add(load_reals(bias + row, count), load_reals(of_input + row, count)),
               load_reals(of_state + row, count));
  }
};

inline void float_lstm_update(const FloatLstmArgs& a, const FloatLstmGates& gates,
                              const FloatLstmState& state, float* output) {
  const uint64_t cells = a.shape.cells;
  const bool is_coupled = a.shape.num_gates < kLstmGates;
  const uint64_t forget_row = is_coupled ? 0 : cells;
  const VecF32 one = set_reals(1.0f), most = set_reals(a.cell_clip), least = set_reals(-a.cell_clip);
  for (uint64_t i = 0; i < cells; i += kLanes) {
    const uint32_t count = cells - i < kLanes ? static_cast<uint32_t>(cells - i) : kLanes;
    const VecF32 forget = logistic_lanes(gates.at(forget_row + i, count));
    const VecF32 input = is_coupled ? sub(one, forget) : logistic_lanes(gates.at(i, count));
    const VecF32 candidate = tanh_lanes(gates.at(forget_row + cells + i, count));
    VecF32 cell = add(mul(forget, load_reals(state.cell + i, count)), mul(input, candidate));
    if (a.cell_clip > 0.0f) cell = clamp(cell, least, most);
    const VecF32 result = mul(logistic_lanes(gates.at(forget_row + 2 * cells + i, count)), tanh_lanes(cell));
    store_reals(state.cell + i, cell, count);
    store_reals(state.output + i, result, count);
    store_reals(output + i, result, count);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_LSTM_FLOAT_LSTM_UPDATE_SIMD_H_
