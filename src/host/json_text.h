// Text as a JSON string.
#ifndef QPLAN_SRC_HOST_JSON_TEXT_H_
#define QPLAN_SRC_HOST_JSON_TEXT_H_

#include <string>
#include <string_view>

namespace qplan::host {

// With its quotes. Bytes that are not UTF-8 become U+FFFD: names come from model files.
std::string json_string(std::string_view text);

}  // namespace qplan::host

#endif  // QPLAN_SRC_HOST_JSON_TEXT_H_
