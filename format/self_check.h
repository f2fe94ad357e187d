// Inputs and checksums of self-checks (plan.fbs, SelfCheck): what the packer writes down and sessions
// compare. README.md, "Self-checks", fixes both for ever.
#ifndef QPLAN_FORMAT_SELF_CHECK_H_
#define QPLAN_FORMAT_SELF_CHECK_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/container.h"

namespace qplan::format {

// The remainders of the sixteen values of four bits, for the polynomial 0xedb88320 (bits reversed). Two steps
// a byte: a table of 256 entries would take 1 KB of a small device's flash.
inline constexpr uint32_t kCrc32Remainders[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

// CRC-32 as IEEE 802.3 and zip files have it, of bytes given in pieces.
class Crc32 {
 public:
  void update(const void* bytes, size_t size) {
    const auto* at = static_cast<const uint8_t*>(bytes);
    uint32_t state = state_;
    for (size_t i = 0; i < size; ++i) {
      state ^= at[i];
      state = state >> 4 ^ kCrc32Remainders[state & 15];
      state = state >> 4 ^ kCrc32Remainders[state & 15];
    }
    state_ = state;
  }
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = ~uint32_t{0};
};

// The inputs of a self-check: fill() is called for each input of the function, in order.
class SelfCheckInputs {
 public:
  // seed: not 0.
  explicit SelfCheckInputs(uint32_t seed) : state_(seed) {}
  // size: bytes, whole elements of the type (container.h).
  void fill(uint8_t type_code, uint8_t type_bits, void* bytes, size_t size) {
    const bool is_integer = type_code == kDLInt || type_code == kDLUInt;
    const size_t element = type_bits / 8u;
    auto* at = static_cast<uint8_t*>(bytes);
    for (size_t i = 0; i + element <= size; i += element) {
      const uint32_t random = next();
      uint64_t value = random >> 24;
      if (is_integer && type_bits == 16) value = random >> 16;
      if (is_integer && type_bits > 16) value = random >> 28;  // likely positions in a table: 0 to 15
      if (type_code == kDLBoolCode) value = random >> 31;
      if (!is_integer && type_bits == 32) {
        // A multiple of 2^-7 in [-1, 1).
        const float real = static_cast<float>(static_cast<int32_t>(random >> 24) - 128) * 0.0078125F;
        uint32_t bits;
        memcpy(&bits, &real, sizeof(bits));
        value = bits;
      }
      memcpy(at + i, &value, element);  // little-endian, as plans are
    }
  }

 private:
  // Marsaglia's xorshift with 13, 17 and 5: period 2^32 - 1, no multiplication.
  uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  uint32_t state_;
};

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_SELF_CHECK_H_
