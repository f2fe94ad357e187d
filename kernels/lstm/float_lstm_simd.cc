// float_lstm with weights of float32: the sums of all gates by vectors of rows, and what follows by vectors
// of cells. Weights of int8 are the reference's.
#include <stddef.h>
#include <stdint.h>

#include "kernels/lstm/lstm.h"
#include "kernels/lstm/lstm_cell.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/float_rows.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Scratch: the sums of the input, those of the state.
inline uint64_t float_lstm_padded_rows(const FloatLstmArgs& a) {
  return float_row_blocks(lstm_rows(a.shape)) * kFloatBlock;
}

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

inline void float_lstm_samples(const FloatLstmArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const LstmShape& shape = a.shape;
  const uint64_t padded = float_lstm_padded_rows(a), blocks = padded / kFloatBlock;
  auto* of_input = static_cast<float*>(scratch);
  float* of_state = of_input + padded;
  const auto* input_weights = static_cast<const float*>(a.input_weights);
  const auto* recurrent_weights = static_cast<const float*>(a.recurrent_weights);
  for (uint32_t sample = begin; sample < end; ++sample) {
    const auto state = lstm_first_state<FloatLstmState>(a, sample);
    for (uint32_t step = 0; step < shape.steps; ++step) {
      const uint64_t row = lstm_row(shape, sample, step);
      float_row_sums(input_weights, a.input + row * shape.input_c, shape.input_c, blocks, of_input);
      float_row_sums(recurrent_weights, state.output, shape.cells, blocks, of_state);
      float_lstm_update(a, {a.bias, of_input, of_state}, state, a.output + row * shape.cells);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_lstm) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatLstmArgs& args) { return args.is_hybrid ? Refusal::kDtype : Refusal::kNone; }

size_t scratch_bytes(const FloatLstmArgs& args) {
  return size_t{2} * float_lstm_padded_rows(args) * sizeof(float);
}

uint32_t work_items(const FloatLstmArgs& args) { return args.shape.batch; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatLstmArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  float_lstm_samples(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_lstm)

}  // namespace qplan
