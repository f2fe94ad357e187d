// The conditions of the CPU's lowerings, and what a user reads where one does not hold.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/cpu/lowering.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::cpu_constraints_test {
namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CpuConstraints, EachHasAnIdOfItsOwnARequirementAndAHint) {
  std::set<std::string> ids;
  for (const target::cpu::TableRow& row : target::cpu::lowering_table()) {
    for (const target::cpu::Constraint& constraint : row.constraints) {
      EXPECT_TRUE(ids.insert(constraint.id).second) << constraint.id;
      EXPECT_TRUE(constraint.id.starts_with("cpu.")) << constraint.id;
      EXPECT_FALSE(constraint.requirement.empty()) << constraint.id;
      EXPECT_FALSE(constraint.hint.empty()) << constraint.id;
    }
  }
  EXPECT_GT(ids.size(), 40u);
}

struct Refused {
  const char* id;
  const char* type;
  const char* body;
};

class CpuRefusals : public ::testing::TestWithParam<Refused> {};

TEST_P(CpuRefusals, NameTheirCondition) {
  const std::string text = main_text("%x: Tensor[" + std::string(GetParam().type) + "]", GetParam().body);
  EXPECT_TRUE(mentions(lower_refusal(text), "[" + std::string(GetParam().id) + "]"));
}

INSTANTIATE_TEST_SUITE_P(
    All, CpuRefusals,
    ::testing::Values(
        Refused{"cpu.conv2d.layout", "(1, 2, 4, 4), int8",
                "  %0 = qnn.conv2d(%x, const(Tensor[(1, 2, 1, 1), int8], [1, 1]), 0, 0, 1f, 1f);\n"
                "  %1 = qnn.requantize(%0, 1f, 0, 1f, 0);\n  %1"},
        Refused{"cpu.dense.operands", "(1, 2), int8",
                "  %0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 1]), 0, 0, 1f, 1f);\n"
                "  %1 = qnn.requantize(%0, 1f, 5, 1f, 0);\n  %1"},
        Refused{"cpu.softmax.axis", "(1, 2, 3), int8", "  qnn.softmax(%x, 1f, 0, 0.00390625f, -128, axis=1)"},
        Refused{"cpu.softmax.scales", "(1, 3), int8", "  qnn.softmax(%x, 1f, 0, 1f, -128)"},
        Refused{"cpu.argmin.dtype", "(1, 3), float32", "  argmin(%x, axis=1)"},
        Refused{"cpu.avg_pool2d.scales", "(1, 2, 2, 1), int8",
                "  qnn.avg_pool2d(%x, 1f, 0, 2f, 0, pool_size=[2, 2], layout=\"NHWC\")"},
        Refused{"cpu.resize2d.contract", "(1, 2, 2, 1), int8",
                "  image.resize2d(%x, size=[4, 4], layout=\"NHWC\", contract=\"f32e\")"},
        Refused{"cpu.float_conv2d.layout", "(1, 2, 4, 4), float32",
                "  nn.conv2d(%x, const(Tensor[(1, 2, 1, 1), float32], [1, 1]))"},
        Refused{"cpu.float_conv2d.weights", "(1, 1, 1, 2), float32",
                "  nn.conv2d(%x, %x, data_layout=\"NHWC\", kernel_layout=\"OHWI\")"},
        Refused{"cpu.float_dense.weights", "(1, 2), float32", "  nn.dense(%x, %x)"},
        Refused{"cpu.float_max_pool2d.layout", "(1, 1, 2, 2), float32",
                "  nn.max_pool2d(%x, pool_size=[2, 2])"},
        Refused{"cpu.float_avg_pool2d.layout", "(1, 1, 2, 2), float32",
                "  nn.avg_pool2d(%x, pool_size=[2, 2])"},
        Refused{"cpu.float_global_avg_pool2d.layout", "(1, 1, 2, 2), float32", "  nn.global_avg_pool2d(%x)"},
        Refused{"cpu.float_bias.operands", "(2), float32", "  nn.bias_add(%x, %x, axis=0)"},
        Refused{"cpu.float_batch_norm.operands", "(2), float32",
                "  nn.batch_norm(%x, %x, %x, %x, %x, axis=0)"},
        Refused{"cpu.dynamic_dequantize.weights", "(1, 2), float32",
                "  %0 = nn.dynamic_quantize(%x);\n"
                "  %1 = qnn.dense(%0.0, const(Tensor[(1, 2), int8], [1, 1]), 0, 0, 1f, 1f);\n"
                "  nn.dynamic_dequantize(%1, %0.1, %0.2, %0.1, %0.2)"},
        Refused{"cpu.op.negative", "(2), int64", "  negative(%x)"},
        Refused{"cpu.cast.dtype", "(2), float32", "  cast(%x, dtype=\"float64\")"},
        Refused{"cpu.cast.bool", "(2), float32", "  cast(%x, dtype=\"bool\")"},
        Refused{"cpu.gather_nd.dtype", "(2), float32",
                "  %0 = cast(%x, dtype=\"float64\");\n  gather_nd(%0, const(Tensor[(1), int32], [1]))"},
        Refused{"cpu.log_softmax.scales", "(1, 3), int8", "  qnn.log_softmax(%x, 1f, 0, 0.0625f, -128)"},
        Refused{"cpu.log_softmax.scales", "(1, 3), int8", "  qnn.log_softmax(%x, 1e-9f, 0, 0.0625f, 127)"},
        Refused{"cpu.divide.scales", "(1, 3), int8", "  qnn.divide(%x, %x, 1f, 0, 0.001f, 0, 0.0001f, 0)"},
        Refused{"cpu.softmax16.scale", "(2), int8", "  nn.integer_softmax(%x, input_scale=1e-9f)"},
        Refused{"cpu.gather.indices", "(1, 3), int8",
                "  take(%x, const(Tensor[(2), int32], [0, 3]), axis=1, mode=\"fast\")"}));

TEST(CpuRefusals, ScalesBeyondFixedPointAreNamedWithWhatWasExpected) {
  const auto refused = [](const char* type, const char* body) {
    return lower_refusal(main_text("%x: Tensor[" + std::string(type) + "]", body));
  };
  // TFLite refuses 2^-26 and takes the next float32.
  const char* const at_most = " is 1.4901161e-08, expected more than 2^-26 (1.4901161e-08)";
  EXPECT_TRUE(mentions(refused("(1, 3), int8", "  qnn.log_softmax(%x, 1.4901161e-8f, 0, 0.0625f, 127)"),
                       std::string("qnn.log_softmax: its input's scale") + at_most));
  EXPECT_TRUE(
      mentions(refused("(1, 3), int8", "  qnn.softmax(%x, 7.4505806e-9f, 0, 0.00390625f, -128, beta=2f)"),
               std::string("qnn.softmax: its input's scale times beta") + at_most));
  EXPECT_TRUE(mentions(refused("(2), int8", "  nn.integer_softmax(%x, input_scale=1.4901161e-8f)"),
                       std::string("its input's scale times beta") + at_most));
  EXPECT_EQ(refused("(1, 3), int8", "  qnn.log_softmax(%x, 1.4901163e-8f, 0, 0.0625f, 127)"), "");
  EXPECT_EQ(refused("(1, 3), int8", "  qnn.softmax(%x, 1.4901163e-8f, 0, 0.00390625f, -128)"), "");
  for (const char* output_scale : {"1e-8f", "1e-20f"}) {  // factors of 2^26 and 2^66
    EXPECT_TRUE(mentions(
        refused("(1, 3), int8",
                ("  qnn.divide(%x, %x, 1f, 0, 1f, 0, " + std::string(output_scale) + ", 0)").c_str()),
        "its scales make a factor of 2^23 or more between quotient and output"));
  }
}

TEST(CpuRefusals, AllReasonsOfANodeAreKnown) {
  const ir::Module module =
      text::parse(main_text("%x: Tensor[(1, 2, 3), int8]",
                            "  %0 = reshape(%x, newshape=[1, 2, 3]);\n"
                            "  %1 = qnn.softmax(%0, 1f, 0, 1f, -128, axis=1, contract=\"tfl1\");\n  %1"),
                  "test");
  const std::vector<target::CpuRefusal> refusals =
      target::cpu_refusals(module.main(), target::parse_target("cpu"));
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].node, 1u);
  std::set<std::string> ids;
  for (const target::Reason& reason : refusals[0].reasons) ids.insert(reason.id);
  EXPECT_EQ(ids, (std::set<std::string>{"cpu.softmax.contract", "cpu.softmax.axis", "cpu.softmax.scales"}));
}

TEST(CpuRefusals, ExplainListsThem) {
  const std::string text = main_text("%x: Tensor[(1, 2, 3), int8]",
                                     "  qnn.softmax(%x, 1f, 0, 0.00390625f, -128, axis=1, name=\"s\")");
  PackOptions options;
  options.skip = {"softmax_of_rows"};
  const std::string explained = explain_text({reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                                             "text", options, ExplainFormat::kText);
  EXPECT_TRUE(mentions(explained,
                       "not on cpu: axis 1, the kernel needs the last one [cpu.softmax.axis]; "
                       "pack a model of quantise and dequantise nodes with --keep-float"))
      << explained;
}

}  // namespace
}  // namespace qplan::testing::cpu_constraints_test
