#include "src/packer/partition/explain_html.h"

#include <nlohmann/json.hpp>

#include "src/packer/error.h"
#include "src/packer/ir/json_depth.h"
#include "src/packer/partition/explain_page.h"

namespace qplan::partition {
namespace {

using Json = nlohmann::ordered_json;

// Text of an element.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

// JSON as the text of a script element: nothing in it can end the element or begin a comment, and it stays
// the same JSON, for these characters stand in strings only.
std::string embedded(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        result += "\\u003c";
        break;
      case '>':
        result += "\\u003e";
        break;
      case '&':
        result += "\\u0026";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace

std::string explain_html(std::string_view json, std::string_view title) {
  Json data = ir::exceeds_json_depth(json) ? Json() : Json::parse(json, nullptr, false);
  if (!data.is_object() || !data.contains("units")) {
    throw PackError(QPLAN_MODEL_INVALID,
                    "explain: the placement is no JSON of this program's; pack the plan again");
  }
  // Bytes of a name that are no UTF-8 become U+FFFD, in the data as in the title.
  const auto utf8 = [](const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  data["title"] = Json::parse(utf8(std::string(title))).get<std::string>();
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Whatever a model calls its operators: the page runs its own script and loads nothing.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n<title>";
  page += escaped(data["title"].get<std::string>());
  page += ": placement</title>\n<style>\n";
  page += kPageStyle;
  page += "</style>\n</head>\n";
  page += kPageBody;
  page += "<script type=\"application/json\" id=\"data\">";
  page += embedded(utf8(data));
  page += "</script>\n<script>\n'use strict';\n";
  page += kPageLayout;
  page += kPageScript;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace qplan::partition
