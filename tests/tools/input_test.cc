#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/files.h"
#include "tools/tensor.h"

namespace qplan::tools::input_test {
namespace {

namespace fs = std::filesystem;

// A tensor_info over storage of its own.
struct Input {
  Input(uint8_t code, uint8_t bits, std::vector<int64_t> extents, float scale = 0, int32_t zero = 0)
      : shape(std::move(extents)), scale_value(scale), zero_value(zero) {
    info.struct_size = sizeof info;
    info.ndim = static_cast<int32_t>(shape.size());
    info.name = "x";
    info.shape = shape.data();
    info.dtype = DLDataType{code, bits, 1};
    info.size_bytes = bits / 8;
    for (const int64_t extent : shape) info.size_bytes *= static_cast<uint64_t>(extent);
    info.scales = &scale_value;
    info.zero_points = &zero_value;
    info.num_scales = scale == 0 ? 0 : 1;
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  std::vector<int64_t> shape;
  float scale_value;
  int32_t zero_value;
  qplan_tensor_info info{};
};

TEST(ImageLayout, FollowsTheShape) {
  const auto layout = [](std::vector<int64_t> shape) {
    return image_layout(Input(kDLUInt, 8, std::move(shape)).info, "input");
  };
  const ImageLayout nhwc = layout({1, 224, 192, 3});
  EXPECT_EQ(nhwc.height, 224u);
  EXPECT_EQ(nhwc.width, 192u);
  EXPECT_EQ(nhwc.channels, 3u);
  EXPECT_FALSE(nhwc.channels_first);
  const ImageLayout nchw = layout({1, 3, 224, 192});
  EXPECT_EQ(nchw.height, 224u);
  EXPECT_EQ(nchw.width, 192u);
  EXPECT_EQ(nchw.channels, 3u);
  EXPECT_TRUE(nchw.channels_first);
  EXPECT_EQ(layout({1, 96, 96, 1}).channels, 1u);
  EXPECT_EQ(layout({1, 28, 28}).channels, 1u);
  EXPECT_EQ(layout({28, 28, 3}).height, 28u);
  EXPECT_FALSE(layout({1, 3, 3, 3}).channels_first);
  EXPECT_THROW(layout({1, 640}), Failure);
  EXPECT_THROW(layout({2, 224, 224, 3}), Failure);
  EXPECT_THROW(layout({1, 49, 10, 4}), Failure);
}

TEST(ParseChannelValues, TakesOneOrThree) {
  EXPECT_EQ(parse_channel_values("127.5", "--mean"), std::vector<double>{127.5});
  EXPECT_EQ(parse_channel_values("1,-2,3e2", "--mean"), (std::vector<double>{1, -2, 300}));
  for (const char* text : {"", "a", "1,", "1,2", "1,2,3,4", "1;2", "nan", "inf", "1 "}) {
    EXPECT_THROW(parse_channel_values(text, "--mean"), UsageError) << text;
  }
}

class LoadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("qplan_input_test_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
    // 2 x 1 pixels of 24 bits: (0, 10, 255) and (100, 20, 128), red first.
    std::vector<uint8_t> bmp(62, 0);
    bmp[0] = 'B', bmp[1] = 'M', bmp[2] = 62, bmp[10] = 54, bmp[14] = 40, bmp[18] = 2, bmp[22] = 1;
    bmp[26] = 1, bmp[28] = 24;
    const uint8_t pixels[] = {255, 10, 0, 128, 20, 100};
    std::memcpy(bmp.data() + 54, pixels, sizeof pixels);
    write_files(directory_.string(), {{"x.bmp", bmp.data(), bmp.size()}});
    picture_ = (directory_ / "x.bmp").string();
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_;
  std::string picture_;
};

TEST_F(LoadInput, EightBitsTakeThePixelBytes) {
  const Input u8(kDLUInt, 8, {1, 1, 2, 3}, 0.5f, 7);
  EXPECT_EQ(load_input(picture_, u8.info, "x", {}), (std::vector<uint8_t>{0, 10, 255, 100, 20, 128}));
  const Input s8(kDLInt, 8, {1, 1, 2, 3}, 0.5f, 7);
  EXPECT_EQ(load_input(picture_, s8.info, "x", {}), (std::vector<uint8_t>{128, 138, 127, 228, 148, 0}));
}

TEST_F(LoadInput, ChannelsFirstIsPlanar) {
  const Input u8(kDLUInt, 8, {1, 3, 1, 2});
  EXPECT_EQ(load_input(picture_, u8.info, "x", {}), (std::vector<uint8_t>{0, 100, 10, 20, 255, 128}));
}

TEST_F(LoadInput, FloatsAreNormalised) {
  const Input f32(kDLFloat, 32, {1, 1, 2, 3});
  const std::vector<uint8_t> bytes = load_input(picture_, f32.info, "x", {{0, 10, 128}, {100}});
  std::vector<float> values(6);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_EQ(values, (std::vector<float>{0, 0, 1.27f, 1, 0.1f, 0}));
}

TEST_F(LoadInput, NormalisedIntegersAreQuantisedAndClamped) {
  const Input s8(kDLInt, 8, {1, 1, 2, 3}, 0.5f, 3);
  // byte / 2 in units of 0.5, plus 3: the byte itself plus 3, up to 127.
  const std::vector<uint8_t> bytes = load_input(picture_, s8.info, "x", {{}, {2}});
  EXPECT_EQ(bytes, (std::vector<uint8_t>{3, 13, 127, 103, 23, 127}));
}

TEST_F(LoadInput, FloatsNeedMeanAndStd) {
  const Input f32(kDLFloat, 32, {1, 1, 2, 3});
  EXPECT_THROW(load_input(picture_, f32.info, "x", {}), Failure);
}

TEST_F(LoadInput, ChannelCountsMustAgree) {
  const Input grey(kDLUInt, 8, {1, 1, 2, 1});
  EXPECT_THROW(load_input(picture_, grey.info, "x", {{1, 2, 3}, {1}}), Failure);
}

TEST_F(LoadInput, RawFilesMustHaveTheSize) {
  const Input u8(kDLUInt, 8, {62});
  const std::string raw = (directory_ / "x.bin").string();
  fs::copy_file(picture_, raw);
  EXPECT_EQ(load_input(raw, u8.info, "x", {}).size(), 62u);
  EXPECT_THROW(load_input(raw, Input(kDLUInt, 8, {61}).info, "x", {}), Failure);
  EXPECT_THROW(load_input(directory_.string(), u8.info, "x", {}), Failure);
  EXPECT_THROW(load_input((directory_ / "none.bin").string(), u8.info, "x", {}), Failure);
}

// The inputs of the reference models are pictures resized by somebody else's program.
TEST(LoadInputOfReferenceModels, GivesTheGoldenBytes) {
  const char* named = std::getenv("QPLAN_SHARED");
  const fs::path shared = named != nullptr ? named : "../shared";
  if (!fs::exists(shared / "images"))
    GTEST_SKIP() << "no reference data in '" << shared.string() << "' (QPLAN_SHARED)";
  struct Case {
    const char* model;
    const char* picture;
    bool is_signed;
    int64_t side;
  };
  for (const Case& c :
       {Case{"mobilenet_v1_0.25_128_quant", "cat", false, 128},
        Case{"mobilenet_v1_0.25_128_quant", "grace_hopper", false, 128},
        Case{"mobilenet_v1_0.75_192_quant", "cat", false, 192},
        Case{"mobilenet_v1_0.75_192_quant", "grace_hopper", false, 192},
        Case{"mobilenet_v2_1.0_224_quant", "cat", false, 224},
        Case{"mobilenet_v2_1.0_224_quant", "grace_hopper", false, 224},
        Case{"tf2_mobilenet_v2_1.0_224_ptq", "cat", false, 224},
        Case{"tf2_mobilenet_v2_1.0_224_ptq", "sunflower", false, 224},
        Case{"pretrainedResnet_quant", "cat", true, 32}, Case{"pretrainedResnet_quant", "bird", true, 32}}) {
    const Input input(c.is_signed ? kDLInt : kDLUInt, 8, {1, c.side, c.side, 3});
    const std::string golden = (shared / "golden" / c.model / c.picture / "input0.bin").string();
    const std::string picture = (shared / "images" / c.picture).string() + ".bmp";
    EXPECT_TRUE(load_input(picture, input.info, "x", {}) == read_file(golden, "golden")) << golden;
  }
  // Channels first, and normalised as PyTorch does before the input's own quantisation.
  const Input nchw(kDLInt, 8, {1, 3, 224, 224}, 0.018631116f, -14);
  const Normalisation imagenet{{123.675, 116.28, 103.53}, {58.395, 57.12, 57.375}};
  EXPECT_TRUE(
      load_input((shared / "images/cat.bmp").string(), nchw.info, "x", imagenet) ==
      read_file((shared / "golden/mobilenet_v2_quantized_1x3x224x224/cat/input0.bin").string(), "golden"));
}

}  // namespace
}  // namespace qplan::tools::input_test
