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

// round_up(n, m) for m > 0; the caller knows that the result fits.
constexpr uint64_t round_up(uint64_t n, uint64_t m) { return (n + m - 1) / m * m; }

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_CHECKED_H_
