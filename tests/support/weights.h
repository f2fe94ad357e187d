// Weights from their natural order [O, K] into the layouts of format/layouts.def, written block by block: an
// oracle for the index functions of kernels/layout.h.
#ifndef QPLAN_TESTS_SUPPORT_WEIGHTS_H_
#define QPLAN_TESTS_SUPPORT_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/layout.h"

namespace qplan::testing {

inline std::vector<int8_t> pack_weights(uint16_t layout, const std::vector<int8_t>& weights, size_t num_o,
                                        size_t num_k) {
  if (layout == kLayout_ohwi) return weights;
  const auto at = [&](size_t o, size_t k) {
    return o < num_o && k < num_k ? weights[o * num_k + k] : int8_t{0};
  };
  const size_t padded_o = (num_o + 15) & ~size_t{15};
  std::vector<int8_t> packed;
  if (layout == kLayout_hwo16) {
    for (size_t k = 0; k < num_k; ++k) {
      for (size_t o = 0; o < padded_o; ++o) packed.push_back(at(o, k));
    }
    return packed;
  }
  for (size_t block = 0; block < padded_o; block += 16) {
    for (size_t four = 0; four < num_k; four += 4) {
      for (size_t o = block; o < block + 16; ++o) {
        for (size_t k = four; k < four + 4; ++k) packed.push_back(at(o, k));
      }
    }
  }
  return packed;
}

// Per-channel constants with as many entries as the layout wants; what no channel reads is `filler`.
template <typename T>
std::vector<T> pack_channels(uint16_t layout, std::vector<T> values, T filler) {
  if (layout != kLayout_ohwi) values.resize((values.size() + 15) & ~size_t{15}, filler);
  return values;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_WEIGHTS_H_
