// In which layout the weights of a convolution are packed, and that the layout changes no byte of the output.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/packer/evaluate/evaluate.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::lower_layouts_test {
namespace {

struct Layer {
  int size, input_c, output_c, kernel, stride, dilation, groups;
  const char* layout;       // for targets with vectors
  const char* eights = "";  // for I8MM
};

std::string text_of(const Layer& layer, const std::string& tail) {
  const int group_c = layer.input_c / layer.groups;
  std::string weights;
  for (int i = 0; i < layer.output_c * layer.kernel * layer.kernel * group_c; ++i) {
    weights += (i == 0 ? "" : ", ") + std::to_string(i * 37 % 251 - 125);
  }
  const auto number = [](int value) { return std::to_string(value); };
  const std::string kernel = number(layer.kernel), stride = number(layer.stride),
                    dilation = number(layer.dilation), size = number(layer.size);
  return main_text("%x: Tensor[(1, " + size + ", " + size + ", " + number(layer.input_c) + "), int8]",
                   "  %0 = qnn.conv2d(%x, const(Tensor[(" + number(layer.output_c) + ", " + kernel + ", " +
                       kernel + ", " + number(group_c) + "), int8], [" + weights +
                       "]), 7, 0, 1f, 1f, strides=[" + stride + ", " + stride + "], dilation=[" + dilation +
                       ", " + dilation + "], groups=" + number(layer.groups) +
                       ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                       "  %1 = qnn.requantize(%0, 1f, 0, 900f, 9);\n" +
                       tail);
}

struct Packed {
  std::string layout, zero_point;  // of the weights
  std::vector<uint8_t> output;
  uint64_t bias_bytes = 0;
  int version_minor = 0;
};

Packed pack(const std::string& text, const std::string& target) {
  const AlignedBytes plan = evaluate::make_plan(lower_text(text, target), target::parse_target(target), {});
  const inspect::PlanReader reader(plan.span());
  Packed packed;
  for (const auto& [name, value] : inspect::step_params(reader.view().step(0))) {
    if (name == "weights_layout") packed.layout = value;
    if (name == "weights_zero_point") packed.zero_point = value;
  }
  packed.bias_bytes = reader.view().tensor(reader.view().step(0).inputs()->Get(2)).size();
  packed.version_minor = reader.view().header().version_minor;
  evaluate::ReferenceSession session(plan.span());
  const std::span<uint8_t> input = session.io(QPLAN_INPUT, 0);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<uint8_t>(i * 91);
  session.invoke();
  const std::span<uint8_t> output = session.io(QPLAN_OUTPUT, 0);
  packed.output.assign(output.begin(), output.end());
  return packed;
}

TEST(LowerLayouts, AreWhatTheVectorKernelsReadInPlace) {
  for (const Layer& layer : {
           Layer{35, 3, 5, 3, 2, 1, 1, "o16z4", "o16z8"},  // 27 bytes in 7 groups of four, not in 3 times 3
           Layer{34, 3, 5, 3, 1, 1, 1, "o16r4", "o16r8"},  // rows of output share rows of input
           Layer{9, 3, 5, 3, 2, 1, 1, "o16r4", "o16r8"},   // too narrow to be zipped
           Layer{9, 3, 5, 1, 1, 1, 1, "o16r4", "o16r4"},   // one pixel of 3 bytes
           Layer{9, 3, 5, 3, 1, 2, 1, "o16i4", "o16i4"},   // pixels apart
           Layer{9, 4, 5, 3, 2, 1, 1, "o16k4", "o16r8"},   // rows of 12 bytes
           Layer{9, 8, 5, 3, 1, 2, 1, "o16k4", "o16i8"},   // pixels of 8
           Layer{9, 6, 32, 3, 1, 1, 2, "o16i4", "o16i4"},  // 3 of the 6 channels
           Layer{9, 12, 32, 3, 1, 1, 4, "o16i4",
                 "o16i8"},  // groups of 8 outputs, merged to 2 of 16: 6 channels each
           Layer{9, 16, 32, 3, 1, 1, 4, "o16k4", "o16i8"},  // and 8 channels each
           Layer{9, 9, 15, 3, 1, 1, 3, "o16r4", "o16r8"},   // merged to one group: rows of 27 bytes
       }) {
    const std::string text = text_of(layer, "  %1");
    const Packed reference = pack(text, "cpu,isa=reference");
    EXPECT_EQ(reference.layout, "ohwi");
    EXPECT_EQ(pack(text, "cpu,arch=cortex-m").layout, "ohwi");
    EXPECT_NE(std::ranges::min(reference.output), std::ranges::max(reference.output));
    for (const std::string target : {"cpu", "cpu,isa=sse41", "cpu,isa=avx2"}) {
      const Packed packed = pack(text, target);
      EXPECT_EQ(packed.layout, layer.layout) << text.substr(0, 400);
      EXPECT_EQ(packed.output, reference.output) << layer.layout;
    }
    // I8MM has groups of eight bytes where that is better. The reference reads them here.
    const Packed eights = pack(text, "cpu,arch=aarch64,isa=i8mm");
    EXPECT_EQ(eights.layout, layer.eights) << text.substr(0, 400);
    EXPECT_EQ(eights.output, reference.output) << layer.eights;
    EXPECT_EQ(pack(text, "cpu,arch=aarch64").layout, layer.layout);
  }
}

// uint8 weights of 24 channels for 8, around their zero point 120, of which `large` are 255 and `small` 0:
// 135 and -120 without it.
std::string unsigned_text(int large, int small) {
  std::string weights;
  for (int i = 0; i < 24 * 8; ++i) {
    const bool is_large = i % 30 == 7 && i / 30 < large, is_small = i % 30 == 8 && i / 30 < small;
    weights += (i == 0 ? "" : ", ") + std::to_string(is_large ? 255 : is_small ? 0 : i * 37 % 120 + 60);
  }
  return main_text("%x: Tensor[(1, 5, 7, 8), uint8]",
                   "  %0 = qnn.conv2d(%x, const(Tensor[(24, 1, 1, 8), uint8], [" + weights +
                       "]), 0, 120, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                       "  %1 = qnn.requantize(%0, 1f, 0, 700f, 90, out_dtype=\"uint8\");\n  %1");
}

TEST(LowerLayouts, FewWeightsBeyondInt8AreRestsOnX86AndTheZeroPointIsGone) {
  for (const int large : {0, 1, 4}) {
    const std::string text = unsigned_text(large, 2);
    const Packed reference = pack(text, "cpu,isa=reference");
    EXPECT_EQ(reference.zero_point, "-8");
    EXPECT_EQ(reference.bias_bytes, 24 * 4);
    EXPECT_EQ(reference.version_minor, 5);
    EXPECT_NE(std::ranges::min(reference.output), std::ranges::max(reference.output));
    for (const std::string target : {"cpu", "cpu,isa=sse41", "cpu,isa=avx2"}) {
      const Packed packed = pack(text, target);
      EXPECT_EQ(packed.zero_point, "0");
      EXPECT_EQ(packed.bias_bytes, (32 + large * 3) * 4);
      EXPECT_EQ(packed.version_minor, large == 0 ? 5 : 14);
      EXPECT_EQ(packed.output, reference.output) << target;
    }
    const Packed arm = pack(text, "cpu,arch=aarch64");
    EXPECT_EQ(arm.zero_point, "-8");
    EXPECT_EQ(arm.output, reference.output);
  }
}

TEST(LowerLayouts, ManyWeightsBeyondInt8KeepTheirZeroPoint) {
  const std::string text = unsigned_text(5, 0);
  const Packed packed = pack(text, "cpu");
  EXPECT_EQ(packed.zero_point, "-8");
  EXPECT_EQ(packed.bias_bytes, 32 * 4);
  EXPECT_EQ(packed.version_minor, 5);
  EXPECT_EQ(packed.output, pack(text, "cpu,isa=reference").output);
}

// Only the reference computes them, from any layout.
TEST(LowerLayouts, OfLayersWithoutVectorKernelsHaveNoPaddedTaps) {
  EXPECT_EQ(pack(text_of({35, 3, 5, 3, 2, 1, 1, ""}, "  (%1, %0)"), "cpu").layout, "o16k4");  // ACC32
  EXPECT_EQ(pack(text_of({5, 201, 134, 1, 1, 1, 67, ""}, "  %1"), "cpu").layout, "o16k4");  // 67 groups of 2
}

}  // namespace
}  // namespace qplan::testing::lower_layouts_test
