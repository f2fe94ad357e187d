#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/image_decoder.h"
#include "tools/tensor.h"

namespace qplan::tools::image_test {
namespace {

Image grey_image(uint32_t width, uint32_t height, std::vector<uint8_t> pixels) {
  return Image{width, height, 1, std::move(pixels)};
}

TEST(ResizeBilinear, SameSizeChangesNothing) {
  const Image image = grey_image(3, 2, {0, 255, 7, 9, 128, 1});
  EXPECT_EQ(resize_bilinear(image, 3, 2).pixels, image.pixels);
}

TEST(ResizeBilinear, UsesHalfPixelCentresAndClampsEdges) {
  // Centres of four output pixels over two: -0.25 (clamped to 0), 0.25, 0.75, 1.25 (clamped to 1).
  EXPECT_EQ(resize_bilinear(grey_image(2, 1, {0, 100}), 4, 1).pixels, (std::vector<uint8_t>{0, 25, 75, 100}));
  EXPECT_EQ(resize_bilinear(grey_image(1, 2, {0, 100}), 1, 4).pixels, (std::vector<uint8_t>{0, 25, 75, 100}));
}

TEST(ResizeBilinear, RoundsHalfUp) {
  EXPECT_EQ(resize_bilinear(grey_image(2, 1, {0, 1}), 1, 1).pixels, (std::vector<uint8_t>{1}));
  EXPECT_EQ(resize_bilinear(grey_image(2, 1, {2, 3}), 1, 1).pixels, (std::vector<uint8_t>{3}));
}

TEST(ResizeBilinear, DoesNotAntialias) {
  // Six to two: centres 1.0 and 4.0 hit one pixel each; its neighbours do not count.
  EXPECT_EQ(resize_bilinear(grey_image(6, 1, {255, 10, 255, 255, 20, 255}), 2, 1).pixels,
            (std::vector<uint8_t>{10, 20}));
}

TEST(ResizeBilinear, KeepsChannelsApart) {
  const Image image{2, 1, 3, {0, 10, 200, 100, 20, 0}};
  EXPECT_EQ(resize_bilinear(image, 1, 1).pixels, (std::vector<uint8_t>{50, 15, 100}));
}

TEST(ToGrey, WeighsAsBt601) {
  const Image image{4, 1, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 77, 77, 77}};
  EXPECT_EQ(to_grey(image).pixels, (std::vector<uint8_t>{76, 150, 29, 77}));
}

TEST(HasImageExtension, KnowsTheThreeFormatsInAnyCase) {
  EXPECT_TRUE(has_image_extension("cat.bmp"));
  EXPECT_TRUE(has_image_extension("/a.b/cat.JPEG"));
  EXPECT_TRUE(has_image_extension("cat.Png"));
  EXPECT_FALSE(has_image_extension("cat.bin"));
  EXPECT_FALSE(has_image_extension("/dir.png/cat"));
  EXPECT_FALSE(has_image_extension("png"));
}

// A 2 x 1 BMP of 24 bits: rows are stored bottom up, blue first, padded to four bytes.
std::vector<uint8_t> small_bmp() {
  std::vector<uint8_t> bmp(54 + 8, 0);
  bmp[0] = 'B', bmp[1] = 'M', bmp[2] = 62, bmp[10] = 54, bmp[14] = 40, bmp[18] = 2, bmp[22] = 1, bmp[26] = 1,
  bmp[28] = 24;
  const uint8_t pixels[] = {3, 2, 1, 30, 20, 10};
  std::copy(std::begin(pixels), std::end(pixels), bmp.begin() + 54);
  return bmp;
}

TEST(DecodeImage, ReadsBmpAsRedGreenBlue) {
  const Image image = decode_image(small_bmp(), "x.bmp");
  EXPECT_EQ(image.width, 2u);
  EXPECT_EQ(image.height, 1u);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{1, 2, 3, 10, 20, 30}));
}

TEST(DecodeImage, RefusesWhatIsNoPicture) {
  EXPECT_THROW(decode_image({}, "x.png"), Failure);
  EXPECT_THROW(decode_image({'h', 'e', 'l', 'l', 'o'}, "x.png"), Failure);
  std::vector<uint8_t> huge = small_bmp();
  huge[20] = 0x10;  // a width of 2^20 pixels
  EXPECT_THROW(decode_image(huge, "x.bmp"), Failure);
}

std::string refusal(const std::vector<uint8_t>& file) {
  try {
    decode_image(file, "x.bmp");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "accepted";
}

TEST(DecodeImage, RefusesAPictureWithoutPixels) {
  std::vector<uint8_t> empty = small_bmp();
  empty[18] = 0;
  EXPECT_EQ(refusal(empty), "image 'x.bmp': has 0 x 1 pixels, expected at least 1 x 1");
  empty = small_bmp();
  empty[22] = 0;
  EXPECT_EQ(refusal(empty), "image 'x.bmp': has 2 x 0 pixels, expected at least 1 x 1");
}

TEST(DecodeImage, RefusesMorePixelsThanTheLimitByTheHeaderAlone) {
  std::vector<uint8_t> large = small_bmp();
  large[18] = 0, large[19] = 0x20;  // 8192 x 4097, one row more than 2^25 pixels
  large[22] = 1, large[23] = 0x10;
  EXPECT_EQ(
      refusal(large),
      "image 'x.bmp': has 8192 x 4097 pixels, expected at most 16384 on a side and 33554432 in all; scale it "
      "down first");
}

TEST(DecodeImage, ReadsRowsFromTopToBottom) {
  std::vector<uint8_t> bmp = small_bmp();
  bmp[22] = bmp[23] = bmp[24] = bmp[25] = 0xff;  // a height of -1
  EXPECT_EQ(decode_image(bmp, "x.bmp").pixels, (std::vector<uint8_t>{1, 2, 3, 10, 20, 30}));
}

TEST(DecodeImage, RefusesABmpThatEndsBeforeItsPixels) {
  std::vector<uint8_t> bmp = small_bmp();
  bmp.resize(bmp.size() - 2);  // the padding of the last row
  EXPECT_EQ(decode_image(bmp, "x.bmp").pixels, (std::vector<uint8_t>{1, 2, 3, 10, 20, 30}));
  bmp.pop_back();
  EXPECT_EQ(refusal(bmp),
            "image 'x.bmp': is damaged: it has 59 bytes, its pixels need 60; copy or save it again");
}

TEST(DecoderMemory, IsBoundedByTheBudget) {
  EXPECT_EQ(decoder_allocate(1), nullptr) << "nobody set a budget";
  const DecoderBudget budget(1000);
  EXPECT_EQ(decoder_allocate(1000), nullptr) << "the block's size counts too";
  EXPECT_TRUE(budget.exceeded());
  void* block = decoder_allocate(500);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(decoder_reallocate(block, 600), nullptr) << "both blocks exist for a moment";
  void* other = decoder_reallocate(block, 300);
  ASSERT_NE(other, nullptr);
  decoder_free(other);
  block = decoder_allocate(900);
  EXPECT_NE(block, nullptr) << "what is freed can be had again";
  decoder_free(block);
}

TEST(DecoderMemory, KeepsWhatABlockHeld) {
  const DecoderBudget budget(1000);
  auto* block = static_cast<uint8_t*>(decoder_allocate(3));
  block[0] = 1, block[1] = 2, block[2] = 3;
  block = static_cast<uint8_t*>(decoder_reallocate(block, 100));
  EXPECT_EQ((std::vector<uint8_t>(block, block + 3)), (std::vector<uint8_t>{1, 2, 3}));
  block = static_cast<uint8_t*>(decoder_reallocate(block, 2));
  EXPECT_EQ((std::vector<uint8_t>(block, block + 2)), (std::vector<uint8_t>{1, 2}));
  decoder_free(block);
}

}  // namespace
}  // namespace qplan::tools::image_test
