#include "tools/jpeg_tables.h"

#include <cstddef>

namespace qplan::tools {
namespace {

constexpr uint8_t kMarker = 0xff, kStartOfImage = 0xd8, kHuffmanTables = 0xc4, kComment = 0xfe;
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
    while (at(i) == kMarker) ++i;
    return i > 0 && at(i) == kStartOfImage ? i + 1 : 0;
  }

  // Where the comments and the data of applications at the beginning end: thumbnails and colour profiles may
  // hold any bytes.
  size_t end_of_applications() const {
    size_t i = end_of_start();
    for (;;) {
      size_t marker = i;
      while (at(marker) == kMarker && at(marker + 1) == kMarker) ++marker;
      const bool skipped = is_application(at(marker + 1)) || at(marker + 1) == kComment;
      if (at(marker) != kMarker || !skipped || length_at(marker + 2) < 2) return i;
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
    if (reader.at(i) != kMarker || reader.at(i + 1) != kHuffmanTables) continue;
    if (++segments > kMaxSegments || !reader.is_sound(i + 2)) return false;
  }
  return true;
}

}  // namespace qplan::tools
