#include "src/base/sha256.h"

#include <string.h>

#include "src/base/sha256_blocks.h"

namespace qplan {
namespace {

// Where the processor is asked whether it has instructions for this: below, asking may take longer than they
// save.
[[maybe_unused]] constexpr size_t kLeastBytesToAsk = 8192;

uint32_t rotr(uint32_t x, uint32_t n) { return (x >> n) | (x << (32 - n)); }

uint32_t load_big_endian(const uint8_t* bytes) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint32_t word;
  __builtin_memcpy(&word, bytes, sizeof(word));
  return __builtin_bswap32(word);
#else
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
#endif
}

constexpr uint32_t kScheduled = 16;  // words of the schedule that later ones need

// The next 16 words of the schedule in the place of the last ones.
void schedule(uint32_t w[kScheduled]) {
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kScheduled; ++i) {
    const uint32_t x = w[(i + 1) % kScheduled], y = w[(i + 14) % kScheduled];
    w[i] += (rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3)) + w[(i + 9) % kScheduled] +
            (rotr(y, 17) ^ rotr(y, 19) ^ (y >> 10));
  }
}

// A round. From one to the next the variables move on by one: callers name them in another order, which
// copies none.
inline void mix(uint32_t a, uint32_t b, uint32_t c, uint32_t& d, uint32_t e, uint32_t f, uint32_t g,
                uint32_t& h, uint32_t term) {
  const uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + (g ^ (e & (f ^ g))) + term;
  d += t1;
  h = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) | (c & (a | b)));
}

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void Sha256::block(const uint8_t* bytes) {
  uint32_t w[kScheduled];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kScheduled; ++i) w[i] = load_big_endian(bytes + 4 * i);
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (uint32_t first = 0; first < 64; first += kScheduled) {
    if (first != 0) schedule(w);
    for (uint32_t i = 0; i < kScheduled; i += 8) {
      const uint32_t *const k = kSha256Round + first + i, *const x = w + i;
      mix(a, b, c, d, e, f, g, h, k[0] + x[0]);
      mix(h, a, b, c, d, e, f, g, k[1] + x[1]);
      mix(g, h, a, b, c, d, e, f, k[2] + x[2]);
      mix(f, g, h, a, b, c, d, e, k[3] + x[3]);
      mix(e, f, g, h, a, b, c, d, k[4] + x[4]);
      mix(d, e, f, g, h, a, b, c, k[5] + x[5]);
      mix(c, d, e, f, g, h, a, b, k[6] + x[6]);
      mix(b, c, d, e, f, g, h, a, k[7] + x[7]);
    }
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += sums[i];
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
