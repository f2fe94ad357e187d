#include "src/base/error.h"

#include <string.h>

#ifndef QPLAN_ERROR_TEXTS
#define QPLAN_ERROR_TEXTS 1
#endif

namespace qplan {
namespace {

#if QPLAN_ERROR_TEXTS
bool is_printable(uint32_t character) {
  if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;  // C0, DEL, C1
  // Ends of lines and paragraphs, and marks that turn the direction of what follows.
  return !(character >= 0x2028 && character <= 0x202e) && !(character >= 0x2066 && character <= 0x2069);
}

// Bytes of the printable character of UTF-8 that text begins with; 0 where it begins with none.
uint32_t printable_bytes(const char* text) {
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
  // The NUL at the end is no continuation: nothing behind it is read.
  for (uint32_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3f);
  }
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return character < least || is_surrogate || character > 0x10ffff || !is_printable(character) ? 0 : count;
}
#endif

}  // namespace

// What does not fit as a whole ends the text: no half character, and nothing after it.
void Error::put(const char* bytes, uint32_t count) {
  if (length_ + count >= sizeof(record_.text)) {
    length_ = sizeof(record_.text) - 1;
    return;
  }
  memcpy(record_.text + length_, bytes, count);
  length_ += count;
  record_.text[length_] = '\0';
}

Error& Error::operator<<(const char* text) {
#if QPLAN_ERROR_TEXTS
  while (*text != '\0') {
    const uint32_t count = printable_bytes(text);
    if (count > 0) {
      put(text, count);
    } else {
      put("?", 1);
    }
    text += count > 0 ? count : 1;
  }
#else
  (void)text;
#endif
  return *this;
}

Error& Error::operator<<(uint64_t value) {
#if QPLAN_ERROR_TEXTS
  char digits[20];
  uint32_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) put(&digits[--count], 1);
#else
  (void)value;
#endif
  return *this;
}

Error& Error::operator<<(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= 0) return *this << bits;
  return *this << "-" << (0 - bits);
}

void Error::copy_to(qplan_error* to) const {
  if (to == nullptr || to->struct_size < offsetof(qplan_error, text)) return;
  const uint32_t size = to->struct_size < sizeof(record_) ? to->struct_size : sizeof(record_);
  memcpy(to, &record_, size);
  to->struct_size = size;
  const size_t text_bytes = size - offsetof(qplan_error, text);
  if (text_bytes > 0) to->text[text_bytes - 1] = '\0';
}

}  // namespace qplan
