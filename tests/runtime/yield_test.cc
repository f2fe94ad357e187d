// qplan_platform.yield: between the pieces of a step, on one thread and on several.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>

#include "kernels/kernel.h"
#include "qplan/firmware.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::yield_test {
namespace {

// Counts its calls, and cancels the session at one of them.
struct Yields {
  qplan_platform platform = {};
  std::atomic<uint32_t> count{0}, on_other_threads{0};
  std::thread::id thread = std::this_thread::get_id();  // that made this
  qplan_session* session = nullptr;
  uint32_t cancel_at = UINT32_MAX;

  explicit Yields(uint32_t work) {
    platform.struct_size = sizeof(platform);
    platform.user = this;
    platform.yield_work = work;
    platform.yield = [](void* user) {
      auto* self = static_cast<Yields*>(user);
      if (std::this_thread::get_id() != self->thread) ++self->on_other_threads;
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

// The pool does every task on a thread of its own, one after the other.
TEST(Yield, IsCalledOnTheThreadsOfPools) {
  const qplan_thread_pool pool = {
      sizeof(pool),
      2,
      nullptr,
      [](void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* context) {
        for (uint32_t i = 0; i < count; ++i) std::thread(task, context, i, 1).join();
      },
      0,
      0};
  const TestPlan plan(sequence_spec());
  Yields yields(1);
  yields.platform.thread_pool = &pool;
  const TestSession session(plan, config_of(&yields.platform));
  EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
  EXPECT_EQ(yields.count, kSteps * kBytes);
  EXPECT_GT(yields.on_other_threads, 0u);
}

// 31 work items become 16 pieces of two or one, not 31 of one.
TEST(Yield, LimitsThePiecesOfStepsWhoseCallsRepeatWork) {
  KernelVariant variant = {};
  for (const RepeatedWork repeated :
       {RepeatedWork::kNone, RepeatedWork::kBorderRows, RepeatedWork::kPackedWeights}) {
    variant.repeated_work = repeated;
    for (uint32_t items = 1; items < 200; ++items) {
      for (const uint64_t work : {uint64_t{1}, uint64_t{50}, uint64_t{1000}, UINT64_MAX}) {
        const uint32_t per_call = work_items_per_call(variant, work, 10, items);
        ASSERT_GE(per_call, 1u);
        ASSERT_LE(per_call, items);
        const uint32_t calls = (items + per_call - 1) / per_call;
        if (repeated != RepeatedWork::kNone) {
          ASSERT_LE(calls, 16u) << items << " items, work " << work;
        }
        if (work < 20) {
          ASSERT_EQ(calls, 1u);
        }
      }
    }
  }
  variant.repeated_work = RepeatedWork::kBorderRows;
  EXPECT_EQ(work_items_per_call(variant, 1000, 10, 31), 2u);
  variant.repeated_work = RepeatedWork::kNone;
  EXPECT_EQ(work_items_per_call(variant, 1000, 10, 31), 1u);
}

TEST(Yield, OfFirmwareIsCalledInItsRunAlone) {
  const TestPlan plan(sequence_spec());
  const qplan_session_config config = config_of();
  const qplan_firmware_model model = {
      plan.bytes().data(), plan.bytes().size(),
      reinterpret_cast<const qplan_kernel_family* const*>(config.kernels->families),
      config.kernels->num_families};
  const std::vector<qplan_memory_need> needs = needs_of(plan.get(), config);
  GuardedMemories memories(needs.data(), static_cast<uint32_t>(needs.size()));
  void* const memory = memories.get()[0].base;
  ASSERT_EQ(qplan_firmware_init(&model, memory, memories.get()[0].size), 0);
  const std::vector<uint8_t> input = counting(kBytes, 5);
  for (const uint32_t expected : {kSteps * kBytes, 0u, kSteps * kBytes}) {
    std::memcpy(qplan_firmware_tensor(memory, 0, 0), input.data(), kBytes);
    uint32_t count = 0;
    const auto yield = [](void* user) { ++*static_cast<uint32_t*>(user); };
    EXPECT_EQ(
        expected > 0 ? qplan_firmware_run_yielding(memory, 1, yield, &count) : qplan_firmware_run(memory), 0);
    EXPECT_EQ(count, expected);
    const auto* output = static_cast<const uint8_t*>(qplan_firmware_tensor(memory, 1, 0));
    EXPECT_EQ(std::vector<uint8_t>(output, output + kBytes), counting(kBytes, 11));
  }
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
