#include "src/base/sha256.h"

#include <string.h>

#include "src/base/sha256_blocks.h"

namespace qplan {
namespace {

// Where the processor is asked whether it has instructions for this: below, asking may take longer than they
// save.
[[maybe_unused]] constexpr size_t kLeastBytesToAsk = 8192;

uint32_t rotr(uint32_t x, uint32_t n) { return (x >> n) | (x << (32 - n)); }

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void Sha256::block(const uint8_t* bytes) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(bytes[4 * i]) << 24 | static_cast<uint32_t>(bytes[4 * i + 1]) << 16 |
           static_cast<uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t s[8];
  memcpy(s, state_, sizeof(s));
  for (int i = 0; i < 64; ++i) {
    const uint32_t sum1 = rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25);
    const uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const uint32_t t1 = s[7] + sum1 + choose + kSha256Round[i] + w[i];
    const uint32_t sum0 = rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22);
    const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    for (int j = 7; j > 0; --j) s[j] = s[j - 1];
    s[4] += t1;
    s[0] = t1 + sum0 + majority;
  }
  for (int i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(const void* bytes, size_t size) {
  const auto* p = static_cast<const uint8_t*>(bytes);
  total_ += size;
  while (size > 0) {
#if defined(__x86_64__)
    if (num_pending_ == 0 && size >= kLeastBytesToAsk && cpu_has_sha_ni()) {
      sha256_blocks_sha_ni(state_, p, size / 64);
      p += size / 64 * 64;
      size %= 64;
      continue;
    }
#endif
    if (num_pending_ == 0 && size >= 64) {
      block(p);
      p += 64;
      size -= 64;
      continue;
    }
    const size_t n = size < 64 - num_pending_ ? size : 64 - num_pending_;
    memcpy(pending_ + num_pending_, p, n);
    num_pending_ += n;
    p += n;
    size -= n;
    if (num_pending_ == 64) {
      block(pending_);
      num_pending_ = 0;
    }
  }
}

void Sha256::finish(uint8_t digest[kDigestBytes]) {
  const uint64_t bits = total_ * 8;
  const uint8_t one = 0x80;
  update(&one, 1);
  const uint8_t zero = 0;
  while (num_pending_ != 56) update(&zero, 1);
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  update(length, 8);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 4; ++j) digest[4 * i + j] = static_cast<uint8_t>(state_[i] >> (24 - 8 * j));
  }
}

}  // namespace qplan
