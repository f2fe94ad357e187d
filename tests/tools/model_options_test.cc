#include "tools/model_options.h"

#include <gtest/gtest.h>

#include "tools/command.h"

namespace qplan::tools::model_options_test {
namespace {

std::string describe(const std::string& text) {
  try {
    const NamedType type = parse_input_shape(text);
    std::string result = type.name + ":";
    for (const int64_t extent : type.shape) result += " " + std::to_string(extent);
    return result + " code " + std::to_string(type.dtype.code) + " bits " + std::to_string(type.dtype.bits);
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(InputShape, NameExtentsAndDtype) {
  EXPECT_EQ(describe("x=1x3x224x224:float32"), "x: 1 3 224 224 code 2 bits 32");
  EXPECT_EQ(describe("serving_default_x:0=1x64:uint8"), "serving_default_x:0: 1 64 code 1 bits 8");
  EXPECT_EQ(describe("x=7"), "x: 7 code 2 bits 32");
  EXPECT_EQ(describe("x=:int64"), "x: code 0 bits 64");
  EXPECT_EQ(describe("x=2:bool"), "x: 2 code 1 bits 1");
}

TEST(InputShape, RefusesEverythingElse) {
  for (const char* text : {"", "x", "x=", "=1x3", "x=1x", "x=x1", "x=0x3", "x=-1", "x=1x3:", "x=1x3:int7",
                           "x=1x3:float", "x=1,3:int8", "x=1x99999999999999999999", "x=1x3:int8 "}) {
    EXPECT_EQ(describe(text), std::string("--input-shape: found '") + text +
                                  "', expected NAME=EXTENTS:DTYPE like x=1x3x224x224:float32");
  }
}

}  // namespace
}  // namespace qplan::tools::model_options_test
