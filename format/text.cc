#include "format/text.h"

#if QPLAN_ERROR_TEXTS

namespace qplan::format {

Error& operator<<(Error& error, Quoted quoted) {
  constexpr uint32_t kMaxBytes = 60;
  if (quoted.text == nullptr || quoted.text[0] == '\0') return error;
  char text[kMaxBytes + 1];
  uint32_t size = 0;
  for (; size < kMaxBytes && quoted.text[size] != '\0'; ++size) text[size] = quoted.text[size];
  // Not within a character of UTF-8.
  while (size > 0 && (static_cast<uint8_t>(quoted.text[size]) & 0xc0) == 0x80) --size;
  text[size] = '\0';
  return error << "'" << text << (quoted.text[size] == '\0' ? "'" : "...'");
}

Error& operator<<(Error& error, Named named) {
  if (named.text == nullptr || named.text[0] == '\0') return error;
  return error << " " << Quoted{named.text};
}

Error& operator<<(Error& error, Extents shape) {
  error << "[";
  for (uint32_t i = 0; i < shape.count; ++i) error << (i > 0 ? ", " : "") << shape.extents[i];
  return error << "]";
}

}  // namespace qplan::format

#endif
