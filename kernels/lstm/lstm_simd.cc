// lstm with the sums of all gates by the product of fully connected layers: its row is the input of a step,
// or the state. What follows the sums is computed cell by cell.
#include <stddef.h>
#include <stdint.h>

#include "kernels/lstm/lstm.h"
#include "kernels/lstm/lstm_cell.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Copies of rows reach over their ends.
inline size_t lstm_copy_bytes(uint32_t count) { return aligned_to_64(count) + 64; }
// Scratch: the sums of the input, those of the state, the gates, a copy of a row.
inline size_t lstm_sum_bytes(const LstmArgs& a) {
  return aligned_to_64(size_t{lstm_rows(a.shape)} * sizeof(int32_t));
}
inline size_t lstm_gate_bytes(const LstmArgs& a) {
  return aligned_to_64(size_t{lstm_rows(a.shape)} * sizeof(int16_t));
}

// The sums of all rows of the weights and x, of `count` elements.
inline void lstm_sums(const LstmArgs& args, const int8_t* weights, const int32_t* bias, const int8_t* x,
                      uint32_t count, uint8_t* copy, uint8_t* sums) {
  constexpr size_t kNoOffset[1] = {0};
  copy_run(copy, static_cast<const uint8_t*>(static_cast<const void*>(x)), count, 0x80);
  for (uint32_t k = count; k % 4 != 0; ++k) copy[k] = 0;
  Gemm product;
  product.contract = Contract::kAcc32;
  product.weights = weights;
  product.bias = bias;
  product.first_row = copy;
  product.first_out = sums;
  product.num_rows = 1;
  product.num_taps = 1;
  product.tap_bytes = count;
  product.tap_offsets = kNoOffset;
  product.num_channels = lstm_rows(args.shape);
  product.out_stride = size_t{product.num_channels} * sizeof(int32_t);
  QPLAN_SIMD_VARIANT(gemm)::run(product, 0, (product.num_channels + 15) / 16);
}

inline void lstm_samples(const LstmArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const LstmShape& shape = args.shape;
  auto* bytes = static_cast<uint8_t*>(scratch);
  uint8_t* of_input = bytes;
  uint8_t* of_state = of_input + lstm_sum_bytes(args);
  auto* gates = static_cast<int16_t*>(static_cast<void*>(of_state + lstm_sum_bytes(args)));
  uint8_t* copy = of_state + lstm_sum_bytes(args) + lstm_gate_bytes(args);
  const auto* input_sums = static_cast<const int32_t*>(static_cast<const void*>(of_input));
  const auto* state_sums = static_cast<const int32_t*>(static_cast<const void*>(of_state));
  for (uint32_t sample = begin; sample < end; ++sample) {
    const auto state = lstm_first_state<LstmState>(args, sample);
    for (uint32_t step = 0; step < shape.steps; ++step) {
      const uint64_t row = lstm_row(shape, sample, step);
      lstm_sums(args, args.input_weights, args.input_bias, args.input + row * shape.input_c, shape.input_c,
                copy, of_input);
      lstm_sums(args, args.recurrent_weights, args.recurrent_bias, state.output, shape.cells, copy, of_state);
      for (uint32_t gate = 0; gate < shape.num_gates; ++gate) {
        for (uint32_t i = gate * shape.cells; i < (gate + 1) * shape.cells; ++i)
          gates[i] = lstm_gate(args, gate, input_sums[i], state_sums[i]);
      }
      lstm_update(args, gates, state, args.output + row * shape.cells);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(lstm) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const LstmArgs& args) {
  if (!kProductMakesSums) return Refusal::kContract;
  if (args.weights_layout != kLayout_o16k4) return Refusal::kLayout;
  return args.shape.input_c < (1u << 30) && args.shape.cells < (1u << 28) ? Refusal::kNone
                                                                          : Refusal::kTooLarge;
}

size_t scratch_bytes(const LstmArgs& args) {
  const uint32_t longest = args.shape.input_c > args.shape.cells ? args.shape.input_c : args.shape.cells;
  return 2 * lstm_sum_bytes(args) + lstm_gate_bytes(args) + lstm_copy_bytes(longest);
}

uint32_t work_items(const LstmArgs& args) { return args.shape.batch; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const LstmArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  lstm_samples(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(lstm)

}  // namespace qplan
