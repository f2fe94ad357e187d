// Plans with regions for the fake device, and sessions over them.
#ifndef QPLAN_TESTS_RUNTIME_NPU_FIXTURE_H_
#define QPLAN_TESTS_RUNTIME_NPU_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/session_fixture.h"
#include "tests/support/fake_npu.h"

namespace qplan::testing {

struct RegionPlan {
  bool in_place = true;         // tensors at the region's boundary are in the device's bank
  bool has_alternative = true;  // t = a + 2, b = t + 3
  uint64_t bytes = 24;          // of each tensor
};

// x -> (+1) "pre" -> a -> region "npu_main_0" (+5) -> b -> (+1) "post" -> y: y = x + 7. Tensors x, a, b, y
// are 0, 1, 2, 3; step 1 is the region.
inline PlanSpec region_spec(const RegionPlan& p = {}) {
  PlanSpec spec;
  const std::vector<int64_t> shape = {static_cast<int64_t>(p.bytes)};
  const uint32_t x = spec.add_tensor(shape, "x"), a = spec.add_tensor(shape, "a"),
                 b = spec.add_tensor(shape, "b"), y = spec.add_tensor(shape, "y");
  const uint32_t target = spec.add_device("fake");
  spec.add_step(kAddByte, {x}, {a}, copy_params(1), "pre");
  spec.add_region(target, kFakeBlobFormat, fake_blob(5, {p.bytes}, {p.bytes}), {a}, {b},
                  p.has_alternative ? 2 : 0, "npu_main_0");
  NpuSpec& npu = *spec.steps.back().npu;
  spec.steps.back().macs = 50;
  const uint32_t bank = spec.bank_of(target);
  if (p.in_place) {
    spec.move_to_device(a, target);
    spec.move_to_device(b, target);
    npu.binds.push_back({0, format::NpuUse_INPUT, 0, spec.tensors[a].offset, p.bytes, {}, 0, 1, 0, 0});
    npu.binds.push_back({1, format::NpuUse_OUTPUT, 0, spec.tensors[b].offset, p.bytes, {}, 0, 1, 0, 0});
  } else {
    const std::vector<uint64_t> strides = {1};
    npu.binds.push_back(
        {0, format::NpuUse_INPUT, 0, spec.add_range(bank, p.bytes), p.bytes, strides, 0, 1, 0, 0});
    npu.binds.push_back(
        {1, format::NpuUse_OUTPUT, 0, spec.add_range(bank, p.bytes), p.bytes, strides, 0, 1, 0, 0});
  }
  if (p.has_alternative) {
    const uint32_t t = spec.add_tensor(shape, "t");
    spec.add_step(kAddByte, {a}, {t}, copy_params(2), "alternative_0");
    spec.add_step(kAddByte, {t}, {b}, copy_params(3), "alternative_1");
  }
  spec.add_step(kAddByte, {b}, {y}, copy_params(1), "post");
  spec.add_main({x}, {y}, 64);
  return spec;
}

// The calls that a platform got.
struct Told {
  std::vector<std::string> events;  // "begin npu fake-npu npu_main_0", "end npu fake-npu npu_main_0 0"
  std::vector<std::pair<uint32_t, std::string>> log;
  uint64_t clock_ns = 1000;
  qplan_platform platform = {};

  explicit Told(bool with_clock = false) {
    platform.struct_size = sizeof(platform);
    platform.user = this;
    platform.log_level = QPLAN_LOG_INFO;
    platform.log = [](void* user, uint32_t level, const char* text) {
      static_cast<Told*>(user)->log.emplace_back(level, text);
    };
    platform.step_begin = [](void* user, const qplan_event* event) {
      static_cast<Told*>(user)->events.push_back(std::string("begin ") + event->op + " " + event->kernel +
                                                 " " + event->name);
    };
    platform.step_end = [](void* user, const qplan_event* event, qplan_status status) {
      static_cast<Told*>(user)->events.push_back(std::string("end ") + event->op + " " + event->kernel + " " +
                                                 event->name + " " + std::to_string(status));
    };
    if (with_clock) platform.now_ns = [](void* user) { return static_cast<Told*>(user)->clock_ns; };
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  uint32_t logged(uint32_t level) const {
    uint32_t count = 0;
    for (const auto& line : log) count += line.first == level ? 1 : 0;
    return count;
  }
  std::string last(uint32_t level) const {
    std::string text;
    for (const auto& line : log) text = line.first == level ? line.second : text;
    return text;
  }
};

struct DeviceConfigs {
  std::vector<qplan_npu_device_config> configs;
  void add(const char* target, const FakeNpu& npu, uint32_t max_failures = 0) {
    add(target, FakeNpu::driver(), npu.device(), max_failures);
  }
  void add(const char* target, const qplan_npu_driver* driver, qplan_npu_device device,
           uint32_t max_failures = 0) {
    qplan_npu_device_config config = {};
    config.struct_size = sizeof(config);
    config.target = target;
    config.driver = driver;
    config.device = device;
    config.max_failures = max_failures;
    configs.push_back(config);
  }
};

inline qplan_session_config npu_config(const DeviceConfigs& devices, uint32_t policy = QPLAN_NPU_FALLBACK,
                                       uint32_t flags = 0, const qplan_platform* platform = nullptr) {
  qplan_session_config config = config_of(platform);
  config.npu = qplan_npu_client_default();
  config.devices = devices.configs.data();
  config.num_devices = static_cast<uint32_t>(devices.configs.size());
  config.on_npu_failure = policy;
  config.npu_flags = flags;
  return config;
}

inline qplan_region_info region_info(const TestSession& session, uint32_t index = 0) {
  qplan_region_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_region_info(session.get(), index, &info), QPLAN_OK);
  return info;
}
inline qplan_device_info device_info(const TestSession& session, uint32_t index = 0) {
  qplan_device_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_device_info(session.get(), index, &info), QPLAN_OK);
  return info;
}

inline DLTensor view_of(const TestSession& session, int direction, uint32_t index = 0) {
  DLTensor view = {};
  EXPECT_EQ(qplan_session_view(session.get(), direction, index, &view), QPLAN_OK);
  return view;
}
inline void write_bytes(const TestSession& session, const std::vector<uint8_t>& bytes, uint32_t index = 0) {
  std::memcpy(view_of(session, QPLAN_INPUT, index).data, bytes.data(), bytes.size());
}
inline std::vector<uint8_t> read_bytes(const TestSession& session, size_t count, uint32_t index = 0) {
  const auto* bytes = static_cast<const uint8_t*>(view_of(session, QPLAN_OUTPUT, index).data);
  return std::vector<uint8_t>(bytes, bytes + count);
}

// Writes x = first, first + 1, ...; runs; y must be x + addend.
inline qplan_status run_and_check(const TestSession& session, uint8_t first, uint8_t addend = 7,
                                  size_t count = 24) {
  write_bytes(session, counting(count, first));
  std::memset(view_of(session, QPLAN_OUTPUT).data, 0x99, count);
  const qplan_status status = qplan_session_invoke(session.get());
  if (status == QPLAN_OK) {
    EXPECT_EQ(read_bytes(session, count), counting(count, static_cast<uint8_t>(first + addend)));
  }
  return status;
}

// A session on a plan with a region, whose device fails as the test says.
struct FailingRegion {
  explicit FailingRegion(uint32_t policy = QPLAN_NPU_FALLBACK, const PlanSpec& spec = region_spec(),
                         uint32_t max_failures = 0)
      : plan(spec), policy_(policy) {
    devices.add("fake", npu, max_failures);
  }
  TestSession& session() {
    if (!session_) {
      qplan_session_config config = npu_config(devices, policy_, flags, &told.platform);
      config.npu_timeout_us = timeout_us;
      session_ = std::make_unique<TestSession>(plan, config);
      EXPECT_EQ(session_->status(), QPLAN_OK) << session_->text();
    }
    return *session_;
  }
  qplan_status run(uint8_t first = 5) { return run_and_check(session(), first); }

  FakeNpu npu;
  TestPlan plan;
  DeviceConfigs devices;
  Told told;
  uint32_t flags = 0;
  uint32_t timeout_us = 5000;

 private:
  uint32_t policy_;
  std::unique_ptr<TestSession> session_;
};

// A plan with a region that open() accepts and init refuses with the text, at the step.
struct WrongRegion {
  const char* name;
  void (*change)(PlanSpec&);
  const char* text;
  int32_t step;
};
inline void PrintTo(const WrongRegion& wrong, std::ostream* out) { *out << wrong.name; }
inline void expect_refused(PlanSpec spec, const WrongRegion& wrong) {
  wrong.change(spec);
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  EXPECT_EQ(session.status(), QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(session.text(), wrong.text);
  EXPECT_EQ(session.step(), wrong.step);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_RUNTIME_NPU_FIXTURE_H_
