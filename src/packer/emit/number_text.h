// Floats as C reads them, in whatever locale the process is: printf would write its decimal point.
#ifndef QPLAN_SRC_PACKER_EMIT_NUMBER_TEXT_H_
#define QPLAN_SRC_PACKER_EMIT_NUMBER_TEXT_H_

#include <charconv>
#include <cmath>
#include <string>

namespace qplan::emit {

// A finite float as a constant of C99 with the same bits: "0x1.8p-1f", "-0x0p+0f".
inline std::string hex_float(float value) {
  char text[40];
  const float magnitude = std::fabs(value);
  const auto end = std::to_chars(text, text + sizeof(text), magnitude, std::chars_format::hex).ptr;
  return std::string(std::signbit(value) ? "-0x" : "0x") + std::string(text, end) + "f";
}

// With six digits after the point, for comments.
inline std::string decimal_text(float value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, 6).ptr;
  return std::string(text, end);
}

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_EMIT_NUMBER_TEXT_H_
