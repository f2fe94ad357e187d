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
// scale is each weight to the bit, except for the sign of zeros, which no sum depends on.
struct WeightOnly {
  uint32_t bits = 0;             // 4 or 8
  uint32_t block = 0;            // weights along k with one scale; even
  std::vector<uint8_t> weights;  // [o / 16, k or k / 2, 16], rounded up
  std::vector<float> scales;     // [o / 16, k / block, 16], rounded up
  std::vector<uint8_t> zeros;    // likewise
};

// Searches the weights for scales, whatever made them. 4 bits are tried before 8, and a scale for each row
// before blocks of 256, 128, 64, 32 and 16. Returns nothing if the weights have no such form, or if it saves
// less than a quarter of their bytes.
std::optional<WeightOnly> as_weight_only(std::span<const float> weights, size_t num_o);

}  // namespace qplan::layer

#endif  // QPLAN_SRC_PACKER_LAYER_WEIGHT_ONLY_H_
