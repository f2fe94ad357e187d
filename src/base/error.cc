#include "src/base/error.h"

#include <string.h>

#include "src/base/printable.h"

#ifndef QPLAN_ERROR_TEXTS
#define QPLAN_ERROR_TEXTS 1
#endif

namespace qplan {

// A character that does not fit as a whole ends the text; nothing follows it.
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
