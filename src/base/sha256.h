// SHA-256 (FIPS 180-4), incremental, without tables built at run time or heap.
#ifndef QPLAN_SRC_BASE_SHA256_H_
#define QPLAN_SRC_BASE_SHA256_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan {

class Sha256 {
 public:
  static constexpr size_t kDigestBytes = 32;

  Sha256();
  void update(const void* bytes, size_t size);
  void finish(uint8_t digest[kDigestBytes]);

 private:
  uint32_t state_[8];
  uint64_t total_ = 0;
  uint8_t pending_[64];
  size_t num_pending_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_SHA256_H_
