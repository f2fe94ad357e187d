#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::fuse_clip_cast_test {
namespace {

const std::string kData = "%x: Tensor[(1, 4), int32]";

std::string tail(const std::string& min, const std::string& max, const std::string& dtype,
                 const std::string& zero_point = "3") {
  return "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, " + zero_point +
         ", out_dtype=\"int32\", name=\"r\");\n  %1 = clip(%0, a_min=" + min + "f, a_max=" + max +
         "f, name=\"k\");\n  cast(%1, dtype=\"" + dtype + "\", name=\"c\")\n";
}

std::string fuse(const std::string& body) { return run_pass("fuse_clip_cast", kData, body); }
std::string reason(const std::string& body) {
  return why_not("fuse_clip_cast", "fuse_clip_cast", kData, body);
}

TEST(FuseClipCast, TheRangeOfTheDtypeIsSaturation) {
  EXPECT_EQ(fuse(tail("0", "255", "uint8")),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, out_dtype=\"uint8\");\n%0\n");
  EXPECT_EQ(fuse(tail("-128", "127", "int8")), "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n%0\n");
}

TEST(FuseClipCast, ATighterClipStays) {
  EXPECT_EQ(fuse(tail("3", "200", "uint8")),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, out_dtype=\"uint8\");\n"
            "%1 = clip(%0, a_min=3f, a_max=200f);\n%1\n");
}

TEST(FuseClipCast, AWiderClipWraps) {
  EXPECT_EQ(fuse(tail("-128", "127", "uint8")), "unchanged");
  EXPECT_EQ(
      reason(tail("0", "256", "uint8")),
      "cast 'c': the pattern matches, but the clip 'k' is wider than [0, 255]: the cast to uint8 lets larger "
      "values wrap around");
}

TEST(FuseClipCast, NoClipWraps) {
  EXPECT_EQ(reason("  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, out_dtype=\"int32\");\n"
                   "  cast(%0, dtype=\"int8\", name=\"c\")\n"),
            "cast 'c': the pattern matches, but nothing limits the int32 value to [-128, 127] before the "
            "cast to int8, "
            "which lets it wrap");
}

TEST(FuseClipCast, ZeroPointsMustFitTheDtype) {
  EXPECT_EQ(reason(tail("0", "255", "uint8", "300")),
            "cast 'c': the pattern matches, but the zero point of 'r' is outside of uint8");
}

TEST(FuseClipCast, AnIntermediateWithAnotherUseStays) {
  const std::string head =
      "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, out_dtype=\"int32\");\n  %1 = clip(%0, a_min=0f, "
      "a_max=255f);\n"
      "  %2 = cast(%1, dtype=\"uint8\");\n";
  EXPECT_EQ(fuse(head + "  (%2, %0)\n"), "unchanged");
  EXPECT_EQ(fuse(head + "  (%2, %1)\n"), "unchanged");
}

TEST(FuseClipCast, AlsoBehindAQuantise) {
  EXPECT_EQ(
      run_pass(
          "fuse_clip_cast", "%x: Tensor[(4), float32]",
          "  %0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int32\");\n  %1 = clip(%0, a_min=0f, a_max=255f);\n"
          "  cast(%1, dtype=\"uint8\")\n"),
      "%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"uint8\");\n%0\n");
}

}  // namespace
}  // namespace qplan::passes_test::fuse_clip_cast_test
