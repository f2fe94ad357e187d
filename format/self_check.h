// Inputs and checksums of self-checks (plan.fbs, SelfCheck): what the packer writes down and sessions
// compare. README.md, "Self-checks", fixes both for ever.
#ifndef QPLAN_FORMAT_SELF_CHECK_H_
#define QPLAN_FORMAT_SELF_CHECK_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan::format {

// CRC-32 as IEEE 802.3 and zip files have it, of bytes given in pieces.
class Crc32 {
 public:
  void update(const void* bytes, size_t size);
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
  void fill(uint8_t type_code, uint8_t type_bits, void* bytes, size_t size);

 private:
  uint32_t next();
  uint32_t state_;
};

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_SELF_CHECK_H_
