// Weights as the stream that the device decodes.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_
#define QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace qplan::ethosu::compiler {

// weights: in the device's order, magnitudes of at most 255. A multiple of 16 bytes.
std::vector<uint8_t> encode_weights(std::span<const int16_t> weights);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_WEIGHT_ENCODER_H_
