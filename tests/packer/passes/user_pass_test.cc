#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "src/packer/passes/pass.h"

namespace qplan::passes::user_pass_test {
namespace {

UserPass pass(std::string name, std::string after = "") {
  return {std::move(name), std::move(after), {}, [](const ir::Function&, PassContext&) { return nullptr; }};
}

// The names of the first `count` passes after `begin`.
std::string names(const std::vector<UserPass>& user, std::string_view begin, size_t count) {
  const std::vector<Stage> stages = all_stages(user);
  size_t at = 0;
  while (at < stages.size() && stages[at].name() != begin) ++at;
  std::string text;
  for (size_t i = at; i < at + count && i < stages.size(); ++i) {
    text += (text.empty() ? "" : " ") + std::string(stages[i].name());
  }
  return text;
}

std::string error_of(const std::vector<UserPass>& user) {
  try {
    all_stages(user);
    return "";
  } catch (const PackError& error) {
    return error.what();
  }
}

TEST(UserPass, WithoutThemTheStagesAreTheBuiltInPasses) {
  const std::vector<Stage> stages = all_stages({});
  ASSERT_EQ(stages.size(), all_passes().size());
  for (size_t i = 0; i < stages.size(); ++i) EXPECT_EQ(stages[i].built_in, &all_passes()[i]);
}

TEST(UserPass, StandsBehindThePassItNamesElseBeforeAll) {
  const std::string first = all_passes()[0].name;
  EXPECT_EQ(names({pass("a"), pass("b")}, "a", 3), "a b " + first);
  EXPECT_EQ(names({pass("a", "dead_code"), pass("b", "dead_code"), pass("c", "a")}, "dead_code", 5),
            "dead_code a c b canonical_order");
  EXPECT_EQ(names({pass("a"), pass("b", "a")}, "a", 3), "a b " + first);
}

TEST(UserPass, NamesAreUniqueAndKnown) {
  EXPECT_EQ(error_of({pass("dead_code")}), "user pass 'dead_code': there is a pass of that name");
  EXPECT_EQ(error_of({pass("a"), pass("a")}), "user pass 'a': there is a pass of that name");
  EXPECT_EQ(error_of({pass("")}), "user pass: it has no name");
  EXPECT_EQ(error_of({pass("a", "b"), pass("b")}).substr(0, 68),
            "user pass 'a' is to run after 'b', which is no pass before it; known");
}

}  // namespace
}  // namespace qplan::passes::user_pass_test
