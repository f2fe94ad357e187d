// Accumulators that are results of steps, and their requantisation as a step of its own: the bytes and
// constants of the two together are those of the one step that does both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <tuple>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/prove.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/support/random.h"

namespace qplan::testing::lower_acc32_test {
namespace {

// A random layer as text: product, bias, requantize.
struct Layer {
  std::string input_type, product, bias, requantize;  // %0, %1, %2
  std::string in_dtype;
  size_t input_size = 0;
  // The bounds of the accumulators.
  std::vector<int8_t> weights;  // one output after the other
  std::vector<int32_t> biases;
  int64_t x_min = 0, x_max = 0;  // of the input, less its zero point
};

template <typename T>
std::string list(const std::vector<T>& values) {
  std::ostringstream out;
  out.precision(9);
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << +values[i];
  return "[" + out.str() + "]";
}

std::string vector_text(const std::vector<float>& values) {
  if (values.size() == 1) {
    const std::string one = list(values);
    return one.substr(1, one.size() - 2) + "f";
  }
  return "const(Tensor[(" + std::to_string(values.size()) + "), float32], " + list(values) + ")";
}

enum class Kind { kConv, kDepthwise, kDense };

Layer random_layer(uint64_t seed) {
  Random random(seed);
  Layer layer;
  const Kind kind = random.pick(std::vector<Kind>{Kind::kConv, Kind::kDepthwise, Kind::kDense});
  const int64_t in_c = random.integer(1, 20);
  const int64_t out_c = kind == Kind::kDepthwise ? in_c : random.integer(1, 20);
  const int64_t k = kind == Kind::kDense ? 1 : random.integer(1, 3);
  const int64_t per_output = k * k * (kind == Kind::kDepthwise ? 1 : in_c);
  const bool is_unsigned = random.chance(0.5);
  const std::string dtype = layer.in_dtype = is_unsigned ? "uint8" : "int8";
  const int64_t zero_point = is_unsigned ? random.integer(0, 255) : random.integer(-128, 127);
  const auto weights = random.integers<int8_t>(static_cast<size_t>(out_c * per_output), -127, 127);
  const auto biases = random.integers<int32_t>(static_cast<size_t>(out_c), -3000, 3000);
  layer.weights = weights;
  layer.biases = biases;
  layer.x_min = (is_unsigned ? 0 : -128) - zero_point;
  layer.x_max = layer.x_min + 255;
  const bool per_channel = random.chance(0.7);
  std::vector<float> scales, products;
  const auto input_scale = static_cast<float>(0.001 + random.unit());
  for (int64_t o = 0; o < (per_channel ? out_c : 1); ++o) {
    scales.push_back(static_cast<float>(0.0001 + random.unit() / 10));
    // What a printer made of the product, or another number, which is then meant.
    const float factor = random.chance(0.2) ? 1.5f : 1.0f;
    products.push_back(input_scale * scales.back() * factor);
  }
  const float output_scale = input_scale * static_cast<float>(per_output) * 3.0f;
  std::ostringstream s;
  s.precision(9);
  const std::string numbers = std::to_string(zero_point) + ", 0, ";
  const std::string w = list(weights);
  if (kind == Kind::kDense) {
    layer.input_type = "Tensor[(3, " + std::to_string(in_c) + "), " + dtype + "]";
    layer.input_size = static_cast<size_t>(3 * in_c);
    s << "qnn.dense(%x, const(Tensor[(" << out_c << ", " << in_c << "), int8], " << w << "), " << numbers
      << input_scale << "f, " << vector_text(scales) << ", units=" << out_c << ")";
  } else {
    const int64_t size = random.integer(3, 5);
    layer.input_type =
        "Tensor[(1, " + std::to_string(size) + ", 4, " + std::to_string(in_c) + "), " + dtype + "]";
    layer.input_size = static_cast<size_t>(size * 4 * in_c);
    const bool grouped = kind == Kind::kDepthwise;
    s << "qnn.conv2d(%x, const(Tensor[(" << out_c << ", " << k << ", " << k << ", " << (grouped ? 1 : in_c)
      << "), int8], " << w << "), " << numbers << input_scale << "f, " << vector_text(scales) << ", padding=["
      << k / 2 << ", " << k / 2 << ", 0, 0], groups=" << (grouped ? in_c : 1)
      << ", data_layout=\"NHWC\", kernel_layout=\"OHWI\")";
  }
  layer.product = s.str();
  const std::string axis = kind == Kind::kDense ? "1" : "3";
  layer.bias = "nn.bias_add(%0, const(Tensor[(" + std::to_string(out_c) + "), int32], " + list(biases) +
               "), axis=" + axis + ")";
  std::ostringstream r;
  r.precision(9);
  const std::string contract = random.pick(std::vector<std::string>{"tfl2", "tfl2", "tfl1", "f32e"});
  r << "qnn.requantize(%1, " << vector_text(products) << ", 0, " << output_scale << "f, "
    << random.integer(-20, 20) << ", axis=" << axis << ", contract=\"" << contract << "\"";
  if (contract != "f32e" && random.chance(0.5)) r << ", multiplier=\"product_f32\"";
  layer.requantize = r.str() + ")";
  return layer;
}

std::string steps(const Layer& layer) {
  return "  %0 = " + layer.product + ";\n  %1 = " + layer.bias + ";\n";
}
std::string fused_text(const Layer& layer) {
  return main_text("%x: " + layer.input_type, steps(layer) + "  " + layer.requantize);
}
// The accumulators are a result too: nothing can swallow them.
std::string split_text(const Layer& layer) {
  return main_text("%x: " + layer.input_type, steps(layer) + "  %2 = " + layer.requantize + ";\n  (%2, %1)");
}

std::vector<int8_t> run_bytes(const std::string& text, const Layer& layer, uint64_t seed) {
  Random random(seed);
  if (layer.in_dtype == "int8") return run_text<int8_t>(text, random.full_range<int8_t>(layer.input_size));
  return run_text<int8_t>(text, random.full_range<uint8_t>(layer.input_size));
}

// multiplier and shift or scale of a step, per channel; the caller gives those of a parameter.
std::vector<std::vector<uint8_t>> multipliers_of(const target::Program& program, size_t step, size_t first) {
  std::vector<std::vector<uint8_t>> result;
  const std::vector<target::TensorId>& inputs = program.steps.at(step).inputs;
  for (size_t i = first; i < inputs.size(); ++i) result.push_back(*program.tensors[inputs[i]].constant);
  return result;
}

TEST(LowerAcc32, ALayerInTwoStepsGivesTheBytesOfOne) {
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    const Layer layer = random_layer(seed);
    const target::Program fused = lower_text(fused_text(layer)), split = lower_text(split_text(layer));
    ASSERT_EQ(fused.steps.size(), 1u) << "seed " << seed;
    ASSERT_EQ(split.steps.size(), 2u) << "seed " << seed;
    EXPECT_EQ(split.steps[0].kernel, fused.steps[0].kernel) << "seed " << seed;
    EXPECT_EQ(split.steps[0].inputs.size(), 3u) << "seed " << seed;
    EXPECT_EQ(kernels_of(split).substr(kernels_of(fused).size()), " requantize") << "seed " << seed;
    EXPECT_EQ(run_bytes(split_text(layer), layer, seed), run_bytes(fused_text(layer), layer, seed))
        << "seed " << seed << "\n"
        << fused_text(layer);
  }
}

// With layouts that round channels up, and as the pipeline folds zero points for it.
TEST(LowerAcc32, EveryProfilePacksIt) {
  for (uint64_t seed = 200; seed < 212 && !HasFailure(); ++seed) {
    const Layer layer = random_layer(seed);
    for (const std::string target :
         {"cpu", "cpu,isa=avx2", "cpu,isa=sse41", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
      for (const std::string& text : {fused_text(layer), split_text(layer)}) {
        PackOptions options;
        options.target = target;
        const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
        AlignedBytes plan;
        ASSERT_NO_THROW(plan = pack(bytes, "layer.relay", options)) << "seed " << seed << " " << target;
        EXPECT_GT(plan.size(), 0u);
      }
    }
  }
}

// The least and the largest accumulator of channel o.
std::pair<int64_t, int64_t> bounds(const Layer& layer, size_t o) {
  int64_t min = layer.biases[o], max = min;
  const size_t per_output = layer.weights.size() / layer.biases.size();
  for (size_t k = o * per_output; k < (o + 1) * per_output; ++k) {
    const int64_t a = layer.weights[k] * layer.x_min, b = layer.weights[k] * layer.x_max;
    min += std::min(a, b);
    max += std::max(a, b);
  }
  return {min, max};
}

// What the plan says of floats is proved for every accumulator that the layer can make.
TEST(LowerAcc32, TheRequantizeHasFloatEpiloguesThatHoldForTheLayer) {
  size_t with_form = 0, proved = 0, channels_in_all = 0;
  for (uint64_t seed = 400; seed < 700 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Layer layer = random_layer(seed);
    const target::Program program = lower_text(split_text(layer));
    const target::ProgramStep& step = program.steps.at(1);
    const auto& params = *step.params.get_if<target::RequantizeParams>();
    const target::FloatEpilogues& forms = params.float_epilogues;
    if (params.contract == format::Contract_F32E) {
      EXPECT_EQ(forms.form, format::FloatEpilogue_NONE);
      continue;
    }
    const bool per_channel = step.inputs.size() > 1;
    const auto constants = multipliers_of(program, 1, 1);
    const auto constant = [&](size_t input, size_t o) {
      int32_t value = 0;
      std::memcpy(&value, constants.at(input).data() + o * sizeof(value), sizeof(value));
      return value;
    };
    channels_in_all += layer.biases.size();
    if (forms.form == format::FloatEpilogue_NONE) continue;
    ++with_form;
    ASSERT_EQ(forms.scale.size(), per_channel ? layer.biases.size() : 1);
    for (size_t o = 0; o < layer.biases.size(); ++o) {
      const size_t entry = per_channel ? o : 0;
      if (forms.scale[entry / 16 * 16] < 0.0f) continue;
      target::cpu::ChannelRequantization channel;
      channel.contract = params.contract;
      channel.multiplier = per_channel ? constant(0, o) : params.multiplier;
      channel.shift = per_channel ? constant(1, o) : params.shift;
      channel.zero_point = params.output_zero_point;
      channel.clamp_min = params.clamp_min;
      channel.clamp_max = params.clamp_max;
      std::tie(channel.accumulator_min, channel.accumulator_max) = bounds(layer, o);
      EXPECT_TRUE(target::cpu::float_epilogue_is_exact(channel, forms.form,
                                                       {forms.scale[entry], forms.offset[entry]}))
          << "channel " << o;
      ++proved;
    }
  }
  EXPECT_GT(with_form, 100u);
  EXPECT_GT(proved, channels_in_all * 9 / 10);
}

TEST(LowerAcc32, FloatEpiloguesNeedToKnowTheAccumulators) {
  const auto form_of = [](const std::string& text, const std::string& target = "cpu") {
    const target::Program program = lower_text(text, target);
    return program.steps.back().params.get_if<target::RequantizeParams>()->float_epilogues.form;
  };
  const std::string requantize = "qnn.requantize(%x, 0.01f, 3, 1f, -128";
  EXPECT_EQ(form_of(main_text("%x: Tensor[(2, 3), int32]", "  " + requantize + ")")),
            format::FloatEpilogue_NONE);
  const std::string split = split_text(random_layer(4));
  EXPECT_EQ(form_of(split, "cpu,arch=cortex-m"), format::FloatEpilogue_NONE);
}

// As a region leaves it: the accumulators are the result of a call, whose body has the scales.
TEST(LowerAcc32, ARequantizeBehindACallHasTheConstantsOfTheLayer) {
  size_t compared = 0;
  for (uint64_t seed = 300; seed < 360 && !HasFailure(); ++seed) {
    const Layer layer = random_layer(seed);
    const ir::Module fused_module = text::parse(fused_text(layer), "test");
    const target::Program fused = target::lower_function(fused_module.main(), target::reference_profile());
    std::string requantize = layer.requantize;
    requantize.replace(requantize.find("%1"), 2, "%0");
    const ir::Module module = text::parse("def @region(%x: " + layer.input_type + ") {\n" + steps(layer) +
                                              "  %1\n}\n" + "def @main(%x: " + layer.input_type +
                                              ") {\n  %0 = @region(%x);\n  " + requantize + "\n}\n",
                                          "test");
    const target::TargetProfile profile = target::reference_profile();
    target::cpu::Lowering lowering(module.main(), profile);
    lowering.set_bodies([&](const std::string& callee) { return module.find(callee); });
    const auto rows = target::cpu::lowering_table();
    const auto row = std::ranges::find(rows, std::string_view("requantize"), &target::cpu::TableRow::name);
    ASSERT_NE(row, rows.end());
    row->lower(lowering, {1});
    const target::Program split = lowering.finish();
    const auto constants = multipliers_of(split, 0, 1);
    if (constants.empty()) continue;  // one multiplier is in the parameters
    EXPECT_EQ(constants, multipliers_of(fused, 0, 3)) << "seed " << seed << "\n" << fused_text(layer);
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

TEST(LowerAcc32, AccumulatorsAreAnOutput) {
  const std::string text =
      main_text("%x: Tensor[(1, 1, 2, 2), int8]",
                "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 2), int8], [100, -120]), -5, 0, 1f, 1f, "
                "data_layout=\"NHWC\", "
                "kernel_layout=\"OHWI\");\n  nn.bias_add(%0, const(Tensor[(1), int32], [100000]), axis=3)");
  EXPECT_EQ(kernels_of(lower_text(text)), "conv2d");
  // (1 + 5) * 100 + (2 + 5) * -120 + 100000; (-128 + 5) * 100 + (127 + 5) * -120 + 100000
  EXPECT_EQ((run_text<int32_t>(text, std::vector<int8_t>{1, 2, -128, 127})),
            (std::vector<int32_t>{99760, 71860}));
}

// Rows and channels are as many, so that either could have the scales, or the bias.
TEST(LowerAcc32, ALayersScalesAndBiasAlongAnotherAxis) {
  const std::string conv =
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 2), int8], [1, 0, 0, 1]), 0, 0, 1f, 1f, "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n";
  const std::string text =
      main_text("%x: Tensor[(1, 2, 1, 2), int8]",
                conv + "  qnn.requantize(%0, const(Tensor[(2), float32], [1, 0.5]), 0, 2f, 1, axis=1)");
  EXPECT_EQ(kernels_of(lower_text(text)), "conv2d requantize");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{10, 20, 40, 80})),
            (std::vector<int8_t>{6, 11, 11, 21}));
  const std::string refusal =
      lower_refusal(main_text("%x: Tensor[(1, 2, 1, 2), int8]",
                              conv + "  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [3, 4]), axis=1);\n"
                                     "  qnn.requantize(%1, 1f, 0, 2f, 1)"));
  EXPECT_NE(refusal.find("the bias is not along the channels"), std::string::npos) << refusal;
}

TEST(LowerAcc32, ARequantizeAlongAnotherAxis) {
  const std::string text =
      main_text("%x: Tensor[(2, 3), int32]",
                "  qnn.requantize(%x, const(Tensor[(2), float32], [1, 0.5]), 0, 2f, 1, axis=0)");
  EXPECT_EQ(kernels_of(lower_text(text)), "requantize");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int32_t>{10, 20, -30, 40, 80, 1000})),
            (std::vector<int8_t>{6, 11, -14, 11, 21, 127}));
}

}  // namespace
}  // namespace qplan::testing::lower_acc32_test
