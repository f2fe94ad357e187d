#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "tools/command.h"
#include "tools/image_decoder.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

// Position of an output pixel between two source pixels of one axis.
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

constexpr uint32_t kChannels = 3;
static_assert(kMaxImageSide == STBI_MAX_DIMENSIONS);
static_assert(kMaxImageFileBytes <= INT_MAX, "the decoder counts bytes in int");

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Failure("image '" + path + "': " + reason);
}

std::string limits_text() {
  return "expected at most " + std::to_string(kMaxImageSide) + " on a side and " +
         std::to_string(kMaxImagePixels) + " in all; scale it down first";
}

void check_damage(const std::vector<uint8_t>& file, const std::string& path) {
  const std::string damage = image_damage(file);
  if (!damage.empty()) fail(path, "is damaged: " + damage + "; copy or save it again");
}

[[noreturn]] void fail_to_decode(const std::vector<uint8_t>& file, const std::string& path) {
  check_damage(file, path);
  const char* reason = stbi_failure_reason();
  // The decoder's word for a side beyond STBI_MAX_DIMENSIONS.
  if (reason != nullptr && std::string_view(reason) == "too large") {
    fail(path, "has more pixels than are decoded: " + limits_text());
  }
  // The decoder gives no better reason for a PNG with such a side than for a file that is not a picture.
  fail(path, "cannot be read as BMP, PNG or JPEG of at most " + std::to_string(kMaxImageSide) +
                 " pixels on a side (" + std::string(reason == nullptr ? "unknown" : reason) + ")");
}

void check_size(int64_t width, int64_t height, const std::string& path) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height) + " pixels";
  if (width <= 0 || height <= 0) fail(path, "has " + size + ", expected at least 1 x 1");
  if (width > kMaxImageSide || height > kMaxImageSide ||
      static_cast<uint64_t>(width) * static_cast<uint64_t>(height) > kMaxImagePixels) {
    fail(path, "has " + size + ", " + limits_text());
  }
}

void check_header(const std::vector<uint8_t>& file, const std::string& path) {
  int width = 0;
  int height = 0;
  int channels = 0;
  if (stbi_info_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels) == 0) {
    fail_to_decode(file, path);
  }
  // A BMP whose rows go from top to bottom has a negative height.
  check_size(width, std::llabs(static_cast<int64_t>(height)), path);
}

// Each scan of a progressive JPEG may visit all blocks of the picture for a few bytes of the file. Encoders
// write about ten.
void check_scans(const std::vector<uint8_t>& file, const std::string& path) {
  constexpr size_t kMaxScans = 500;
  constexpr uint8_t kMarker = 0xff, kStartOfScan = 0xda;
  if (!is_jpeg(file)) return;
  size_t scans = 0;
  for (size_t i = 1; i < file.size(); ++i) scans += file[i - 1] == kMarker && file[i] == kStartOfScan;
  if (scans > kMaxScans) {
    fail(path, "has " + std::to_string(scans) + " scans, expected at most " + std::to_string(kMaxScans));
  }
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
  if (file.empty()) fail(path, "the file is empty");
  if (file.size() > kMaxImageFileBytes) {
    fail(path, "has " + std::to_string(file.size()) + " bytes, expected at most " +
                   std::to_string(kMaxImageFileBytes));
  }
  const DecoderBudget budget(kMaxDecoderBytes);
  // Before the decoder reads a header: it reads tables on the way.
  check_scans(file, path);
  if (!has_sound_huffman_tables(file)) fail(path, "cannot be read as JPEG: its Huffman tables are damaged");
  check_header(file, path);
  int width = 0;
  int height = 0;
  int channels_in_file = 0;
  const std::unique_ptr<uint8_t, void (*)(void*)> pixels(
      stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels_in_file,
                            kChannels),
      stbi_image_free);
  if (pixels == nullptr && budget.exceeded()) {
    fail(path, "needs more than " + std::to_string(kMaxDecoderBytes >> 20) +
                   " MiB of memory to decode; save it smaller or with 8 bits per channel");
  }
  if (pixels == nullptr) fail_to_decode(file, path);
  check_damage(file, path);
  check_size(width, height, path);
  Image image{static_cast<uint32_t>(width), static_cast<uint32_t>(height), kChannels, {}};
  image.pixels.assign(pixels.get(),
                      pixels.get() + static_cast<size_t>(width) * static_cast<size_t>(height) * kChannels);
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

// ---- the decoder's heap

namespace {

struct Budget {
  size_t left = 0;
  bool exceeded = false;
};
thread_local Budget budget;

// Before each block its size; as long as the strictest alignment, which the block keeps.
constexpr size_t kPrefix = alignof(std::max_align_t) > sizeof(size_t) ? alignof(std::max_align_t)
                                                                      : sizeof(size_t);

size_t size_of(const void* memory) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const char*>(memory) - kPrefix, sizeof bytes);
  return bytes;
}

}  // namespace

void* decoder_allocate(size_t bytes) {
  if (budget.left < kPrefix || bytes > budget.left - kPrefix) {
    budget.exceeded = true;
    return nullptr;
  }
  void* block = std::malloc(bytes + kPrefix);
  if (block == nullptr) return nullptr;
  budget.left -= bytes + kPrefix;
  std::memcpy(block, &bytes, sizeof bytes);
  return static_cast<char*>(block) + kPrefix;
}

void* decoder_reallocate(void* memory, size_t bytes) {
  if (memory == nullptr) return decoder_allocate(bytes);
  // A block that moves exists twice for a moment, so that both count.
  void* grown = decoder_allocate(bytes);
  if (grown == nullptr) return nullptr;
  const size_t old_bytes = size_of(memory);
  std::memcpy(grown, memory, old_bytes < bytes ? old_bytes : bytes);
  decoder_free(memory);
  return grown;
}

void decoder_free(void* memory) {
  if (memory == nullptr) return;
  budget.left += size_of(memory) + kPrefix;
  std::free(static_cast<char*>(memory) - kPrefix);
}

DecoderBudget::DecoderBudget(size_t bytes) { budget = {bytes, false}; }
DecoderBudget::~DecoderBudget() { budget = {}; }
bool DecoderBudget::exceeded() const { return budget.exceeded; }

// ---- JPEG's tables

namespace {

constexpr uint8_t kJpegMarker = 0xff, kStartOfImage = 0xd8, kHuffmanTables = 0xc4, kComment = 0xfe;
constexpr size_t kNumLengths = 16;  // of codes, in bits
constexpr size_t kMaxCodes = 256;
constexpr size_t kMaxSegments = 1000;  // encoders write one for each scan, about ten

bool is_application(uint8_t marker) { return marker >= 0xe0 && marker <= 0xef; }

class Reader {
 public:
  explicit Reader(const std::vector<uint8_t>& file) : file_(file) {}
  // Bytes past the end read as zero, as in the decoder.
  uint8_t at(size_t i) const { return i < file_.size() ? file_[i] : uint8_t{0}; }
  size_t length_at(size_t i) const { return static_cast<size_t>(at(i)) << 8 | at(i + 1); }

  // What follows the marker that a JPEG begins with, which any number of its first byte may precede; 0 where
  // the file is not a JPEG.
  size_t end_of_start() const {
    size_t i = 0;
    while (at(i) == kJpegMarker) ++i;
    return i > 0 && at(i) == kStartOfImage ? i + 1 : 0;
  }

  // Where the comments and the data of applications at the beginning end: thumbnails and colour profiles may
  // hold any bytes.
  size_t end_of_applications() const {
    size_t i = end_of_start();
    for (;;) {
      size_t marker = i;
      while (at(marker) == kJpegMarker && at(marker + 1) == kJpegMarker) ++marker;
      const bool skipped = is_application(at(marker + 1)) || at(marker + 1) == kComment;
      if (at(marker) != kJpegMarker || !skipped || length_at(marker + 2) < 2) return i;
      i = marker + 2 + length_at(marker + 2);
    }
  }

  // The tables in the segment whose length is at i.
  bool is_sound(size_t i) const {
    auto left = static_cast<int64_t>(length_at(i)) - 2;
    for (i += 2; left > 0;) {
      size_t codes = 0;
      for (size_t length = 1; length <= kNumLengths; ++length) codes += at(i + length);
      if (codes > kMaxCodes) return false;
      i += 1 + kNumLengths + codes;
      left -= static_cast<int64_t>(1 + kNumLengths + codes);
    }
    return true;
  }

 private:
  const std::vector<uint8_t>& file_;
};

}  // namespace

bool is_jpeg(const std::vector<uint8_t>& file) { return Reader(file).end_of_start() != 0; }

bool has_sound_huffman_tables(const std::vector<uint8_t>& file) {
  const Reader reader(file);
  if (reader.end_of_start() == 0) return true;
  size_t segments = 0;
  // Wherever the decoder may come upon the marker: pixels never have these two bytes in a row.
  for (size_t i = reader.end_of_applications(); i + 1 < file.size(); ++i) {
    if (reader.at(i) != kJpegMarker || reader.at(i + 1) != kHuffmanTables) continue;
    if (++segments > kMaxSegments || !reader.is_sound(i + 2)) return false;
  }
  return true;
}

}  // namespace qplan::tools
