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
  std::string layout;
  std::vector<uint8_t> output;
};

Packed pack(const std::string& text, const std::string& target) {
  const AlignedBytes plan = evaluate::make_plan(lower_text(text, target), target::parse_target(target), {});
  const inspect::PlanReader reader(plan.span());
  Packed packed;
  for (const auto& [name, value] : inspect::step_params(reader.view().step(0))) {
    if (name == "weights_layout") packed.layout = value;
  }
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

// Only the reference computes them, from any layout.
TEST(LowerLayouts, OfLayersWithoutVectorKernelsHaveNoPaddedTaps) {
  EXPECT_EQ(pack(text_of({35, 3, 5, 3, 2, 1, 1, ""}, "  (%1, %0)"), "cpu").layout, "o16k4");  // ACC32
  EXPECT_EQ(pack(text_of({5, 201, 134, 1, 1, 1, 67, ""}, "  %1"), "cpu").layout, "o16k4");  // 67 groups of 2
}

}  // namespace
}  // namespace qplan::testing::lower_layouts_test
