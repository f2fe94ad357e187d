// One layer as PyTorch's frontend wrote it (float weights, clip and cast after the requantisation), with
// integers at rest, and fake quantised: one plan.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "src/packer/error.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"
#include "tests/support/ir_builder.h"
#include "tests/support/relay_fragments.h"

namespace qplan::three_ways_test {
namespace {

using testing::kFloatsAtRest;
using testing::kIntegersAtRest;

const char kFakeQuantised[] = R"(
%0 = qnn.quantize(%input, 0.0186579f, 114, out_dtype="uint8");
%1 = qnn.dequantize(%0, 0.0186579f, 114);
%2 = nn.pad(%1, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);
%3 = qnn.quantize(%features.0.0_weight, 0.00288958f, 0, out_dtype="int8", axis=0);
%4 = qnn.dequantize(%3, 0.00288958f, 0, axis=0);
%5 = nn.conv2d(%2, %4, strides=[2, 2], padding=[0, 0, 0, 0], channels=32, kernel_size=[3, 3]);
%6 = nn.bias_add(%5, %features.0.0_bias);
%7 = nn.relu(%6);
%8 = qnn.quantize(%7, 0.0150183f, 0, out_dtype="uint8");
)";

constexpr float kInputScale = 0.0186579f, kWeightScale = 0.00288958f, kBiasScale = 5.39136e-05f;

struct Layer {
  std::vector<float> weight = std::vector<float>(32 * 3 * 3 * 3);
  std::vector<float> bias = std::vector<float>(32);
};

// Values that are not on a rounding boundary, so that the forms may round differently.
Layer make_layer() {
  Layer layer;
  std::mt19937 random(7);
  for (float& w : layer.weight) w = (static_cast<float>(random() % 255) - 127.0f + 0.25f) * kWeightScale;
  for (float& b : layer.bias) b = (static_cast<float>(random() % 20001) - 10000.0f + 0.25f) * kBiasScale;
  return layer;
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The metadata section with these constants in this order, as the printer writes it.
std::string metadata_section(const ir::ConstantRef& weight, const ir::ConstantRef& bias) {
  ir::Module module;
  ir::Builder b(&module.add_function("main"));
  const ir::ValueId x = b.function().add_param("x", {ir::kInt8, {1, 3, 3, 3}});
  const ir::ValueId sum = b.call("qnn.conv2d", {x, b.function().add_constant(weight), b.scalar(0),
                                                b.scalar(0), b.scalar(1.0f), b.scalar(1.0f)});
  b.function().set_outputs({b.call("nn.bias_add", {sum, b.function().add_constant(bias)})});
  const std::string text = text::print(module, {.inline_elements = 0});
  return text.substr(text.find("#[metadata]"));
}

class ThreeWays : public ::testing::Test {
 protected:
  ThreeWays() : layer_(make_layer()) {
    std::vector<int8_t> weight;
    for (const float w : layer_.weight) weight.push_back(static_cast<int8_t>(std::lround(w / kWeightScale)));
    std::vector<int32_t> bias;
    for (const float b : layer_.bias) bias.push_back(static_cast<int32_t>(std::lround(b / kBiasScale)));
    integers_at_rest_ =
        kIntegersAtRest + metadata_section(ir::make_constant(ir::kInt8, {32, 3, 3, 3}, weight),
                                           ir::make_constant(ir::kInt32, {32}, bias));
  }

  PackOptions options() const {
    PackOptions options;
    options.import.bindings = {
        {"features.0.0_weight", ir::make_constant(ir::kFloat32, {32, 3, 3, 3}, layer_.weight)},
        {"features.0.0_bias", ir::make_constant(ir::kFloat32, {32}, layer_.bias)}};
    options.import.input_types = {{"input", {ir::kFloat32, {1, 3, 224, 224}}}};
    return options;
  }
  PackOptions options_of_integers() const {
    PackOptions options;
    options.import.input_types = {{"input", {ir::kFloat32, {1, 3, 224, 224}}}};
    return options;
  }

  static std::string digest(const std::string& text, const PackOptions& options) {
    const AlignedBytes plan = pack(bytes_of(text), "layer.relay", options);
    return inspect::content_digest(inspect::PlanReader(plan.span()).view());
  }
  static std::string body(const std::string& text, const PackOptions& options) {
    return model_text(bytes_of(text), "layer.relay", options, true);
  }

  const Layer layer_;
  std::string integers_at_rest_;
};

TEST_F(ThreeWays, GiveOnePlan) {
  const std::string expected = digest(integers_at_rest_, options_of_integers());
  EXPECT_EQ(digest(kFloatsAtRest, options()), expected);
  EXPECT_EQ(digest(kFakeQuantised, options()), expected);
}

TEST_F(ThreeWays, GiveOneCanonicalBody) {
  PackOptions integers = options_of_integers(), floats = options();
  integers.canonical_body = floats.canonical_body = true;
  const std::string expected = body(integers_at_rest_, integers);
  EXPECT_EQ(body(kFloatsAtRest, floats), expected);
  EXPECT_EQ(body(kFakeQuantised, floats), expected);
}

// Every rewrite that took part is needed: without it the plan is another or there is none, and the report
// names it.
TEST_F(ThreeWays, LeavingOutARewriteIsReportedByName) {
  const std::string expected = digest(integers_at_rest_, options_of_integers());
  size_t tried = 0;
  for (const char* form : {kFloatsAtRest, kFakeQuantised}) {
    std::set<std::string> fired;
    PackOptions all = options();
    all.log = [&](uint32_t, const std::string& text) {
      const size_t colon = text.find(": '");
      if (colon != std::string::npos) fired.insert(text.substr(0, colon));
    };
    digest(form, all);
    for (const std::string& rewrite : fired) {
      PackOptions without = options();
      without.skip = {rewrite};
      std::string report;
      without.log = [&](uint32_t level, const std::string& text) {
        if (level <= QPLAN_LOG_WARNING) report += text + "\n";
      };
      std::string found;
      try {
        found = digest(form, without);
      } catch (const PackError& error) {
        if (error.status() == QPLAN_INVALID_ARGUMENT) continue;  // a word of the log that names no rewrite
        report += error.what();
      }
      ++tried;
      if (found == expected) continue;
      EXPECT_NE(report.find("'" + rewrite + "'"), std::string::npos) << rewrite << ": " << report;
    }
  }
  EXPECT_GE(tried, 8u) << "the forms differ in at least these";
}

}  // namespace
}  // namespace qplan::three_ways_test
