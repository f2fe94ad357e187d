// float_lstm with weights of int8: input and state become int8 by vectors of elements, the sums of all gates
// are the product of fully connected layers, and what follows is done by vectors of cells.
#include <stddef.h>
#include <stdint.h>

#include "kernels/dynamic_quantize/dynamic_quantize.h"
#include "kernels/lstm/float_lstm_update_simd.h"
#include "kernels/lstm/lstm.h"
#include "kernels/lstm/lstm_cell.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/dynamic_rows.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Parts of the scratch memory.
struct HybridLstmScratch {
  int32_t* sums;         // of a row; these: one for each row of the weights
  int32_t* no_bias;      // zeros
  int32_t* input_total;  // sums of the weights
  int32_t* state_total;
  float* of_input;
  float* of_state;
  int8_t* row;  // x or h as int8

  static constexpr uint32_t kParts = 6;
};

inline size_t hybrid_lstm_part_bytes(const FloatLstmArgs& a) {
  return aligned_to_64(size_t{lstm_rows(a.shape)} * sizeof(int32_t));
}
// Products read over the end of a row.
inline size_t hybrid_lstm_row_bytes(const FloatLstmArgs& a) {
  const uint32_t longest = a.shape.input_c > a.shape.cells ? a.shape.input_c : a.shape.cells;
  return aligned_to_64(longest) + 64;
}

inline HybridLstmScratch hybrid_lstm_scratch(const FloatLstmArgs& a, void* scratch) {
  auto* at = static_cast<uint8_t*>(scratch);
  const auto next = [&] {
    void* part = at;
    at += hybrid_lstm_part_bytes(a);
    return part;
  };
  HybridLstmScratch s;
  s.sums = static_cast<int32_t*>(next());
  s.no_bias = static_cast<int32_t*>(next());
  s.input_total = static_cast<int32_t*>(next());
  s.state_total = static_cast<int32_t*>(next());
  s.of_input = static_cast<float*>(next());
  s.of_state = static_cast<float*>(next());
  s.row = static_cast<int8_t*>(static_cast<void*>(at));
  return s;
}

// sums[r] = sum over k of weights[r][k] * (row[k] + 128), of `count` elements.
inline void hybrid_lstm_product(const FloatLstmArgs& a, const void* weights, uint32_t count,
                                const HybridLstmScratch& s, int32_t* sums) {
  constexpr size_t kNoOffset[1] = {0};
  // The product adds 128 to each byte. What stands in the weights after a row is multiplied by 0.
  for (uint32_t k = count; k % 4 != 0; ++k) s.row[k] = -128;
  Gemm product;
  product.contract = Contract::kAcc32;
  product.weights = static_cast<const int8_t*>(weights);
  product.bias = s.no_bias;
  product.first_row = static_cast<const uint8_t*>(static_cast<const void*>(s.row));
  product.first_out = static_cast<uint8_t*>(static_cast<void*>(sums));
  product.num_rows = 1;
  product.num_taps = 1;
  product.tap_bytes = count;
  product.tap_offsets = kNoOffset;
  product.sign_bias = 0x80;
  product.num_channels = lstm_rows(a.shape);
  product.out_stride = size_t{product.num_channels} * sizeof(int32_t);
  QPLAN_SIMD_VARIANT(gemm)::run(product, 0, (product.num_channels + 15) / 16);
}

// The sums of the weights, which a row of ones gives.
inline void hybrid_lstm_totals(const FloatLstmArgs& a, const void* weights, uint32_t count,
                               const HybridLstmScratch& s, int32_t* totals) {
  for (uint32_t k = 0; k < count; ++k) s.row[k] = -127;
  hybrid_lstm_product(a, weights, count, s, totals);
}

// What x, of `count` elements, contributes to all gates: of its integers less their zero point.
inline void hybrid_lstm_dots(const FloatLstmArgs& a, const float* x, uint32_t count, const void* weights,
                             const float* weight_scales, const int32_t* totals, const HybridLstmScratch& s,
                             float* dots) {
  float least, most;
  find_ends(x, count, &least, &most);
  const DynamicScale scale = dynamic_scale(least, most, a.symmetric);
  quantize_run(x, s.row, count, scale, a.symmetric);
  hybrid_lstm_product(a, weights, count, s, s.sums);
  const VecI32 offset = set_ints(scale.zero_point + 128);
  const uint64_t cells = a.shape.cells;
  for (uint32_t gate = 0; gate < a.shape.num_gates; ++gate) {
    const VecF32 of_gate = set_reals(scale.scale * weight_scales[gate]);
    const uint64_t end = (gate + 1) * cells;
    for (uint64_t i = gate * cells; i < end; i += kLanes) {
      const uint32_t now = end - i < kLanes ? static_cast<uint32_t>(end - i) : kLanes;
      const VecI32 sum = sub(load_ints(s.sums + i, now), mul(load_ints(totals + i, now), offset));
      store_reals(dots + i, mul(to_reals(sum), of_gate), now);
    }
  }
}

inline void hybrid_lstm_samples(const FloatLstmArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const LstmShape& shape = a.shape;
  const HybridLstmScratch s = hybrid_lstm_scratch(a, scratch);
  for (size_t i = 0; i < hybrid_lstm_part_bytes(a) / sizeof(int32_t); ++i) s.no_bias[i] = 0;
  hybrid_lstm_totals(a, a.input_weights, shape.input_c, s, s.input_total);
  hybrid_lstm_totals(a, a.recurrent_weights, shape.cells, s, s.state_total);
  for (uint32_t sample = begin; sample < end; ++sample) {
    const auto state = lstm_first_state<FloatLstmState>(a, sample);
    for (uint32_t step = 0; step < shape.steps; ++step) {
      const uint64_t row = lstm_row(shape, sample, step);
      hybrid_lstm_dots(a, a.input + row * shape.input_c, shape.input_c, a.input_weights, a.input_scales,
                       s.input_total, s, s.of_input);
      hybrid_lstm_dots(a, state.output, shape.cells, a.recurrent_weights, a.recurrent_scales, s.state_total,
                       s, s.of_state);
      float_lstm_update(a, {a.bias, s.of_input, s.of_state}, state, a.output + row * shape.cells);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(hybrid_lstm) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatLstmArgs& args) {
  if (!args.is_hybrid) return Refusal::kDtype;
  if (!kProductMakesSums) return Refusal::kContract;
  if (args.weights_layout != kLayout_o16k4) return Refusal::kLayout;
  return args.shape.input_c < (1u << 30) && args.shape.cells < (1u << 28) ? Refusal::kNone
                                                                          : Refusal::kTooLarge;
}

size_t scratch_bytes(const FloatLstmArgs& args) {
  return HybridLstmScratch::kParts * hybrid_lstm_part_bytes(args) + hybrid_lstm_row_bytes(args);
}

uint32_t work_items(const FloatLstmArgs& args) { return args.shape.batch; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatLstmArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  hybrid_lstm_samples(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(hybrid_lstm)

}  // namespace qplan
