#include "src/base/sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace qplan {
namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

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
      const uint32_t* const k = kRound + first;
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

#if defined(__x86_64__)
// Whether the processor has SHA-NI. Asking it costs microseconds in some virtual machines.
bool cpu_has_sha_ni() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29)) != 0;
}

// state after `count` blocks of 64 bytes, by the SHA extensions of x86-64, on processors that have them.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(uint32_t state[8], const uint8_t* bytes,
                                                                 size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* words = reinterpret_cast<__m128i*>(state);
  // The instructions want the words a, b, e, f in one register and c, d, g, h in the other, the first one
  // highest.
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    const auto* message = reinterpret_cast<const __m128i*>(bytes);
    __m128i w[4];
    for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(_mm_loadu_si128(message + i), big_endian);
      // Four rounds a turn. Each instruction does two, and swaps the roles of the registers.
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const auto* k = reinterpret_cast<const __m128i*>(kRound + 4 * i);
      const __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128(k));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) {  // the words of four turns on
        const __m128i last = w[(i + 3) % 4];
        const __m128i seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), seven_back);
        w[i % 4] = _mm_sha256msg2_epu32(partial, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}
#endif

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
      compress_sha_ni(state_, p, size / 64);
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
