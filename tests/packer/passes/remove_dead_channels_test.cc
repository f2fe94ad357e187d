// remove_dead_channels: which channels go, which stay, and that the outputs keep every bit.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "tests/packer/passes/pass_test_support.h"
#include "tests/packer/pipeline/naive_interpreter.h"
#include "tests/support/ir_builder.h"

namespace qplan::passes_test::remove_dead_channels_test {
namespace {

passes::PassContext last_pass() {
  passes::PassContext context;
  context.channels_may_go = true;
  return context;
}

std::string remove(const std::string& params, const std::string& body) {
  return run_pass("remove_dead_channels", params, body, last_pass());
}

// "const(Tensor[(2, 1), int8], [5, 7])"
std::string constant(const std::string& shape, const std::string& dtype, const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "const(Tensor[(" + shape + "), " + dtype + "], [" + text + "])";
}

// A layer of 16 channels on one int8, each the input plus 128 with a scale of 1/4 and the channel's bias, so
// that it is -128 + round((x + 128 + bias) / 4); another layer adds up what `readers` say of them.
struct TwoLayers {
  std::vector<int> weights = std::vector<int>(16, 1), biases = std::vector<int>(16, 0);
  std::vector<int> readers = std::vector<int>(16, 1);
  std::string first_zero_point = "-128", contract;
  std::string second_zero_point = "-128";

  std::string first() const {
    const std::string n = std::to_string(weights.size());
    return "%0 = qnn.dense(%x, " + constant(n + ", 1", "int8", weights) + ", " + first_zero_point +
           ", 0, 0.5f, 0.5f);\n%1 = nn.bias_add(%0, " + constant(n, "int32", biases) +
           ");\n%2 = qnn.requantize(%1, 0.25f, 0, 1f, -128" + contract + ");\n";
  }
  std::string second() const {
    return "%3 = qnn.dense(%2, " + constant("1, " + std::to_string(readers.size()), "int8", readers) + ", " +
           second_zero_point + ", 0, 1f, 1f);\n";
  }
  std::string removed(const std::string& end) const {
    return remove("%x: Tensor[(1, 1), int8]", first() + second() + end);
  }
};

const int kNever = -1000;  // a bias that keeps a channel at its least value

// Channels 1 to 8 of 16.
template <typename Change>
TwoLayers with_dead_middle(const Change& change) {
  TwoLayers layers;
  for (size_t c = 0; c < 16; ++c) {
    layers.biases[c] = static_cast<int>(c);
    layers.readers[c] = static_cast<int>(c) + 20;
    if (c >= 1 && c <= 8) change(layers, c);
  }
  return layers;
}

TwoLayers of_the_rest() {
  TwoLayers layers;
  layers.weights = std::vector<int>(8, 1);
  layers.biases = {0, 9, 10, 11, 12, 13, 14, 15};
  layers.readers = {20, 29, 30, 31, 32, 33, 34, 35};
  return layers;
}

TEST(RemoveDeadChannels, ChannelsThatNeverLeaveTheirZeroPointGo) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.biases[c] = kNever; });
  EXPECT_EQ(layers.removed("%3\n"), of_the_rest().first() + of_the_rest().second() + "%3\n");
}

TEST(RemoveDeadChannels, ChannelsThatNoWeightReadsGo) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.readers[c] = 0; });
  EXPECT_EQ(layers.removed("%3\n"), of_the_rest().first() + of_the_rest().second() + "%3\n");
}

// Weights of zero: the channel is -128 + round(bias / 4), here round(42 / 4) = 11 above the zero point; tfl2
// rounds 10.5 upwards.
TEST(RemoveDeadChannels, WhatConstantsAddEntersTheBias) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) {
    l.weights[c] = 0;
    l.biases[c] = 42;
  });
  const int added = 11 * (21 + 22 + 23 + 24 + 25 + 26 + 27 + 28);
  EXPECT_EQ(layers.removed("nn.bias_add(%3, " + constant("1", "int32", {5}) + ")\n"),
            of_the_rest().first() + of_the_rest().second() + "%4 = nn.bias_add(%3, " +
                constant("1", "int32", {5 + added}) + ");\n%4\n");
  EXPECT_EQ(layers.removed("%3\n"), of_the_rest().first() + of_the_rest().second() + "%4 = nn.bias_add(%3, " +
                                        constant("1", "int32", {added}) + ");\n%4\n");
}

// The largest accumulator is 255 plus the bias, and the output a quarter of it: 0.25 becomes 1 where it is
// rounded twice, to 0.5 first (tfl2); 0.5 becomes 1 half up (tfl1) and 0 half to even (f32e).
TEST(RemoveDeadChannels, TheRangeIsThatOfTheRoundedOutputs) {
  const auto goes = [](const std::string& contract, int bias) {
    TwoLayers layers = with_dead_middle([&](TwoLayers& l, size_t c) { l.biases[c] = bias; });
    layers.contract = ", contract=\"" + contract + "\"";
    return layers.removed("%3\n") != "unchanged";
  };
  EXPECT_TRUE(goes("tfl2", -255));
  EXPECT_FALSE(goes("tfl2", -254));
  EXPECT_TRUE(goes("tfl1", -254));
  EXPECT_FALSE(goes("tfl1", -253));
  EXPECT_TRUE(goes("f32e", -253));
  EXPECT_FALSE(goes("f32e", -252));
}

TEST(RemoveDeadChannels, AMultipleOfEightStays) {
  const auto with_dead = [](size_t count) {
    TwoLayers layers;
    for (size_t c = 0; c < count; ++c) layers.biases[c] = kNever;
    return layers.removed("%3\n");
  };
  EXPECT_EQ(with_dead(0), "unchanged");
  EXPECT_EQ(with_dead(7), "unchanged");
  EXPECT_NE(with_dead(9).find("qnn.dense(%x, " + constant("8, 1", "int8", std::vector<int>(8, 1))),
            std::string::npos);
  EXPECT_NE(with_dead(16).find("qnn.dense(%x, " + constant("8, 1", "int8", std::vector<int>(8, 1))),
            std::string::npos);
}

TEST(RemoveDeadChannels, AMultipleOfWhatTheDeviceRunsStays) {
  TwoLayers layers;
  for (auto* list : {&layers.weights, &layers.biases, &layers.readers}) list->resize(48, list->back());
  for (size_t c = 0; c < 40; ++c) layers.biases[c] = kNever;
  const auto channels_left = [&](size_t multiple) {
    passes::PassContext context = last_pass();
    context.channel_multiple = multiple;
    const std::string text = run_pass("remove_dead_channels", "%x: Tensor[(1, 1), int8]",
                                      layers.first() + layers.second() + "%3\n", context);
    for (const int n : {8, 16, 32}) {
      if (text.find("qnn.dense(%x, const(Tensor[(" + std::to_string(n) + ", 1)") != std::string::npos)
        return n;
    }
    return text == "unchanged" ? 48 : 0;
  };
  EXPECT_EQ(channels_left(8), 8);
  EXPECT_EQ(channels_left(16), 16);
  EXPECT_EQ(channels_left(32), 32);
  EXPECT_EQ(channels_left(64), 48);
}

// Python's run(tensors=...) and --dump-tensors find tensors by these names.
TEST(RemoveDeadChannels, TensorsKeepTheirNames) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.biases[c] = kNever; });
  ir::Module module = parse_main("%x: Tensor[(1, 1), int8]", layers.first() + layers.second() + "%3\n");
  ir::Function& main = *module.functions()[0];
  for (size_t i = 0; i < main.nodes().size(); ++i)
    main.set_value_name(main.nodes()[i].results[0], "tensor" + std::to_string(i));
  passes::PassContext context = last_pass();
  const auto changed = passes::find_pass("remove_dead_channels")->run(module, main, context);
  ASSERT_NE(changed, nullptr);
  std::vector<std::string> names;
  for (const ir::Node& node : changed->nodes()) names.push_back(changed->value(node.results[0]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"tensor0", "tensor1", "tensor2", "tensor3"}));
}

TEST(RemoveDeadChannels, WhatAnythingButALayerReadsStays) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.biases[c] = kNever; });
  EXPECT_EQ(layers.removed("(%2, %3)\n"), "unchanged");
  EXPECT_EQ(layers.removed("%4 = clip(%2, a_min=-100f, a_max=100f);\n(%3, %4)\n"), "unchanged");
  EXPECT_EQ(
      layers.removed("%4 = qnn.dense(%x, const(Tensor[(1, 1), int8], [1]), 0, 0, 1f, 1f);\n(%0, %3, %4)\n"),
      "unchanged");
}

TEST(RemoveDeadChannels, SumsThatMayWrapAroundCanBeAnything) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) {
    l.weights[c] = -1;
    l.biases[c] = INT32_MIN + 254;  // less up to 255
  });
  EXPECT_EQ(layers.removed("%3\n"), "unchanged");
  const TwoLayers fits = with_dead_middle([](TwoLayers& l, size_t c) {
    l.weights[c] = -1;
    l.biases[c] = INT32_MIN + 255;
  });
  EXPECT_NE(fits.removed("%3\n"), "unchanged");
}

TEST(RemoveDeadChannels, ContractsOfDevicesSayNothing) {
  TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.biases[c] = kNever; });
  layers.contract = ", contract=\"pot\"";
  EXPECT_EQ(layers.removed("%3\n"), "unchanged");
}

// Channels 1 to 8 of %2 are read by channels 8 to 15 of %4 alone, which the last layer does not read.
TEST(RemoveDeadChannels, WhatOnlyDeadChannelsReadGoesInTheSameRun) {
  TwoLayers layers = with_dead_middle([](TwoLayers&, size_t) {});
  std::vector<int> square(256), kept(64), last(16), last_kept(8);
  for (size_t o = 0; o < 16; ++o) {
    for (size_t c = 0; c < 16; ++c) {
      const bool is_middle = c >= 1 && c <= 8;
      square[16 * o + c] = is_middle == (o >= 8) ? static_cast<int>(o + c) : 0;
    }
    last[o] = o < 8 ? static_cast<int>(o) + 3 : 0;
  }
  const std::vector<int> channels = {0, 9, 10, 11, 12, 13, 14, 15};
  for (size_t o = 0; o < 8; ++o) {
    for (size_t c = 0; c < 8; ++c) kept[8 * o + c] = square[16 * o + static_cast<size_t>(channels[c])];
    last_kept[o] = last[o];
  }
  const auto rest = [](const std::string& n, const std::vector<int>& middle, const std::vector<int>& end) {
    return "%3 = qnn.dense(%2, " + constant(n + ", " + n, "int8", middle) +
           ", -128, 0, 1f, 1f);\n%4 = qnn.requantize(%3, 1f, 0, 100f, 0);\n%5 = qnn.dense(%4, " +
           constant("1, " + n, "int8", end) + ", 0, 0, 100f, 1f);\n%5\n";
  };
  EXPECT_EQ(remove("%x: Tensor[(1, 1), int8]", layers.first() + rest("16", square, last)),
            of_the_rest().first() + rest("8", kept, last_kept));
}

// Such biases belong to no layer.
TEST(RemoveDeadChannels, LayersWithABiasOfTheirRowsOrAComputedOneReadAllChannels) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) {
    l.weights[c] = 0;
    l.biases[c] = 42;
  });
  EXPECT_EQ(layers.removed("nn.bias_add(%3, " + constant("1", "int32", {5}) + ", axis=0)\n"), "unchanged");
  EXPECT_EQ(remove("%x: Tensor[(1, 1), int8], %b: Tensor[(1), int32]",
                   layers.first() + layers.second() + "nn.bias_add(%3, %b)\n"),
            "unchanged");
}

TEST(RemoveDeadChannels, OnlyOnceNothingElseChanges) {
  const TwoLayers layers = with_dead_middle([](TwoLayers& l, size_t c) { l.biases[c] = kNever; });
  EXPECT_EQ(
      run_pass("remove_dead_channels", "%x: Tensor[(1, 1), int8]", layers.first() + layers.second() + "%3\n"),
      "unchanged");
}

// ---- random networks against the naive interpreter ----

struct Layer {
  ir::ValueId value;
  int64_t channels = 0;
  float scale = 1.0f;
  int32_t zero_point = 0;
};

class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed), main_(module_.add_function("main")), build_(&main_) {
    dtype_ = pick(0, 1) == 0 ? ir::kInt8 : ir::kUint8;
    contract_ = std::vector<std::string>{"tfl2", "tfl1", "f32e"}[static_cast<size_t>(pick(0, 2))];
    Layer at{main_.add_param("x", {dtype_, {1, pick(3, 5), pick(3, 5), pick(1, 3)}}), 0, 0.5f, zero_point()};
    at.channels = main_.type(at.value).shape[3];
    at = convolution(at, pick(16, 40), /*is_depthwise=*/false);
    if (pick(0, 2) > 0) at = convolution(at, at.channels, /*is_depthwise=*/true);
    std::vector<ir::ValueId> outputs = {convolution(at, pick(1, 24), false).value};
    if (pick(0, 2) == 0) outputs.push_back(convolution(at, pick(1, 3), false).value);
    main_.set_outputs(outputs);
  }

  const ir::Module& module() const { return module_; }
  const ir::Function& main() const { return main_; }
  ir::ConstantRef input() {
    const ir::TensorType& type = main_.type(main_.params()[0]);
    std::vector<uint8_t> bytes(static_cast<size_t>(type.num_elements()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(pick(0, 255));
    return std::make_shared<const ir::Constant>(type, bytes);
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  int32_t zero_point() {
    return static_cast<int32_t>(pick(0, 2) == 0 ? pick(dtype_.min(), dtype_.max()) : dtype_.min());
  }

  // About half of its output channels are constant or not, in each of the ways; some inputs are not read.
  Layer convolution(const Layer& input, int64_t channels, bool is_depthwise) {
    const int64_t kernel = pick(1, 3), depth = is_depthwise ? 1 : input.channels;
    const bool fits =
        main_.type(input.value).shape[1] >= kernel && main_.type(input.value).shape[2] >= kernel;
    const int64_t pad = fits ? pick(0, 1) : 1;
    std::vector<bool> is_read(static_cast<size_t>(input.channels));
    for (size_t c = 0; c < is_read.size(); ++c) is_read[c] = is_depthwise || pick(0, 5) > 0;
    std::vector<int8_t> weights;
    std::vector<int32_t> biases;
    const int32_t reach = static_cast<int32_t>(kernel * kernel * depth) * 255 * 127;
    for (int64_t o = 0; o < channels; ++o) {
      const int64_t kind = pick(0, 6);
      for (int64_t k = 0; k < kernel * kernel * depth; ++k)
        weights.push_back(kind == 0 || !is_read[static_cast<size_t>(is_depthwise ? o : k % depth)]
                              ? int8_t{0}
                              : static_cast<int8_t>(pick(-127, 127)));
      biases.push_back(kind == 1   ? -reach
                       : kind == 2 ? reach
                                   : static_cast<int32_t>(pick(-reach / 8, reach / 8)));
    }
    const auto n = static_cast<size_t>(channels);
    std::vector<float> scales(pick(0, 1) == 0 ? 1 : n);
    for (float& scale : scales) scale = 0.01f * static_cast<float>(pick(1, 100));
    const bool is_vector = scales.size() > 1;
    const auto floats = [&](const std::vector<float>& values) {
      return is_vector ? ir::make_constant(ir::kFloat32, {channels}, values) : ir::make_scalar(values[0]);
    };
    const ir::ValueId sums = build_.weighted(
        "qnn.conv2d", input.value, build_.constant(ir::kInt8, {channels, kernel, kernel, depth}, weights),
        {ir::make_scalar(input.scale), ir::make_scalar(input.zero_point)},
        {floats(scales), ir::make_scalar(0)},
        {{"padding", ir::Ints{pad, pad, pad, pad}},
         {"groups", is_depthwise ? channels : int64_t{1}},
         {"channels", channels},
         {"kernel_size", ir::Ints{kernel, kernel}},
         {"data_layout", std::string("NHWC")},
         {"kernel_layout", std::string("OHWI")}});
    const ir::ValueId biased = build_.call(
        "nn.bias_add", {sums, build_.constant(ir::kInt32, {channels}, biases)}, {{"axis", int64_t{3}}});
    for (float& scale : scales) scale *= input.scale;
    Layer out{{}, channels, static_cast<float>(reach) * 0.001f * input.scale, zero_point()};
    ir::Attrs attrs{{"out_dtype", ir::to_string(dtype_)}, {"contract", contract_}};
    if (is_vector) attrs.set("axis", int64_t{3});
    out.value = build_.quantized(
        "qnn.requantize", {biased},
        {{floats(scales), ir::make_scalar(0)}, {ir::make_scalar(out.scale), ir::make_scalar(out.zero_point)}},
        attrs);
    if (pick(0, 1) == 0) {
      const double low = static_cast<double>(dtype_.min()) + static_cast<double>(pick(0, 60));
      out.value = build_.call("clip", {out.value}, {{"a_min", low}, {"a_max", low + 150.0}});
    }
    return out;
  }

  std::mt19937 random_;
  ir::Module module_;
  ir::Function& main_;
  ir::Builder build_;
  ir::DType dtype_;
  std::string contract_;
};

TEST(RemoveDeadChannels, RandomNetworksKeepEveryBitOfTheirOutputs) {
  constexpr uint32_t kSeeds = 60;
  uint32_t num_changed = 0, num_channels = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Network network(seed);
    ir::verify(network.module());
    passes::PassContext context = last_pass();
    const auto after =
        passes::find_pass("remove_dead_channels")->run(network.module(), network.main(), context);
    if (after == nullptr) continue;
    ++num_changed;
    num_channels += static_cast<uint32_t>(after->type(after->nodes()[0].results[0]).shape[3]);
    for (int run = 0; run < 4; ++run) {
      const ir::ConstantRef input = network.input();
      const auto expected = naive::Interpreter(network.main()).run({input});
      const auto found = naive::Interpreter(*after).run({input});
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].shape, expected[i].shape);
        ASSERT_EQ(found[i].v, expected[i].v);
      }
    }
  }
  EXPECT_GT(num_changed, kSeeds / 2);
  EXPECT_GT(num_channels, 8 * num_changed) << "networks of several sizes are left";
}

}  // namespace
}  // namespace qplan::passes_test::remove_dead_channels_test
