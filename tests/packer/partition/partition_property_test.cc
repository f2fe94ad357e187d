// Random networks: whatever is placed where, the parts together compute what the whole does.
#include <cstdlib>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/partition/partition_test_support.h"
#include "tests/support/ir_builder.h"
#include "tests/support/random.h"

namespace qplan::partition::partition_property_test {
namespace {

class RandomNetwork {
 public:
  explicit RandomNetwork(testing::Random& random) : random_(random), builder_(&module_.add_function("main")) {
    ir::Function& function = builder_.function();
    for (int64_t i = random.integer(1, 2); i > 0; --i) {
      values_.push_back(function.add_param("x" + std::to_string(i), {ir::kInt8, {1, 3, 3, 16}}));
    }
    for (int64_t i = random.integer(1, 14); i > 0; --i) add_node();
    std::vector<ir::ValueId> outputs = {values_.back()};
    if (random.chance(0.5)) outputs.push_back(any());
    function.set_outputs(outputs);
  }
  const ir::Module& module() const { return module_; }

 private:
  ir::ValueId any() {
    const auto last = static_cast<int64_t>(values_.size()) - 1;
    return values_[static_cast<size_t>(
        random_.integer(random_.chance(0.7) ? std::max<int64_t>(0, last - 2) : 0, last))];
  }
  ir::ValueId real(float value) { return builder_.scalar(value); }
  ir::ValueId zero() { return builder_.scalar(int32_t{0}); }

  void add_node() {
    const std::string name = "n" + std::to_string(values_.size());
    switch (random_.integer(0, 4)) {
      case 0: {
        const ir::ValueId weights =
            builder_.constant(ir::kInt8, {16, 1, 1, 16}, random_.integers<int8_t>(256, -9, 9));
        ir::ValueId value = builder_.call(
            "qnn.conv2d", {any(), weights, zero(), zero(), real(1), real(1)},
            {{"data_layout", std::string("NHWC")}, {"kernel_layout", std::string("OHWI")}}, name);
        if (random_.chance(0.5)) {
          const ir::ValueId bias =
              builder_.constant(ir::kInt32, {16}, random_.integers<int32_t>(16, -999, 999));
          value = builder_.call("nn.bias_add", {value, bias}, {{"axis", int64_t{3}}}, name);
        }
        // Some accumulators leave the device.
        const std::string contract = random_.chance(0.7) ? "tfl2" : "f32e";
        return values_.push_back(builder_.call("qnn.requantize", {value, real(1), zero(), real(50), zero()},
                                               {{"contract", contract}}, name));
      }
      case 1:
        return values_.push_back(builder_.call(
            "qnn.add", {any(), any(), real(1), zero(), real(1), zero(), real(2), zero()}, {}, name));
      case 2:
        return values_.push_back(builder_.call("clip", {any()}, {{"a_min", -50.0}, {"a_max", 60.0}}, name));
      case 3:
        return values_.push_back(
            builder_.call("nn.max_pool2d", {any()},
                          {{"pool_size", ir::Ints{1, 1}}, {"layout", std::string("NHWC")}}, name));
      default:
        return values_.push_back(builder_.call(
            "qnn.sigmoid", {any(), real(1), zero(), real(0.00390625f), builder_.scalar(int32_t{-128})}, {},
            name));
    }
  }

  testing::Random& random_;
  ir::Module module_;
  ir::Builder builder_;
  std::vector<ir::ValueId> values_;
};

TEST(PartitionProperty, ThePartsComputeWhatTheWholeDoes) {
  const char* text = std::getenv("QPLAN_TEST_SEED");
  const uint64_t first = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  const std::vector<target::Target> targets = pipeline::parse_targets("vta, cpu");
  size_t num_regions = 0;
  for (uint64_t seed = first; seed < first + 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE("QPLAN_TEST_SEED=" + std::to_string(seed));
    testing::Random random(seed);
    const RandomNetwork network(random);
    const ir::Function& main = network.module().main();
    const PartitionResult result = partition(network.module(), targets, {.cost_gate = random.chance(0.2)});
    num_regions += result.regions.size();
    const auto inlined = inline_calls(result.module, result.module.main());
    ASSERT_EQ(inlined->nodes().size(), main.nodes().size());
    std::vector<ir::ConstantRef> inputs;
    for (const ir::ValueId param : main.params()) {
      inputs.push_back(ir::make_constant(ir::kInt8, main.type(param).shape, random.full_range<int8_t>(144)));
    }
    const std::vector<ir::ConstantRef> expected = evaluate::run_function(main, inputs);
    const std::vector<ir::ConstantRef> found = evaluate::run_function(*inlined, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(found[i]->bytes(), expected[i]->bytes())) << "output " << i;
    }
    const std::string module_text = text::print(result.module);
    EXPECT_EQ(text::print(text::parse(module_text, "again")), module_text);
  }
  if (text == nullptr) {
    EXPECT_GT(num_regions, 150u);
  }
}

}  // namespace
}  // namespace qplan::partition::partition_property_test
