// Texts of errors: whatever they are made of, they are one line that a terminal prints unchanged.
#include "src/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace qplan::error_test {
namespace {

std::string text_of(const char* piece) {
  Error error;
  error << "a" << piece << "z";
  return error.text();
}

TEST(ErrorText, KeepsCharactersOfUtf8) {
  EXPECT_EQ(text_of("conv 'b\xc3\xa9ta' \xe2\x86\x92 \xf0\x9f\x98\x80"),
            "aconv 'b\xc3\xa9ta' \xe2\x86\x92 \xf0\x9f\x98\x80z");
}

TEST(ErrorText, ReplacesControlCharacters) {
  EXPECT_EQ(text_of("1\n2\r3\t4\x1b[31m5\x7f"), "a1?2?3?4?[31m5?z");
  EXPECT_EQ(text_of("\xc2\x9b"
                    "31m"),
            "a??31mz")
      << "CSI as one character";
  EXPECT_EQ(text_of("\xe2\x80\xa8"), "a???z") << "line separator";
  EXPECT_EQ(text_of("\xe2\x80\xae"), "a???z") << "right-to-left override";
}

TEST(ErrorText, ReplacesBytesThatAreNoCharacter) {
  EXPECT_EQ(text_of("\x80\xbf"), "a??z") << "continuations alone";
  EXPECT_EQ(text_of("\xc3"), "a?z") << "a character that ends with the text";
  EXPECT_EQ(text_of("\xe2\x86"), "a??z");
  EXPECT_EQ(text_of("\xc0\xaf\xe0\x80\xaf"), "a?????z") << "longer than needed";
  EXPECT_EQ(text_of("\xed\xa0\x80"), "a???z") << "a surrogate";
  EXPECT_EQ(text_of("\xf4\x90\x80\x80\xff"), "a?????z") << "beyond U+10FFFF";
}

TEST(ErrorText, EndsWithAWholeCharacter) {
  for (size_t before = 230; before < 245; ++before) {
    Error error;
    error << std::string(before, 'x').c_str() << "\xe2\x86\x92"
          << "tail";
    std::string whole = std::string(before, 'x') + "\xe2\x86\x92" + "tail";
    const std::string text = error.text();
    ASSERT_LT(text.size(), sizeof(qplan_error::text));
    if (before >= 239) {
      EXPECT_EQ(text, std::string(239, 'x'));
    } else if (before + 3 > 239) {
      EXPECT_EQ(text, std::string(before, 'x')) << "no half character, and nothing after it";
    } else {
      EXPECT_EQ(text, whole.substr(0, 239));
    }
  }
}

}  // namespace
}  // namespace qplan::error_test
