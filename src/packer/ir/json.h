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

// JSON of this project nests at most ten deep, and its objects have at most a hundred members.
inline constexpr size_t kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonMembers = 10'000;

// Whether more than so many brackets are open somewhere in the text, which need not be JSON otherwise.
bool exceeds_json_depth(std::string_view text, size_t max_depth = kMaxJsonDepth);

// The document. It is_discarded() if the text is not JSON, if it nests too deep (copying and printing values
// recurse) or if an object has more than kMaxJsonMembers members (finding one takes time in proportion to
// their number). reason: set to why, as what follows the text's name in a sentence: "is not JSON (byte 5)",
// where bytes count from 1; otherwise unchanged.
Json parse_json(std::string_view text, std::string* reason = nullptr);

// The same for large objects: their members are in the order of their names.
Json parse_sorted_json(std::string_view text, size_t max_members, std::string* reason = nullptr);

// On one line, or with so many spaces for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_JSON_H_
