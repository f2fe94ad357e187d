#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "src/packer/passes/rewrite_pass.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::rounding_test {
namespace {

using passes::Quantized;
using passes::Quantizer;

TEST(Rounding, AgreesWithTheReferenceKernel) {
  constexpr uint32_t kSeed = 20;
  std::mt19937 random(kSeed);
  std::vector<float> values = {0.0f, -0.0f, 1e30f, -1e30f, INFINITY, -INFINITY,
                               NAN,  0.5f,  1.5f,  2.5f,   -0.5f,    -1.5f};
  std::uniform_real_distribution<float> uniform(-12.0f, 12.0f);
  for (int i = 0; i < 2000; ++i) values.push_back(uniform(random));
  const float scales[] = {1.0f, 0.0123f, 0.3f, 0.049f};
  // Quotients that are halves, or next to it.
  for (const float scale : scales) {
    for (int i = -130; i < 130; ++i) values.push_back((static_cast<float>(i) + 0.5f) * scale);
  }
  std::vector<uint8_t> expected(values.size());
  for (const QuantizeRounding rule :
       {QuantizeRounding::kDivAway, QuantizeRounding::kDivEven, QuantizeRounding::kMulEven}) {
    for (const float scale : scales) {
      for (const bool is_signed : {false, true}) {
        QuantizeArgs args;
        args.dtype = is_signed ? Dtype::kS8 : Dtype::kU8;
        args.rule = rule;
        args.input = values.data();
        args.output = expected.data();
        args.elements = values.size();
        args.scale = scale;
        args.zero_point = is_signed ? -7 : 114;
        quantize_ref::run(args, 0, quantize_ref::work_items(args), nullptr);
        const Quantizer quantizer{scale, args.zero_point, is_signed ? ir::kInt8 : ir::kUint8, rule};
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(static_cast<uint8_t>(quantizer(values[i]).value), expected[i])
              << values[i] << " / " << scale << ", rule " << static_cast<int>(rule) << ", seed " << kSeed;
        }
      }
    }
  }
}

TEST(Rounding, Int32Saturates) {
  const Quantizer quantizer{0.001f, 0, ir::kInt32, QuantizeRounding::kDivEven};
  EXPECT_EQ(quantizer(1e9f).value, std::numeric_limits<int32_t>::max());
  EXPECT_TRUE(quantizer(1e9f).saturated);
  EXPECT_EQ(quantizer(-INFINITY).value, std::numeric_limits<int32_t>::min());
  EXPECT_EQ(quantizer(-2.0f).value, -2000);
  EXPECT_FALSE(quantizer(-2.0f).saturated);
  EXPECT_EQ(quantizer(NAN).value, 0);
}

TEST(Rounding, TheRuleOfANodeGoesBeforeItsContract) {
  const auto rule_of = [](const std::string& attrs) {
    const ir::Module module =
        parse_main("%x: Tensor[(2), float32]", "  qnn.quantize(%x, 1f, 0" + attrs + ")\n");
    return passes::quantize_rounding(module.main().nodes()[0]);
  };
  EXPECT_EQ(rule_of(""), QuantizeRounding::kDivAway);
  EXPECT_EQ(rule_of(", contract=\"f32e\""), QuantizeRounding::kDivEven);
  EXPECT_EQ(rule_of(", contract=\"f32e\", rule=\"mul_even\""), QuantizeRounding::kMulEven);
  EXPECT_EQ(rule_of(", contract=\"f32e\", rule=\"div_away\""), QuantizeRounding::kDivAway);
  EXPECT_EQ(rule_of(", rule=\"div_even\""), QuantizeRounding::kDivEven);
}

}  // namespace
}  // namespace qplan::passes_test::rounding_test
