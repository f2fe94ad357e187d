
#include "src/packer/error.h"
#include "src/packer/ir/json.h"
#include "src/packer/partition/embedded.h"
#include "src/packer/partition/explain.h"

namespace qplan::partition {
namespace {

using ir::Json;

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
// the same JSON, because these characters occur in strings only.
std::string script_text(const std::string& json) {
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

// The page with `text_of(name)` where {{name}} stands.
template <typename Function>
std::string filled(std::string_view page, Function text_of) {
  std::string result;
  for (size_t begin; (begin = page.find("{{")) != std::string_view::npos;) {
    const size_t end = page.find("}}", begin);
    result += page.substr(0, begin);
    result += text_of(page.substr(begin + 2, end - begin - 2));
    page.remove_prefix(end + 2);
  }
  return result += page;
}

// The plan's steps on the CPU with the kernel of each instruction set, as the page shows them. Layers of a
// cascade are rows of their own.
Json cpu_steps(std::string_view plan) {
  Json rows = Json::array();
  if (plan.empty()) return rows;
  std::string reason = "has no steps";
  const Json inspected = ir::parse_json(plan, &reason);
  if (!inspected.is_object() || !inspected.contains("steps")) {
    throw PackError(QPLAN_MODEL_INVALID,
                    "explain: what inspect states of the plan " + reason + "; pack the plan again");
  }
  for (const Json& step : inspected.at("steps")) {
    if (!step.contains("variants")) continue;
    const auto add = [&](const Json& of, const std::string& index) {
      rows.push_back({{"step", index},
                      {"op", of.at("op")},
                      {"name", of.value("name", "")},
                      {"macs", of.value("macs", uint64_t{0})},
                      {"variants", of.value("variants", Json::array())}});
    };
    const std::string index = std::to_string(step.at("index").get<uint64_t>());
    add(step, index);
    if (!step.contains("layers")) continue;
    for (size_t i = 0; i < step["layers"].size(); ++i)
      add(step["layers"][i], index + "." + std::to_string(i));
  }
  return rows;
}

}  // namespace

std::string explain_html(std::string_view json, std::string_view title, std::string_view plan) {
  std::string reason = "has no units";
  Json data = ir::parse_json(json, &reason);
  if (!data.is_object() || !data.contains("units"))
    throw PackError(QPLAN_MODEL_INVALID, "explain: the placement " + reason + "; pack the plan again");
  // Bytes of a name that are no UTF-8 become U+FFFD, in the data as in the title.
  data["title"] = ir::parse_json(ir::json_text(std::string(title))).get<std::string>();
  data["cpu_steps"] = cpu_steps(plan);
  return filled(embedded::kExplainHtml, [&](std::string_view name) -> std::string {
    if (name == "title") return escaped(data["title"].get<std::string>());
    if (name == "explain.css") return embedded::kExplainCss;
    if (name == "data") return script_text(ir::json_text(data));
    if (name == "page.js") return embedded::kPageJs;
    if (name == "explain_layout.js") return embedded::kExplainLayoutJs;
    return embedded::kExplainJs;
  });
}

}  // namespace qplan::partition
