#include "src/base/error.h"

#include <string.h>

#include "src/base/printable.h"

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
