// Receivers for the library's qplan_write_fn.
#ifndef TOOLS_TEXT_SINK_H_
#define TOOLS_TEXT_SINK_H_

#include <cstddef>
#include <string>

#include "tools/files.h"

namespace qplan::tools {

// user is a std::string that grows.
inline void append_to_string(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

// To standard output; user is not used.
inline void write_to_stdout(void*, const char* bytes, size_t size) { print({bytes, size}); }

}  // namespace qplan::tools

#endif  // TOOLS_TEXT_SINK_H_
