// The error record of the runtime: a status, a place and one line of text, built without stdio or heap.
#ifndef QPLAN_SRC_BASE_ERROR_H_
#define QPLAN_SRC_BASE_ERROR_H_

#include <stddef.h>
#include <stdint.h>

#include "qplan/qplan.h"

namespace qplan {

// Fills a qplan_error. Texts vanish with -DQPLAN_ERROR_TEXTS=0; status, step and tensor stay.
//
// Every error and every line of the runtime's log is built here, and much of it comes from plans, drivers and
// callers. It is made printable here: one line of whole UTF-8 characters. A '?' replaces each byte that is
// not part of one, and each character that controls a terminal or ends a line.
class Error {
 public:
  Error() = default;

  // Starts a new error; the text is appended with <<. Returns *this so that `return error.set(...) << ...`
  // reads well.
  Error& set(qplan_status status, int32_t step = -1, int32_t tensor = -1) {
    record_.status = status;
    record_.step = step;
    record_.tensor = tensor;
    length_ = 0;
    record_.text[0] = '\0';
    return *this;
  }

  Error& operator<<(const char* text);
  Error& operator<<(int64_t value);
  Error& operator<<(uint64_t value);
  Error& operator<<(int32_t value) { return *this << static_cast<int64_t>(value); }
  Error& operator<<(uint32_t value) { return *this << static_cast<uint64_t>(value); }

  operator qplan_status() const { return record_.status; }  // NOLINT: `return error.set(...) << "...";`

  qplan_status status() const { return record_.status; }
  int32_t step() const { return record_.step; }
  int32_t tensor() const { return record_.tensor; }
  const char* text() const { return record_.text; }
  void set_step(int32_t step) { record_.step = step; }
  void set_status(qplan_status status) { record_.status = status; }
  // Copies the error as far as the caller's struct_size reaches. to may be null.
  void copy_to(qplan_error* to) const;

 private:
  void put(const char* bytes, uint32_t count);
  qplan_error record_ = {sizeof(qplan_error), QPLAN_OK, -1, -1, {0}};
  uint32_t length_ = 0;
};

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_ERROR_H_
