// Patterns of the caller, without a function that they are matched with: pattern.hpp and the C behind it.
#include <gtest/gtest.h>

#include <memory>
#include <qplan/pass.hpp>

namespace {

using namespace qplan;  // NOLINT: what applications do

TEST(UserPattern, EveryCombinatorIsThere) {
  EXPECT_EQ(any().text(), "any");
  EXPECT_EQ((constant() | param()).as("a").text(), "(constant | parameter) as 'a'");
  EXPECT_EQ(op("clip")(any()).attr("a_max", 6.5).text(), "clip(any) with a_max=6.5");
  EXPECT_EQ(op("nn.pad").attr("pad_width", IntLists{{0, 1}, {2, 3}}).text(),
            "nn.pad with pad_width=[[0, 1], [2, 3]]");
  EXPECT_EQ(op("reshape").attr("newshape", Ints{1, 2}).text(), "reshape with newshape=[1, 2]");
  EXPECT_EQ(one_of({"add", "multiply"}).text(), "add|multiply");
  EXPECT_EQ(commutative("add")(constant(), any()).text(), "commutative add(constant, any)");
  EXPECT_EQ(optional("nn.pad", any(), {constant()}).text(), "optional nn.pad(any, constant)");
  EXPECT_EQ(dominates(any(), {"cast"}, op("clip")).text(), "clip over {cast} over any");
  EXPECT_EQ(any().dtypes({kInt8, kUint8}).shape({1, 2}).rank(2).one_use().text(),
            "any of dtype int8 or uint8 of shape [1, 2] of rank 2 read once");
  EXPECT_EQ(any().where("that sings", [](const Pre&, PreValue) { return true; }).text(), "any that sings");
  try {
    op("clop");
    FAIL();
  } catch (const PassError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    EXPECT_STREQ(error.what(), "pattern: there is no operator 'clop'");
  }
}

TEST(UserPattern, AConditionLivesAsLongAsThePatternsThatNeedIt) {
  const auto alive = std::make_shared<int>(0);
  {
    Pattern outer = any();
    {
      const Pattern inner = any().where("counted", [alive](const Pre&, PreValue) { return *alive == 0; });
      outer = op("clip")(inner);
    }
    EXPECT_EQ(alive.use_count(), 2) << "the operand pattern is gone, what it was made of is not";
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(UserPatternC, MissingPartsAreRefused) {
  qplan_pattern* pattern = nullptr;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(qplan_pattern_value(QPLAN_VALUE_RESULT, &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "pattern: value kind 3, expected QPLAN_VALUE_ANY, _PARAM or _CONSTANT");
  EXPECT_EQ(qplan_pattern_value(QPLAN_VALUE_ANY, nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_pattern_op(nullptr, 1, nullptr, 0, 0, &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "pattern: name of an operator is NULL");
  EXPECT_EQ(qplan_pattern_as(nullptr, "x", &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "pattern: of is NULL");
  const Pattern some = any();
  const qplan_attr nameless = {};
  EXPECT_EQ(qplan_pattern_attr(some.c_pattern(), &nameless, &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "pattern: name of an attribute is NULL");
  qplan_attr attr = {};
  attr.name = "axis";
  attr.kind = 99;
  EXPECT_EQ(qplan_pattern_attr(some.c_pattern(), &attr, &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "attribute 'axis' has kind 99, expected QPLAN_ATTR_*");
  attr.kind = QPLAN_ATTR_INTS;
  attr.count = 2;
  EXPECT_EQ(qplan_pattern_attr(some.c_pattern(), &attr, &pattern, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "attribute 'axis': ints is NULL");
  EXPECT_EQ(pattern, nullptr);
  qplan_pattern_destroy(nullptr);
  qplan_value_info info = {};
  EXPECT_EQ(qplan_pre_value_info(nullptr, {0}, &info), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_post_why(nullptr, ""), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_matches_find(nullptr, "x", nullptr), QPLAN_INVALID_ARGUMENT);
}

}  // namespace
