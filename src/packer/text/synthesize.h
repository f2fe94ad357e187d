// Data for constants that a text names without giving them, so that a network can be packed and measured by
// its shape.
#ifndef QPLAN_SRC_PACKER_TEXT_SYNTHESIZE_H_
#define QPLAN_SRC_PACKER_TEXT_SYNTHESIZE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/packer/text/draft.h"

namespace qplan::text {

// The use of a value, and the range in which its elements make sense.
struct Recipe {
  enum class Kind : uint8_t { kData, kWeight, kScale, kZeroPoint, kVariance } kind = Kind::kData;
  double amplitude = 0.1;  // of float weights: elements from -amplitude to amplitude
};

// For each value of the draft: the recipe where every use is as a constant of a layer, maybe through
// qnn.quantize and movement; else kData. Float weights that are quantised stay within about 100 steps,
// so that they do not saturate.
std::vector<Recipe> find_recipes(const Draft& draft);

// The same elements for the same seed and name on every host.
ir::ConstantRef synthesize(const ir::TensorType& type, const Recipe& recipe, uint64_t seed,
                           std::string_view name);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_SYNTHESIZE_H_
