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
#ifndef QPLAN_KERNELS_GRU_GRU_H_
#define QPLAN_KERNELS_GRU_GRU_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

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
  const float* input_weights = nullptr;      // [rows, input_c] in blocks of kFloatBlock rows (float_conv2d.h)
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

}  // namespace qplan

#endif  // QPLAN_KERNELS_GRU_GRU_H_
