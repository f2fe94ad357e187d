// The DSP extension of Armv7E-M and Armv8-M: two products of int16 added to a sum by one instruction. What
// else is compiled from this, for tests and for cores without the extension, says the same in plain C.
// Internal linkage only.
//
// A *quad* is four neighbouring bytes of a tap; expanded, it is two words of int16 pairs: bytes 0 and 2, then
// 1 and 3, which one instruction each (SXTB16) makes of activations and of weights alike.
#ifndef QPLAN_KERNELS_SCALAR_DSP_H_
#define QPLAN_KERNELS_SCALAR_DSP_H_

#include <stdint.h>

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__)
#define QPLAN_SCALAR_DSP 1
#endif
#if defined(QPLAN_SCALAR_DSP) && defined(__ARM_FP) && (__ARM_FP & 4) != 0
#define QPLAN_SCALAR_FPU 1
#endif

namespace qplan {
namespace {

// Whether this is compiled as <family>_<isa>_form, which computes what outputs.h's has_form_alone() says and
// nothing else; only form: with a floating point unit, which needs no other code then.
#if defined(QPLAN_SCALAR_FORM)
constexpr bool kIsForm = true;
#else
constexpr bool kIsForm = false;
#endif
#if defined(QPLAN_SCALAR_FORM) && defined(QPLAN_SCALAR_FPU)
constexpr bool kOnlyForm = true;
#else
constexpr bool kOnlyForm = false;
#endif

inline uint32_t load_quad(const void* from) {
  uint32_t quad;
  __builtin_memcpy(&quad, from, 4);
  return quad;
}

inline uint32_t pair_of(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16;
}
inline int32_t low_of(uint32_t pair) { return static_cast<int16_t>(pair); }
inline int32_t high_of(uint32_t pair) { return static_cast<int16_t>(pair >> 16); }

// Bytes 0 and 2 of a quad, as int8.
inline uint32_t even_bytes(uint32_t quad) {
#if defined(QPLAN_SCALAR_DSP)
  uint32_t pair;
  __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(quad));
  return pair;
#else
  return pair_of(static_cast<int8_t>(quad), static_cast<int8_t>(quad >> 16));
#endif
}

// Bytes 1 and 3.
inline uint32_t odd_bytes(uint32_t quad) {
#if defined(QPLAN_SCALAR_DSP)
  uint32_t pair;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(quad));
  return pair;
#else
  return even_bytes(quad >> 8);
#endif
}

// The same of uint8.
inline uint32_t even_bytes_u8(uint32_t quad) { return quad & 0x00ff00ff; }
inline uint32_t odd_bytes_u8(uint32_t quad) { return quad >> 8 & 0x00ff00ff; }

// The low halves of two pairs, and their high halves.
inline uint32_t low_halves(uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  uint32_t pair;
  __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
#else
  return (a & 0xffff) | b << 16;
#endif
}
inline uint32_t high_halves(uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  uint32_t pair;
  __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pair) : "r"(b), "r"(a));
  return pair;
#else
  return a >> 16 | (b & 0xffff0000);
#endif
}

// Pairs less another, element by element.
inline uint32_t subtract_pairs(uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  uint32_t pair;
  __asm__("ssub16 %0, %1, %2" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
#else
  return pair_of(low_of(a) - low_of(b), high_of(a) - high_of(b));
#endif
}

// sum + a0 * b0 + a1 * b1, modulo 2^32.
inline int32_t add_products(int32_t sum, uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  int32_t result;
  __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
#else
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(low_of(a) * low_of(b)) +
                              static_cast<uint32_t>(high_of(a) * high_of(b)));
#endif
}

// sum + one product: of the low or high halves of a and b.
inline int32_t add_low_low(int32_t sum, uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  int32_t result;
  __asm__("smlabb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
#else
  return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(low_of(a) * low_of(b)));
#endif
}
inline int32_t add_low_high(int32_t sum, uint32_t a, uint32_t b) {
#if defined(QPLAN_SCALAR_DSP)
  int32_t result;
  __asm__("smlabt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
#else
  return add_low_low(sum, a, b >> 16);
#endif
}
inline int32_t add_high_low(int32_t sum, uint32_t a, uint32_t b) { return add_low_high(sum, b, a); }

#if defined(QPLAN_SCALAR_DSP)
// Multiplies quad by quad until r0 is the operand `end`, four in a round until it is `unrolled_end`.
#define QPLAN_LOOP_OVER_QUADS(QUAD) \
  "ldr lr, %[unrolled_end]\n\t"     \
  "b 2f\n"                          \
  "1:\n\t" QUAD QUAD QUAD QUAD      \
  "2:\n\t"                          \
  "cmp r0, lr\n\t"                  \
  "bne 1b\n\t"                      \
  "ldr lr, %[end]\n\t"              \
  "b 4f\n"                          \
  "3:\n\t" QUAD                     \
  "4:\n\t"                          \
  "cmp r0, lr\n\t"                  \
  "bne 3b\n\t"

// A quad of three pixels (r0) by two channels in int16 (r1): the even channel's sums are r4, r6 and r8, those
// of both are r5, r7 and r9.
#define QPLAN_HALVES_QUAD        \
  "ldmia r1!, {r11, r12}\n\t"    \
  "ldmia r0!, {r2, r3, r10}\n\t" \
  "smlad r5, r2, r11, r5\n\t"    \
  "smlad r7, r3, r11, r7\n\t"    \
  "smlad r9, r10, r11, r9\n\t"   \
  "sxtb16 r11, r11\n\t"          \
  "smlad r4, r2, r11, r4\n\t"    \
  "smlad r6, r3, r11, r6\n\t"    \
  "smlad r8, r10, r11, r8\n\t"   \
  "ldmia r0!, {r2, r3, r10}\n\t" \
  "smlad r5, r2, r12, r5\n\t"    \
  "smlad r7, r3, r12, r7\n\t"    \
  "smlad r9, r10, r12, r9\n\t"   \
  "sxtb16 r12, r12\n\t"          \
  "smlad r4, r2, r12, r4\n\t"    \
  "smlad r6, r3, r12, r6\n\t"    \
  "smlad r8, r10, r12, r8\n\t"
// The even bytes (r2) and the odd ones (r3) of a quad by four channels in int16 (r8 to r11): sums of the even
// channels are r4 and r6, those of both r5 and r7.
#define QPLAN_PRODUCTS_OF_QUAD \
  "smlad r5, r2, r8, r5\n\t"   \
  "sxtb16 r8, r8\n\t"          \
  "smlad r4, r2, r8, r4\n\t"   \
  "smlad r7, r2, r9, r7\n\t"   \
  "sxtb16 r9, r9\n\t"          \
  "smlad r6, r2, r9, r6\n\t"   \
  "smlad r5, r3, r10, r5\n\t"  \
  "sxtb16 r10, r10\n\t"        \
  "smlad r4, r3, r10, r4\n\t"  \
  "smlad r7, r3, r11, r7\n\t"  \
  "sxtb16 r11, r11\n\t"        \
  "smlad r6, r3, r11, r6\n\t"
// A quad of a row of int8 (r0) by four channels in int16 (r1), summed likewise.
#define QPLAN_BYTES_QUAD              \
  "ldr r2, [r0], #4\n\t"              \
  "ldmia r1!, {r8, r9, r10, r11}\n\t" \
  "sxtb16 r3, r2, ror #8\n\t"         \
  "sxtb16 r2, r2\n\t" QPLAN_PRODUCTS_OF_QUAD
#endif

// ---- three pixels by two channels ----
// Expanded, the quads of three pixels are six words: the even bytes of each, then the odd ones. The weights
// of two channels are a quad of the first, then one of the second.

constexpr uint32_t kTilePixels = 3;
constexpr uint32_t kTileChannels = 2;
constexpr uint32_t kTileWords = 2 * kTilePixels;  // of a quad

struct Tile {
  int32_t sum[kTilePixels][kTileChannels];
};

// Adds the products of `quads` quads, at least one.
inline void multiply_tile(Tile* tile, const uint32_t* pixels, const int8_t* weights, uint32_t quads) {
#if defined(QPLAN_SCALAR_DSP)
  // Six sums, two pointers, three words of pixels, two of weights and one pair of those: all registers that
  // there are. The end is looked at where the last one is free.
  register int32_t s00 __asm__("r4") = tile->sum[0][0];
  register int32_t s01 __asm__("r5") = tile->sum[0][1];
  register int32_t s10 __asm__("r6") = tile->sum[1][0];
  register int32_t s11 __asm__("r7") = tile->sum[1][1];
  register int32_t s20 __asm__("r8") = tile->sum[2][0];
  register int32_t s21 __asm__("r9") = tile->sum[2][1];
  register const uint32_t* in __asm__("r0") = pixels;
  register const int8_t* w __asm__("r1") = weights;
  const uint32_t* const unrolled_end = pixels + quads / 4 * 4 * kTileWords;
  const uint32_t* const end = pixels + quads * kTileWords;
#define QPLAN_TILE_QUAD          \
  "ldmia r1!, {r11, r12}\n\t"    \
  "ldmia r0!, {r2, r3, r10}\n\t" \
  "sxtb16 lr, r11\n\t"           \
  "smlad r4, r2, lr, r4\n\t"     \
  "smlad r6, r3, lr, r6\n\t"     \
  "smlad r8, r10, lr, r8\n\t"    \
  "sxtb16 lr, r12\n\t"           \
  "smlad r5, r2, lr, r5\n\t"     \
  "smlad r7, r3, lr, r7\n\t"     \
  "smlad r9, r10, lr, r9\n\t"    \
  "ldmia r0!, {r2, r3, r10}\n\t" \
  "sxtb16 r11, r11, ror #8\n\t"  \
  "smlad r4, r2, r11, r4\n\t"    \
  "smlad r6, r3, r11, r6\n\t"    \
  "smlad r8, r10, r11, r8\n\t"   \
  "sxtb16 r12, r12, ror #8\n\t"  \
  "smlad r5, r2, r12, r5\n\t"    \
  "smlad r7, r3, r12, r7\n\t"    \
  "smlad r9, r10, r12, r9\n\t"
  __asm__(
      "b 2f\n"
      "1:\n\t" QPLAN_TILE_QUAD QPLAN_TILE_QUAD QPLAN_TILE_QUAD QPLAN_TILE_QUAD
      "2:\n\t"
      "ldr lr, %[unrolled_end]\n\t"
      "cmp r0, lr\n\t"
      "bne 1b\n\t"
      "b 4f\n"
      "3:\n\t" QPLAN_TILE_QUAD
      "4:\n\t"
      "ldr lr, %[end]\n\t"
      "cmp r0, lr\n\t"
      "bne 3b\n\t"
      : "+r"(s00), "+r"(s01), "+r"(s10), "+r"(s11), "+r"(s20), "+r"(s21), "+r"(in), "+r"(w)
      : [unrolled_end] "m"(unrolled_end), [end] "m"(end)
      : "r2", "r3", "r10", "r11", "r12", "lr", "cc", "memory");
#undef QPLAN_TILE_QUAD
  tile->sum[0][0] = s00;
  tile->sum[0][1] = s01;
  tile->sum[1][0] = s10;
  tile->sum[1][1] = s11;
  tile->sum[2][0] = s20;
  tile->sum[2][1] = s21;
#else
  for (uint32_t quad = 0; quad < quads; ++quad, pixels += kTileWords, weights += 4 * kTileChannels) {
    for (uint32_t o = 0; o < kTileChannels; ++o) {
      const uint32_t w = load_quad(weights + 4 * o);
      for (uint32_t p = 0; p < kTilePixels; ++p) {
        const int32_t sum = add_products(tile->sum[p][o], pixels[p], even_bytes(w));
        tile->sum[p][o] = add_products(sum, pixels[kTilePixels + p], odd_bytes(w));
      }
    }
  }
#endif
}

// The sum of the odd channel, from that of both (256 times its own and the even one's) less what both began
// with.
inline int32_t odd_sum(int32_t first, int32_t both, int32_t even) {
  return static_cast<int32_t>(
      static_cast<uint32_t>(first) +
      static_cast<uint32_t>(static_cast<int32_t>(static_cast<uint32_t>(both) - static_cast<uint32_t>(even)) >>
                            8));
}

// The same with the weights of both channels side by side in int16 (kLayout_o2h4): a product is that of both.
// The bytes of the even channel, extended, give its own. So four weights take three instructions, not four.
inline void multiply_tile_halves(Tile* tile, const uint32_t* pixels, const int8_t* weights, uint32_t quads) {
#if defined(QPLAN_SCALAR_DSP)
  register int32_t even0 __asm__("r4") = tile->sum[0][0];
  register int32_t both0 __asm__("r5") = even0;
  register int32_t even1 __asm__("r6") = tile->sum[1][0];
  register int32_t both1 __asm__("r7") = even1;
  register int32_t even2 __asm__("r8") = tile->sum[2][0];
  register int32_t both2 __asm__("r9") = even2;
  register const uint32_t* in __asm__("r0") = pixels;
  register const int8_t* w __asm__("r1") = weights;
  const uint32_t* const unrolled_end = pixels + quads / 4 * 4 * kTileWords;
  const uint32_t* const end = pixels + quads * kTileWords;
  __asm__(QPLAN_LOOP_OVER_QUADS(QPLAN_HALVES_QUAD)
          : "+r"(even0), "+r"(both0), "+r"(even1), "+r"(both1), "+r"(even2), "+r"(both2), "+r"(in), "+r"(w)
          : [unrolled_end] "m"(unrolled_end), [end] "m"(end)
          : "r2", "r3", "r10", "r11", "r12", "lr", "cc", "memory");
  tile->sum[0][0] = even0;
  tile->sum[0][1] = odd_sum(tile->sum[0][1], both0, even0);
  tile->sum[1][0] = even1;
  tile->sum[1][1] = odd_sum(tile->sum[1][1], both1, even1);
  tile->sum[2][0] = even2;
  tile->sum[2][1] = odd_sum(tile->sum[2][1], both2, even2);
#else
  for (uint32_t p = 0; p < kTilePixels; ++p) {
    int32_t even = tile->sum[p][0], both = even;
    for (uint32_t i = 0; i < 2 * quads; ++i) {
      const uint32_t pixel = pixels[i * kTilePixels + p], w = load_quad(weights + 4 * i);
      both = add_products(both, pixel, w);
      even = add_products(even, pixel, even_bytes(w));
    }
    tile->sum[p][0] = even;
    tile->sum[p][1] = odd_sum(tile->sum[p][1], both, even);
  }
#endif
}

// Expands `quads` quads of three pixels; returns where the next ones go.
inline uint32_t* expand_tile(const uint8_t* const* pixels, uint32_t quads, bool is_signed, uint32_t* to) {
#if defined(QPLAN_SCALAR_DSP)
  register const uint8_t* a __asm__("r0") = pixels[0];
  register const uint8_t* b __asm__("r1") = pixels[1];
  register const uint8_t* c __asm__("r2") = pixels[2];
  register uint32_t* at __asm__("r12") = to;
  register uint32_t* const end __asm__("lr") = to + quads * kTileWords;
#define QPLAN_EXPAND(extend)                                                                         \
  __asm__ volatile(                                                                                  \
      "1:\n\t"                                                                                       \
      "ldr r6, [%[a]], #4\n\t"                                                                       \
      "ldr r8, [%[b]], #4\n\t"                                                                       \
      "ldr r9, [%[c]], #4\n\t" extend " r3, r6\n\t" extend " r4, r8\n\t" extend " r5, r9\n\t" extend \
      " r6, r6, ror #8\n\t" extend " r8, r8, ror #8\n\t" extend                                      \
      " r9, r9, ror #8\n\t"                                                                          \
      "stmia %[at]!, {r3, r4, r5, r6, r8, r9}\n\t"                                                   \
      "cmp %[at], %[end]\n\t"                                                                        \
      "bne 1b\n\t"                                                                                   \
      : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [at] "+r"(at)                                         \
      : [end] "r"(end)                                                                               \
      : "r3", "r4", "r5", "r6", "r8", "r9", "cc", "memory")
  if (is_signed) {
    QPLAN_EXPAND("sxtb16");
  } else {
    QPLAN_EXPAND("uxtb16");
  }
#undef QPLAN_EXPAND
  return at;
#else
  const uint8_t *a = pixels[0], *b = pixels[1], *c = pixels[2];
  const auto even = is_signed ? even_bytes : even_bytes_u8;
  const auto odd = is_signed ? odd_bytes : odd_bytes_u8;
  for (uint32_t i = 0; i < quads; ++i, a += 4, b += 4, c += 4, to += kTileWords) {
    const uint32_t quad[kTilePixels] = {load_quad(a), load_quad(b), load_quad(c)};
    for (uint32_t p = 0; p < kTilePixels; ++p) {
      to[p] = even(quad[p]);
      to[kTilePixels + p] = odd(quad[p]);
    }
  }
  return to;
#endif
}

// ---- a row by four channels ----
// Expanded, a quad of a row is two words. The weights of four channels are a quad of each.

constexpr uint32_t kRowChannels = 4;

inline void multiply_row(int32_t* sums, const uint32_t* row, const int8_t* weights, uint32_t quads) {
#if defined(QPLAN_SCALAR_DSP)
  register int32_t s0 __asm__("r4") = sums[0];
  register int32_t s1 __asm__("r5") = sums[1];
  register int32_t s2 __asm__("r6") = sums[2];
  register int32_t s3 __asm__("r7") = sums[3];
  register const uint32_t* in __asm__("r0") = row;
  register const int8_t* w __asm__("r1") = weights;
  const uint32_t* const unrolled_end = row + quads / 4 * 4 * 2;
  const uint32_t* const end = row + quads * 2;
#define QPLAN_ROW_QUAD                \
  "ldmia r0!, {r2, r3}\n\t"           \
  "ldmia r1!, {r8, r9, r10, r11}\n\t" \
  "sxtb16 r12, r8\n\t"                \
  "smlad r4, r2, r12, r4\n\t"         \
  "sxtb16 r8, r8, ror #8\n\t"         \
  "smlad r4, r3, r8, r4\n\t"          \
  "sxtb16 r12, r9\n\t"                \
  "smlad r5, r2, r12, r5\n\t"         \
  "sxtb16 r9, r9, ror #8\n\t"         \
  "smlad r5, r3, r9, r5\n\t"          \
  "sxtb16 r12, r10\n\t"               \
  "smlad r6, r2, r12, r6\n\t"         \
  "sxtb16 r10, r10, ror #8\n\t"       \
  "smlad r6, r3, r10, r6\n\t"         \
  "sxtb16 r12, r11\n\t"               \
  "smlad r7, r2, r12, r7\n\t"         \
  "sxtb16 r11, r11, ror #8\n\t"       \
  "smlad r7, r3, r11, r7\n\t"
  __asm__(QPLAN_LOOP_OVER_QUADS(QPLAN_ROW_QUAD)
          : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3), "+r"(in), "+r"(w)
          : [unrolled_end] "m"(unrolled_end), [end] "m"(end)
          : "r2", "r3", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef QPLAN_ROW_QUAD
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
#else
  for (uint32_t quad = 0; quad < quads; ++quad, row += 2, weights += 4 * kRowChannels) {
    for (uint32_t o = 0; o < kRowChannels; ++o) {
      const uint32_t w = load_quad(weights + 4 * o);
      sums[o] = add_products(add_products(sums[o], row[0], even_bytes(w)), row[1], odd_bytes(w));
    }
  }
#endif
}

// The same with the weights of each two channels side by side in int16 (kLayout_o4h4).
inline void multiply_row_halves(int32_t* sums, const uint32_t* row, const int8_t* weights, uint32_t quads) {
#if defined(QPLAN_SCALAR_DSP)
  register int32_t even0 __asm__("r4") = sums[0];
  register int32_t both0 __asm__("r5") = even0;
  register int32_t even1 __asm__("r6") = sums[2];
  register int32_t both1 __asm__("r7") = even1;
  register const uint32_t* in __asm__("r0") = row;
  register const int8_t* w __asm__("r1") = weights;
  const uint32_t* const unrolled_end = row + quads / 4 * 4 * 2;
  const uint32_t* const end = row + quads * 2;
#define QPLAN_ROW_QUAD      \
  "ldmia r0!, {r2, r3}\n\t" \
  "ldmia r1!, {r8, r9, r10, r11}\n\t" QPLAN_PRODUCTS_OF_QUAD
  __asm__(QPLAN_LOOP_OVER_QUADS(QPLAN_ROW_QUAD)
          : "+r"(even0), "+r"(both0), "+r"(even1), "+r"(both1), "+r"(in), "+r"(w)
          : [unrolled_end] "m"(unrolled_end), [end] "m"(end)
          : "r2", "r3", "r8", "r9", "r10", "r11", "lr", "cc", "memory");
#undef QPLAN_ROW_QUAD
  sums[0] = even0;
  sums[1] = odd_sum(sums[1], both0, even0);
  sums[2] = even1;
  sums[3] = odd_sum(sums[3], both1, even1);
#else
  for (uint32_t o = 0; o < kRowChannels; o += 2) {
    int32_t even = sums[o], both = even;
    for (uint32_t i = 0; i < 2 * quads; ++i) {
      const uint32_t w = load_quad(weights + 8 * i + 2 * o);
      both = add_products(both, row[i], w);
      even = add_products(even, row[i], even_bytes(w));
    }
    sums[o] = even;
    sums[o + 1] = odd_sum(sums[o + 1], both, even);
  }
#endif
}

// The same for a row of int8 as it is.
inline void multiply_bytes_halves(int32_t* sums, const uint8_t* row, const int8_t* weights, uint32_t quads) {
#if defined(QPLAN_SCALAR_DSP)
  register int32_t even0 __asm__("r4") = sums[0];
  register int32_t both0 __asm__("r5") = even0;
  register int32_t even1 __asm__("r6") = sums[2];
  register int32_t both1 __asm__("r7") = even1;
  register const uint8_t* in __asm__("r0") = row;
  register const int8_t* w __asm__("r1") = weights;
  const uint8_t* const unrolled_end = row + quads / 4 * 16;
  const uint8_t* const end = row + quads * 4;
  __asm__(QPLAN_LOOP_OVER_QUADS(QPLAN_BYTES_QUAD)
          : "+r"(even0), "+r"(both0), "+r"(even1), "+r"(both1), "+r"(in), "+r"(w)
          : [unrolled_end] "m"(unrolled_end), [end] "m"(end)
          : "r2", "r3", "r8", "r9", "r10", "r11", "lr", "cc", "memory");
  sums[0] = even0;
  sums[1] = odd_sum(sums[1], both0, even0);
  sums[2] = even1;
  sums[3] = odd_sum(sums[3], both1, even1);
#else
  for (uint32_t o = 0; o < kRowChannels; o += 2) {
    int32_t even = sums[o], both = even;
    for (uint32_t i = 0; i < 2 * quads; ++i) {
      const uint32_t quad = load_quad(row + i / 2 * 4), w = load_quad(weights + 8 * i + 2 * o);
      const uint32_t pair = i % 2 == 0 ? even_bytes(quad) : odd_bytes(quad);
      both = add_products(both, pair, w);
      even = add_products(even, pair, even_bytes(w));
    }
    sums[o] = even;
    sums[o + 1] = odd_sum(sums[o + 1], both, even);
  }
#endif
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SCALAR_DSP_H_
