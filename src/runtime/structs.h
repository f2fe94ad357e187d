// Structs that cross the C API: each begins with struct_size, and what lies beyond the caller's struct_size
// counts as zero when it comes in and is not written when it goes out.
#ifndef QPLAN_SRC_RUNTIME_STRUCTS_H_
#define QPLAN_SRC_RUNTIME_STRUCTS_H_

#include <stdint.h>
#include <string.h>

#include "qplan/qplan.h"

namespace qplan {

template <typename Struct>
inline Struct known_fields(const Struct* from) {
  Struct to;
  memset(&to, 0, sizeof(to));
  if (from != nullptr) memcpy(&to, from, from->struct_size < sizeof(to) ? from->struct_size : sizeof(to));
  return to;
}

// False when the caller left struct_size unset: then nothing can be told.
template <typename Struct>
[[nodiscard]] inline bool fill_fields(Struct from, Struct* to) {
  if (to->struct_size <= sizeof(to->struct_size)) return false;
  from.struct_size = to->struct_size < sizeof(from) ? to->struct_size : uint32_t{sizeof(from)};
  memcpy(to, &from, from.struct_size);
  return true;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_STRUCTS_H_
