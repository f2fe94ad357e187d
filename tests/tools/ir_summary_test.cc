#include <gtest/gtest.h>

#include "tools/reports.h"

namespace qplan::tools::ir_summary_test {
namespace {

TEST(IrSummary, InputsOutputsAndOperatorsByKind) {
  EXPECT_EQ(
      ir_summary("#[version = \"0.0.5\"]\n"
                 "def @main(%x: Tensor[(1, 3), float32], %\"a, b)\": Tensor[(4), int8], input_scale_0=0.5f, "
                 "output_names=[\"%y\", \"z\"]) -> (Tensor[(2), int8], int8) {\n"
                 "  %0 = qnn.quantize(%x, 1f, 0) /* ty=Tensor[(1, 3), int8] */;\n"
                 "  %1 = split(%0, indices_or_sections=3) /* ty=... */;\n"
                 "  %2 = qnn.quantize(%x, 2f, 0);\n"
                 "  (%1.0, %2)\n"
                 "}\n"
                 "#[metadata]\n"
                 "  %3 = not.counted(\n"),
      "  input      x: Tensor[(1, 3), float32]\n"
      "  input      \"a, b)\": Tensor[(4), int8]\n"
      "  output     (Tensor[(2), int8], int8)\n"
      "  operators  3: qnn.quantize 2, split 1\n");
}

TEST(IrSummary, NamesWithQuotesAndCutTextsDoNoHarm) {
  EXPECT_EQ(ir_summary("def @main(%\"a\\\"b\": int8) -> int8 {\n  %\"a\\\"b\"\n}\n"),
            "  input      \"a\\\"b\": int8\n  output     int8\n  operators  0\n");
  EXPECT_EQ(ir_summary(""), "  operators  0\n");
  EXPECT_EQ(ir_summary("def @main(%\"a\\"), "  input      \"a\\\n  operators  0\n");
}

}  // namespace
}  // namespace qplan::tools::ir_summary_test
