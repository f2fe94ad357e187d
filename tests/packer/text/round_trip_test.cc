// Text in, text out: what is written here is what the printer prints, so parsing and printing give it back.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/text/text.h"
#include "tests/support/ir_builder.h"

namespace qplan::text::round_trip_test {
namespace {

constexpr char kVersion[] = "#[version = \"0.0.5\"]\n";

void expect_fixed(const std::string& body) {
  const std::string text = kVersion + body;
  EXPECT_EQ(print(parse(text, "t")), text);
}

// A function of one statement, as it is printed.
void expect_fixed_node(const std::string& params, const std::string& call, const std::string& type) {
  expect_fixed("def @main(" + params + ") -> " + type + " {\n  %0 = " + call + " /* ty=" + type +
               " */;\n  %0\n}\n");
}

TEST(TextRoundTrip, EveryOperator) {
  const std::string f = "%x: Tensor[(2, 3), float32]", i = "%x: Tensor[(2, 3), int8]";
  const std::string image = "%x: Tensor[(1, 8, 8, 4), int8]";
  expect_fixed_node(f, "qnn.quantize(%x, 0.0186579f, 114, out_dtype=\"uint8\", axis=1, contract=\"f32e\")",
                    "Tensor[(2, 3), uint8]");
  expect_fixed_node(i, "qnn.dequantize(%x, 1e-05f, -3)", "Tensor[(2, 3), float32]");
  expect_fixed_node("%x: Tensor[(2, 3), int32]",
                    "qnn.requantize(%x, const(Tensor[(3), float32], [1, 0.5, 1e-10]), 0, 0.1f, -128, "
                    "multiplier=\"product_f32\")",
                    "Tensor[(2, 3), int8]");
  expect_fixed_node(
      image + ", %w: Tensor[(6, 3, 3, 2), uint8]",
      "qnn.conv2d(%x, %w, -1, 121, 0.5f, 0.25f, strides=[2, 2], padding=[0, 0, 1, 1], dilation=[1, 2], "
      "groups=2, channels=6, kernel_size=[3, 3], data_layout=\"NHWC\", kernel_layout=\"OHWI\", "
      "pad_value=0, name=\"block3/conv\")",
      "Tensor[(1, 4, 3, 6), int32]");
  expect_fixed_node(i + ", %w: Tensor[(4, 3), int8]", "qnn.dense(%x, %w, 0, 0, 1f, 1f, units=4)",
                    "Tensor[(2, 4), int32]");
  expect_fixed_node("%x: Tensor[(2, 3), int32]",
                    "nn.bias_add(%x, const(Tensor[(3), int32], [-2147483648, 0, 2147483647]), axis=-1)",
                    "Tensor[(2, 3), int32]");
  for (const std::string op : {"qnn.add", "qnn.subtract", "qnn.mul"}) {
    expect_fixed_node(i + ", %y: Tensor[(3), int8]", op + "(%x, %y, 1f, 0, 2f, 1, 3f, 2, contract=\"tfl1\")",
                      "Tensor[(2, 3), int8]");
  }
  expect_fixed_node(i, "clip(%x, a_min=0f, a_max=6f)", "Tensor[(2, 3), int8]");
  expect_fixed_node(i, "cast(%x, dtype=\"int32\")", "Tensor[(2, 3), int32]");
  expect_fixed_node(i, "nn.pad(%x, 114f, pad_width=[[0, 0], [1, 2]])", "Tensor[(2, 6), int8]");
  expect_fixed_node(
      image,
      "qnn.avg_pool2d(%x, 1f, 0, 1f, 0, pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 0, 0], "
      "layout=\"NHWC\", count_include_pad=True)",
      "Tensor[(1, 4, 4, 4), int8]");
  expect_fixed_node(image, "nn.max_pool2d(%x, pool_size=[8, 8], layout=\"NHWC\")",
                    "Tensor[(1, 1, 1, 4), int8]");
  expect_fixed_node(image, "qnn.mean(%x, 1f, 0, 2f, 1, axis=[1, 2], keepdims=True)",
                    "Tensor[(1, 1, 1, 4), int8]");
  expect_fixed_node(i, "qnn.softmax(%x, 1f, 0, 0.00390625f, -128, axis=0, beta=0.1f)",
                    "Tensor[(2, 3), int8]");
  expect_fixed_node(i, "qnn.sigmoid(%x, 1f, 0, 0.00390625f, -128)", "Tensor[(2, 3), int8]");
  expect_fixed_node(i, "reshape(%x, newshape=[3, -1])", "Tensor[(3, 2), int8]");
  expect_fixed_node(i, "transpose(%x, axes=[1, 0])", "Tensor[(3, 2), int8]");
  expect_fixed_node(i, "concatenate((%x, %x), axis=1)", "Tensor[(2, 6), int8]");
  expect_fixed_node(i, "concatenate((%x,))", "Tensor[(2, 3), int8]");
  expect_fixed_node(image,
                    "image.resize2d(%x, size=[16, 16], layout=\"NHWC\", "
                    "coordinate_transformation_mode=\"align_corners\")",
                    "Tensor[(1, 16, 16, 4), int8]");
  expect_fixed_node(i, "argmax(%x, axis=1, keepdims=True, dtype=\"int64\")", "Tensor[(2, 1), int64]");
  expect_fixed(
      "def @main(%x: Tensor[(2, 3), int8]) -> (Tensor[(2, 2), int8], Tensor[(2, 1), int8]) {\n"
      "  %0 = split(%x, indices_or_sections=[1], axis=1) /* ty=(Tensor[(2, 1), int8], Tensor[(2, 2), int8]) "
      "*/;\n"
      "  (%0.1, %0.0)\n}\n");
}

TEST(TextRoundTrip, ScalarsOfEveryDtype) {
  for (const std::string literal : {"114",
                                    "-3",
                                    "-2147483648",
                                    "114f",
                                    "0.0186579f",
                                    "1e-05f",
                                    "-0f",
                                    "inff",
                                    "-inff",
                                    "3.4028235e+38f",
                                    "1e-45f",
                                    "True",
                                    "False",
                                    "-128i8",
                                    "255u8",
                                    "-32768i16",
                                    "65535u16",
                                    "4294967295u32",
                                    "-9223372036854775808i64",
                                    "18446744073709551615u64",
                                    "0.1f64",
                                    "5e-324f64",
                                    "-inff64"}) {
    const std::string printed = print(parse("def @main() { " + literal + " }", "t"));
    EXPECT_NE(printed.find("\n  " + literal + "\n"), std::string::npos) << printed;
    EXPECT_EQ(print(parse(printed, "t")), printed);
  }
}

TEST(TextRoundTrip, SmallConstantsStandInTheBody) {
  for (const std::string constant :
       {"const(Tensor[(4), int8], [1, 2, -3, 4])", "const(Tensor[(2, 2), float32], [0.1, -inf, 1e+30, 0])",
        "const(Tensor[(2), bool], [True, False])", "const(Tensor[(1), float64], [0.1])",
        "const(Tensor[(2, 1), uint64], [18446744073709551615, 0])"}) {
    const std::string printed = print(parse("def @main() { " + constant + " }", "t"));
    EXPECT_NE(printed.find("\n  " + constant + "\n"), std::string::npos) << printed;
    EXPECT_EQ(print(parse(printed, "t")), printed);
  }
}

TEST(TextRoundTrip, FunctionsCallsAttributesAndNames) {
  expect_fixed(
      "def @qplan_vta_main_0(%p0: Tensor[(4), int8], Compiler=\"vta\", Primitive=1, "
      "global_symbol=\"qplan_vta_main_0\", "
      "cost=0.5f, exact=0.1f64, on=True, shape=[1, 2], pads=[[0, 1], [2]], none=[], "
      "big=-9223372036854775808, "
      "\"odd name\"=1, \"name\"=2, \"infinite\"=3) -> (Tensor[(2), int8], Tensor[(2), int8]) {\n"
      "  %0 = split(%p0, indices_or_sections=2) /* ty=(Tensor[(2), int8], Tensor[(2), int8]) */;\n"
      "  (%0.0, %0.1)\n}\n"
      "\n"
      "def @main(%x.1: Tensor[(4), int8], %\"serving_default_input:0\": Tensor[(4), int8], %\"0\": "
      "Tensor[(4), int8], "
      "output_names=[\"a\", \"b \\\"q\\\" \\\\ \\n\\x01\"]) -> (Tensor[(2), int8], Tensor[(4), int8]) {\n"
      "  %0 = @qplan_vta_main_0(%x.1, name=\"region 0\") /* ty=(Tensor[(2), int8], Tensor[(2), int8]) */;\n"
      "  %1 = concatenate((%0.1, %0.0, %\"serving_default_input:0\", %\"0\")) /* ty=Tensor[(12), int8] */;\n"
      "  %2 = reshape(%1, newshape=[12], name=\"a/b\\tc\") /* ty=Tensor[(12), int8] */;\n"
      "  (%0.0, %x.1)\n}\n");
}

TEST(TextRoundTrip, FunctionsMayStandBelowTheirCall) {
  expect_fixed(
      "def @main(%x: Tensor[(4), int8]) -> Tensor[(4), int8] {\n"
      "  %0 = @f(%x) /* ty=Tensor[(4), int8] */;\n  %0\n}\n"
      "\n"
      "def @f(%x: Tensor[(4), int8]) -> Tensor[(4), int8] {\n  %x\n}\n");
}

TEST(Text, ReadsWhatRelayWrites) {
  const ir::Module module = parse(
      "#[version = \"0.0.5\"]\n"
      "def @main(%data: Tensor[(1, 3, 4, 4), float32] /* ty=Tensor[(1, 3, 4, 4), float32] span=a.cc:1:2 */,\n"
      "          %w: Tensor[(2, 3, 1, 1), int8]) {\n"
      "  %0 = qnn.quantize(%data, 0.0186584f, 114, out_dtype=\"uint8\", axis=1); // a comment\n"
      "  let %y = qnn.conv2d(%0, %w, 114, 0, 0.0186584f, 0.25f, padding=[0, 0, 0, 0], channels=2, "
      "kernel_size=[1, 1], "
      "out_dtype=\"int32\", units=None);\n"
      "  %2 = split(%y, indices_or_sections=2, axis=1) /* ty=(a, /* nested */ b) */;\n"
      "  %3 = %2.0;\n"
      "  %4 = (%3, %2.1,);\n"
      "  concatenate(%4, axis=1) /* ty=Tensor[(1, 2, 4, 4), int32] */\n"
      "}",
      "t");
  EXPECT_EQ(
      print(module),
      "#[version = \"0.0.5\"]\n"
      "def @main(%data: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(2, 3, 1, 1), int8]) -> Tensor[(1, 2, 4, "
      "4), "
      "int32] {\n"
      "  %0 = qnn.quantize(%data, 0.0186584f, 114, out_dtype=\"uint8\", axis=1) /* ty=Tensor[(1, 3, 4, 4), "
      "uint8] */;\n"
      "  %1 = qnn.conv2d(%0, %w, 114, 0, 0.0186584f, 0.25f, channels=2, kernel_size=[1, 1]) /* ty=Tensor[(1, "
      "2, "
      "4, 4), int32] */;\n"
      "  %2 = split(%1, indices_or_sections=2, axis=1) /* ty=(Tensor[(1, 1, 4, 4), int32], Tensor[(1, 1, 4, "
      "4), "
      "int32]) */;\n"
      "  %3 = concatenate((%2.0, %2.1), axis=1) /* ty=Tensor[(1, 2, 4, 4), int32] */;\n"
      "  %3\n"
      "}\n");
}

// Weights beyond inline_elements, of two functions, with equal contents in one place.
ir::Module with_constants() {
  ir::Module module;
  const auto ramp = [](int8_t first) {
    std::vector<int8_t> values(20);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int8_t>(first + static_cast<int>(i) * 3);
    return ir::make_constant(ir::kInt8, {5, 4}, values);
  };
  for (const char* name : {"f", "main"}) {
    ir::Function& function = module.add_function(name);
    ir::Builder b(&function);
    const ir::ValueId x = function.add_param("x", {ir::kInt8, {1, 4}});
    const ir::ValueId common = function.add_constant(ramp(-30));
    const ir::ValueId own = function.add_constant(ramp(function.name() == "f" ? 1 : 2));
    function.set_outputs({b.call("concatenate", {x, common, own})});
  }
  return module;
}

TEST(TextMetadata, RestoresConstants) {
  const ir::Module module = with_constants();
  const std::string text = print(module);
  EXPECT_NE(text.find("concatenate((%x, meta[relay.Constant][0] /* ty=Tensor[(5, 4), int8] digest="),
            std::string::npos);
  EXPECT_NE(text.find(" min=-30 max=27 first=[-30, -27, -24, -21, ...] */, meta[relay.Constant][1] /*"),
            std::string::npos);
  EXPECT_NE(text.find("concatenate((%x, meta[relay.Constant][0] /*", text.find("@main")), std::string::npos);
  EXPECT_NE(text.find("meta[relay.Constant][2]"), std::string::npos);
  EXPECT_EQ(text.find("meta[relay.Constant][3]"), std::string::npos);

  const ir::Module again = parse(text, "t");
  EXPECT_EQ(print(again), text);
  const ir::Function& main = again.main();
  const ir::Constant& own = *main.value(main.nodes()[0].operands[2]).constant;
  EXPECT_EQ(own.as<int8_t>()[19], 2 + 19 * 3);
}

TEST(TextMetadata, MayBeLeftOut) {
  PrintOptions options;
  options.metadata = false;
  const std::string text = print(with_constants(), options);
  EXPECT_EQ(text.find("#[metadata]"), std::string::npos);
  try {
    parse(text, "net.relay");
    FAIL();
  } catch (const PackError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("net.relay:3:25: there is no section #[metadata] with the data of "
                        "meta[relay.Constant][0], Tensor[(5, 4), int8]; --synthesize-constants=SEED makes"),
              std::string::npos)
        << error.what();
  }
}

TEST(TextMetadata, KeepsBitsThatLiteralsCannot) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  const auto nan = std::make_shared<const ir::Constant>(ir::TensorType{ir::kFloat32, {}},
                                                        std::vector<uint8_t>{0x45, 0x23, 0xc1, 0xff});
  const auto half = ir::make_constant<uint16_t>({kDLFloat, 16, 1}, {2}, {0x3c00, 0xbc00});
  const auto nibbles =
      std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt4, {3}}, std::vector<uint8_t>{0x21, 0x0f});
  const auto odd_bool =
      std::make_shared<const ir::Constant>(ir::TensorType{ir::kBool, {}}, std::vector<uint8_t>{7});
  main.set_outputs({main.add_constant(nan), main.add_constant(half), main.add_constant(nibbles),
                    main.add_constant(odd_bool)});
  const std::string text = print(module);
  const ir::Module again = parse(text, "t");
  EXPECT_EQ(print(again), text);
  const std::span<const ir::ValueId> outputs = again.main().outputs();
  const auto nan_again = again.main().value(outputs[0]).constant->bytes();
  EXPECT_TRUE(std::ranges::equal(nan_again, nan->bytes()));
  EXPECT_EQ(again.main().type(outputs[1]).dtype.bits, 16);
  EXPECT_EQ(again.main().value(outputs[2]).constant->bytes()[1], 0x0f);
  EXPECT_EQ(again.main().value(outputs[3]).constant->bytes()[0], 7);
}

// An NDArray as TVM 0.8 saves it: float32 [2, 3], 1 to 6.
constexpr char kTvmMetadata[] = R"(
#[metadata]
{
  "root": 1, 
  "nodes": [
    {"type_key": ""}, 
    {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]}, 
    {"type_key": "Array", "data": [3]}, 
    {"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "0", "span": "0"}}
  ], 
  "b64ndarrays": [
    "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACAAAAAAAAAAMAAAAAAAAAGAAAAAAAAAAAAIA/AAAAQAAAQEAAAIBAAACgQAAAwEA="
  ], 
  "attrs": {"tvm_version": "0.8.0"}
})";

TEST(TextMetadata, ReadsTvm) {
  const std::string text = "def @main(%x: Tensor[(1), int8]) {\n  meta[relay.Constant][0]\n}\n";
  const ir::Module module = parse(text + kTvmMetadata, "t");
  EXPECT_NE(print(module).find("const(Tensor[(2, 3), float32], [1, 2, 3, 4, 5, 6])"), std::string::npos);
  PrintOptions options;
  options.inline_elements = 0;
  EXPECT_NE(print(module, options)
                .find("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACAAAAAAAAAAMAAAAAAAAAGAAAAAAAAA"
                      "AAAIA/AAAAQAAAQEAAAIBAAACgQAAAwEA="),
            std::string::npos);
}

TEST(TextPrint, NamesMayBeLeftOut) {
  PrintOptions options;
  options.names = false;
  const ir::Module module = parse(
      "def @main(%x: int8, output_names=[\"y\"]) { %0 = cast(%x, dtype=\"int32\", name=\"n\"); %0 }", "t");
  EXPECT_EQ(print(module, options), std::string(kVersion) +
                                        "def @main(%x: int8) -> int32 {\n"
                                        "  %0 = cast(%x, dtype=\"int32\") /* ty=int32 */;\n  %0\n}\n");
  EXPECT_EQ(print(module.main(), options), print(module, options));
}

TEST(TextPrint, FallbacksAreNotPrintedAndNumbersAreFloatsWhereTheOperatorHasFloats) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  ir::Builder b(&main);
  const ir::ValueId x = main.add_param("x", {ir::kInt32, {2}});
  b.call("clip", {x}, {{"a_min", int64_t{-5}}, {"a_max", 2147483647.0}});
  main.set_outputs({b.call("concatenate", {x, x}, {{"axis", 0}})});
  const std::string text = print(module);
  EXPECT_NE(text.find("clip(%x, a_min=-5f, a_max=2147483647f64)"), std::string::npos) << text;
  EXPECT_NE(text.find("concatenate((%x, %x)) /*"), std::string::npos) << text;
  EXPECT_EQ(print(parse(text, "t")), text);
}

TEST(TextPrint, IsTotalForParametersWithoutGoodNames) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  std::vector<ir::ValueId> values;
  for (const char* name : {"x", "", "x", "p1", "", "x_1"})
    values.push_back(main.add_param(name, {ir::kInt8, {1}}));
  main.set_outputs(values);
  const std::string text = print(module);
  EXPECT_NE(text.find("(%x, %p1_1, %x_2, %p1, %p4, %x_1)"), std::string::npos) << text;
  EXPECT_EQ(print(parse(text, "t")), text);
}

TEST(Text, ChainOfHundredThousandNodes) {
  ir::Module module;
  ir::Function& main = module.add_function("main");
  ir::Builder b(&main);
  ir::ValueId x = main.add_param("x", {ir::kInt8, {4, 4}});
  for (int i = 0; i < 100000; ++i) x = b.call("clip", {x}, {{"a_min", 0.0}, {"a_max", 6.0}});
  main.set_outputs({x});
  const std::string text = print(module);
  const ir::Module again = parse(text, "t");
  EXPECT_EQ(again.main().nodes().size(), 100000u);
  EXPECT_EQ(print(again), text);
}

}  // namespace
}  // namespace qplan::text::round_trip_test
