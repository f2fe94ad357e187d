// The error record of the runtime: a status, a place and one line of text, built without stdio or heap.
#ifndef QPLAN_SRC_BASE_ERROR_H_
#define QPLAN_SRC_BASE_ERROR_H_

#include <stddef.h>
#include <stdint.h>

#include "qplan/qplan.h"

namespace qplan {

#ifndef QPLAN_ERROR_TEXTS
#define QPLAN_ERROR_TEXTS 1
#endif

// Bytes of a text with its end: those of qplan_error, on small devices, where every session and every call
// has one, fewer.
inline constexpr size_t kErrorTextBytes = QPLAN_ERROR_TEXTS == 0 ? 1
                                          : sizeof(void*) == 8   ? sizeof(qplan_error::text)
                                                                 : 88;

// Becomes a qplan_error. Texts vanish with -DQPLAN_ERROR_TEXTS=OFF; status, step and tensor stay.
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
    status_ = status;
    step_ = step;
    tensor_ = tensor;
    length_ = 0;
    text_[0] = '\0';
    return *this;
  }

#if QPLAN_ERROR_TEXTS
  Error& operator<<(const char* text);
  Error& operator<<(int64_t value);
  Error& operator<<(uint64_t value);
  Error& operator<<(int32_t value) { return *this << static_cast<int64_t>(value); }
  Error& operator<<(uint32_t value) { return *this << static_cast<uint64_t>(value); }
#else
  template <typename T>
  Error& operator<<(const T&) {
    return *this;
  }
#endif

  operator qplan_status() const { return status_; }  // NOLINT: `return error.set(...) << "...";`

  qplan_status status() const { return status_; }
  int32_t step() const { return step_; }
  int32_t tensor() const { return tensor_; }
  const char* text() const { return text_; }
  void set_step(int32_t step) { step_ = step; }
  void set_status(qplan_status status) { status_ = status; }
  // Copies the error as far as the caller's struct_size reaches. to may be null.
  void copy_to(qplan_error* to) const;

 private:
  void put(const char* bytes, uint32_t count);
  qplan_status status_ = QPLAN_OK;
  int32_t step_ = -1;
  int32_t tensor_ = -1;
  uint32_t length_ = 0;
  char text_[kErrorTextBytes] = {0};
};

// Pieces of texts that come from untrusted bytes.

// 'text', or nothing at all for "". Long texts end in "..."; Error makes them printable.
struct Quoted {
  const char* text;
};

// " 'text'" after a noun, or nothing at all for "".
struct Named {
  const char* text;
};

// "[1, 2, 3]"
struct Bracketed {
  const int64_t* values;
  uint32_t count;
};

#if QPLAN_ERROR_TEXTS
Error& operator<<(Error& error, Quoted quoted);
Error& operator<<(Error& error, Named named);
Error& operator<<(Error& error, Bracketed list);
#endif

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_ERROR_H_
