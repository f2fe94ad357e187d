#include "src/base/error.h"

#include <string.h>

#include "src/base/text.h"

namespace qplan {

// A character that does not fit as a whole ends the text; nothing follows it.
void Error::put(const char* bytes, uint32_t count) {
  if (length_ + count >= sizeof(text_)) {
    length_ = sizeof(text_) - 1;
    return;
  }
  memcpy(text_ + length_, bytes, count);
  length_ += count;
  text_[length_] = '\0';
}

#if QPLAN_ERROR_TEXTS
Error& Error::operator<<(const char* text) {
  while (*text != '\0') {
    const uint32_t count = printable_bytes(text);
    if (count > 0) {
      put(text, count);
    } else {
      put("?", 1);
    }
    text += count > 0 ? count : 1;
  }
  return *this;
}

Error& Error::operator<<(uint64_t value) {
  char digits[20];
  uint32_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) put(&digits[--count], 1);
  return *this;
}

Error& Error::operator<<(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= 0) return *this << bits;
  return *this << "-" << (0 - bits);
}

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

Error& operator<<(Error& error, Bracketed list) {
  error << "[";
  for (uint32_t i = 0; i < list.count; ++i) error << (i > 0 ? ", " : "") << list.values[i];
  return error << "]";
}
#endif

void Error::copy_to(qplan_error* to) const {
  if (to == nullptr || to->struct_size < offsetof(qplan_error, text)) return;
  if (to->struct_size > sizeof(*to)) to->struct_size = sizeof(*to);
  to->status = status_;
  to->step = step_;
  to->tensor = tensor_;
  const size_t room = to->struct_size - offsetof(qplan_error, text);
  if (room == 0) return;
  const size_t bytes = sizeof(text_) < room ? sizeof(text_) : room;
  memcpy(to->text, text_, bytes);
  to->text[bytes - 1] = '\0';
}

}  // namespace qplan
