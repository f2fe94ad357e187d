// VTA's configuration (src/vta/isa/vta.h) in the units of the packer's constraints.
#ifndef QPLAN_SRC_VTA_COMPILER_CONFIG_H_
#define QPLAN_SRC_VTA_COMPILER_CONFIG_H_

#include <cstdint>

#include "src/vta/isa/vta.h"

namespace qplan::target::vta {

using ::qplan::vta::Config;
using ::qplan::vta::kDefaultConfig;
using ::qplan::vta::kQuarterConfig;

inline constexpr int64_t kBlock = ::qplan::vta::kLanes;  // channels of an element
// Bytes of one element.
inline constexpr int64_t kWgtBytes = ::qplan::vta::kWgtBytes;
inline constexpr int64_t kInpBytes = ::qplan::vta::kInpBytes;
inline constexpr int64_t kAccBytes = ::qplan::vta::kAccBytes;

// Factors of GEMM and ALU instructions are as wide as the indices of ACC, strides of LOAD and STORE 16 bits.
inline int64_t max_factor(const Config& config) { return (int64_t{1} << config.acc_index_bits) - 1; }
inline constexpr int64_t kMaxDmaStride = 65535;
// What one allocation of the public driver interface gives.
inline constexpr int64_t kMaxBufferBytes = int64_t{32} << 20;
// Up to this magnitude the ALU's sequence for TFL2 is exact, the left shift included.
inline constexpr int64_t kTfl2Bound = int64_t{1} << 29;

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_CONFIG_H_
