// Writes a line of text into a caller's buffer: always terminated, cut where the buffer ends.
#ifndef QPLAN_SRC_BASE_LINE_WRITER_H_
#define QPLAN_SRC_BASE_LINE_WRITER_H_

#include <stdint.h>

namespace qplan {

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

#endif  // QPLAN_SRC_BASE_LINE_WRITER_H_
