// Pictures as network inputs: decode, grey, resize.
#ifndef TOOLS_IMAGE_H_
#define TOOLS_IMAGE_H_

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

// BMP, PNG or JPEG (the content decides) as three channels, red first; transparency is dropped. path is for
// errors.
Image decode_image(const std::vector<uint8_t>& file, const std::string& path);

// One channel: luma = 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), rounded half up.
Image to_grey(const Image& image);

// Bilinear without antialiasing: output centre i + 0.5 falls on (i + 0.5) * n_in / n_out of the source, edges
// are clamped, all in float64, first along rows, then along columns, rounded half up. This order of
// operations gives the same bytes as
//   x = (arange(n_out) + 0.5) * n_in / n_out - 0.5
// and (p * (1 - fx) + q * fx) * (1 - fy) + (r * (1 - fx) + s * fx) * fy in NumPy.
Image resize_bilinear(const Image& image, uint32_t width, uint32_t height);

}  // namespace qplan::tools

#endif  // TOOLS_IMAGE_H_
