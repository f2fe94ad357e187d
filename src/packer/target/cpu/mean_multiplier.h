#ifndef QPLAN_SRC_PACKER_TARGET_CPU_MEAN_MULTIPLIER_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_MEAN_MULTIPLIER_H_

#include <cstdint>

#include "kernels/numeric/quantize_multiplier.h"

namespace qplan::target::cpu {

// Of a mean of count elements under tfl2: the count is divided into the multiplier's significand
// (docs/numerics/mean.md). Refuses scales that are too far apart.
QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count);

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_MEAN_MULTIPLIER_H_
