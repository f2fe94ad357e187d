// Arithmetic on untrusted sizes: false instead of a wrapped result.
#ifndef QPLAN_SRC_BASE_CHECKED_H_
#define QPLAN_SRC_BASE_CHECKED_H_

#include <stdint.h>

namespace qplan {

template <typename T>
[[nodiscard]] inline bool checked_add(T a, T b, T* sum) {
  return !__builtin_add_overflow(a, b, sum);
}

template <typename T>
[[nodiscard]] inline bool checked_mul(T a, T b, T* product) {
  return !__builtin_mul_overflow(a, b, product);
}

// Products and sums of counts that may be too large to state: UINT64_MAX is then the answer.
constexpr uint64_t saturating_product(uint64_t a) { return a; }
template <typename... Rest>
constexpr uint64_t saturating_product(uint64_t a, uint64_t b, Rest... rest) {
  uint64_t product = 0;
  return saturating_product(__builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product, uint64_t{rest}...);
}
constexpr uint64_t saturating_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// power: a power of two. Division of 64 bits is a function of its own on processors of 32.
constexpr bool is_multiple(uint64_t n, uint32_t power) { return (n & (power - 1)) == 0; }

// round_up(n, m) for m > 0; the caller knows that the result fits.
constexpr uint64_t round_up(uint64_t n, uint64_t m) { return (n + m - 1) / m * m; }

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_CHECKED_H_
