#include "src/packer/inspect/content_digest.h"

#include "src/base/sha256.h"

namespace qplan::inspect {

std::string hexadecimal(const uint8_t* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string content_digest(const format::PlanView& view) {
  // The header's file size and digest cover the names, its other fields do not.
  format::Header header = view.header();
  header.file_size = 0;
  for (uint8_t& byte : header.digest) byte = 0;
  Sha256 sha;
  sha.update(&header, sizeof(header));
  sha.update(view.bytes() + sizeof(header), static_cast<size_t>(header.content_size) - sizeof(header));
  uint8_t digest[Sha256::kDigestBytes];
  sha.finish(digest);
  return hexadecimal(digest, sizeof(digest));
}

}  // namespace qplan::inspect
