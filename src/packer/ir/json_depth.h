// JSON of users and files is bounded in depth before it is parsed: the parser itself does not recurse, but
// copying and printing its values does, and a file of brackets would use up the stack.
#ifndef QPLAN_SRC_PACKER_IR_JSON_DEPTH_H_
#define QPLAN_SRC_PACKER_IR_JSON_DEPTH_H_

#include <cstddef>
#include <string_view>

namespace qplan::ir {

// JSON of this project nests at most ten deep.
inline constexpr size_t kMaxJsonDepth = 64;

// Whether more than kMaxJsonDepth brackets are open somewhere in the text, which need not be JSON otherwise.
inline bool exceeds_json_depth(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;  // what is escaped ends nothing
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_JSON_DEPTH_H_
