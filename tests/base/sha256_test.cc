#include "src/base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace qplan {
namespace {

// The digest of a text that is handed over in pieces of so many bytes.
std::string digest(const std::string& text, size_t piece) {
  Sha256 sha;
  for (size_t i = 0; i < text.size(); i += piece) {
    sha.update(text.data() + i, std::min(piece, text.size() - i));
  }
  uint8_t bytes[Sha256::kDigestBytes];
  sha.finish(bytes);
  std::string hex;
  for (const uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    hex += digits;
  }
  return hex;
}

// FIPS 180-4's examples and NIST's long one.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

// Long pieces are hashed by the processor's instructions where it has them, short ones never are.
TEST(Sha256, PiecesOfEveryLengthGiveOneDigest) {
  const std::string text(1000000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  for (const size_t piece :
       {size_t{63}, size_t{64}, size_t{8191}, size_t{8192}, size_t{8193}, size_t{20001}, size_t{1000000}}) {
    EXPECT_EQ(digest(text, piece), expected) << piece;
  }
}

}  // namespace
}  // namespace qplan
