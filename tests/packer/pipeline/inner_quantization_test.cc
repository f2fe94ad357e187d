// Scale and zero point of tensors between steps: what the model states of them is in the plan's names.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::pipeline::inner_quantization_test {
namespace {

using nlohmann::json;
using tflite_test::TfliteBuilder;

// x + x -> sum -> max pool -> pooled; pooled + pooled -> y.
std::vector<uint8_t> model() {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4, 4, 2}, 0.5f, 1),
                sum = b.activation("sum", {1, 4, 4, 2}, 0.75f, -3);
  const int32_t pooled = b.activation("pooled", {1, 2, 2, 2}, 0.75f, -3);
  const int32_t y = b.activation("y", {1, 2, 2, 2}, 2.0f, 5);
  const auto add = [&](int32_t from, int32_t to) {
    b.op(tflite::BuiltinOperator_ADD, {from, from}, {to}, tflite::BuiltinOptions_AddOptions,
         tflite::CreateAddOptions(b.fbb()).Union());
  };
  add(x, sum);
  b.op(tflite::BuiltinOperator_MAX_POOL_2D, {sum}, {pooled}, tflite::BuiltinOptions_Pool2DOptions,
       tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 2, 2, 2, 2).Union());
  add(pooled, y);
  return b.finish({x}, {y});
}

json tensors_of(bool strip) {
  PackOptions options;
  options.strip_names = strip;
  const AlignedBytes plan = pack(model(), "net.tflite", options);
  const inspect::PlanReader reader(plan.span());
  return json::parse(inspect::inspect_json(reader.view())).at("tensors");
}

TEST(InnerQuantization, IsThatOfTheModel) {
  std::map<std::string, std::pair<float, int>> found;
  for (const json& tensor : tensors_of(false)) {
    if (!tensor.at("scale").is_null())
      found[tensor.at("name").get<std::string>()] = {tensor.at("scale").get<float>(),
                                                     tensor.at("zero_point").get<int>()};
  }
  const std::map<std::string, std::pair<float, int>> expected = {
      {"x", {0.5f, 1}}, {"sum", {0.75f, -3}}, {"pooled", {0.75f, -3}}, {"y", {2.0f, 5}}};
  EXPECT_EQ(found, expected);
}

TEST(InnerQuantization, IsStrippedWithTheNames) {
  uint32_t known = 0;
  for (const json& tensor : tensors_of(true)) known += tensor.at("scale").is_null() ? 0 : 1;
  EXPECT_EQ(known, 2u);  // x and y, which callers need
}

}  // namespace
}  // namespace qplan::pipeline::inner_quantization_test
