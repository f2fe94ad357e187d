// Does with a plan's bytes all that the C API offers, in memories of exactly the size that was asked for.
#ifndef QPLAN_TESTS_FUZZ_RUN_PLAN_H_
#define QPLAN_TESTS_FUZZ_RUN_PLAN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "qplan/qplan.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/plan_builder.h"

namespace qplan::testing {

// A plan that asks for more is one that this caller has no memory for: not an error of the plan.
inline constexpr uint64_t kMostMemoryBytes = uint64_t{64} << 20;
inline constexpr uint32_t kMostAlignment = 1u << 16;

enum class Outcome { kRefused, kTooLarge, kRan };

struct Outcomes {
  int refused = 0;
  int too_large = 0;
  int ran = 0;

  void add(Outcome outcome) {
    refused += outcome == Outcome::kRefused ? 1 : 0;
    too_large += outcome == Outcome::kTooLarge ? 1 : 0;
    ran += outcome == Outcome::kRan ? 1 : 0;
  }
  std::string text() const {
    return std::to_string(refused) + " refused, " + std::to_string(ran) + " ran, " +
           std::to_string(too_large) + " asked for too much memory";
  }
};

// Two workers that take turns, last task first, on the calling thread.
inline void run_backwards(void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* context) {
  for (uint32_t index = count; index > 0; --index) task(context, index - 1, index % 2);
}

inline void expect_explained(qplan_status status, const qplan_error& error) {
  EXPECT_LT(status, 0);
  EXPECT_EQ(error.status, status);
  EXPECT_NE(error.text[0], '\0') << qplan_status_name(status);
  EXPECT_EQ(std::memchr(error.text, '\n', sizeof(error.text)), nullptr) << error.text;
  EXPECT_NE(std::memchr(error.text, '\0', sizeof(error.text)), nullptr);
}

inline qplan_error new_error() {
  qplan_error error{};
  error.struct_size = sizeof(error);
  return error;
}

inline void ignore_text(void*, const char*, size_t) {}

inline void fill_inputs(const qplan_plan& plan, qplan_session* session, Random* random) {
  const uint32_t count = qplan_plan_io_count(&plan, nullptr, QPLAN_INPUT);
  for (uint32_t i = 0; i < count; ++i) {
    qplan_tensor_info info{};
    info.struct_size = sizeof(info);
    DLTensor view{};
    ASSERT_EQ(qplan_plan_io_info(&plan, nullptr, QPLAN_INPUT, i, &info), QPLAN_OK);
    ASSERT_EQ(qplan_session_view(session, QPLAN_INPUT, i, &view), QPLAN_OK);
    uint8_t* data = static_cast<uint8_t*>(view.data) + view.byte_offset;
    for (uint64_t k = 0; k < info.size_bytes; ++k) data[k] = static_cast<uint8_t>(random->integer(0, 255));
  }
}

// Touches every byte of every output.
inline void read_outputs(const qplan_plan& plan, qplan_session* session) {
  const uint32_t count = qplan_plan_io_count(&plan, nullptr, QPLAN_OUTPUT);
  for (uint32_t i = 0; i < count; ++i) {
    qplan_tensor_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(qplan_plan_io_info(&plan, nullptr, QPLAN_OUTPUT, i, &info), QPLAN_OK);
    const AlignedBytes copy(info.size_bytes);
    DLTensor tensor{};
    tensor.data = copy.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = info.ndim;
    tensor.dtype = info.dtype;
    tensor.shape = const_cast<int64_t*>(info.shape);
    EXPECT_EQ(qplan_session_read(session, i, &tensor), QPLAN_OK);
  }
}

// Init and invoke in exactly the memory that the plan declares. Odd seeds use the reference kernels, every
// third runs with two workers.
inline Outcome run_session(const qplan_plan& plan, uint64_t seed) {
  const qplan_thread_pool pool{sizeof(qplan_thread_pool), 2, nullptr, run_backwards, 0, 0};
  qplan_platform platform{};
  platform.struct_size = sizeof(platform);
  platform.thread_pool = &pool;
  qplan_session_config config{};
  config.struct_size = sizeof(config);
  config.isa_limit = seed % 2 == 1 ? QPLAN_ISA_REFERENCE : QPLAN_ISA_AUTO;
  config.kernels = qplan_kernels_all();
  config.platform = seed % 3 == 0 ? &platform : nullptr;

  qplan_error error = new_error();
  uint32_t count = 0;
  qplan_status status = qplan_session_memory_needs(&plan, &config, nullptr, &count, &error);
  std::vector<qplan_memory_need> needs(count);
  if (status == QPLAN_OK) status = qplan_session_memory_needs(&plan, &config, needs.data(), &count, &error);
  if (status != QPLAN_OK) {
    expect_explained(status, error);
    return Outcome::kRefused;
  }
  uint64_t total = 0;
  for (const qplan_memory_need& need : needs) {
    if (need.size > kMostMemoryBytes - total || need.alignment > kMostAlignment) return Outcome::kTooLarge;
    total += need.size;
  }
  std::vector<AlignedBytes> buffers;
  std::vector<qplan_memory> memories;
  for (const qplan_memory_need& need : needs) {
    buffers.emplace_back(need.size, need.alignment, 0xa5);
    memories.push_back({buffers.back().data(), buffers.back().size()});
  }
  qplan_session* session = nullptr;
  status = qplan_session_init(&plan, &config, memories.data(), count, &session, &error);
  if (status != QPLAN_OK) {
    expect_explained(status, error);
    return Outcome::kRefused;
  }
  Random random(seed);
  fill_inputs(plan, session, &random);
  for (int repeat = 0; repeat < 2; ++repeat) EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
  read_outputs(plan, session);
  const qplan_status checked = qplan_session_self_check(session);
  EXPECT_TRUE(checked == QPLAN_OK || checked == QPLAN_NOT_FOUND || checked == QPLAN_SELF_CHECK_FAILED)
      << qplan_status_name(checked);
  qplan_session_deinit(session);
  return Outcome::kRan;
}

// bytes: exactly as long as the allocation, so that a sanitizer sees whatever reads on.
inline Outcome run_plan(const Bytes& plan_bytes, uint32_t flags, uint64_t seed) {
  const AlignedBytes bytes(plan_bytes.data(), plan_bytes.size());
  qplan_error error = new_error();
  const qplan_status inspected = qplan_inspect_json(bytes.data(), bytes.size(), ignore_text, nullptr, &error);
  if (inspected != QPLAN_OK) expect_explained(inspected, error);
  const qplan_status listed = qplan_disassemble(bytes.data(), bytes.size(), ignore_text, nullptr, &error);
  if (listed != QPLAN_OK) expect_explained(listed, error);

  qplan_plan plan;
  const qplan_status opened = qplan_plan_open(&plan, bytes.data(), bytes.size(), flags, &error);
  if (opened != QPLAN_OK) {
    expect_explained(opened, error);
    EXPECT_EQ(qplan_plan_io_count(&plan, nullptr, QPLAN_INPUT), 0u);
    return Outcome::kRefused;
  }
  if ((flags & QPLAN_PLAN_DIGEST) != 0) {
    EXPECT_EQ(inspected, QPLAN_OK) << "opened, but inspect refuses it";
    EXPECT_EQ(listed, QPLAN_OK) << "opened, but disassemble refuses it";
  }
  return run_session(plan, seed);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_RUN_PLAN_H_
