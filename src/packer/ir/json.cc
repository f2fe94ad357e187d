#include "src/packer/ir/json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/ir/cat.h"

namespace qplan::ir {

namespace {

// Calls visit(c, depth) for each bracket and comma that is in no string, until it returns false. depth: the
// number of brackets that are open after c. Returns whether all were visited.
template <typename Visit>
bool visit_structure(std::string_view text, const Visit& visit) {
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
      if (!visit(c, ++depth)) return false;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ',') {
      if (!visit(c, depth)) return false;
    }
  }
  return true;
}

bool has_too_large_objects(std::string_view text, size_t max_members) {
  struct Open {
    bool is_object;
    size_t commas;
  };
  std::vector<Open> open;
  return !visit_structure(text, [&](char c, size_t depth) {
    if (c == ',') return depth == 0 || !open[depth - 1].is_object || ++open[depth - 1].commas < max_members;
    open.resize(depth);
    open.back() = {c == '{', 0};
    return true;
  });
}

// Document: the kind of the library's values that the text is read into.
template <typename Document>
Json parse(std::string_view text, size_t max_members, std::string* reason) {
  const auto refuse = [&](std::string why) {
    if (reason != nullptr) *reason = std::move(why);
    return Json(Json::value_t::discarded);
  };
  if (exceeds_json_depth(text)) return refuse(cat("nests more than ", kMaxJsonDepth, " deep"));
  if (has_too_large_objects(text, max_members))
    return refuse(cat("has an object of more than ", max_members, " members"));
  try {
    return Document::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    return refuse(cat("is not JSON (byte ", error.byte, ")"));
  } catch (const nlohmann::json::exception&) {
    return refuse("has a number that no double holds");
  }
}

}  // namespace

bool exceeds_json_depth(std::string_view text, size_t max_depth) {
  return !visit_structure(text, [&](char, size_t depth) { return depth <= max_depth; });
}

Json parse_json(std::string_view text, std::string* reason) {
  return parse<Json>(text, kMaxJsonMembers, reason);
}

// Values that keep the order of members compare each new one with all before it.
Json parse_sorted_json(std::string_view text, size_t max_members, std::string* reason) {
  return parse<nlohmann::json>(text, max_members, reason);
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qplan::ir
