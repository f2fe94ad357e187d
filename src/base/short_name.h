// Names in listings for people.
#ifndef QPLAN_SRC_BASE_SHORT_NAME_H_
#define QPLAN_SRC_BASE_SHORT_NAME_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
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

// A blob format: "VTA1", or hexadecimal where a byte is not printable, so that different formats have
// different texts.
inline std::string four_characters(uint32_t format) {
  std::string text;
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    const auto byte = static_cast<unsigned char>(format >> shift);
    if (byte < 0x20 || byte >= 0x7f) {
      char digits[16];
      std::snprintf(digits, sizeof digits, "0x%08x", static_cast<unsigned>(format));
      return digits;
    }
    text += static_cast<char>(byte);
  }
  return text;
}

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_SHORT_NAME_H_
