// The formula of weight_only_dense.h as it stands there.
#include "kernels/float/weight_only_dense.h"

namespace qplan {
namespace weight_only_dense_ref {
namespace {

// Outputs [first, first + count) of a row; first is a multiple of 16.
void dense_outputs(const WeightOnlyDenseArgs& a, uint32_t row, uint32_t first, uint32_t count) {
  const uint32_t num_scales = (a.input_c - 1) / a.block + 1;
  const uint32_t steps = a.bits == 8 ? a.input_c : (a.input_c + 1) / 2;
  const uint8_t* weights = a.weights + uint64_t{first} * steps;
  const float* scales = a.scales + uint64_t{first} * num_scales;
  const uint8_t* zeros = a.zeros + uint64_t{first} * num_scales;
  const float* in = a.input + uint64_t{row} * a.input_c;
  float* out = a.output + uint64_t{row} * a.output_c + first;
  for (uint32_t j = 0; j < count; ++j) {
    float sum = 0.0f;
    for (uint32_t k = 0; k < a.input_c; ++k) {
      const uint64_t of = uint64_t{k / a.block} * kFloatBlock + j;
      const uint32_t q = a.bits == 8 ? weights[uint64_t{k} * kFloatBlock + j]
                                     : weights[uint64_t{k / 2} * kFloatBlock + j] >> (k % 2 * 4) & 15u;
      const float weight = static_cast<float>(static_cast<int32_t>(q) - zeros[of]) * scales[of];
      const float product = in[k] * weight;
      sum = sum + product;
    }
    const float value = sum + a.bias[first + j];
    out[j] = value < a.clamp_min ? a.clamp_min : value > a.clamp_max ? a.clamp_max : value;
  }
}

}  // namespace

Refusal accepts(const WeightOnlyDenseArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const WeightOnlyDenseArgs&) { return 0; }

uint32_t work_items(const WeightOnlyDenseArgs& args) { return (args.output_c - 1) / kFloatBlock + 1; }

void run(const WeightOnlyDenseArgs& a, uint32_t begin, uint32_t end, void*) {
  for (uint32_t item = begin; item < end; ++item) {
    const uint32_t first = item * kFloatBlock;
    const uint32_t count = a.output_c - first < kFloatBlock ? a.output_c - first : kFloatBlock;
    for (uint32_t row = 0; row < a.rows; ++row) dense_outputs(a, row, first, count);
  }
}

}  // namespace weight_only_dense_ref
}  // namespace qplan
