#include <random>

#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fold_zero_point_test {
namespace {

using passes::ActivationZeroPoint;

const std::string kDense = "%x: Tensor[(1, 2), int8]";

std::string fold(const std::string& params, const std::string& body,
                 ActivationZeroPoint wanted = ActivationZeroPoint::kDtypeMinimum) {
  passes::PassContext context;
  context.activation_zero_point = wanted;
  return run_pass("fold_zero_point", params, body, std::move(context));
}

// zx = 3, weights less their zero point: [1, 2], [3, 4]; sums 3 and 7.
TEST(FoldZeroPoint, MovesTheDifferenceIntoTheBias) {
  const std::string body =
      "  %0 = qnn.dense(%x, const(Tensor[(2, 2), int8], [2, 3, 4, 5]), 3, 1, 0.5f, 0.25f);\n"
      "  nn.bias_add(%0, const(Tensor[(2), int32], [1000, 2000]))\n";
  // 1000 - (3 + 128) * 3, 2000 - (3 + 128) * 7
  EXPECT_EQ(fold(kDense, body),
            "%0 = qnn.dense(%x, const(Tensor[(2, 2), int8], [2, 3, 4, 5]), -128, 1, 0.5f, 0.25f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(2), int32], [607, 1083]));\n%1\n");
  // 1000 - 3 * 3, 2000 - 3 * 7
  EXPECT_EQ(fold(kDense, body, ActivationZeroPoint::kZero),
            "%0 = qnn.dense(%x, const(Tensor[(2, 2), int8], [2, 3, 4, 5]), 0, 1, 0.5f, 0.25f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(2), int32], [991, 1979]));\n%1\n");
  EXPECT_EQ(fold(kDense, body, ActivationZeroPoint::kKeep), "unchanged");
}

TEST(FoldZeroPoint, ALayerWithoutBiasGetsOne) {
  EXPECT_EQ(fold(kDense, "  qnn.dense(%x, const(Tensor[(1, 2), int8], [2, 3]), -127, 0, 0.5f, 0.25f)\n"),
            "%0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [2, 3]), -128, 0, 0.5f, 0.25f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(1), int32], [-5]));\n%1\n");
}

TEST(FoldZeroPoint, BiasesWrapAround) {
  EXPECT_EQ(fold(kDense,
                 "  %0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 1]), -127, 0, 0.5f, 0.25f);\n"
                 "  nn.bias_add(%0, const(Tensor[(1), int32], [-2147483648]))\n"),
            "%0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 1]), -128, 0, 0.5f, 0.25f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(1), int32], [2147483646]));\n%1\n");
}

TEST(FoldZeroPoint, PaddingKeepsTheOldZeroPoint) {
  const std::string weights = "const(Tensor[(1, 1, 2, 1), int8], [1, 2])";
  const auto conv = [&](const std::string& zero_point, const std::string& attrs, const std::string& tail) {
    return "qnn.conv2d(%x, " + weights + ", " + zero_point + ", 0, 0.5f, 0.25f, " + attrs +
           "data_layout=\"NHWC\", kernel_layout=\"OHWI\"" + tail + ")";
  };
  const std::string data = "%x: Tensor[(1, 1, 3, 1), int8]";
  EXPECT_EQ(fold(data, "  " + conv("-126", "padding=[0, 1, 0, 0], ", "") + "\n"),
            "%0 = " + conv("-128", "padding=[0, 1, 0, 0], ", ", pad_value=-126") +
                ";\n%1 = nn.bias_add(%0, const(Tensor[(1), int32], [-6]), axis=3);\n%1\n");
  // A pad value that is there stays; without padding none is needed.
  EXPECT_EQ(fold(data, "  " + conv("-126", "padding=[0, 1, 0, 0], ", ", pad_value=9") + "\n"),
            "%0 = " + conv("-128", "padding=[0, 1, 0, 0], ", ", pad_value=9") +
                ";\n%1 = nn.bias_add(%0, const(Tensor[(1), int32], [-6]), axis=3);\n%1\n");
  EXPECT_EQ(fold(data, "  " + conv("-126", "", "") + "\n"),
            "%0 = " + conv("-128", "", "") +
                ";\n%1 = nn.bias_add(%0, const(Tensor[(1), int32], [-6]), axis=3);\n%1\n");
}

TEST(FoldZeroPoint, LeavesWhatIsThereAlready) {
  EXPECT_EQ(fold(kDense, "  qnn.dense(%x, const(Tensor[(1, 2), int8], [2, 3]), -128, 0, 0.5f, 0.25f)\n"),
            "unchanged");
  EXPECT_EQ(fold("%x: Tensor[(1, 2), uint8]",
                 "  qnn.dense(%x, const(Tensor[(1, 2), int8], [2, 3]), 0, 0, 0.5f, 0.25f)\n"),
            "unchanged");
  EXPECT_EQ(
      fold("%x: Tensor[(1, 2), int8], %w: Tensor[(1, 2), int8]", "  qnn.dense(%x, %w, 3, 0, 0.5f, 0.25f)\n"),
      "unchanged");
}

// -- Equal accumulators before and after, on random convolutions. The oracle reads the function unchanged.
struct Network {
  const ir::Function& function;

  const ir::Constant& constant(const ir::Node& node, size_t operand) const {
    return *function.value(node.operands[operand]).constant;
  }
  // NHWC, OHWI or HWIO; the value of the accumulator plus bias at (y, x, o), modulo 2^32.
  uint32_t at(const std::vector<int32_t>& data, const ir::Shape& shape, int64_t y, int64_t x,
              int64_t o) const {
    const ir::Node& conv = function.nodes()[0];
    const ir::Constant& weights = constant(conv, 1);
    const op::WeightLayout layout = op::weight_layout(op::attr_string(conv, "kernel_layout"));
    const ir::Shape& ws = weights.type().shape;
    const op::Window2d window = op::conv2d_window(conv, weights.type());
    const int32_t zx = constant(conv, 2).as<int32_t>()[0];
    const auto zw = constant(conv, 3).as<int32_t>();
    const int64_t pad = conv.attrs.get_int("pad_value", zx);
    const int64_t per_group = ws[layout.i], groups = op::attr_int(conv, "groups");
    const int64_t group = o / (ws[layout.o] / groups);
    int64_t sum = 0;
    for (int64_t ky = 0; ky < ws[layout.h]; ++ky) {
      for (int64_t kx = 0; kx < ws[layout.w]; ++kx) {
        for (int64_t i = 0; i < per_group; ++i) {
          const int64_t iy = y * window.stride_h + ky * window.dilation_h - window.pad_top;
          const int64_t ix = x * window.stride_w + kx * window.dilation_w - window.pad_left;
          const bool inside = iy >= 0 && iy < shape[1] && ix >= 0 && ix < shape[2];
          const int64_t value =
              inside ? data[static_cast<size_t>((iy * shape[2] + ix) * shape[3] + group * per_group + i)]
                     : pad;
          ir::Shape index(4);
          index[layout.o] = o, index[layout.h] = ky, index[layout.w] = kx, index[layout.i] = i;
          size_t flat = 0;
          for (size_t d = 0; d < 4; ++d)
            flat = flat * static_cast<size_t>(ws[d]) + static_cast<size_t>(index[d]);
          sum +=
              (value - zx) * (weights.as<int8_t>()[flat] - zw[zw.size() == 1 ? 0 : static_cast<size_t>(o)]);
        }
      }
    }
    for (size_t n = 1; n < function.nodes().size(); ++n) {
      sum += constant(function.nodes()[n], 1).as<int32_t>()[static_cast<size_t>(o)];
    }
    return static_cast<uint32_t>(sum);
  }
};

TEST(FoldZeroPoint, AccumulatorsAreEqualOnRandomConvolutions) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
    };
    const int64_t groups = pick(1, 3), in = groups * pick(1, 2), out = groups * pick(1, 2);
    const bool ohwi = pick(0, 1) == 1;
    const ir::Shape data_shape{1, pick(3, 5), pick(3, 5), in};
    const int64_t kh = pick(1, 3), kw = pick(1, 3);
    const ir::Shape weight_shape =
        ohwi ? ir::Shape{out, kh, kw, in / groups} : ir::Shape{kh, kw, in / groups, out};
    ir::Module module;
    ir::Function& main = module.add_function("main");
    const ir::ValueId x = main.add_param("x", {ir::kInt8, data_shape});
    std::vector<int8_t> weights(static_cast<size_t>(out * kh * kw * in / groups));
    for (int8_t& weight : weights) weight = static_cast<int8_t>(pick(-128, 127));
    std::vector<int32_t> zero_points, bias;
    for (int64_t o = 0; o < out; ++o) {
      zero_points.push_back(static_cast<int32_t>(pick(-128, 127)));
      bias.push_back(static_cast<int32_t>(pick(-1000, 1000)));
    }
    const auto constant = [&](ir::ConstantRef value) { return main.add_constant(std::move(value)); };
    const ir::ValueId conv =
        main.add_node(op::get_op("qnn.conv2d"),
                      {x, constant(ir::make_constant(ir::kInt8, weight_shape, weights)),
                       constant(ir::make_scalar(static_cast<int32_t>(pick(-127, 127)))),
                       constant(ir::make_constant(ir::kInt32, {out}, zero_points)),
                       constant(ir::make_scalar(0.5f)), constant(ir::make_scalar(0.5f))},
                      {{"padding", ir::Ints{pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)}},
                       {"strides", ir::Ints{pick(1, 2), pick(1, 2)}},
                       {"groups", groups},
                       {"data_layout", std::string("NHWC")},
                       {"kernel_layout", std::string(ohwi ? "OHWI" : "HWIO")}},
                      "conv")
            .results[0];
    main.set_outputs({main.add_node(op::get_op("nn.bias_add"),
                                    {conv, constant(ir::make_constant(ir::kInt32, {out}, bias))},
                                    {{"axis", int64_t{3}}}, "bias")
                          .results[0]});
    passes::PassContext context;
    context.activation_zero_point =
        seed % 2 == 0 ? ActivationZeroPoint::kDtypeMinimum : ActivationZeroPoint::kZero;
    const auto after = passes::find_pass("fold_zero_point")->run(module, main, context);
    if (after == nullptr) continue;  // the zero point was the wanted one
    ASSERT_EQ(after->nodes().size(), 2u);

    std::vector<int32_t> data(static_cast<size_t>(data_shape[1] * data_shape[2] * in));
    for (int32_t& value : data) value = static_cast<int32_t>(pick(-128, 127));
    const ir::Shape& result = main.type(main.outputs()[0]).shape;
    for (int64_t y = 0; y < result[1]; ++y) {
      for (int64_t column = 0; column < result[2]; ++column) {
        for (int64_t o = 0; o < out; ++o) {
          ASSERT_EQ(Network{main}.at(data, data_shape, y, column, o),
                    Network{*after}.at(data, data_shape, y, column, o));
        }
      }
    }
  }
}

}  // namespace
}  // namespace qplan::passes_test::fold_zero_point_test
