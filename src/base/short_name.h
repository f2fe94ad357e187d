// Names in listings for people.
#ifndef QPLAN_SRC_BASE_SHORT_NAME_H_
#define QPLAN_SRC_BASE_SHORT_NAME_H_

#include <algorithm>
#include <string>
#include <string_view>

namespace qplan {

// TFLite joins the names of operators that became one: "a;b;c" as "a;..+2". JSON and errors have the whole
// name.
inline std::string short_name(std::string_view name) {
  const size_t first = name.find(';');
  if (first == std::string_view::npos || first == 0) return std::string(name);
  return std::string(name.substr(0, first)) + ";..+" + std::to_string(std::ranges::count(name, ';'));
}

}  // namespace qplan

#endif  // QPLAN_SRC_BASE_SHORT_NAME_H_
