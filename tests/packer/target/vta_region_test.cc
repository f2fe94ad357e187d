// Regions of random networks compiled for VTA and run on the simulator, against the same operators on the
// CPU's reference kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/packer/ir/builder.h"
#include "src/packer/partition/partition.h"
#include "src/packer/target/target_list.h"
#include "src/packer/target/vta/compile_region.h"
#include "tests/packer/target/vta_simulate_region.h"
#include "tests/support/random.h"

namespace qplan::target::vta {
namespace {

// Layers behind layers, on values of one dtype; every value may be read again, and by several.
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
    add_convolution(input, name);
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
  size_t regions = 0, units = 0, borders = 0, packed = 0;
};

void check_region(const Config& config, const ir::Module& module, const std::string& name,
                  testing::Random& random, Counts* counts) {
  const ir::Function& region = *module.find(name);
  const CompiledRegion compiled = compile_region(config, module, region);
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
  for (const UnitCycles& unit : compiled.units) sum += unit.cycles;
  EXPECT_EQ(sum, compiled.cycles);
  ASSERT_EQ(compiled.units.size(), region.nodes().size());
  ++counts->regions;
  counts->units += compiled.units.size();
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
  const std::vector<Target> targets[] = {parse_targets("vta, cpu"), parse_targets("vta,sram=quarter, cpu")};
  Counts counts;
  for (uint64_t seed = first; seed < first + 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE("QPLAN_TEST_SEED=" + std::to_string(seed));
    testing::Random random(seed);
    const RandomNetwork network(random);
    for (size_t t = 0; t < 2; ++t) {
      const auto result = partition::partition(network.module(), targets[t], {.cost_gate = false});
      for (const partition::Region& region : result.regions) {
        check_region(t == 0 ? kDefaultConfig : kQuarterConfig, result.module, region.function, random,
                     &counts);
      }
    }
  }
  if (text != nullptr) return;
  EXPECT_GT(counts.units, 2 * counts.regions);
  EXPECT_GT(counts.borders, 20u);
  EXPECT_GT(counts.packed, 20u);
}

}  // namespace
}  // namespace qplan::target::vta
