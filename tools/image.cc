#include "tools/image.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <string_view>

#include "tools/error.h"
#include "tools/stb_image.h"

namespace qplan::tools {
namespace {

// Where an output pixel lies between two source pixels of one axis.
struct Tap {
  uint32_t low;
  uint32_t high;
  double fraction;  // weight of high
};

std::vector<Tap> make_taps(uint32_t source, uint32_t target) {
  std::vector<Tap> taps(target);
  for (uint32_t i = 0; i < target; ++i) {
    const double centre = (i + 0.5) * source / target - 0.5;
    const double position = std::clamp(centre, 0.0, static_cast<double>(source - 1));
    const auto low = static_cast<uint32_t>(position);
    taps[i] = {low, std::min(low + 1, source - 1), position - low};
  }
  return taps;
}

}  // namespace

bool has_image_extension(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string::npos || path[dot] != '.') return false;
  std::string extension = path.substr(dot);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == ".bmp" || extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

Image decode_image(const std::vector<uint8_t>& file, const std::string& path) {
  if (file.empty()) throw Failure("image '" + path + "': the file is empty");
  if (file.size() > INT_MAX) throw Failure("image '" + path + "': files over 2 GiB are not read");
  int width = 0;
  int height = 0;
  int channels_in_file = 0;
  const std::unique_ptr<uint8_t, void (*)(void*)> pixels(
      stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels_in_file,
                            3),
      stbi_image_free);
  if (pixels == nullptr) {
    throw Failure("image '" + path + "': cannot be read as BMP, PNG or JPEG (" + stbi_failure_reason() + ")");
  }
  Image image{static_cast<uint32_t>(width), static_cast<uint32_t>(height), 3, {}};
  image.pixels.assign(pixels.get(),
                      pixels.get() + static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  return image;
}

Image to_grey(const Image& image) {
  if (image.channels == 1) return image;
  Image grey{image.width, image.height, 1, {}};
  grey.pixels.resize(static_cast<size_t>(image.width) * image.height);
  const uint8_t* rgb = image.pixels.data();
  for (uint8_t& pixel : grey.pixels) {
    pixel = static_cast<uint8_t>((299u * rgb[0] + 587u * rgb[1] + 114u * rgb[2] + 500u) / 1000u);
    rgb += image.channels;
  }
  return grey;
}

Image resize_bilinear(const Image& image, uint32_t width, uint32_t height) {
  const std::vector<Tap> columns = make_taps(image.width, width);
  const std::vector<Tap> rows = make_taps(image.height, height);
  const uint32_t channels = image.channels;
  Image resized{width, height, channels, {}};
  resized.pixels.reserve(static_cast<size_t>(width) * height * channels);
  const size_t stride = static_cast<size_t>(image.width) * channels;
  for (const Tap& row : rows) {
    const uint8_t* low = image.pixels.data() + row.low * stride;
    const uint8_t* high = image.pixels.data() + row.high * stride;
    for (const Tap& column : columns) {
      const size_t left = static_cast<size_t>(column.low) * channels;
      const size_t right = static_cast<size_t>(column.high) * channels;
      const double f = column.fraction;
      for (uint32_t c = 0; c < channels; ++c) {
        const double upper = low[left + c] * (1 - f) + low[right + c] * f;
        const double lower = high[left + c] * (1 - f) + high[right + c] * f;
        const double value = upper * (1 - row.fraction) + lower * row.fraction;
        resized.pixels.push_back(static_cast<uint8_t>(std::floor(value + 0.5)));
      }
    }
  }
  return resized;
}

}  // namespace qplan::tools
