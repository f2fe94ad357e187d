// Errors about files: "file 'model.qplan': No such file or directory".
#ifndef QPLAN_SRC_HOST_HOST_ERROR_H_
#define QPLAN_SRC_HOST_HOST_ERROR_H_

#include <cstring>
#include <string>
#include <system_error>

#include "qplan/qplan.h"
#include "src/base/error.h"

namespace qplan::host {

// Fills *error (may be null) and returns status.
inline qplan_status report(qplan_error* error, qplan_status status, const std::string& text) {
  Error record;
  record.set(status) << text.c_str();
  record.copy_to(error);
  return status;
}

// Long paths lose their beginning: the reason that follows must fit too.
inline std::string quoted_path(const std::string& path) {
  constexpr size_t kMaxBytes = 120;
  return path.size() <= kMaxBytes ? "'" + path + "'" : "'..." + path.substr(path.size() - kMaxBytes) + "'";
}

// errno_value: 0 where the reason says it all.
inline qplan_status file_error(qplan_error* error, const std::string& path, const std::string& reason,
                               int errno_value = 0) {
  std::string text = "file " + quoted_path(path) + ": " + reason;
  if (errno_value != 0) text += ": " + std::generic_category().message(errno_value);
  return report(error, QPLAN_FILE_ERROR, text);
}

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_HOST_ERROR_H_
