// How listings, JSON and errors write the names of operators and the formats of programs.
#ifndef QPLAN_SRC_BASE_LISTING_H_
#define QPLAN_SRC_BASE_LISTING_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace qplan {

// TFLite joins the names of operators that became one: "a;b;c" as "a;..+2". JSON and errors have the whole
// name.
inline std::string short_name(std::string_view name) {
  const size_t first = name.find(';');
  if (first == std::string_view::npos || first == 0) return std::string(name);
  return std::string(name.substr(0, first)) + ";..+" + std::to_string(std::ranges::count(name, ';'));
}

// The format of a program for a device: "VTA1", or hexadecimal where a byte is not printable, so that
// different formats have different texts.
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

// The format that has this text; 0 where none has.
inline uint32_t blob_format_of(const std::string& text) {
  uint32_t format = 0;
  for (size_t i = 0; i < 4 && text.size() == 4; ++i)
    format |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  for (size_t i = 2; i < 10 && text.size() == 10; ++i) {
    const size_t digit = std::string("0123456789abcdef").find(text[i]);
    if (digit == std::string::npos) return 0;
    format = format << 4 | static_cast<uint32_t>(digit);
  }
  return format;
}

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_LISTING_H_
