#include "src/vta/sim/text.h"

#include <algorithm>
#include <cstring>

namespace qplan::sim {

std::string hexadecimal(uint64_t number) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[number & 15]);
    number >>= 4;
  } while (number != 0);
  return "0x" + text;
}

bool parse_number(std::string_view text, uint64_t* number) {
  uint32_t base = 10;
  if (text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return false;
  uint64_t value = 0;
  for (const char c : text) {
    uint32_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<uint32_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') digit = static_cast<uint32_t>(c - 'A' + 10);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return false;
    value = value * base + digit;
  }
  *number = value;
  return true;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

void copy_text(const std::string& from, char* to, size_t size) {
  const size_t kept = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), kept);
  to[kept] = '\0';
}

void give_reason(qplan_npu_reason* why, const std::string& text, int64_t limit, int64_t actual) {
  if (why == nullptr) return;
  *why = {};
  why->place = UINT32_MAX;
  why->limit = limit;
  why->actual = actual;
  copy_text(text, why->text, sizeof(why->text));
}

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c >= ' ' && c <= '~') {
      json += c;
    } else {
      json += "\\ufffd";
    }
  }
  return json + "\"";
}

}  // namespace qplan::sim
