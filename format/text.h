// Text without stdio: comparison, names of kernels, and pieces of error texts that come from untrusted bytes.
#ifndef QPLAN_FORMAT_TEXT_H_
#define QPLAN_FORMAT_TEXT_H_

#include <stdint.h>

#include "src/base/error.h"

namespace qplan::format {

// 'text', or nothing at all for "". Long texts end in "..."; Error makes them printable.
struct Quoted {
  const char* text;
};
#if QPLAN_ERROR_TEXTS
Error& operator<<(Error& error, Quoted quoted);
#endif

// " 'text'" after a noun, or nothing at all for "".
struct Named {
  const char* text;
};
#if QPLAN_ERROR_TEXTS
Error& operator<<(Error& error, Named named);
#endif

// "[1, 2, 3]"
struct Extents {
  const int64_t* extents;
  uint32_t count;
};
#if QPLAN_ERROR_TEXTS
Error& operator<<(Error& error, Extents shape);
#endif

inline bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// "conv2d"; `unknown` where this build does not know the kernel.
constexpr const char* kernel_name(uint16_t kernel, const char* unknown) {
  switch (kernel) {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  case id:                                                       \
    return #family;
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return unknown;
  }
}

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_TEXT_H_
