// qplan_platform.yield: between the pieces of a step, on one thread and on several.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

#include "qplan/host.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::yield_test {
namespace {

// Counts its calls, and cancels the session at one of them.
struct Yields {
  qplan_platform platform = {};
  std::atomic<uint32_t> count{0};
  qplan_session* session = nullptr;
  uint32_t cancel_at = UINT32_MAX;

  explicit Yields(uint32_t work) {
    platform.struct_size = sizeof(platform);
    platform.user = this;
    platform.yield_work = work;
    platform.yield = [](void* user) {
      auto* self = static_cast<Yields*>(user);
      if (++self->count == self->cancel_at) {
        EXPECT_EQ(qplan_session_cancel(self->session), QPLAN_OK);
      }
    };
  }
};

constexpr uint32_t kSteps = 3, kBytes = 24;  // of sequence_spec, a work of 1 for each byte

TEST(Yield, FollowsEachPieceOfEachStep) {
  const TestPlan plan(sequence_spec());
  for (const auto& [work, pieces] :
       {std::pair(1u, kBytes), std::pair(6u, 4u), std::pair(kBytes, 1u), std::pair(0u, 1u)}) {
    Yields yields(work);
    const TestSession session(plan, config_of(&yields.platform));
    EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
    EXPECT_EQ(yields.count, kSteps * pieces) << work;
  }
}

TEST(Yield, LimitsTheWorkBeyondWhichStepsAreCutForCancelToo) {
  PlanSpec spec = sequence_spec();
  spec.steps[1].params = copy_params(kHeavyAddend);  // each of its bytes is a piece by itself
  const TestPlan plan(spec);
  for (const uint32_t work : {0u, UINT32_MAX}) {
    Yields yields(work);
    const TestSession session(plan, config_of(&yields.platform));
    EXPECT_EQ(run_and_check(session, 1, 1 + kHeavyAddend + 3), QPLAN_OK);
    EXPECT_EQ(yields.count, 1 + kBytes + 1) << work;
  }
}

TEST(Yield, MayCancelTheRun) {
  const TestPlan plan(sequence_spec());
  Yields yields(6);
  const TestSession session(plan, config_of(&yields.platform));
  yields.session = session.get();
  yields.cancel_at = 6;  // in the second step
  write_bytes(session, counting(kBytes));
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_CANCELLED);
  EXPECT_EQ(yields.count, 6u);
  qplan_error error = empty_error();
  qplan_session_last_error(session.get(), &error);
  EXPECT_EQ(error.step, 1);
  EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
}

TEST(Yield, IsCalledOnTheThreadsOfPools) {
  const TestPlan plan(sequence_spec());
  const qplan_thread_pool* pool = qplan_pool_create(3);
  ASSERT_NE(pool, nullptr);
  Yields yields(1);
  yields.platform.thread_pool = pool;
  {
    const TestSession session(plan, config_of(&yields.platform));
    EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
    EXPECT_EQ(yields.count, kSteps * kBytes);
  }
  qplan_pool_destroy(pool);
}

TEST(Yield, IsNotReadFromThePlatformsOfOlderCallers) {
  const TestPlan plan(sequence_spec());
  Yields yields(1);
  yields.platform.struct_size = offsetof(qplan_platform, yield);
  const TestSession session(plan, config_of(&yields.platform));
  EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
  EXPECT_EQ(yields.count, 0u);
}

}  // namespace
}  // namespace qplan::testing::yield_test
