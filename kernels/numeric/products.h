// Sums of products as the reference kernels form them, for one output or for four that share their inputs.
// Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_PRODUCTS_H_
#define QPLAN_KERNELS_NUMERIC_PRODUCTS_H_

#include <stddef.h>
#include <stdint.h>

namespace qplan {

struct ZeroPoints {
  int32_t input = 0;
  int32_t weights = 0;
};

// sums[j] += sum over i of (in[i] - input zero point) * (weights[j * stride + i] - weights zero point), i <
// n, modulo the range of Bits. The first factor is within +-65535, the second within +-255.
template <uint32_t kOutputs, typename Bits, typename In>
static inline void add_products(const In* in, const int8_t* weights, size_t stride, size_t n,
                                ZeroPoints zero_points, Bits* sums) {
  static_assert(kOutputs == 1 || kOutputs == 4, "of one output or of four");
  const int32_t zero_point = zero_points.input;
  // The weights' zero point, which few networks have, by the sum of the inputs: what is left in the loops
  // fits the registers of small cores.
  if (zero_points.weights != 0) {
    Bits sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<Bits>(in[i] - zero_point);
    for (uint32_t j = 0; j < kOutputs; ++j) sums[j] -= sum * static_cast<Bits>(zero_points.weights);
  }
  const In* const end = in + n;
  if constexpr (kOutputs == 1) {
    Bits sum = *sums;
    while (in != end) sum += static_cast<Bits>((*in++ - zero_point) * *weights++);
    *sums = sum;
  } else {
    const int8_t *w0 = weights, *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    Bits sum0 = sums[0], sum1 = sums[1], sum2 = sums[2], sum3 = sums[3];
    while (in != end) {
      const int32_t v = *in++ - zero_point;
      sum0 += static_cast<Bits>(v * *w0++);
      sum1 += static_cast<Bits>(v * *w1++);
      sum2 += static_cast<Bits>(v * *w2++);
      sum3 += static_cast<Bits>(v * *w3++);
    }
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
  }
}

// The same of n inputs that are one value, `input` beyond the zero point.
template <uint32_t kOutputs, typename Bits>
static inline void add_products_of(int32_t input, const int8_t* weights, size_t stride, size_t n,
                                   int32_t weights_zero_point, Bits* sums) {
  for (uint32_t j = 0; j < kOutputs; ++j) {
    Bits sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<Bits>(weights[j * stride + i] - weights_zero_point);
    sums[j] += sum * static_cast<Bits>(input);
  }
}

// Taps of a window in one direction, [begin, end).
struct Taps {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// The taps among `count` whose position first + tap * dilation is in [0, extent).
static inline Taps taps_inside(int32_t first, uint32_t count, uint32_t dilation, uint32_t extent) {
  Taps taps = {0, count};
  const auto at = [=](uint32_t tap) { return first + static_cast<int32_t>(tap * dilation); };
  while (taps.begin < taps.end && at(taps.begin) < 0) ++taps.begin;
  while (taps.begin < taps.end && at(taps.end - 1) >= static_cast<int32_t>(extent)) --taps.end;
  return taps;
}

// A window of an image, and which of its taps are inside the image.
struct TapWindow {
  int32_t y = 0;  // of its first tap
  int32_t x = 0;
  Taps rows;
  Taps columns;
};

template <typename Args>
static inline TapWindow tap_window(const Args& a, int32_t y, int32_t x) {
  return {y, x, taps_inside(y, a.kernel_h, a.dilation_h, a.input_h),
          taps_inside(x, a.kernel_w, a.dilation_w, a.input_w)};
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_PRODUCTS_H_
