// Pictures as network inputs: decode, grey, resize.
#ifndef TOOLS_IMAGE_H_
#define TOOLS_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qplan::tools {

// Rows from top to bottom, channels interleaved.
struct Image {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;
  std::vector<uint8_t> pixels;
};

// Whether the file's name ends like a picture: .bmp .png .jpg .jpeg, in any case.
[[nodiscard]] bool has_image_extension(const std::string& path);

// Limits of a picture, checked with its header before a pixel is decoded. A picture within these limits may
// still need more memory to decode than kMaxDecoderBytes (16 bits per channel, say): it is refused then.
inline constexpr uint32_t kMaxImageSide = 16384;
inline constexpr uint64_t kMaxImagePixels = uint64_t{1} << 25;
inline constexpr size_t kMaxImageFileBytes = size_t{1} << 28;
inline constexpr size_t kMaxDecoderBytes = size_t{1} << 29;

// BMP, PNG or JPEG (the content decides) as three channels, red first; transparency is dropped. path is for
// errors. Failure where the file is no such picture, has no pixels, or exceeds the limits. Holds at most
// kMaxDecoderBytes at a time beside file, 3 bytes per pixel of which stay.
Image decode_image(const std::vector<uint8_t>& file, const std::string& path);

// One channel: luma = 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), rounded half up.
Image to_grey(const Image& image);

// image must have pixels. Bilinear without antialiasing: output centre i + 0.5 falls on (i + 0.5) * n_in /
// n_out of the source, edges are clamped, all in float64, first along rows, then along columns, rounded half
// up. This order of operations gives the same bytes as
//   x = (arange(n_out) + 0.5) * n_in / n_out - 0.5
// and (p * (1 - fx) + q * fx) * (1 - fy) + (r * (1 - fx) + s * fx) * fy in NumPy.
Image resize_bilinear(const Image& image, uint32_t width, uint32_t height);

}  // namespace qplan::tools

#endif  // TOOLS_IMAGE_H_
