#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fuse_activation_test {
namespace {

const std::string kInt8 = "%x: Tensor[(4), int8]";

std::string fuse(const std::string& params, const std::string& body) {
  return run_pass("fuse_activation", params, body);
}

TEST(FuseActivation, DropsAClipToTheWholeDtype) {
  EXPECT_EQ(fuse(kInt8, "  clip(%x, a_min=-128f, a_max=127f)\n"), "%x\n");
  EXPECT_EQ(fuse("%x: Tensor[(4), uint8]", "  clip(%x, a_min=-3f, a_max=1000f)\n"), "%x\n");
}

TEST(FuseActivation, LimitsBoundsToTheDtype) {
  EXPECT_EQ(fuse(kInt8, "  clip(%x, a_min=0f, a_max=1000f)\n"), "%0 = clip(%x, a_min=0f, a_max=127f);\n%0\n");
}

TEST(FuseActivation, MergesChains) {
  EXPECT_EQ(fuse(kInt8,
                 "  %0 = clip(%x, a_min=-20f, a_max=50f);\n"
                 "  %1 = clip(%0, a_min=-10f, a_max=100f);\n"
                 "  clip(%1, a_min=-100f, a_max=40f)\n"),
            "%0 = clip(%x, a_min=-10f, a_max=40f);\n%0\n");
}

TEST(FuseActivation, ChainsOfDisjointBoundsGiveTheLaterBound) {
  // Everything of [10, 20] becomes 30 in [30, 40].
  EXPECT_EQ(fuse(kInt8, "  %0 = clip(%x, a_min=10f, a_max=20f);\n  clip(%0, a_min=30f, a_max=40f)\n"),
            "%0 = clip(%x, a_min=30f, a_max=30f);\n%0\n");
}

TEST(FuseActivation, AWiderClipBehindANarrowerOneIsDropped) {
  EXPECT_EQ(fuse(kInt8, "  %0 = clip(%x, a_min=-5f, a_max=5f);\n  clip(%0, a_min=-6f, a_max=5f)\n"),
            "%0 = clip(%x, a_min=-5f, a_max=5f);\n%0\n");
}

TEST(FuseActivation, KeepsTheInnerClipForItsOtherUsers) {
  EXPECT_EQ(fuse(kInt8,
                 "  %0 = clip(%x, a_min=-5f, a_max=5f);\n  %1 = clip(%0, a_min=0f, a_max=9f);\n  (%0, %1)\n"),
            "%0 = clip(%x, a_min=-5f, a_max=5f);\n%1 = clip(%x, a_min=0f, a_max=5f);\n(%0, %1)\n");
}

TEST(FuseActivation, AClipReachesItsProducerThroughAnIdentityRequantize) {
  EXPECT_EQ(fuse("%x: Tensor[(1, 4), int32]",
                 "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n"
                 "  %1 = qnn.requantize(%0, 0.25f, 3, 0.25f, 3);\n"
                 "  clip(%1, a_min=3f, a_max=1e30f)\n"),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n%1 = clip(%0, a_min=3f, a_max=127f);\n%1\n");
}

TEST(FuseActivation, DropsCastsToTheSameDtype) {
  EXPECT_EQ(fuse(kInt8, "  cast(%x, dtype=\"int8\")\n"), "%x\n");
}

TEST(FuseActivation, LeavesWhatDoesSomething) {
  EXPECT_EQ(fuse(kInt8, "  clip(%x, a_min=-127f, a_max=127f)\n"), "unchanged");
  EXPECT_EQ(fuse(kInt8, "  qnn.requantize(%x, 0.5f, 3, 0.5f, 4)\n"), "unchanged");
  EXPECT_EQ(fuse(kInt8, "  qnn.requantize(%x, 0.5f, 3, 0.25f, 3)\n"), "unchanged");
  EXPECT_EQ(fuse(kInt8, "  qnn.requantize(%x, 0.5f, 3, 0.5f, 3, out_dtype=\"uint8\")\n"), "unchanged");
  EXPECT_EQ(fuse("%x: Tensor[(4), float32]", "  clip(%x, a_min=0f, a_max=6f)\n"), "unchanged");
  EXPECT_EQ(fuse("%x: Tensor[(4), int64]", "  clip(%x, a_min=0f, a_max=inff)\n"), "unchanged");
  // Nothing of the dtype is left: not for this pass to decide.
  EXPECT_EQ(fuse(kInt8, "  clip(%x, a_min=200f, a_max=300f)\n"), "unchanged");
}

// Accumulators are not exact in every contract: F32E makes them float.
TEST(FuseActivation, LeavesAnInt32RequantizeOfTheSameScale) {
  EXPECT_EQ(fuse("%x: Tensor[(4), int32]", "  qnn.requantize(%x, 0.5f, 0, 0.5f, 0, out_dtype=\"int32\")\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::fuse_activation_test
