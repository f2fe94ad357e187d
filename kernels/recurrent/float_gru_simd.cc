// float_gru with the sums of all gates by vectors of rows, and what follows by vectors of cells.
#include <stddef.h>
#include <stdint.h>

#include "kernels/recurrent/recurrent.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/float_rows.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Scratch: the sums of the input, those of the state, those of r * h, r * h itself.
inline uint64_t gru_padded_rows(const FloatGruArgs& a) { return float_row_blocks(gru_rows(a)) * kFloatBlock; }

struct GruScratch {
  float* of_input;
  float* of_state;
  float* of_reset;
  float* reset_state;
};

inline uint32_t gru_lanes(const FloatGruArgs& a, uint32_t cell) {
  return a.cells - cell < kLanes ? a.cells - cell : kLanes;
}
// The biased sum of `count` cells from row `row` on.
inline VecF32 gru_sum(const float* bias, const float* sums, uint32_t row, uint32_t count) {
  return add(load_reals(bias + row, count), load_reals(sums + row, count));
}
inline VecF32 gru_gate(const FloatGruArgs& a, const GruScratch& s, uint32_t row, uint32_t count) {
  return logistic_lanes(
      add(gru_sum(a.input_bias, s.of_input, row, count), gru_sum(a.recurrent_bias, s.of_state, row, count)));
}

inline void gru_reset_state(const FloatGruArgs& a, const GruScratch& s, const float* h) {
  for (uint32_t i = 0; i < a.cells; i += kLanes) {
    const uint32_t count = gru_lanes(a, i);
    store_reals(s.reset_state + i, mul(gru_gate(a, s, a.cells + i, count), load_reals(h + i, count)), count);
  }
}

inline void gru_update(const FloatGruArgs& a, const GruScratch& s, float* h, float* output) {
  const VecF32 one = set_reals(1.0f);
  for (uint32_t i = 0; i < a.cells; i += kLanes) {
    const uint32_t count = gru_lanes(a, i), row = 2 * a.cells + i;
    const VecF32 update = gru_gate(a, s, i, count);
    VecF32 part = gru_sum(a.recurrent_bias, a.reset_after ? s.of_state : s.of_reset, row, count);
    if (a.reset_after) part = mul(gru_gate(a, s, a.cells + i, count), part);
    const VecF32 candidate = tanh_lanes(add(gru_sum(a.input_bias, s.of_input, row, count), part));
    const VecF32 next = add(mul(sub(one, update), candidate), mul(update, load_reals(h + i, count)));
    store_reals(h + i, next, count);
    store_reals(output + i, next, count);
  }
}

inline void gru_samples(const FloatGruArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const uint64_t padded = gru_padded_rows(a), blocks = padded / kFloatBlock;
  auto* sums = static_cast<float*>(scratch);
  const GruScratch s = {sums, sums + padded, sums + 2 * padded, sums + 3 * padded};
  const uint64_t first = uint64_t{2} * a.cells / kFloatBlock;  // the candidate's first block
  // Without reset_after the candidate's rows are multiplied by r * h alone.
  const uint64_t state_blocks = a.reset_after ? blocks : float_row_blocks(uint64_t{2} * a.cells);
  for (uint32_t sample = begin; sample < end; ++sample) {
    float* h = a.last_state + uint64_t{sample} * a.cells;
    for (uint32_t i = 0; i < a.cells; ++i) h[i] = a.first_state[uint64_t{sample} * a.cells + i];
    for (uint32_t step = 0; step < a.steps; ++step) {
      const uint64_t row = gru_row(a, sample, step);
      float_row_sums(a.input_weights, a.input + row * a.input_c, a.input_c, blocks, s.of_input);
      float_row_sums(a.recurrent_weights, h, a.cells, state_blocks, s.of_state);
      if (!a.reset_after) {
        gru_reset_state(a, s, h);
        float_row_sums(a.recurrent_weights + first * kFloatBlock * a.cells, s.reset_state, a.cells,
                       blocks - first, s.of_reset + first * kFloatBlock);
      }
      gru_update(a, s, h, a.output + row * a.cells);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_gru) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatGruArgs& args) {
  return args.cells < (1u << 28) ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const FloatGruArgs& args) {
  return aligned_to_64((size_t{3} * gru_padded_rows(args) + args.cells) * sizeof(float));
}

uint32_t work_items(const FloatGruArgs& args) { return args.batch; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatGruArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  gru_samples(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_gru)

}  // namespace qplan
