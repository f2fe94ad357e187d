#include "src/packer/emit/number_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

namespace qplan::emit::number_text_test {
namespace {

// The tests run in the locale "C", where printf writes what C reads.
std::string printed(const char* format, float value) {
  char text[80];
  std::snprintf(text, sizeof(text), format, static_cast<double>(value));
  return text;
}

TEST(NumberText, IsWhatPrintfWritesInTheLocaleOfC) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {0.0f, -0.0f, 1.0f, -0.75f, 0.003921569f, 1e-20f, 3.25e20f, Limits::max(),
                            -Limits::max(), Limits::min(), 4096.5f}) {
    EXPECT_EQ(hex_float(value), printed("%af", value));
    EXPECT_EQ(decimal_text(value), printed("%f", value));
  }
  for (uint32_t bits = 0x00800001; bits < 0x7f800000; bits += 0x00301237) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    EXPECT_EQ(hex_float(value), printed("%af", value));
  }
}

TEST(NumberText, KeepsTheBitsOfDenormals) {
  for (const float value : {std::numeric_limits<float>::denorm_min(), -1.5e-42f}) {
    std::string text = hex_float(value);
    text.pop_back();  // the suffix of a float
    float read = 0;
    std::sscanf(text.c_str(), "%f", &read);
    EXPECT_EQ(read, value) << text;
  }
}

}  // namespace
}  // namespace qplan::emit::number_text_test
