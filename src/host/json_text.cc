#include "src/host/json_text.h"

#include <cstddef>
#include <cstdint>

namespace qplan::host {
namespace {

// Bytes of the UTF-8 sequence at the beginning of text; 0 when it is none (RFC 3629: shortest form, no
// surrogates).
size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f)) return 0;
  return length;
}

}  // namespace

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string json = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto byte = static_cast<uint8_t>(text[0]);
    if (length == 0) {
      json += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    if (byte == '"' || byte == '\\') {
      json += {'\\', text[0]};
    } else if (byte < 0x20 || byte == 0x7f) {
      json += "\\u00";
      json += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return json + '"';
}

}  // namespace qplan::host
