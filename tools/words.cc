#include "tools/words.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

namespace qplan::tools {
namespace {

// The least number of letters to change, add, leave out or swap with the next one (optimal string alignment).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t k = 0; k <= b.size(); ++k) d[0][k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t change = d[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1);
      d[i][k] = std::min({change, d[i - 1][k] + 1, d[i][k - 1] + 1});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
        d[i][k] = std::min(d[i][k], d[i - 2][k - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string dumped(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value) { return dumped(value, -1); }

std::string json_page(const nlohmann::ordered_json& value) { return dumped(value, 2) + "\n"; }

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string count_text(uint64_t count, std::string_view one, std::string_view many) {
  return grouped(count) + " " + std::string(count == 1 ? one : many);
}

std::string short_count(uint64_t number) {
  const char* const units[] = {"", " k", " M", " G", " T"};
  auto value = static_cast<double>(number);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, units[unit]);
  return text;
}

std::string time_text(uint64_t ns) {
  char text[32];
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) {
    std::snprintf(text, sizeof text, "%.2f us", value / 1e3);
  } else if (ns < 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.3f ms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.3f s", value / 1e9);
  }
  return text;
}

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    // Two blanks are the indentation that the printer gives each line after the first.
    const size_t word = lines.empty() || text.compare(begin, 2, "  ") != 0 ? begin : begin + 2;
    if (lines.empty() || word < end) lines.push_back(text.substr(word, end - word));
    begin = end + 1;
  }
  return lines;
}

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  const size_t allowed = word.size() <= 3 ? 1 : 2;
  std::string best;
  size_t best_distance = allowed + 1;
  for (const std::string& name : names) {
    const size_t d = distance(word, name);
    if (d < best_distance && d < name.size()) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace qplan::tools
