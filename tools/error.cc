#include "tools/error.h"

#include <cstring>

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
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace qplan::tools
