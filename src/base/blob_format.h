// The format of a program for a device, as listings, JSON and errors write it.
#ifndef QPLAN_SRC_BASE_BLOB_FORMAT_H_
#define QPLAN_SRC_BASE_BLOB_FORMAT_H_

#include <cstdint>
#include <string>

namespace qplan {

// "VTA1", or hexadecimal where a byte is not printable, so that different formats have different texts.
inline std::string four_characters(uint32_t format) {
  std::string text, digits = "0x";
  bool is_printable = true;
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    const auto byte = static_cast<unsigned char>(format >> shift);
    is_printable = is_printable && byte >= 0x20 && byte < 0x7f;
    text += static_cast<char>(byte);
  }
  if (is_printable) return text;
  for (uint32_t shift = 32; shift > 0; shift -= 4) digits += "0123456789abcdef"[format >> (shift - 4) & 15];
  return digits;
}

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_BLOB_FORMAT_H_
