// Kernel rows at the ends of int32, which no test of a whole convolution has the memory for: copies and
// fills are only counted.
#include "kernels/conv2d/conv2d_windows.inl"

#include <gtest/gtest.h>

#include <cstdint>

namespace qplan {
namespace {

size_t copied = 0, filled = 0;
uintptr_t copied_from = 0;

void count_copy(uint8_t*, const uint8_t* from, size_t count) {
  copied += count;
  copied_from = reinterpret_cast<uintptr_t>(from);
}

void count_fill(uint8_t*, uint8_t, size_t count) { filled += count; }

// One row of a kernel of width 4 that begins at column x0 of a row at address 4096.
void gather(uint32_t input_w, int32_t x0) {
  copied = filled = 0;
  copied_from = 0;
  Conv2dArgs args;
  args.input_w = input_w;
  args.input_c = 1;
  args.kernel_w = 4;
  args.dilation_w = 1;
  uint8_t to[4] = {};
  copy_kernel_row<count_copy, count_fill>(args, reinterpret_cast<const uint8_t*>(uintptr_t{4096}), x0, 0, 1,
                                          to);
}

TEST(Conv2dWindows, KernelRowOverTheBeginOfTheWidestInput) {
  gather(INT32_MAX, -3);
  EXPECT_EQ(filled, 3u);
  EXPECT_EQ(copied, 1u);
  EXPECT_EQ(copied_from, 4096u);
}

TEST(Conv2dWindows, KernelRowOverTheEndOfTheWidestInput) {
  gather(INT32_MAX, INT32_MAX - 1);
  EXPECT_EQ(copied, 1u);
  EXPECT_EQ(filled, 3u);
  EXPECT_EQ(copied_from, uintptr_t{4096} + INT32_MAX - 1);
}

TEST(Conv2dWindows, KernelRowBesideTheInput) {
  gather(INT32_MAX, -INT32_MAX);
  EXPECT_EQ(filled, 4u);
  EXPECT_EQ(copied, 0u);
  gather(5, INT32_MAX);
  EXPECT_EQ(filled, 4u);
  EXPECT_EQ(copied, 0u);
}

}  // namespace
}  // namespace qplan
