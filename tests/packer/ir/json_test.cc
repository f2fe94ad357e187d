#include "src/packer/ir/json.h"

#include <gtest/gtest.h>

#include <string>

namespace qplan::ir {
namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string members(size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":[1,2]";
  return text + "}";
}

// Why a text is refused.
std::string reason_of(const std::string& text) {
  std::string reason;
  EXPECT_TRUE(parse_json(text, &reason).is_discarded());
  EXPECT_TRUE(parse_json(text).is_discarded());
  return reason;
}

TEST(ParseJson, RefusalsSayWhy) {
  EXPECT_EQ(reason_of("[1, }"), "is not JSON (byte 5)");
  EXPECT_EQ(reason_of(""), "is not JSON (byte 1)");
  EXPECT_EQ(reason_of("{\"a\":1e999}"), "has a number that no double holds");
  EXPECT_EQ(reason_of(nested(kMaxJsonDepth + 1)), "nests more than 64 deep");
  EXPECT_EQ(reason_of(members(kMaxJsonMembers + 1)), "has an object of more than 10000 members");
}

TEST(ParseJson, LeavesTheReasonAloneWhereThereIsNone) {
  std::string reason = "none";
  EXPECT_TRUE(parse_json("[]", &reason).is_array());
  EXPECT_EQ(reason, "none");
}

TEST(ParseJson, DepthIsBounded) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)).is_array());
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"").is_string());
  EXPECT_TRUE(exceeds_json_depth(nested(3), 2));
  EXPECT_FALSE(exceeds_json_depth(nested(3), 3));
}

TEST(ParseJson, MembersOfAnObjectAreBoundedAndElementsOfAListAreNot) {
  EXPECT_EQ(parse_json(members(kMaxJsonMembers)).size(), kMaxJsonMembers);
  EXPECT_TRUE(parse_json(members(kMaxJsonMembers + 1)).is_discarded());
  EXPECT_TRUE(parse_json("[" + members(kMaxJsonMembers + 1) + "]").is_discarded());
  std::string list = "[0";
  for (size_t i = 0; i < 2 * kMaxJsonMembers; ++i) list += ",0";
  EXPECT_EQ(parse_json(list + "]").size(), 2 * kMaxJsonMembers + 1);
  // The limit is that of one object, not of all together.
  EXPECT_TRUE(parse_json("[" + members(kMaxJsonMembers) + "," + members(kMaxJsonMembers) + "]").is_array());
}

// Their order is lost: finding duplicates among members that keep it takes time in proportion to the square.
TEST(ParseSortedJson, ObjectsMayBeLarge) {
  std::string reason;
  EXPECT_EQ(parse_sorted_json(members(200'000), 200'000, &reason).size(), 200'000u);
  EXPECT_EQ(reason, "");
  EXPECT_TRUE(parse_sorted_json(members(21), 20, &reason).is_discarded());
  EXPECT_EQ(reason, "has an object of more than 20 members");
  EXPECT_TRUE(parse_sorted_json("[1, }", 20, &reason).is_discarded());
  EXPECT_EQ(reason, "is not JSON (byte 5)");
  EXPECT_TRUE(parse_sorted_json(nested(kMaxJsonDepth + 1), 20).is_discarded());
  EXPECT_EQ(json_text(parse_sorted_json("{\"b\":[1,2.5,-3,\"x\",null,true],\"a\":{\"c\":{}}}", 20)),
            "{\"a\":{\"c\":{}},\"b\":[1,2.5,-3,\"x\",null,true]}");
}

TEST(JsonText, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_text(Json{{"b", 1}, {"a", 2}}), "{\"b\":1,\"a\":2}");
}

}  // namespace
}  // namespace qplan::ir
