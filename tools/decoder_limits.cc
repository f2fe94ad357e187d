#include "tools/decoder_limits.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace qplan::tools {
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
