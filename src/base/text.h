// Text without stdio and heap: which bytes may go to a terminal or a log, as names in models and plans may
// hold anything, comparison, and lines in a caller's buffer.
#ifndef QPLAN_SRC_BASE_TEXT_H_
#define QPLAN_SRC_BASE_TEXT_H_

#include <stdint.h>

namespace qplan {

// A code point that neither controls a terminal nor ends a line nor turns the direction of what follows.
inline bool is_printable(uint32_t character) {
  if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;  // C0, DEL, C1
  return !(character >= 0x2028 && character <= 0x202e) && !(character >= 0x2066 && character <= 0x2069);
}

// Bytes of the printable character of UTF-8 that text begins with; 0 where it begins with none. text ends in
// NUL.
inline uint32_t printable_bytes(const char* text) {
  const auto byte = [text](uint32_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t first = byte(0);
  uint32_t count = 1, character = first, least = 0;
  if (first >= 0xc0 && first < 0xe0) {
    count = 2, character = first & 0x1f, least = 0x80;
  } else if (first >= 0xe0 && first < 0xf0) {
    count = 3, character = first & 0x0f, least = 0x800;
  } else if (first >= 0xf0 && first < 0xf8) {
    count = 4, character = first & 0x07, least = 0x10000;
  } else if (first >= 0x80) {
    return 0;
  }
  // The NUL at the end is not a continuation byte, so nothing after it is read.
  for (uint32_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3f);
  }
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return character < least || is_surrogate || character > 0x10ffff || !is_printable(character) ? 0 : count;
}

// The text with '?' for each byte that is not part of a printable character. String: std::string.
template <typename String>
String printable(const String& text, bool keep_line_feeds = false) {
  String result;
  result.reserve(text.size());
  for (decltype(text.size()) at = 0; at < text.size();) {
    const uint32_t count = printable_bytes(text.c_str() + at);
    if (count > 0) {
      result.append(text, at, count);
    } else {
      result.push_back(keep_line_feeds && text[at] == '\n' ? '\n' : '?');
    }
    at += count > 0 ? count : 1;
  }
  return result;
}

inline bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// Writes a line of text into a caller's buffer: always terminated, cut where the buffer ends.
class LineWriter {
 public:
  LineWriter(char* to, uint32_t bytes) : to_(to), bytes_(bytes) { to_[0] = '\0'; }
  LineWriter& operator<<(const char* text) {
    for (; *text != '\0'; ++text) put(*text);
    return *this;
  }
  LineWriter& operator<<(uint64_t number) {
    char digits[20];
    uint32_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  void hexadecimal(uint64_t number) {
    *this << "0x";
    uint32_t shift = 60;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    for (;; shift -= 4) {
      put("0123456789abcdef"[number >> shift & 15]);
      if (shift == 0) return;
    }
  }
  void pad_to(uint32_t column) {
    while (at_ < column) put(' ');
  }

 private:
  void put(char c) {
    if (at_ + 1 >= bytes_) return;
    to_[at_++] = c;
    to_[at_] = '\0';
  }
  char* to_;
  uint32_t bytes_;
  uint32_t at_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_TEXT_H_
