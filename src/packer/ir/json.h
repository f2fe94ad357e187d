// JSON as the packer reads and writes it. The library's parser and printer are templates, which take a
// compiler two seconds in each file that uses them: they are compiled here only.
#ifndef QPLAN_SRC_PACKER_IR_JSON_H_
#define QPLAN_SRC_PACKER_IR_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace qplan::ir {

using Json = nlohmann::ordered_json;

// JSON of this project nests at most ten deep.
inline constexpr size_t kMaxJsonDepth = 64;

// Whether more than kMaxJsonDepth brackets are open somewhere in the text, which need not be JSON otherwise.
// parse_json refuses such a text; who asks first can say so.
bool exceeds_json_depth(std::string_view text);

// The document; is_discarded() where the text is not JSON, or nests too deep: the parser itself does not
// recurse, but copying and printing its values does, and a file of brackets would use up the stack. bad_byte:
// where the text is not JSON, the number of the byte that shows it, from 1; unchanged otherwise.
Json parse_json(std::string_view text, size_t* bad_byte = nullptr);

// On one line, or with so many spaces for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_JSON_H_
