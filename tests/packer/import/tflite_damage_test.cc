// Damaged files: an error or a module, never a crash (run under the sanitizers) and never long.
#include <gtest/gtest.h>

#include <random>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_damage_test {
namespace {

// A network with most of what a file can hold: two convolutions, an addition, pools, a reshape, softmax.
std::vector<uint8_t> sample_model() {
  TfliteBuilder b;
  const auto layer = [&](const std::string& name, std::vector<int32_t> shape) {
    return b.activation(name, std::move(shape), 0.5f, 1);
  };
  const int32_t x = layer("x", {1, 4, 4, 2}), y0 = layer("y0", {1, 4, 4, 2}), y1 = layer("y1", {1, 4, 4, 2});
  const int32_t sum = layer("sum", {1, 4, 4, 2}), pool = layer("pool", {1, 2, 2, 2}),
                flat = layer("flat", {1, 8});
  const int32_t top = b.activation("top", {1, 8}, 1.0f / 256, -128);
  const int32_t w0 = b.tensor({.name = "w0",
                               .shape = {2, 1, 1, 2},
                               .scales = {0.5f, 0.25f},
                               .zero_points = {0, 0},
                               .data = {1, 2, 3, 4}});
  const int32_t w1 = b.tensor({.name = "w1",
                               .shape = {1, 3, 3, 2},
                               .scales = {0.5f, 0.25f},
                               .zero_points = {0, 0},
                               .quantized_dimension = 3,
                               .data = std::vector<uint8_t>(18, 7)});
  const int32_t bias = b.ints("bias", {5, -5});
  b.op(tflite::BuiltinOperator_CONV_2D, {x, w0, bias}, {y0}, tflite::BuiltinOptions_Conv2DOptions,
       tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1).Union());
  b.op(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, {y0, w1, -1}, {y1},
       tflite::BuiltinOptions_DepthwiseConv2DOptions,
       tflite::CreateDepthwiseConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1, 1).Union());
  b.op(tflite::BuiltinOperator_ADD, {y0, y1}, {sum}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb(), tflite::ActivationFunctionType_RELU).Union());
  b.op(tflite::BuiltinOperator_AVERAGE_POOL_2D, {sum}, {pool}, tflite::BuiltinOptions_Pool2DOptions,
       tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 2, 2, 2, 2).Union());
  b.op(tflite::BuiltinOperator_RESHAPE, {pool, b.ints("shape", {1, -1})}, {flat});
  b.op(tflite::BuiltinOperator_SOFTMAX, {flat}, {top}, tflite::BuiltinOptions_SoftmaxOptions,
       tflite::CreateSoftmaxOptions(b.fbb(), 1.0f).Union());
  return b.finish({x}, {top, sum});
}

void import_whatever(const std::vector<uint8_t>& bytes) {
  try {
    import_tflite(bytes, "net.tflite");
  } catch (const PackError& error) {
    // Lists have lines; names of the file bring no control characters into them.
    for (const char* c = error.what(); *c != 0; ++c) {
      EXPECT_TRUE(static_cast<unsigned char>(*c) >= 0x20 || *c == '\n') << error.what();
    }
  }
}

TEST(TfliteDamage, TheSampleImports) { EXPECT_EQ(import_error(sample_model()), "imported"); }

TEST(TfliteDamage, TruncatedAnywhere) {
  const std::vector<uint8_t> whole = sample_model();
  for (size_t size = 0; size < whole.size(); size += 7) {
    import_whatever({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
  }
}

TEST(TfliteDamage, FlippedBits) {
  const std::vector<uint8_t> whole = sample_model();
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes = whole;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      bytes[8 + random() % (bytes.size() - 8)] ^= static_cast<uint8_t>(1u << random() % 8);
    }
    import_whatever(bytes);
  }
}

// Extremes in the place of indices, extents and counts.
TEST(TfliteDamage, OverwrittenWords) {
  const std::vector<uint8_t> whole = sample_model();
  constexpr uint32_t kWords[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000};
  for (size_t at = 8; at + 4 <= whole.size(); at += 4) {
    for (const uint32_t word : kWords) {
      SCOPED_TRACE("offset " + std::to_string(at) + ", word " + std::to_string(word));
      std::vector<uint8_t> bytes = whole;
      std::memcpy(bytes.data() + at, &word, 4);
      import_whatever(bytes);
    }
  }
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_damage_test
