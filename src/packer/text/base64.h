// Base64 with padding (RFC 4648, section 4).
#ifndef QPLAN_SRC_PACKER_TEXT_BASE64_H_
#define QPLAN_SRC_PACKER_TEXT_BASE64_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qplan::text {

std::string base64_encode(std::span<const uint8_t> bytes);
// Nothing where a character or the length is wrong.
std::optional<std::vector<uint8_t>> base64_decode(std::string_view text);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_BASE64_H_
