#include "tools/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tools/error.h"

namespace qplan::tools {
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

}  // namespace
}  // namespace qplan::tools
