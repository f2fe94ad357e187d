// The formula of gru.h as it stands there.
#include "kernels/float_conv2d/float_conv2d.h"
#include "kernels/gru/gru.h"
#include "kernels/numeric/float_functions.h"

namespace qplan {
namespace float_gru_ref {
namespace {

float sum_of_row(const float* weights, const float* bias, uint32_t row, const float* x, uint32_t count) {
  const float* block = weights + uint64_t{row / kFloatBlock} * count * kFloatBlock + row % kFloatBlock;
  float sum = 0.0f;
  for (uint32_t k = 0; k < count; ++k) {
    const float product = block[uint64_t{k} * kFloatBlock] * x[k];
    sum = sum + product;
  }
  return bias[row] + sum;
}

float of_input(const FloatGruArgs& a, uint32_t row, const float* x) {
  return sum_of_row(a.input_weights, a.input_bias, row, x, a.input_c);
}
float of_state(const FloatGruArgs& a, uint32_t row, const float* h) {
  return sum_of_row(a.recurrent_weights, a.recurrent_bias, row, h, a.cells);
}

}  // namespace

Refusal accepts(const FloatGruArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatGruArgs& args) {
  return (size_t{gru_rows(args)} * sizeof(float) + 63) / 64 * 64;
}
uint32_t work_items(const FloatGruArgs& args) { return args.batch; }

void run(const FloatGruArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const uint32_t cells = a.cells;
  auto* update = static_cast<float*>(scratch);
  float* candidate = update + cells;
  float* reset_state = candidate + cells;  // r * h
  for (uint32_t sample = begin; sample < end; ++sample) {
    float* h = a.last_state + uint64_t{sample} * cells;
    for (uint32_t i = 0; i < cells; ++i) h[i] = a.first_state[uint64_t{sample} * cells + i];
    for (uint32_t step = 0; step < a.steps; ++step) {
      const uint64_t row = gru_row(a, sample, step);
      const float* x = a.input + row * a.input_c;
      for (uint32_t i = 0; i < cells; ++i) {
        update[i] = logistic_f32(of_input(a, i, x) + of_state(a, i, h));
        const float reset = logistic_f32(of_input(a, cells + i, x) + of_state(a, cells + i, h));
        candidate[i] = of_input(a, 2 * cells + i, x);
        reset_state[i] = reset * (a.reset_after ? of_state(a, 2 * cells + i, h) : h[i]);
      }
      for (uint32_t i = 0; i < cells; ++i) {
        const float part = a.reset_after ? reset_state[i] : of_state(a, 2 * cells + i, reset_state);
        candidate[i] = tanh_f32(candidate[i] + part);
      }
      for (uint32_t i = 0; i < cells; ++i) {
        const float added = (1.0f - update[i]) * candidate[i];
        const float kept = update[i] * h[i];
        a.output[row * cells + i] = h[i] = added + kept;
      }
    }
  }
}

}  // namespace float_gru_ref
}  // namespace qplan
