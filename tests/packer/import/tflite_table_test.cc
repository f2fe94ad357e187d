// Operators that become tables of 256 values. The expected bytes are what tests/data/operators/*.py print.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/packer/op/op_def.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_table_test {
namespace {

struct Quant {
  float scale;
  int64_t zero_point;
};

struct Case {
  tflite::TensorType type;
  Quant in, out;
  std::string expected = "";  // of the inputs from the least on, as hexadecimal bytes
};

// alpha: of a LEAKY_RELU.
std::vector<uint8_t> model_of(tflite::BuiltinOperator op, const Case& c, float alpha = 0) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, c.in.scale, c.in.zero_point, c.type);
  const int32_t y = b.activation("y", {1, 4}, c.out.scale, c.out.zero_point, c.type);
  if (op == tflite::BuiltinOperator_LEAKY_RELU) {
    b.op(op, {x}, {y}, tflite::BuiltinOptions_LeakyReluOptions,
         tflite::CreateLeakyReluOptions(b.fbb(), alpha).Union());
  } else {
    b.op(op, {x}, {y});
  }
  return b.finish({x}, {y});
}

// The outputs for the inputs from the least on.
std::vector<uint8_t> table_of(tflite::BuiltinOperator op, const Case& c, float alpha = 0) {
  const ir::Module module = import_tflite(model_of(op, c, alpha), "net.tflite");
  const ir::Node& node = module.main().nodes().back();
  EXPECT_EQ(node.op->name, "qnn.lookup");
  const auto bytes = module.main().value(node.operands[1]).constant->bytes();
  std::vector<uint8_t> outputs;
  const int least = c.type == tflite::TensorType_INT8 ? -128 : 0;
  for (int x = least; x < least + 256; ++x) outputs.push_back(bytes[static_cast<uint8_t>(x)]);
  return outputs;
}

std::string hexadecimal(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

TEST(TfliteHardSwish, IsTheTableOfTflitesSixteenBitArithmetic) {
  const Case cases[] = {
      {tflite::TensorType_INT8,
       {0.0625f, -10},
       {0.05f, -120},
       "888888888888888888888888888888888888888888888888888888888888888888888888888888888888888888888888"
       "888888888888888888888888888888888888888888888887878686858584848383838282828281818181818181818081"
       "818181818181818282828283838384848585868687878889898a8b8b8c8d8e8f909091929394959697999a9b9c9d9fa0"
       "a1a2a4a5a6a8a9abacaeafb1b3b4b6b8b9bbbdbec0c2c4c5c6c8c9cacbcdcecfd0d2d3d4d5d7d8d9dadcdddedfe1e2e3"
       "e4e6e7e8e9ebecedeef0f1f2f3f5f6f7f8fafbfcfdff00010204050607090a0b0c0e0f10111314151618191a1b1d1e1f"
       "20222324252728292a2c2d2e2f313233"},
      {tflite::TensorType_INT8,
       {0.7f, 5},
       {0.35f, -128},
       "808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
       "808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080"
       "8080808080808080808080808080808080808080808080808080808080808080808080808080818385888a8c8e909294"
       "96989a9c9ea0a2a4a6a8aaacaeb0b2b4b6b8babcbec0c2c4c6c8caccced0d2d4d6d8dadcdee0e2e4e6e8eaeceef0f2f4"
       "f6f8fafcfe00020406080a0c0e10121416181a1c1e20222426282a2c2e30323436383a3c3e40424446484a4c4e505254"
       "56585a5c5e60626466686a6c6e707274"},
      {tflite::TensorType_INT8,
       {0.003f, 0},
       {0.0017f, -20},
       "8a8a8b8b8c8d8d8e8f8f90919292939494959696979898999a9a9b9c9d9d9e9f9fa0a1a2a2a3a4a4a5a6a7a7a8a9aaaa"
       "abacadadaeafb0b0b1b2b3b3b4b5b6b6b7b8b9b9babbbcbdbdbebfc0c1c1c2c3c4c4c5c6c7c8c8c9cacbcccdcdcecfd0"
       "d1d1d2d3d4d5d6d6d7d8d9dadbdcdcdddedfe0e1e2e2e3e4e5e6e7e8e8e9eaebecedeeeff0f0f1f2f3f4f5f6f7f8f9f9"
       "fafbfcfdfeff00010203040405060708090a0b0c0d0e0f10111213141515161718191a1b1c1d1e1f2021222324252627"
       "28292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4042434445464748494a4b4c4d4e4f505152535556575859"
       "5a5b5c5d5e5f6061636465666768696a"},
      {tflite::TensorType_UINT8,
       {0.11f, 120},
       {0.06f, 8},
       "080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808"
       "080808080808080808080808080808080808080808080808080808080808080808080808080808080808080808080706"
       "05050404030302020202020202020202030304040506060708090a0b0c0d0f1011131516181a1b1d1f212326282a2c2f"
       "313437393b3d3f41434446484a4c4e4f51535557595a5c5e6062646567696b6d6f70727476787a7b7d7f81838586888a"
       "8c8e9091939597999b9c9ea0a2a4a6a7a9abadafb1b2b4b6b8babcbdbfc1c3c5c7c8caccced0d2d3d5d7d9dbdddee0e2"
       "e4e6e8e9ebedeff1f3f4f6f8fafcfeff"},
      {tflite::TensorType_UINT8,
       {8.0f, 0},
       {0.062502f, 255},
       "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
       "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
       "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
       "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
       "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
       "ffffffffffffffffffffffffffffff00"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(hexadecimal(table_of(tflite::BuiltinOperator_HARD_SWISH, c)), c.expected) << c.in.scale;
  }
}

TEST(TfliteHardSwish, IsWithinAUnitOfTheRealFunction) {
  for (const float in_scale : {0.02f, 0.05f, 0.11f, 0.3f}) {
    for (const int in_zero_point : {-128, -30, 0, 64}) {
      const double largest = (127 - in_zero_point) * static_cast<double>(in_scale);
      const auto out_scale = static_cast<float>((largest + 0.375) / 255);
      const int out_zero_point = static_cast<int>(std::lround(-128 + 0.375 / static_cast<double>(out_scale)));
      const Case c = {tflite::TensorType_INT8, {in_scale, in_zero_point}, {out_scale, out_zero_point}};
      const std::vector<uint8_t> outputs = table_of(tflite::BuiltinOperator_HARD_SWISH, c);
      for (int x = -128; x < 128; ++x) {
        const double real = (x - in_zero_point) * static_cast<double>(in_scale);
        const double swish = real * std::clamp(real + 3, 0.0, 6.0) / 6;
        const double expected =
            std::clamp(swish / static_cast<double>(out_scale) + out_zero_point, -128.0, 127.0);
        EXPECT_NEAR(static_cast<int8_t>(outputs[static_cast<size_t>(x + 128)]), expected, 1.5)
            << "x " << x << ", scale " << in_scale << ", zero point " << in_zero_point;
      }
    }
  }
}

TEST(TfliteHardSwish, ScalesWithoutMultipliersAreRefused) {
  const std::string list =
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: HARD_SWISH with ";
  const auto error = [](float in, float out) {
    return import_error(
        model_of(tflite::BuiltinOperator_HARD_SWISH, {tflite::TensorType_INT8, {in, 0}, {out, 0}}));
  };
  EXPECT_EQ(error(0.5f, 0.5f), "imported");
  EXPECT_EQ(error(256.0f, 1.0f), list +
                                     "input scale 256 and output scale 1, which its 16-bit arithmetic has no "
                                     "multipliers for ('y')");
  EXPECT_TRUE(error(1e-7f, 1e-7f).starts_with(list)) << error(1e-7f, 1e-7f);
  EXPECT_TRUE(error(1.0f, 1e6f).starts_with(list)) << error(1.0f, 1e6f);
}

TEST(TfliteLeakyRelu, IsTheTableOfTflitesTwoMultipliers) {
  const std::pair<Case, float> cases[] = {
      {{tflite::TensorType_INT8,
        {0.05f, -20},
        {0.04f, -60},
        "9b9c9c9c9d9d9d9e9e9f9f9fa0a0a0a1a1a2a2a2a3a3a3a4a4a5a5a5a6a6a6a7a7a8a8a8a9a9a9aaaaabababacacacad"
        "adaeaeaeafafafb0b0b1b1b1b2b2b2b3b3b4b4b4b5b5b5b6b6b7b7b7b8b8b8b9b9babababbbbbbbcbcbdbdbdbebebebf"
        "bfc0c0c0c1c1c1c2c2c3c3c3c4c5c7c8c9cacccdcecfd1d2d3d4d6d7d8d9dbdcdddee0e1e2e3e5e6e7e8eaebecedeff0"
        "f1f2f4f5f6f7f9fafbfcfeff00010304050608090a0b0d0e0f10121314151718191a1c1d1e1f21222324262728292b2c"
        "2d2e30313233353637383a3b3c3d3f40414244454647494a4b4c4e4f50515354555658595a5b5d5e5f60626364656768"
        "696a6c6d6e6f71727374767778797b7c"},
       0.3f},
      {{tflite::TensorType_INT8,
        {0.5f, 0},
        {0.5f, 0},
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000102030405060708090a0b0c0d0e0f"
        "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
        "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f"
        "707172737475767778797a7b7c7d7e7f"},
       0.01f},
      {{tflite::TensorType_UINT8,
        {0.021f, 90},
        {0.013f, 40},
        "0b0b0b0c0c0c0d0d0d0e0e0e0f0f0f101010101111111212121313131414141515151616161717171818181919191a1a"
        "1a1b1b1b1b1c1c1c1d1d1d1e1e1e1f1f1f20202021212122222223232324242425252525262626272727282a2b2d2e30"
        "32333537383a3b3d3f4042434547484a4c4d4f5052545557585a5c5d5f6162646567696a6c6d6f7172747677797a7c7e"
        "7f8182848687898b8c8e8f9193949697999b9c9ea0a1a3a4a6a8a9abacaeb0b1b3b5b6b8b9bbbdbec0c1c3c5c6c8cacb"
        "cdced0d2d3d5d6d8dadbdddfe0e2e3e5e7e8eaebedeff0f2f4f5f7f8fafcfdffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffffffffffffffff"},
       0.2f},
      {{tflite::TensorType_UINT8,
        {0.7f, 128},
        {0.35f, 200},
        "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000050a0f14191e23"
        "282d32373c41464b50555a5f64696e73787d82878c91969ba0a5aaafb4b9bec3c8caccced0d2d4d6d8dadcdee0e2e4e6"
        "e8eaeceef0f2f4f6f8fafcfeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffffffffffffffff"},
       2.5f},
  };
  for (const auto& [c, alpha] : cases) {
    EXPECT_EQ(hexadecimal(table_of(tflite::BuiltinOperator_LEAKY_RELU, c, alpha)), c.expected) << alpha;
  }
}

TEST(TfliteLeakyRelu, NegativeSlopesAreRefused) {
  const Case c = {tflite::TensorType_INT8, {0.5f, 0}, {0.5f, 0}};
  EXPECT_EQ(import_error(model_of(tflite::BuiltinOperator_LEAKY_RELU, c, 0.25f)), "imported");
  EXPECT_EQ(
      import_error(model_of(tflite::BuiltinOperator_LEAKY_RELU, c, -0.25f)),
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: LEAKY_RELU with alpha -0.25, input "
      "scale 0.5 and output scale 0.5, which make slopes outside of [0, 2^22) ('y')");
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_table_test
