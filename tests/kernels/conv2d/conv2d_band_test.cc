// Rows of a line buffer at the ends of int32, which no test of a whole convolution has the memory for: copies
// and fills are only counted.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/conv2d/conv2d_line_buffer.h"

namespace qplan::conv2d_line_buffer_test {
namespace {

size_t copied = 0, filled = 0;
uintptr_t copied_from = 0;

void count_copy(uint8_t*, const uint8_t* from, size_t count, uint8_t) {
  copied += count;
  copied_from = reinterpret_cast<uintptr_t>(from);
}

void count_fill(uint8_t*, uint8_t, size_t count) { filled += count; }

// Four columns of a row at address 4096, from column `begin` on.
void copy(uint32_t input_w, int64_t begin) {
  copied = filled = 0;
  copied_from = 0;
  Conv2dArgs args;
  args.input_w = input_w;
  args.input_c = 1;
  LineBuffer line_buffer{};
  line_buffer.columns = 4;
  uint8_t to[4] = {};
  copy_line_buffer_row<count_copy, count_fill>(line_buffer_row(args, line_buffer, begin, false),
                                               reinterpret_cast<const uint8_t*>(uintptr_t{4096}), to);
}

TEST(Conv2dLineBuffer, RowOverTheBeginOfTheWidestInput) {
  copy(INT32_MAX, -3);
  EXPECT_EQ(filled, 3u);
  EXPECT_EQ(copied, 1u);
  EXPECT_EQ(copied_from, 4096u);
}

TEST(Conv2dLineBuffer, RowOverTheEndOfTheWidestInput) {
  copy(INT32_MAX, INT32_MAX - 1);
  EXPECT_EQ(copied, 1u);
  EXPECT_EQ(filled, 3u);
  EXPECT_EQ(copied_from, uintptr_t{4096} + INT32_MAX - 1);
}

TEST(Conv2dLineBuffer, RowBesideTheInput) {
  copy(INT32_MAX, -INT32_MAX);
  EXPECT_EQ(filled, 4u);
  EXPECT_EQ(copied, 0u);
  copy(5, INT32_MAX);
  EXPECT_EQ(filled, 4u);
  EXPECT_EQ(copied, 0u);
}

}  // namespace
}  // namespace qplan::conv2d_line_buffer_test
