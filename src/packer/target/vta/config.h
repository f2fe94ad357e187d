// What of VTA's hardware configuration the packer reckons with: elements of each memory, and what a design
// may lack.
#ifndef QPLAN_SRC_PACKER_TARGET_VTA_CONFIG_H_
#define QPLAN_SRC_PACKER_TARGET_VTA_CONFIG_H_

#include <cstdint>

namespace qplan::target::vta {

inline constexpr int64_t kBlock = 16;  // channels of an element
// Bytes of one element.
inline constexpr int64_t kWgtBytes = 256, kInpBytes = 16, kAccBytes = 64;

// What the fields of instructions and micro-ops can address, in elements: no configuration has more.
inline constexpr int64_t kMaxUop = 8192, kMaxWgt = 1024, kMaxInp = 2048, kMaxAcc = 2048;
// Factors of GEMM and ALU instructions have 11 bits, strides of LOAD and STORE 16.
inline constexpr int64_t kMaxFactor = 2047, kMaxDmaStride = 65535;
// What one allocation of the public driver interface gives.
inline constexpr int64_t kMaxBufferBytes = int64_t{32} << 20;
// Up to this magnitude the ALU's sequence for TFL2 is exact, the left shift included.
inline constexpr int64_t kTfl2Bound = int64_t{1} << 29;

struct Config {
  int64_t uop = kMaxUop;
  int64_t wgt = kMaxWgt;
  int64_t inp = kMaxInp;
  int64_t acc = kMaxAcc;
  bool has_mul = true;  // ALU MUL and the left shift
  bool operator==(const Config&) const = default;
};

// Each memory of a quarter of the size.
inline Config quarter_config() {
  return {.uop = kMaxUop / 4, .wgt = kMaxWgt / 4, .inp = kMaxInp / 4, .acc = kMaxAcc / 4};
}

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_PACKER_TARGET_VTA_CONFIG_H_
