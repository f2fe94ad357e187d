#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/error.h"
#include "tools/reports.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

// The pieces between the commas that are in no bracket and no string, up to the bracket that closes what text
// is in; *end: its place.
std::vector<std::string> pieces(std::string_view text, size_t* end) {
  std::vector<std::string> list;
  std::string piece;
  int depth = 0;
  bool in_string = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      piece += c;
      if (c == '\\' && i + 1 < text.size()) {
        piece += text[++i];
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if ((c == ')' || c == ']') && depth-- == 0) break;
    if (c == '(' || c == '[') ++depth;
    in_string = c == '"';
    if (c == ',' && depth == 0) {
      list.push_back(std::move(piece));
      piece.clear();
    } else if (c != ' ' || !piece.empty()) {
      piece += c;
    }
  }
  if (!piece.empty()) list.push_back(std::move(piece));
  *end = i;
  return list;
}

// "  %3 = qnn.conv2d(%2, ..." -> "qnn.conv2d"; "" for what is no such statement.
std::string called_operator(std::string_view line) {
  if (line.substr(0, 3) != "  %") return "";
  const size_t begin = line.find(" = ");
  const size_t end = line.find('(', begin);
  if (begin == std::string_view::npos || end == std::string_view::npos || end <= begin + 3) return "";
  return std::string(line.substr(begin + 3, end - begin - 3));
}

}  // namespace

std::string ir_summary(const std::string& relay) {
  std::string text;
  std::map<std::string, uint64_t> counts;
  uint64_t total = 0;
  const std::string_view all = relay;
  constexpr std::string_view kMain = "def @main(";
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    begin = end + 1;
    if (line == "#[metadata]") break;
    if (line.substr(0, kMain.size()) == kMain) {
      size_t close = 0;
      for (const std::string& piece : pieces(line.substr(kMain.size()), &close)) {
        if (piece[0] == '%') text += "  input      " + one_line(piece.substr(1)) + "\n";
      }
      const std::string_view rest = line.substr(kMain.size() + close);
      const size_t arrow = rest.find("-> ");
      const size_t brace = rest.rfind(" {");
      if (arrow != std::string_view::npos && brace != std::string_view::npos && brace > arrow + 3) {
        text += "  output     " + one_line(std::string(rest.substr(arrow + 3, brace - arrow - 3))) + "\n";
      }
      continue;
    }
    const std::string op = called_operator(line);
    if (op.empty()) continue;
    ++counts[op];
    ++total;
  }
  std::vector<std::pair<std::string, uint64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  text += "  operators  " + std::to_string(total);
  for (size_t i = 0; i < order.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + order[i].first + " " + std::to_string(order[i].second);
  }
  return text + "\n";
}

}  // namespace qplan::tools
