// Convolutions of a repeated pixel and other channels, which the packer makes two layers of, packed for each
// instruction set: the outputs are those of the network that keeps them whole.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/support/isas.h"
#include "tests/support/random.h"
#include "tests/support/repeated_pixel_network.h"

namespace qplan::testing::repeated_pixels_models_test {
namespace {

std::vector<uint8_t> pack_text(const std::string& text, uint32_t fuse) {
  return pack_bytes({text.begin(), text.end()}, "network.relay", "cpu", fuse);
}

class RepeatedPixelsOn : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RepeatedPixelsOn, GiveTheOutputsOfTheWholeLayer) {
  QPLAN_SKIP_UNLESS_ISA(GetParam());
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    RepeatedPixelNetwork network;
    network.seed = seed;
    network.dtype = seed % 2 == 0 ? "uint8" : "int8";
    network.contract = seed % 5 == 0 ? "f32e" : seed % 5 == 1 ? "tfl1" : "tfl2";
    network.input_zero_point = seed % 3 == 0 ? 77 : 0;
    network.weights_zero_point = static_cast<int>(seed % 4) * 20 - 40;
    network.least_weight = seed % 8 < 4 ? -128 : -80;
    network.has_bias = seed % 7 != 0;
    if (seed % 11 == 0) network.greatest_bias = 1 << 26;
    network.output_c = seed % 6 == 0 ? 80 : 32;
    if (seed % 4 == 1) network.scales = RepeatedPixelNetwork::scales_of(network.output_c);
    if (seed % 9 == 0) network.concatenated = "(%x, %2)";
    if (seed % 9 == 1) network.concatenated = "(%2, %x, %2, %x)", network.channels = 24;
    switch (seed / 2 % 4) {
      case 1:
        network.tail = RepeatedPixelNetwork::clip();
        break;
      case 2:
        network.tail = network.residual();
        break;
      case 3:
        network.tail = network.next_layer();
        break;
      default:
        break;
    }
    const uint32_t fuse = seed % 2 == 0 ? QPLAN_FUSE_ALL : QPLAN_FUSE_AUTO;
    const std::vector<uint8_t> input = Random(seed).full_range<uint8_t>(5 * 3 * 6);
    ModelSession whole(pack_text(network.whole_text(), fuse), QPLAN_ISA_REFERENCE, 1);
    const std::vector<uint8_t> plan = pack_text(network.text(), fuse);
    ASSERT_EQ(plan[6], 15) << "the minor version (format/README.md) of plans with a computed bias";
    ModelSession separated(plan, GetParam(), 2);
    EXPECT_EQ(separated.run({input}).at(0), whole.run({input}).at(0)) << network.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RepeatedPixelsOn, ::testing::ValuesIn(kIsas), isa_test_name);

}  // namespace
}  // namespace qplan::testing::repeated_pixels_models_test
