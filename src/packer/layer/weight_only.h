// Weights of float32 that are integers of 4 or 8 bits times scales, as weight-only quantisation leaves them.
#ifndef QPLAN_SRC_PACKER_LAYER_WEIGHT_ONLY_H_
#define QPLAN_SRC_PACKER_LAYER_WEIGHT_ONLY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace qplan::layer {

// Weights [o, k] in the layout of weight_only_dense (kernels/float/weight_only_dense.h). float(q - zero) *
// scale is each weight to the bit, but for the sign of zeros, which no sum depends on.
struct WeightOnly {
  uint32_t bits = 0;             // 4 or 8
  uint32_t block = 0;            // weights along k with one scale; even
  std::vector<uint8_t> weights;  // [o / 16, k or k / 2, 16], rounded up
  std::vector<float> scales;     // [o / 16, k / block, 16], rounded up
  std::vector<uint8_t> zeros;    // likewise
};

// The form with the fewest bytes: of 4 bits before 8, of a scale for a row before blocks of 256, 128, 64, 32
// and 16. None where the weights have no such form, or where it saves less than a quarter of their
// bytes. What made them does not matter: they are searched for
// scales.
std::optional<WeightOnly> as_weight_only(std::span<const float> weights, size_t num_o);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_WEIGHT_ONLY_H_
