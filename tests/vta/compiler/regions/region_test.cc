// Regions of random networks compiled for VTA and run on the simulator, against the same operators on the
// CPU's reference kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"
#include "src/vta/compiler/target.h"
#include "tests/support/ir_builder.h"
#include "tests/support/random.h"
#include "tests/vta/compiler/simulate_region.h"

namespace qplan::vta::compiler::region_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// Layers after layers, on values of one dtype; every value may be read again, by several layers.
class RandomNetwork {
 public:
  explicit RandomNetwork(testing::Random& random) : random_(random), builder_(&module_.add_function("main")) {
    is_unsigned_ = random.chance(0.3);
    dtype_ = is_unsigned_ ? ir::kUint8 : ir::kInt8;
    ir::Function& function = builder_.function();
    const int64_t h = random.integer(1, 9), w = random.integer(1, 9), c = channels();
    add_value(function.add_param("x", {dtype_, {1, h, w, c}}));
    for (int64_t i = random.integer(1, 6); i > 0; --i) add_node();
    std::vector<ir::ValueId> outputs = {values_.back().id};
    const size_t other = static_cast<size_t>(random.integer(0, static_cast<int64_t>(values_.size()) - 1));
    if (random.chance(0.4) && other != 0 && other + 1 != values_.size()) outputs.push_back(values_[other].id);
    function.set_outputs(outputs);
  }
  const ir::Module& module() const { return module_; }

 private:
  struct Value {
    ir::ValueId id;
    int32_t zero_point;  // what all its readers take it to have
  };

  int64_t channels() { return random_.chance(0.3) ? 16 * random_.integer(1, 4) : random_.integer(1, 40); }
  int32_t zero_point() {
    return static_cast<int32_t>(is_unsigned_ ? random_.integer(0, 255) : random_.integer(-128, 127));
  }
  void add_value(ir::ValueId id) { values_.push_back({id, zero_point()}); }
  ir::ValueId real(double value) { return builder_.scalar(static_cast<float>(value)); }
  ir::ValueId integer(int32_t value) { return builder_.scalar(value); }

  void add_node() {
    const auto last = static_cast<int64_t>(values_.size()) - 1;
    const Value input = values_[static_cast<size_t>(random_.integer(random_.chance(0.7) ? last : 0, last))];
    const std::string name = "n" + std::to_string(values_.size());
    if (random_.chance(0.25)) {
      add_reshape(input, name);
    } else {
      add_convolution(input, name);
    }
  }

  // Most of them move no byte on the device; through rows of positions on the way.
  void add_reshape(const Value& input, const std::string& name) {
    const ir::Shape shape = builder_.function().type(input.id).shape;
    const int64_t h = shape[1], w = shape[2], c = shape[3];
    ir::ValueId value = input.id;
    if (random_.chance(0.5))
      value = builder_.call("reshape", {value}, {{"newshape", ir::Ints{h * w, c}}}, name + ".rows");
    const ir::Ints shapes[] = {{1, h, w, c}, {1, w, h, c}, {1, 1, h * w, c}, {1, 1, 1, h * w * c}};
    const size_t last = h * w * c <= 200 ? 3 : 2;
    const ir::Ints& to = shapes[random_.integer(0, static_cast<int64_t>(last))];
    value = builder_.call("reshape", {value}, {{"newshape", to}}, name);
    values_.push_back({value, input.zero_point});
  }

  void add_convolution(const Value& input, const std::string& name) {
    const ir::Shape shape = builder_.function().type(input.id).shape;
    const int64_t in_c = shape[3];
    const bool depthwise = in_c > 1 && random_.chance(0.4);
    const int64_t out_c = depthwise ? in_c : channels();
    const int64_t kh = random_.integer(1, std::min<int64_t>(3, shape[1] + 1));
    const int64_t kw = random_.integer(1, std::min<int64_t>(3, shape[2] + 1));
    // Enough padding that the window fits.
    ir::Ints padding(4);
    for (int64_t& side : padding) side = random_.integer(0, 1);
    if (shape[1] + padding[0] + padding[2] < kh) padding[0] = 1;
    if (shape[2] + padding[1] + padding[3] < kw) padding[1] = 1;
    const int64_t num_i = depthwise ? 1 : in_c;
    const int64_t num_k = kh * kw * num_i;
    const bool wide = is_unsigned_ && random_.chance(0.7);
    const ir::ValueId weights =
        wide ? builder_.constant(ir::kUint8, {out_c, kh, kw, num_i},
                                 random_.integers<uint8_t>(static_cast<size_t>(out_c * num_k), 0, 255))
             : builder_.constant(ir::kInt8, {out_c, kh, kw, num_i},
                                 random_.integers<int8_t>(static_cast<size_t>(out_c * num_k), -127, 127));
    const int32_t kernel_zero_point = wide ? static_cast<int32_t>(random_.integer(0, 255)) : 0;
    ir::Attrs attrs = {{"data_layout", std::string("NHWC")},
                       {"kernel_layout", std::string("OHWI")},
                       {"strides", ir::Ints{random_.integer(1, 2), random_.integer(1, 2)}},
                       {"padding", padding}};
    if (depthwise) attrs.set("groups", out_c);
    ir::ValueId value = builder_.call(
        "qnn.conv2d",
        {input.id, weights, integer(input.zero_point), integer(kernel_zero_point), real(0.5), real(0.5)},
        attrs, name);
    if (random_.chance(0.7)) {
      const ir::ValueId bias = builder_.constant(
          ir::kInt32, {out_c}, random_.integers<int32_t>(static_cast<size_t>(out_c), -5000, 5000));
      value = builder_.call("nn.bias_add", {value, bias}, {{"axis", int64_t{3}}}, name);
    }
    // The result spreads over 8 bits.
    const double spread = 70.0 * 70.0 * std::sqrt(static_cast<double>(num_k)) / 60;
    const int32_t output_zero_point = zero_point();
    value = builder_.call(
        "qnn.requantize", {value, real(0.25), integer(0), real(0.25 * spread), integer(output_zero_point)},
        {{"contract", std::string("tfl2")}, {"out_dtype", std::string(is_unsigned_ ? "uint8" : "int8")}},
        name);
    if (random_.chance(0.3)) {
      const double low = is_unsigned_ ? 20 : -100;
      value = builder_.call("clip", {value}, {{"a_min", low}, {"a_max", low + 190}}, name);
    }
    values_.push_back({value, output_zero_point});
  }

  testing::Random& random_;
  ir::Module module_;
  ir::Builder builder_;
  bool is_unsigned_ = false;
  ir::DType dtype_ = ir::kInt8;
  std::vector<Value> values_;
};

ir::ConstantRef random_input(testing::Random& random, const ir::TensorType& type) {
  return ir::make_constant(type.dtype, type.shape,
                           random.full_range<uint8_t>(static_cast<size_t>(type.size_bytes())));
}

struct Counts {
  size_t regions = 0, units = 0, borders = 0, packed = 0, renames = 0;
};

void check_region(const Config& config, const ir::Module& module, const std::string& name,
                  const CompiledRegion& compiled, testing::Random& random, Counts* counts) {
  const ir::Function& region = *module.find(name);
  std::vector<ir::ConstantRef> inputs;
  for (const ir::ValueId param : region.params()) inputs.push_back(random_input(random, region.type(param)));
  const RegionResult result = simulate_region(config, region, compiled, inputs, random.integer(1, 1000), 8);
  const std::vector<ir::ConstantRef> expected = run_on_cpu(module, region, inputs);
  ASSERT_EQ(result.outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto bytes = expected[i]->bytes();
    ASSERT_EQ(result.outputs[i].size(), bytes.size());
    for (size_t b = 0; b < bytes.size(); ++b)
      ASSERT_EQ(int{result.outputs[i][b]}, int{bytes[b]}) << "output " << i << ", byte " << b;
  }
  EXPECT_EQ(compiled.cycles, result.cycles);
  uint64_t sum = 0;
  for (const target::UnitCycles& unit : compiled.units) sum += unit.cycles;
  EXPECT_EQ(sum, compiled.cycles);
  ASSERT_EQ(compiled.units.size(), region.nodes().size());
  ++counts->regions;
  counts->units += compiled.units.size();
  for (size_t u = 0; u < compiled.units.size(); ++u) {
    if (region.nodes()[u].callee.find("qreshape") == std::string::npos) continue;
    EXPECT_EQ(compiled.units[u].cycles, 0u) << compiled.units[u].name;
    ++counts->renames;
  }
  for (const RegionSlot& slot : compiled.slots) {
    if (slot.use == format::NpuUse_SCRATCH) continue;
    const ir::ValueId value =
        slot.use == format::NpuUse_INPUT ? region.params()[slot.index] : region.outputs()[slot.index];
    counts->packed += slot.arrangement.is_packed(region.type(value)) ? 1 : 0;
    counts->borders += slot.use == format::NpuUse_INPUT && slot.arrangement.origin != 0 ? 1 : 0;
  }
}

TEST(VtaRegion, RandomNetworksLikeTheCpu) {
  const char* text = std::getenv("QPLAN_TEST_SEED");
  const uint64_t first = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  const std::vector<Target> targets[] = {pipeline::parse_targets("vta, cpu"),
                                         pipeline::parse_targets("vta,sram=quarter, cpu")};
  Counts counts;
  for (uint64_t seed = first; seed < first + 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE("QPLAN_TEST_SEED=" + std::to_string(seed));
    testing::Random random(seed);
    const RandomNetwork network(random);
    for (size_t t = 0; t < 2; ++t) {
      const auto result = partition::compile_partition(network.module(), targets[t], {.cost_gate = false});
      for (size_t r = 0; r < result.code.size(); ++r) {
        check_region(t == 0 ? kDefaultConfig : kQuarterConfig, result.placed.module,
                     result.placed.regions[r].function, *result.code[r], random, &counts);
      }
    }
  }
  if (text != nullptr) return;
  EXPECT_GT(counts.units, 2 * counts.regions);
  EXPECT_GT(counts.borders, 20u);
  EXPECT_GT(counts.packed, 20u);
  EXPECT_GT(counts.renames, 50u);
}

// ---- reshapes

std::string repeat(const std::string& value, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + value;
  return text;
}

// 3 x 3 on 16 channels, with padding.
std::string convolution(const std::string& result, const std::string& operand, const std::string& name) {
  return "  " + result + "_sum = qnn.conv2d(" + operand + ", const(Tensor[(16, 3, 3, 16), int8], [" +
         repeat("5, -7, 3", 768) +
         "]), 3, 0, 0.5f, 0.5f, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"OHWI\", "
         "name=\"" +
         name + "\");\n  " + result + " = qnn.requantize(" + result +
         "_sum, 0.25f, 0, 60f, 5, out_dtype=\"int8\", contract=\"tfl2\", axis=-1);\n";
}

std::string fully_connected(const std::string& result, const std::string& operand, int64_t channels) {
  return "  " + result + "_sum = qnn.dense(" + operand + ", const(Tensor[(10, " + std::to_string(channels) +
         "), int8], [" + repeat("2, -3, 4, 1", channels * 10 / 4) + "]), 5, 0, 0.5f, 0.5f);\n  " + result +
         " = qnn.requantize(" + result +
         "_sum, 0.25f, 0, 20f, -3, out_dtype=\"int8\", contract=\"tfl2\", axis=-1);\n";
}

// Regions as the compiler leaves them, each with the CPU's bytes.
struct Placed {
  size_t regions = 0, renames = 0;
  std::string json;  // of the report
};
Placed run(const std::string& body) {
  const ir::Module module =
      text::parse("def @main(%x: Tensor[(1, 4, 3, 16), int8]) {\n" + body + "}\n", "test");
  const std::vector<Target> targets = pipeline::parse_targets("vta, cpu");
  const auto result = partition::compile_partition(module, targets, {.cost_gate = false});
  testing::Random random(1);
  Counts counts;
  for (size_t r = 0; r < result.code.size(); ++r) {
    check_region(kDefaultConfig, result.placed.module, result.placed.regions[r].function, *result.code[r],
                 random, &counts);
  }
  return {counts.regions, counts.renames, result.placed.explain.json()};
}

TEST(VtaReshape, BetweenLayersItIsAUnitWithoutInstructions) {
  const Placed placed = run(convolution("%a", "%x", "a") + "  %b = reshape(%a, newshape=[1, 192]);\n" +
                            fully_connected("%c", "%b", 192) + "  %c\n");
  EXPECT_EQ(placed.regions, 1u);
  EXPECT_EQ(placed.renames, 1u);
}

// The result of the first layer has a border; there and back again it is the same tensor.
TEST(VtaReshape, WhatItRenamesHasTheBorderOfItsReaders) {
  const Placed placed =
      run(convolution("%a", "%x", "a") + "  %b = reshape(%a, newshape=[4, 1, 3, 16]);\n" +
          "  %c = reshape(%b, newshape=[1, 4, 3, 16]);\n" + convolution("%d", "%c", "d") + "  %d\n");
  EXPECT_EQ(placed.regions, 1u);
  EXPECT_EQ(placed.renames, 2u);
}

TEST(VtaReshape, OtherRowsThanThoseWithABorderStayOnTheCpu) {
  const Placed placed =
      run(convolution("%a", "%x", "a") + "  %b = reshape(%a, newshape=[1, 3, 4, 16], name=\"turn\");\n" +
          convolution("%d", "%b", "d") + "  %d\n");
  EXPECT_EQ(placed.regions, 2u);
  EXPECT_EQ(placed.renames, 0u);
  EXPECT_NE(placed.json.find("it makes 3 x 4 x 16 of 4 x 3 x 16, around which there is a border for a reader "
                             "that pads"),
            std::string::npos)
      << placed.json;
}

TEST(VtaReshape, ATensorUnderTwoNamesOutsideStaysOnTheCpu) {
  const Placed placed = run(convolution("%a", "%x", "a") +
                            "  %b = reshape(%a, newshape=[12, 16], name=\"flat\");\n  (%a, %b)\n");
  EXPECT_EQ(placed.regions, 1u);
  EXPECT_EQ(placed.renames, 0u);
  EXPECT_NE(placed.json.find("vta.region.rename"), std::string::npos) << placed.json;
}

// Blocks of 16 channels would begin elsewhere.
TEST(VtaReshape, OtherChannelsThatFillNoBlockStayOnTheCpu) {
  const Placed placed = run(convolution("%a", "%x", "a") + "  %b = reshape(%a, newshape=[8, 24]);\n" +
                            fully_connected("%c", "%b", 24) + "  %c\n");
  EXPECT_EQ(placed.regions, 2u);
  EXPECT_NE(placed.json.find("from 16 to 24 channels, which are stored in blocks of 16 on the device"),
            std::string::npos)
      << placed.json;
  EXPECT_NE(placed.json.find("vta.reshape.channels"), std::string::npos);
}

}  // namespace
}  // namespace qplan::vta::compiler::region_test
