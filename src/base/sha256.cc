#include "src/base/sha256.h"

#include <string.h>

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

// The next 16 words of the schedule in the place of the last ones. Inlined, it would keep words in registers
// that the rounds need (Cortex-M4, GCC 12: 5 % more instructions in all).
__attribute__((noinline)) void schedule(uint32_t w[kScheduled]) {
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kScheduled; ++i) {
    const uint32_t x = w[(i + 1) % kScheduled], y = w[(i + 14) % kScheduled];
    w[i] += (rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3)) + w[(i + 9) % kScheduled] +
            (rotr(y, 17) ^ rotr(y, 19) ^ (y >> 10));
  }
}

// x, computed by itself: a compiler that may order the terms of a sum of three anew makes three instructions
// of what two do on Arm, whose operands rotate for nothing.
inline uint32_t kept(uint32_t x) {
  __asm__("" : "+r"(x));
  return x;
}

// A round. From one to the next the variables move on by one: callers name them in another order, which
// copies none. FIPS 180-4's sums of three rotations are written as one rotation of a sum, and its majority of
// a, b and c as b ^ ((a ^ b) & (b ^ c)). last: b ^ c, which is a ^ b of the round before; then a ^ b.
inline void mix(uint32_t a, uint32_t b, uint32_t& d, uint32_t e, uint32_t f, uint32_t g, uint32_t& h,
                uint32_t& last, uint32_t term) {
  h += term + (g ^ (e & (f ^ g)));
  h += rotr(kept(e ^ rotr(e, 5)) ^ rotr(e, 19), 6);
  d += h;
  const uint32_t differ = a ^ b;
  h += b ^ (differ & last);
  h += rotr(kept(a ^ rotr(a, 11)) ^ rotr(a, 20), 2);
  last = differ;
}

// state after `count` blocks of 64 bytes.
void compress(uint32_t state[8], const uint8_t* bytes, size_t count) {
  uint32_t w[kScheduled];
  for (const uint8_t* const end = bytes + 64 * count; bytes != end; bytes += 64) {
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kScheduled; ++i) w[i] = load_big_endian(bytes + 4 * i);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    uint32_t last = b ^ c;
    for (uint32_t first = 0; first < 64; first += kScheduled) {
      if (first != 0) schedule(w);
      const uint32_t* const k = kSha256Round + first;
      mix(a, b, d, e, f, g, h, last, k[0] + w[0]);
      mix(h, a, c, d, e, f, g, last, k[1] + w[1]);
      mix(g, h, b, c, d, e, f, last, k[2] + w[2]);
      mix(f, g, a, b, c, d, e, last, k[3] + w[3]);
      mix(e, f, h, a, b, c, d, last, k[4] + w[4]);
      mix(d, e, g, h, a, b, c, last, k[5] + w[5]);
      mix(c, d, f, g, h, a, b, last, k[6] + w[6]);
      mix(b, c, e, f, g, h, a, last, k[7] + w[7]);
      mix(a, b, d, e, f, g, h, last, k[8] + w[8]);
      mix(h, a, c, d, e, f, g, last, k[9] + w[9]);
      mix(g, h, b, c, d, e, f, last, k[10] + w[10]);
      mix(f, g, a, b, c, d, e, last, k[11] + w[11]);
      mix(e, f, h, a, b, c, d, last, k[12] + w[12]);
      mix(d, e, g, h, a, b, c, last, k[13] + w[13]);
      mix(c, d, f, g, h, a, b, last, k[14] + w[14]);
      mix(b, c, e, f, g, h, a, last, k[15] + w[15]);
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += sums[i];
  }
}

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
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
      compress(state_, p, size / 64);
      p += size / 64 * 64;
      size %= 64;
      continue;
    }
    const size_t n = size < 64 - num_pending_ ? size : 64 - num_pending_;
    memcpy(pending_ + num_pending_, p, n);
    num_pending_ += n;
    p += n;
    size -= n;
    if (num_pending_ == 64) {
      compress(state_, pending_, 1);
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
