// lstm and the two forms of float_lstm by vectors.
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/quantization/quantization.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/float_rows.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {

// lstm with the sums of all gates by the product of fully connected layers: its row is the input of a step,
// or the state. What follows the sums is computed cell by cell.
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

// What a step of a float_lstm does with the sums of its gates, by vectors of cells, in both forms.
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

// float_lstm with weights of float32: the sums of all gates by vectors of rows, and what follows by vectors
// of cells. Weights of int8 are hybrid_lstm's.
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

// float_lstm with weights of int8: input and state become int8 by vectors of elements, the sums of all gates
// are the product of fully connected layers, and what follows is done by vectors of cells.
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
