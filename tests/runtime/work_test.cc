// How much a plan computes, as the session and the plan state it, and the limit for it.
#include <gtest/gtest.h>

#include <string>

#include "src/runtime/bind/family.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::work_test {
namespace {

uint64_t plan_work(const TestPlan& plan, const qplan_kernel_set* kernels = test_kernels()) {
  qplan_error error = empty_error();
  uint64_t work = 12345;
  EXPECT_EQ(qplan_plan_work(plan.get(), nullptr, kernels, &work, &error), QPLAN_OK) << error.text;
  return work;
}

qplan_session_info info_of(const TestSession& session) {
  qplan_session_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_get_info(session.get(), &info), QPLAN_OK);
  return info;
}

uint64_t step_work(const TestSession& session, uint32_t index) {
  qplan_event event = {};
  event.struct_size = sizeof(event);
  EXPECT_EQ(qplan_session_step_info(session.get(), index, &event), QPLAN_OK);
  return event.work;
}

TEST(Work, IsTheSumOfTheSteps) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  EXPECT_EQ(plan_work(plan), 72u);
  EXPECT_EQ(info_of(session).work, 72u);
  for (const uint32_t step : {0u, 1u, 2u}) EXPECT_EQ(step_work(session, step), 24u);
}

// The plan's own figure, 18 multiply-accumulates here, does not count.
TEST(Work, DoesNotBelieveThePlan) {
  PlanSpec spec = sequence_spec();
  for (StepSpec& step : spec.steps) step.macs = 0;
  spec.steps[1].macs = UINT64_MAX;
  const TestPlan plan(spec);
  EXPECT_EQ(plan_work(plan), 72u);
  EXPECT_EQ(info_of(TestSession(plan, config_of())).work, 72u);
}

TEST(Work, SumsSaturate) {
  PlanSpec spec = sequence_spec();
  for (StepSpec& step : spec.steps) step.params = copy_params(kEndlessAddend);
  const TestPlan plan(spec);
  EXPECT_EQ(plan_work(plan), UINT64_MAX);
}

TEST(Work, InEvents) {
  const TestPlan plan(sequence_spec());
  std::vector<uint64_t> works;
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.user = &works;
  platform.step_begin = [](void* user, const qplan_event* event) {
    static_cast<std::vector<uint64_t>*>(user)->push_back(event->work);
  };
  platform.step_end = [](void* user, const qplan_event* event, qplan_status) {
    static_cast<std::vector<uint64_t>*>(user)->push_back(event->work + 1000);
  };
  const TestSession session(plan, config_of(&platform));
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(works, (std::vector<uint64_t>{24, 1024, 24, 1024, 24, 1024}));
}

// A region counts what is copied for it; its fallback steps count too, because they run when the device
// fails. 24 bytes each: pre, two alternatives and post; the region's two tensors and their ranges.
TEST(Work, OfRegionsAndOfWhatStandsInForThem) {
  const TestPlan plan(region_spec());
  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  EXPECT_EQ(plan_work(plan), 24u * 4 + 24u * 4);
  EXPECT_EQ(info_of(session).work, 24u * 4 + 24u * 4);
  EXPECT_EQ(step_work(session, 1), 24u * 4);
  EXPECT_EQ(step_work(session, 2), 24u);
}

TEST(WorkLimit, NamesTheStepThatPassesIt) {
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.max_work = 72;
  EXPECT_EQ(TestSession(plan, config).status(), QPLAN_OK);
  config.max_work = 71;
  const TestSession session(plan, config);
  EXPECT_EQ(session.status(), QPLAN_WORK_LIMIT);
  EXPECT_EQ(session.step(), 2);
  EXPECT_EQ(session.text(),
            "add_byte 'third' (step 2): its work is 24 operations, which makes 72 with the steps before it, "
            "beyond max_work 71; raise max_work if the plan is meant to compute that much");
  EXPECT_STREQ(qplan_status_name(QPLAN_WORK_LIMIT), "QPLAN_WORK_LIMIT");
}

TEST(WorkLimit, CountsWhatStandsInForRegions) {
  const TestPlan plan(region_spec());
  qplan_session_config config = config_of();
  config.max_work = 24 * 8 - 1;
  EXPECT_EQ(TestSession(plan, config).status(), QPLAN_WORK_LIMIT);
  config.max_work = 24 * 8;
  EXPECT_EQ(TestSession(plan, config).status(), QPLAN_OK);
}

// A caller from before the field, whose struct ends in front of it, has no limit.
TEST(WorkLimit, OldCallersHaveNone) {
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.max_work = 1;
  config.struct_size = offsetof(qplan_session_config, max_work);
  EXPECT_EQ(TestSession(plan, config).status(), QPLAN_OK);
}

TEST(PlanWork, RefusesWhatASessionWouldRefuse) {
  qplan_error error = empty_error();
  uint64_t work = 12345;
  PlanSpec refused = sequence_spec();
  refused.steps[1].params = copy_params(255);
  EXPECT_EQ(qplan_plan_work(TestPlan(refused).get(), nullptr, test_kernels(), &work, &error),
            QPLAN_PLAN_CORRUPT);
  EXPECT_STREQ(error.text, "add_byte 'second' (step 1): addend 255 is out of range");
  PlanSpec unknown = sequence_spec();
  unknown.steps[0].kernel = 500;
  EXPECT_EQ(qplan_plan_work(TestPlan(unknown).get(), nullptr, test_kernels(), &work, &error),
            QPLAN_KERNEL_MISSING);
  EXPECT_EQ(error.step, 0);
  const TestPlan plan(sequence_spec());
  EXPECT_EQ(qplan_plan_work(plan.get(), "nobody", test_kernels(), &work, &error), QPLAN_NOT_FOUND);
  EXPECT_EQ(qplan_plan_work(plan.get(), "main", nullptr, &work, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_work(plan.get(), "main", test_kernels(), nullptr, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_work(nullptr, "main", test_kernels(), &work, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(work, 12345u);
}

// A real kernel, whose parameters are checked and whose constants are found without a session: one
// max_pool2d of 1999 x 1999 over 2000 x 2000, about 1 kB of plan.
TEST(PlanWork, OfAPoolThatTakesHours) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({1, 2000, 2000, 1}, "x"), y = spec.add_tensor({1, 2000, 2000, 1}, "y");
  spec.add_step(
      kKernel_max_pool2d, {x}, {y},
      [](flatbuffers::FlatBufferBuilder& b) {
        return std::make_pair(
            format::KernelParams_Pool2dParams,
            format::CreatePool2dParams(b, format::Contract_TFL2, 1999, 1999, 1, 1, 999, 999, -128, 127)
                .Union());
      },
      "pool");
  spec.add_main({x}, {y}, 1 << 20);
  const TestPlan plan(spec);
  EXPECT_LT(plan.bytes().size(), 2048u);
  constexpr uint64_t kWork = uint64_t{4000000} * 1999 * 1999;
  EXPECT_EQ(plan_work(plan, qplan_kernels_all()), kWork);
  qplan_session_config config = config_of();
  config.kernels = qplan_kernels_all();
  config.max_work = 1000000000;
  const TestSession refused(plan, config);
  EXPECT_EQ(refused.status(), QPLAN_WORK_LIMIT);
  EXPECT_EQ(refused.text().rfind("max_pool2d 'pool' (step 0): its work is 15984004000000 operations", 0), 0u)
      << refused.text();
  config.max_work = 0;
  EXPECT_EQ(info_of(TestSession(plan, config)).work, kWork);
}

// Constants are read in place in the file: lut8's table, which bind requires to be constant.
TEST(PlanWork, OfAStepWithConstants) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({7}, "x"), y = spec.add_tensor({7}, "y");
  const uint32_t table = spec.add_constant({256}, counting(256));
  spec.add_step(kKernel_lut8, {x, table}, {y}, [](flatbuffers::FlatBufferBuilder& b) {
    return std::make_pair(format::KernelParams_Lut8Params, format::CreateLut8Params(b).Union());
  });
  spec.add_main({x}, {y});
  EXPECT_EQ(plan_work(TestPlan(spec), qplan_kernels_all()), 7u);
}

}  // namespace
}  // namespace qplan::testing::work_test
