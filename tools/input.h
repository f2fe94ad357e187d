// Files that hold inputs: pictures, NumPy's arrays, raw bytes.
#ifndef QPLAN_TOOLS_INPUT_H_
#define QPLAN_TOOLS_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

// Pictures as network inputs: decode, grey, resize.

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

// NumPy's .npy files, versions 1 to 3.
struct NpyHeader {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes, where the elements begin
};

// Reads the header of a little-endian array of integers or floats in C order and checks that its elements
// fill the rest of the file. path is for errors.
NpyHeader parse_npy(const std::vector<uint8_t>& file, const std::string& path);

// One input file of `qplan run` -> the bytes of one input tensor.

// The conversion of a picture's bytes: (byte - mean) / std, one value for all channels or one per channel.
// Empty: 8-bit inputs take the byte itself (int8: byte - 128).
struct Normalisation {
  std::vector<double> mean;
  std::vector<double> std;
  [[nodiscard]] bool empty() const { return mean.empty() && std.empty(); }
};

// "127.5" or "123.7,116.3,103.5"; option names it in errors. UsageError.
std::vector<double> parse_channel_values(const std::string& text, const std::string& option);

// Where a picture's pixels go in a tensor of this shape.
struct ImageLayout {
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;  // 1 or 3
  bool channels_first = false;
};
// [1,h,w,c], [1,c,h,w], [h,w,c], [c,h,w] or [1,h,w] with c 1 or 3. Failure, with label, for other shapes.
ImageLayout image_layout(const qplan_tensor_info& info, const std::string& label);

// path is a .npy, a picture, or raw bytes, by its extension. label describes the tensor in errors.
std::vector<uint8_t> load_input(const std::string& path, const qplan_tensor_info& info,
                                const std::string& label, const Normalisation& normalisation);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_INPUT_H_
