// What the decoder of images does not notice: BMPs that end before their pixels do, and PNGs whose chunks are
// cut off or have other bytes than their checksums say.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/image_decoder.h"

namespace qplan::tools {
namespace {

using Bytes = std::vector<uint8_t>;

uint32_t little_endian(const Bytes& file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | file[at + i];
  return value;
}

uint32_t big_endian(const Bytes& file, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | file[at + i];
  return value;
}

std::string bmp_damage(const Bytes& file) {
  constexpr size_t kFields = 30;  // those below end there
  constexpr uint32_t kOldHeader = 12;
  if (file.size() < kFields) return "it ends within its header";
  const bool is_old = little_endian(file, 14, 4) == kOldHeader;  // OS/2's, with numbers of 16 bits
  const int64_t width =
      static_cast<int32_t>(is_old ? little_endian(file, 18, 2) : little_endian(file, 18, 4));
  const int64_t height =
      static_cast<int32_t>(is_old ? little_endian(file, 20, 2) : little_endian(file, 22, 4));
  const int64_t bits = little_endian(file, is_old ? 24 : 28, 2);
  if (width <= 0 || width > STBI_MAX_DIMENSIONS || height == 0 || bits > 32)
    return "";  // the decoder refuses
  // Rows fill whole groups of four bytes; the padding of the last one may be missing.
  const int64_t rows_before_last = std::llabs(height) - 1;
  const int64_t end =
      little_endian(file, 10, 4) + (width * bits + 31) / 32 * 4 * rows_before_last + (width * bits + 7) / 8;
  if (static_cast<int64_t>(file.size()) >= end) return "";
  return "it has " + std::to_string(file.size()) + " bytes, its pixels need " + std::to_string(end);
}

// CRC-32 as PNG, zip and Ethernet have it.
uint32_t crc_32(const uint8_t* bytes, size_t size) {
  static const std::array<uint32_t, 256> kRemainders = [] {
    std::array<uint32_t, 256> remainders{};
    for (uint32_t i = 0; i < remainders.size(); ++i) {
      uint32_t state = i;
      for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ (state & 1 ? 0xedb88320 : 0);
      remainders[i] = state;
    }
    return remainders;
  }();
  uint32_t state = 0xffffffff;
  for (size_t i = 0; i < size; ++i) state = state >> 8 ^ kRemainders[(state ^ bytes[i]) & 0xff];
  return ~state;
}

constexpr uint8_t kPngSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

std::string png_damage(const Bytes& file) {
  constexpr size_t kAround =
      12;  // the length and the type of a chunk before its bytes, the checksum after them
  for (size_t at = sizeof kPngSignature;;) {
    if (file.size() - at < kAround) return "it ends without its chunk IEND";
    const std::string type(reinterpret_cast<const char*>(file.data()) + at + 4, 4);
    const std::string chunk = "chunk " + type + " at byte " + std::to_string(at);
    const size_t length = big_endian(file, at);
    if (length > file.size() - at - kAround) return "it ends within its " + chunk;
    if (crc_32(file.data() + at + 4, 4 + length) != big_endian(file, at + 8 + length))
      return "its " + chunk + " has other bytes than its checksum says";
    if (type == "IEND") return "";
    at += kAround + length;
  }
}

}  // namespace

std::string image_damage(const Bytes& file) {
  if (file.size() >= 2 && file[0] == 'B' && file[1] == 'M') return bmp_damage(file);
  const bool is_png = file.size() >= sizeof kPngSignature &&
                      std::memcmp(file.data(), kPngSignature, sizeof kPngSignature) == 0;
  return is_png ? png_damage(file) : "";
}

}  // namespace qplan::tools
