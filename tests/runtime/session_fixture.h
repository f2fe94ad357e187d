// A session over a hand-made plan, with guard bytes around every memory.
#ifndef QPLAN_TESTS_RUNTIME_SESSION_FIXTURE_H_
#define QPLAN_TESTS_RUNTIME_SESSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "qplan/qplan.h"
#include "tests/support/plan_builder.h"
#include "tests/support/test_kernels.h"

namespace qplan::testing {

inline qplan_error empty_error() {
  qplan_error error = {};
  error.struct_size = sizeof(error);
  return error;
}

inline qplan_session_config config_of(const qplan_platform* platform = nullptr) {
  qplan_session_config config = {};
  config.struct_size = sizeof(config);
  config.kernels = test_kernels();
  config.platform = platform;
  return config;
}

// An opened plan.
class TestPlan {
 public:
  explicit TestPlan(const PlanSpec& spec) : bytes_(build_plan(spec)) {
    qplan_error error = empty_error();
    EXPECT_EQ(qplan_plan_open(&plan_, bytes_.data(), bytes_.size(), QPLAN_PLAN_DIGEST, &error), QPLAN_OK)
        << error.text;
  }
  const qplan_plan* get() const { return &plan_; }
  const AlignedBytes& bytes() const { return bytes_; }

 private:
  AlignedBytes bytes_;
  qplan_plan plan_ = {};
};

// Exactly the bytes of each need, between guards that the destructor checks.
class GuardedMemories {
 public:
  static constexpr size_t kGuard = 4096;  // keeps any alignment
  static constexpr uint8_t kFill = 0xc5;

  GuardedMemories() = default;
  GuardedMemories(const qplan_memory_need* needs, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      blocks_.emplace_back(static_cast<size_t>(needs[i].size) + 2 * kGuard, kGuard, kFill);
      memories_.push_back({blocks_.back().data() + kGuard, static_cast<size_t>(needs[i].size)});
    }
  }
  GuardedMemories(GuardedMemories&&) = default;
  GuardedMemories& operator=(GuardedMemories&&) = default;
  ~GuardedMemories() { EXPECT_TRUE(guards_intact()); }

  std::vector<qplan_memory>& get() { return memories_; }
  uint32_t count() const { return static_cast<uint32_t>(memories_.size()); }
  bool guards_intact() const {
    for (const AlignedBytes& block : blocks_) {
      for (size_t i = 0; i < kGuard; ++i) {
        if (block[i] != kFill || block[block.size() - 1 - i] != kFill) return false;
      }
    }
    return true;
  }
  bool untouched() const {
    for (const AlignedBytes& block : blocks_) {
      for (size_t i = 0; i < block.size(); ++i) {
        if (block[i] != kFill) return false;
      }
    }
    return true;
  }

 private:
  std::vector<AlignedBytes> blocks_;
  std::vector<qplan_memory> memories_;
};

inline std::vector<qplan_memory_need> needs_of(const qplan_plan* plan, const qplan_session_config& config) {
  qplan_error error = empty_error();
  uint32_t count = 0;
  EXPECT_EQ(qplan_session_memory_needs(plan, &config, nullptr, &count, &error), QPLAN_OK) << error.text;
  std::vector<qplan_memory_need> needs(count);
  EXPECT_EQ(qplan_session_memory_needs(plan, &config, needs.data(), &count, &error), QPLAN_OK) << error.text;
  return needs;
}

class TestSession {
 public:
  TestSession(const TestPlan& plan, const qplan_session_config& config) {
    const std::vector<qplan_memory_need> needs = needs_of(plan.get(), config);
    memories_ = GuardedMemories(needs.data(), static_cast<uint32_t>(needs.size()));
    qplan_error error = empty_error();
    status_ =
        qplan_session_init(plan.get(), &config, memories_.get().data(), memories_.count(), &session_, &error);
    text_ = error.text;
    step_ = error.step;
    EXPECT_EQ(status_, error.status);
    EXPECT_EQ(session_ != nullptr, status_ == QPLAN_OK);
  }
  TestSession(const TestSession&) = delete;
  TestSession& operator=(const TestSession&) = delete;
  ~TestSession() { qplan_session_deinit(session_); }

  qplan_session* get() const { return session_; }
  qplan_status status() const { return status_; }
  const std::string& text() const { return text_; }  // of init's error
  int32_t step() const { return step_; }
  std::string last_error() const {
    qplan_error error = empty_error();
    qplan_session_last_error(session_, &error);
    return error.text;
  }
  const GuardedMemories& memories() const { return memories_; }

 private:
  GuardedMemories memories_;
  qplan_session* session_ = nullptr;
  qplan_status status_ = QPLAN_OK;
  std::string text_;
  int32_t step_ = -1;
};

// A packed tensor of bytes with its descriptor.
struct HostTensor {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> shape;
  DLTensor tensor = {};

  HostTensor(std::vector<int64_t> extents, std::vector<uint8_t> values, uint8_t code = kDLInt,
             uint8_t bits = 8)
      : bytes(std::move(values)), shape(std::move(extents)) {
    tensor.data = bytes.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = {code, bits, 1};
    tensor.shape = shape.data();
  }
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
};

// first, first + 1, ...
inline std::vector<uint8_t> counting(size_t count, uint8_t first = 0) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_RUNTIME_SESSION_FIXTURE_H_
