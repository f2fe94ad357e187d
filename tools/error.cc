#include "tools/error.h"

#include <cstring>

#include "src/base/printable.h"

namespace qplan::tools {

qplan_error make_error() {
  qplan_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  error.step = -1;
  error.tensor = -1;
  return error;
}

void check(qplan_status status, const qplan_error& error, const std::string& where) {
  if (status >= 0) return;
  const std::string text = error.text[0] != '\0' ? error.text : qplan_status_name(status);
  throw Failure(where.empty() ? text : where + ": " + text);
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return printable(text);
}

}  // namespace qplan::tools
