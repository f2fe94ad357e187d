// A sum of inputs beyond int32, which weights with a zero point meet: what the tests of the kernels for
// Cortex-M share.
#ifndef QPLAN_TESTS_KERNELS_SCALAR_LONG_ROWS_H_
#define QPLAN_TESTS_KERNELS_SCALAR_LONG_ROWS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/matmul/matmul.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::testing {

// sum 255 * (1 - 1) + 5, modulo 2^32. Under -fsanitize=undefined, a sum that is not modulo 2^32 ends the
// test. layout: of weights, in blocks of four outputs.
inline void expect_sums_of_long_rows_wrap(const KernelVariant& fully_connected, uint16_t layout) {
  FullyConnectedArgs a;
  a.rows = 1;
  a.input_c = (1 << 23) + (1 << 16);
  a.output_c = 1;
  a.weights_zero_point = 1;
  a.clamp_max = 255;
  a.input_dtype = a.output_dtype = Dtype::kU8;
  a.weights_layout = layout;
  const Buffer<uint8_t> input(std::vector<uint8_t>(a.input_c, 255));
  const Buffer<int8_t> weights(std::vector<int8_t>(4 * size_t{a.input_c}, 1));
  const std::vector<int32_t> bias = {5, 0, 0, 0}, multiplier(4, 1 << 30), shift(4, 1);
  OutputBuffer<uint8_t> output(1);
  a.input = input.data();
  a.weights = weights.data();
  a.bias = bias.data();
  a.multiplier = multiplier.data();
  a.shift = shift.data();
  a.output = output.data();
  ASSERT_TRUE(fully_connected.accepts(&a));
  run_variant(fully_connected, &a);
  EXPECT_EQ(output.values(), std::vector<uint8_t>{5});
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_KERNELS_SCALAR_LONG_ROWS_H_
