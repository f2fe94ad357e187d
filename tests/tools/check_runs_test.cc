#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/check.h"

namespace qplan::tools::check_runs_test {
namespace {

// A network that keeps states, and how many sessions were made of it.
class RunCheckCases : public ::testing::Test {
 protected:
  RunCheckCases() : plan_("tests/data/plans/states_v1.6_x86_64.qplan") {
    side_.label = "all kernels";
    side_.plan = &plan_;
    side_.options.wrap_pool = [this](const qplan_thread_pool* pool) {
      ++num_sessions_;
      return pool;
    };
    for (uint8_t i = 0; i < 6; ++i) {
      CheckCase run;
      run.name = "run" + std::to_string(i);
      run.inputs = {{i, 3, static_cast<uint8_t>(7 * i), 1}};
      cases_.push_back(std::move(run));
    }
  }

  std::vector<TensorBytes> run() {
    num_sessions_ = 0;
    return run_check_cases(side_, cases_, [] {});
  }

  const PlanFile plan_;
  uint32_t num_sessions_ = 0;
  CheckSide side_;
  std::vector<CheckCase> cases_;
};

TEST_F(RunCheckCases, EachHasASessionOfItsOwn) {
  const std::vector<TensorBytes> outputs = run();
  EXPECT_EQ(num_sessions_, 6u);
  for (size_t i = 0; i < cases_.size(); ++i)
    EXPECT_EQ(outputs[i], run_check_side(side_, cases_[i], false).outputs) << i;
}

TEST_F(RunCheckCases, ThoseThatFollowEachOtherAreRunOnce) {
  const std::vector<TensorBytes> apart = run();
  for (size_t i = 1; i < cases_.size(); ++i)
    cases_[i].previous = std::make_shared<const CheckCase>(cases_[i - 1]);
  const std::vector<TensorBytes> outputs = run();
  EXPECT_EQ(num_sessions_, 1u);
  EXPECT_NE(outputs, apart) << "the states do not matter";
  for (size_t i = 0; i < cases_.size(); ++i)  // which repeats the runs before it
    EXPECT_EQ(outputs[i], run_check_side(side_, cases_[i], false).outputs) << i;
}

TEST_F(RunCheckCases, ThoseOfOneSessionAreTakenTogether) {
  for (const size_t i : {size_t{2}, size_t{3}, size_t{5}})
    cases_[i].previous = std::make_shared<const CheckCase>(cases_[i - 1]);
  const size_t expected[][2] = {{0, 1}, {1, 3}, {1, 3}, {1, 3}, {4, 2}, {4, 2}};  // begin, number
  for (size_t i = 0; i < cases_.size(); ++i) {
    const std::span<const CheckCase> session = cases_of_session(cases_, i);
    EXPECT_EQ(session.data(), cases_.data() + expected[i][0]) << i;
    EXPECT_EQ(session.size(), expected[i][1]) << i;
  }
}

}  // namespace
}  // namespace qplan::tools::check_runs_test
