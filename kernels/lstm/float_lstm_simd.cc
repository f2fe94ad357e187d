// float_lstm with weights of float32: the sums of all gates by vectors of rows, and what follows by vectors
// of cells. Weights of int8 are hybrid_lstm's.
#include <stddef.h>
#include <stdint.h>

#include "kernels/lstm/float_lstm_update_simd.h"
#include "kernels/lstm/lstm.h"
#include "kernels/lstm/lstm_cell.h"
#include "kernels/simd/float_rows.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Scratch: the sums of the input, those of the state.
inline uint64_t float_lstm_padded_rows(const FloatLstmArgs& a) {
  return float_row_blocks(lstm_rows(a.shape)) * kFloatBlock;
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
