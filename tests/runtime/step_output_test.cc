// qplan_session_step_output: what steps write, from inside their hooks.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::step_output_test {
namespace {

// Per successful step "name: first last" of each output, "-> status" where it could not be read.
struct Watcher {
  qplan_platform platform = {};
  qplan_session* session = nullptr;
  std::vector<std::string> lines;

  Watcher() {
    platform.struct_size = sizeof(platform);
    platform.user = this;
    platform.step_begin = [](void* user, const qplan_event*) {
      auto* self = static_cast<Watcher*>(user);
      DLTensor view = {};
      EXPECT_EQ(qplan_session_step_output(self->session, 0, nullptr, &view), QPLAN_INVALID_STATE);
    };
    platform.step_end = [](void* user, const qplan_event* event, qplan_status) {
      static_cast<Watcher*>(user)->look(*event);
    };
  }

  void look(const qplan_event& event) {
    std::string line = std::string(event.name) + ":";
    for (uint32_t i = 0;; ++i) {
      qplan_tensor_info info = {};
      info.struct_size = sizeof(info);
      DLTensor view = {};
      const qplan_status status = qplan_session_step_output(session, i, &info, &view);
      if (status == QPLAN_NOT_FOUND) break;
      if (status < 0) {
        line += std::string(" -> ") + qplan_status_name(status);
        break;
      }
      EXPECT_EQ(view.ndim, info.ndim);
      EXPECT_EQ(view.shape, info.shape);
      EXPECT_EQ(view.strides, nullptr);
      EXPECT_EQ(view.device.device_type, kDLCPU);
      EXPECT_EQ(view.dtype.bits, 8);
      const auto* bytes = static_cast<const uint8_t*>(view.data);
      line += std::string(" ") + info.name + " " + std::to_string(bytes[0]) + " " +
              std::to_string(bytes[info.size_bytes - 1]);
    }
    lines.push_back(line);
  }
};

TEST(StepOutput, IsWhatEachStepWroteUnderItsName) {
  const TestPlan plan(sequence_spec());
  Watcher watcher;
  const TestSession session(plan, config_of(&watcher.platform));
  watcher.session = session.get();
  write_bytes(session, counting(24, 10));
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(watcher.lines, (std::vector<std::string>{"first: a 11 34", "second: b 13 36", "third: y 16 39"}));
}

// Buffers that the application bound are the tensors then.
TEST(StepOutput, IsTheBufferThatAnOutputIsBoundTo) {
  const TestPlan plan(sequence_spec());
  Watcher watcher;
  const TestSession session(plan, config_of(&watcher.platform));
  watcher.session = session.get();
  alignas(64) uint8_t bytes[24] = {};
  DLTensor bound = view_of(session, QPLAN_OUTPUT);
  bound.data = bytes;
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &bound), QPLAN_OK);
  write_bytes(session, counting(24, 1));
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(bytes[0], 7);
  EXPECT_EQ(watcher.lines.back(), "third: y 7 30");
}

TEST(StepOutput, IsRefusedOutsideOfTheHookAndForWrongArguments) {
  const TestPlan plan(sequence_spec());
  Watcher watcher;
  const TestSession session(plan, config_of(&watcher.platform));
  watcher.session = session.get();
  DLTensor view = {};
  EXPECT_EQ(qplan_session_step_output(session.get(), 0, nullptr, &view), QPLAN_INVALID_STATE);
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_step_output(session.get(), 0, nullptr, &view), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_session_step_output(nullptr, 0, nullptr, &view), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_step_output(session.get(), 0, nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
}

TEST(StepOutput, OfARegionIsWhatItsDeviceWrote) {
  for (const bool in_place : {false, true}) {
    FakeNpu npu;
    npu.is_coherent = in_place;
    RegionPlan region;
    region.in_place = in_place;
    const TestPlan plan(region_spec(region));
    DeviceConfigs devices;
    devices.add("fake", npu);
    Watcher watcher;
    const TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, 0, &watcher.platform));
    watcher.session = session.get();
    ASSERT_EQ(run_and_check(session, 3), QPLAN_OK);
    EXPECT_EQ(watcher.lines,
              (std::vector<std::string>{"pre: a 4 27", "npu_main_0: b 9 32", "post: y 10 33"}));
  }
}

// The job fails, and the CPU's steps run in its place: the failed step has no outputs.
TEST(StepOutput, OfAFailedStepDoesNotExist) {
  FakeNpu npu;
  npu.job_statuses = {QPLAN_NPU_E_BUS};
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  Watcher watcher;
  const TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, 0, &watcher.platform));
  watcher.session = session.get();
  ASSERT_EQ(run_and_check(session, 3), QPLAN_OK);
  EXPECT_EQ(watcher.lines,
            (std::vector<std::string>{"pre: a 4 27", "npu_main_0: -> QPLAN_INVALID_STATE",
                                      "alternative_0: t 6 29", "alternative_1: b 9 32", "post: y 10 33"}));
}

}  // namespace
}  // namespace qplan::testing::step_output_test
