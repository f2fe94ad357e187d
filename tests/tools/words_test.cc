#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/listing.h"
#include "tools/command.h"

namespace qplan::tools::words_test {
namespace {

using Lines = std::vector<std::string>;

TEST(Words, CountsAgreeWithTheirNoun) {
  EXPECT_EQ(count_text(0, "run", "runs"), "0 runs");
  EXPECT_EQ(count_text(1, "run", "runs"), "1 run");
  EXPECT_EQ(count_text(2, "copy", "copies"), "2 copies");
}

TEST(Words, NumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(1000), "1.00 k");
  EXPECT_EQ(short_count(12345), "12.3 k");
  EXPECT_EQ(short_count(300774272), "301 M");
  EXPECT_EQ(short_count(999999999), "1.00 G");
}

TEST(Words, TimesBelowAMillisecondAreInMicroseconds) {
  EXPECT_EQ(time_text(0), "0.00 us");
  EXPECT_EQ(time_text(12'345), "12.35 us");
  EXPECT_EQ(time_text(999'990), "999.99 us");
  EXPECT_EQ(time_text(1'000'000), "1.000 ms");
  EXPECT_EQ(time_text(2'345'678'000), "2.346 s");
}

TEST(Words, JoinedNamesAreShortened) {
  EXPECT_EQ(short_name(""), "");
  EXPECT_EQ(short_name("conv1"), "conv1");
  EXPECT_EQ(short_name("conv1/Relu;conv1/BiasAdd;conv1/Conv2D"), "conv1/Relu;..+2");
  EXPECT_EQ(short_name(";x"), ";x");
}

TEST(Words, BlobFormatsThatAreNoLettersAreInHexadecimal) {
  EXPECT_EQ(four_characters(0x31415456), "VTA1");
  EXPECT_EQ(four_characters(0x20202020), "    ");
  EXPECT_EQ(four_characters(0x014d494c), "0x014d494c");
  EXPECT_EQ(four_characters(0xfe000000), "0xfe000000");
  EXPECT_EQ(four_characters(0), "0x00000000");
}

TEST(Words, JsonOfBytesThatAreNotUtf8) {
  const nlohmann::ordered_json value = {{"plan", "\xff.qplan"}, {"counter", 7}};
  EXPECT_EQ(json_text(value), "{\"plan\":\"\uFFFD.qplan\",\"counter\":7}");
  EXPECT_EQ(json_page(value), "{\n  \"plan\": \"\uFFFD.qplan\",\n  \"counter\": 7\n}\n");
}

TEST(Words, LinesWithoutTheirIndentation) {
  EXPECT_EQ(split_lines(""), (Lines{""}));
  EXPECT_EQ(split_lines(" a"), (Lines{" a"}));
  EXPECT_EQ(split_lines("2 faults:\n  a (1)\n  b\n"), (Lines{"2 faults:", "a (1)", "b"}));
}

TEST(Words, NearestIsAtMostTwoLettersAway) {
  const Lines names = {"pack", "run", "inspect", "bench", "tune", "npu"};
  EXPECT_EQ(nearest("pakc", names), "pack");
  EXPECT_EQ(nearest("inpsect", names), "inspect");
  EXPECT_EQ(nearest("bnech", names), "bench");
  EXPECT_EQ(nearest("rnu", names), "run");
  EXPECT_EQ(nearest("benchmark", names), "");
  EXPECT_EQ(nearest("xyz", names), "");
  EXPECT_EQ(nearest("", names), "");
}

}  // namespace
}  // namespace qplan::tools::words_test
