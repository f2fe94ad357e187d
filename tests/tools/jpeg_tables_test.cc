#include <gtest/gtest.h>

#include <string>

#include "tools/command.h"
#include "tools/image_decoder.h"
#include "tools/tensor.h"

namespace qplan::tools::jpeg_tables_test {
namespace {

std::string segment(char marker, const std::string& body) {
  const size_t length = body.size() + 2;
  return std::string("\xff") + marker + static_cast<char>(length >> 8) + static_cast<char>(length) + body;
}

// A table whose code lengths are all `length` bits; the values are zero.
std::string table(size_t length, size_t codes) {
  std::string body(1 + 16 + codes, '\0');
  for (size_t left = codes; left > 0; ++length) {
    const size_t some = left < 255 ? left : 255;
    body[length] = static_cast<char>(some);
    left -= some;
  }
  return body;
}

bool is_sound(const std::string& segments) {
  const std::string file = "\xff\xd8" + segments;
  return has_sound_huffman_tables({file.begin(), file.end()});
}

TEST(JpegTables, ATableHas256CodesAtMost) {
  EXPECT_TRUE(is_sound(segment('\xc4', table(8, 256))));
  EXPECT_FALSE(is_sound(segment('\xc4', table(8, 257))));
  // The second table of a segment, and one after other segments.
  EXPECT_TRUE(is_sound(segment('\xc4', table(3, 5) + table(8, 256))));
  EXPECT_FALSE(is_sound(segment('\xc4', table(3, 5) + table(8, 257))));
  EXPECT_FALSE(is_sound(segment('\xdb', std::string(65, '\1')) + segment('\xc4', table(8, 4080))));
  // Cut off in the counts: what is read past the end is zero.
  EXPECT_FALSE(is_sound(segment('\xc4', table(1, 300)).substr(0, 7)));
  EXPECT_TRUE(is_sound("\xff\xc4"));
}

// A thumbnail or a colour profile may hold any bytes; after the first other segment the decoder may look
// anywhere.
TEST(JpegTables, DataOfApplicationsIsPassedOver) {
  const std::string damaged = segment('\xc4', table(8, 257));
  EXPECT_TRUE(is_sound(segment('\xe1', damaged) + segment('\xfe', damaged)));
  EXPECT_FALSE(is_sound(segment('\xe1', "thumbnail") + damaged));
  EXPECT_FALSE(is_sound(segment('\xe1', damaged).substr(0, 2) + std::string("\0\1", 2) + damaged));
}

TEST(JpegTables, SegmentsAreCounted) {
  std::string segments;
  for (int i = 0; i < 1000; ++i) segments += segment('\xc4', table(1, 1));
  EXPECT_TRUE(is_sound(segments));
  EXPECT_FALSE(is_sound(segments + segment('\xc4', table(1, 1))));
}

// The decoder passes over bytes 255 before each marker, the first one too.
TEST(JpegTables, FillBytesMayStandBeforeMarkers) {
  const std::string damaged = segment('\xc4', table(8, 257));
  const std::string file = "\xff\xff\xff\xd8" + segment('\xe0', "data") + "\xff\xff" + damaged;
  EXPECT_FALSE(has_sound_huffman_tables({file.begin(), file.end()}));
  // Its scans are counted like those of any other.
  std::string scans = "\xff\xff\xd8";
  for (int i = 0; i < 501; ++i) scans += "\xff\xda";
  try {
    (void)decode_image({scans.begin(), scans.end()}, "a.jpg");
    ADD_FAILURE() << "501 scans";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "image 'a.jpg': has 501 scans, expected at most 500");
  }
}

TEST(JpegTables, WhatIsNoJpegHasNone) {
  const std::string damaged = segment('\xc4', table(8, 257));
  EXPECT_TRUE(has_sound_huffman_tables({}));
  EXPECT_TRUE(has_sound_huffman_tables({damaged.begin(), damaged.end()}));
}

TEST(JpegTables, TheDecoderDoesNotSeeDamagedOnes) {
  const std::string file = "\xff\xd8" + segment('\xc4', table(8, 4080));
  try {
    (void)decode_image({file.begin(), file.end()}, "a.jpg");
    ADD_FAILURE() << "4080 codes";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "image 'a.jpg': cannot be read as JPEG: its Huffman tables are damaged");
  }
}

}  // namespace
}  // namespace qplan::tools::jpeg_tables_test
