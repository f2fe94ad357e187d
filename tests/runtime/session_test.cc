// Memory, init, invoke: what the runtime does around kernels.
#include <gtest/gtest.h>

#include <numeric>

#include "format/memory_layout.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::session_test {
namespace {

std::vector<uint8_t> run(qplan_session* session, const std::vector<uint8_t>& input) {
  HostTensor in({2, 3, 4}, input), out({2, 3, 4}, std::vector<uint8_t>(24));
  EXPECT_EQ(qplan_session_write(session, 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session, 0, &out.tensor), QPLAN_OK);
  return out.bytes;
}

// A pool without threads: tasks in reverse order, workers in turn.
struct ReversePool {
  qplan_thread_pool pool = {};
  uint32_t calls = 0, tasks = 0;
  explicit ReversePool(uint32_t num_threads) {
    pool.struct_size = sizeof(pool);
    pool.num_threads = num_threads;
    pool.user = this;
    pool.parallel_for = [](void* user, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* ctx) {
      auto* self = static_cast<ReversePool*>(user);
      ++self->calls;
      self->tasks += count;
      for (uint32_t i = count; i-- > 0;) task(ctx, i, i % self->pool.num_threads);
    };
  }
};

TEST(Session, RunsACascade) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), counting(24)), counting(24, 6));
  EXPECT_EQ(run(session.get(), counting(24, 100)), counting(24, 106));
}

TEST(Session, InputStaysAcrossInvokes) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  EXPECT_EQ(run(session.get(), counting(24, 50)), counting(24, 56));
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  DLTensor in;
  ASSERT_EQ(qplan_session_view(session.get(), QPLAN_INPUT, 0, &in), QPLAN_OK);
  EXPECT_EQ(memcmp(in.data, counting(24, 50).data(), 24), 0);
}

TEST(Session, TwoSessionsInTurnDoNotMeet) {
  const TestPlan plan(sequence_spec());
  const TestSession a(plan, config_of()), b(plan, config_of());
  HostTensor in_a({2, 3, 4}, counting(24, 10)), in_b({2, 3, 4}, counting(24, 20)),
      out({2, 3, 4}, counting(24));
  EXPECT_EQ(qplan_session_write(a.get(), 0, &in_a.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_write(b.get(), 0, &in_b.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(a.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(b.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(a.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24, 16));
  EXPECT_EQ(qplan_session_read(b.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24, 26));
}

TEST(Session, PlanStructNeedNotOutliveInit) {
  const AlignedBytes bytes = build_plan(sequence_spec());
  qplan_session* session = nullptr;
  GuardedMemories memories;
  {
    qplan_plan plan;
    ASSERT_EQ(qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, nullptr), QPLAN_OK);
    const qplan_session_config config = config_of();
    const auto needs = needs_of(&plan, config);
    memories = GuardedMemories(needs.data(), 1);
    ASSERT_EQ(qplan_session_init(&plan, &config, memories.get().data(), 1, &session, nullptr), QPLAN_OK);
    memset(&plan, 0xee, sizeof(plan));
  }
  EXPECT_EQ(run(session, counting(24)), counting(24, 6));
}

// ---- memory ----

TEST(SessionMemory, NeedIsTheDocumentedFormula) {
  const TestPlan plan(sequence_spec());
  for (const uint32_t threads : {1u, 2u, 5u}) {
    ReversePool pool(threads);
    qplan_platform platform = {};
    platform.struct_size = sizeof(platform);
    platform.thread_pool = &pool.pool;
    const auto needs = needs_of(plan.get(), config_of(&platform));
    ASSERT_EQ(needs.size(), 1u);
    EXPECT_EQ(needs[0].bank, 0u);
    EXPECT_EQ(needs[0].alignment, 64u);
    // Session 576, 3 records of 24 rounded to 128, 3 times 48 bytes of arguments to 192, 4 addresses rounded
    // to 64, 216 bytes of activations to 256.
    if (sizeof(void*) == 8) {
      EXPECT_EQ(needs[0].size, 576u + 128 + 192 + 64 + 256 + 64 * threads);
    }
    format::MemoryLayout layout;
    ASSERT_TRUE(format::memory_layout({3, 4, 4, 216, 64, 0, 0, 3 * 48}, sizeof(void*), threads, &layout));
    EXPECT_EQ(needs[0].size, layout.total);
  }
}

TEST(SessionMemory, OneByteLessIsRefusedAndNothingIsWritten) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 4096, 100, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  const auto needs = needs_of(plan.get(), config);
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[1].bank, 2u);
  EXPECT_EQ(needs[1].alignment, 4096u);
  EXPECT_EQ(needs[1].size, 100u);
  for (const uint32_t which : {0u, 1u}) {
    GuardedMemories memories(needs.data(), 2);
    memories.get()[which].size -= 1;
    qplan_session* session = reinterpret_cast<qplan_session*>(1);
    qplan_error error = empty_error();
    EXPECT_EQ(qplan_session_init(plan.get(), &config, memories.get().data(), 2, &session, &error),
              QPLAN_MEMORY_TOO_SMALL);
    EXPECT_EQ(session, nullptr);
    EXPECT_EQ(error.status, QPLAN_MEMORY_TOO_SMALL);
    EXPECT_EQ(error.text, "session: memory " + std::to_string(which) + " has " +
                              std::to_string(needs[which].size - 1) + " bytes, expected " +
                              std::to_string(needs[which].size));
    EXPECT_TRUE(memories.untouched());
  }
}

TEST(SessionMemory, WrongMemoriesAreRefusedAndNothingIsWritten) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 64, 128, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  const auto needs = needs_of(plan.get(), config);
  const auto init = [&](GuardedMemories& memories, uint32_t count, std::string* text) {
    qplan_session* session = nullptr;
    qplan_error error = empty_error();
    const qplan_status status =
        qplan_session_init(plan.get(), &config, memories.get().data(), count, &session, &error);
    *text = error.text;
    EXPECT_TRUE(memories.untouched());
    return status;
  };
  std::string text;
  GuardedMemories memories(needs.data(), 2);
  EXPECT_EQ(init(memories, 1, &text), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(text, "session: 1 memories, expected 2");
  const auto saved = memories.get();
  memories.get()[0].base = static_cast<uint8_t*>(saved[0].base) + 32;
  EXPECT_EQ(init(memories, 2, &text), QPLAN_MISALIGNED);
  EXPECT_EQ(text, "session: memory 0 does not begin at a multiple of 64");
  memories.get() = saved;
  memories.get()[1].base = nullptr;
  EXPECT_EQ(init(memories, 2, &text), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(text, "session: memory 1 is NULL");
  memories.get()[1].base = static_cast<uint8_t*>(saved[0].base) + 64;
  EXPECT_EQ(init(memories, 2, &text), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(text, "session: memories 0 and 1 overlap");
  memories.get()[1].base = plan.bytes().data();
  EXPECT_EQ(init(memories, 2, &text), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(text, "session: memory 1 overlaps the plan");
}

// A bank without bytes overlaps nothing, wherever its memory is said to be.
TEST(SessionMemory, EmptyBanksOverlapNothing) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 64, 0, {}, {}});
  spec.banks.push_back({format::BankKind_ARENA, 64, 128, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  const auto needs = needs_of(plan.get(), config);
  ASSERT_EQ(needs.size(), 3u);
  ASSERT_EQ(needs[1].size, 0u);
  GuardedMemories memories(needs.data(), 3);
  memories.get()[1].base = static_cast<uint8_t*>(memories.get()[2].base) + 64;
  qplan_session* session = nullptr;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_session_init(plan.get(), &config, memories.get().data(), 3, &session, &error), QPLAN_OK)
      << error.text;
  qplan_session_deinit(session);
}

TEST(SessionMemory, SecondArenaHoldsItsTensors) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 256, 24, {}, {}});
  spec.tensors[1].bank = 2;  // between step 0 and 1
  spec.tensors[1].offset = 0;
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), counting(24)), counting(24, 6));
}

TEST(SessionMemory, NeedsAsksForRoom) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 64, 128, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  qplan_memory_need needs[2];
  uint32_t count = 1;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, needs, &count, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "session: room for 1 memory needs, expected 2");
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(qplan_session_memory_needs(plan.get(), nullptr, needs, &count, nullptr), QPLAN_OK);
}

// ---- threads ----

TEST(SessionThreads, AnyPartitionGivesTheSameBytes) {
  const TestPlan plan(sequence_spec());
  for (const uint32_t threads : {1u, 2u, 3u, 4u, 7u}) {
    for (const uint32_t min_units : {1u, 5u, 24u}) {
      PlanSpec spec = sequence_spec();
      for (StepSpec& step : spec.steps) step.min_units_per_task = min_units;
      const TestPlan split_plan(spec);
      ReversePool pool(threads);
      qplan_platform platform = {};
      platform.struct_size = sizeof(platform);
      platform.thread_pool = &pool.pool;
      const TestSession session(split_plan, config_of(&platform));
      EXPECT_EQ(run(session.get(), counting(24)), counting(24, 6));
      const uint32_t tasks = std::min(24 / min_units, 4 * threads);
      EXPECT_EQ(pool.tasks, threads < 2 || tasks < 2 ? 0 : 3 * tasks);
    }
  }
}

TEST(SessionThreads, ZeroMinUnitsNeverSplits) {
  PlanSpec spec = sequence_spec();
  for (StepSpec& step : spec.steps) step.min_units_per_task = 0;
  const TestPlan plan(spec);
  ReversePool pool(4);
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.thread_pool = &pool.pool;
  const TestSession session(plan, config_of(&platform));
  EXPECT_EQ(run(session.get(), counting(24)), counting(24, 6));
  EXPECT_EQ(pool.calls, 0u);
}

TEST(SessionThreads, WorkerOutOfRangeIsAnError) {
  const TestPlan plan(sequence_spec());
  qplan_thread_pool pool = {};
  pool.struct_size = sizeof(pool);
  pool.num_threads = 2;
  pool.parallel_for = [](void*, uint32_t count, void (*task)(void*, uint32_t, uint32_t), void* ctx) {
    for (uint32_t i = 0; i < count; ++i) task(ctx, i, i);
  };
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.thread_pool = &pool;
  const TestSession session(plan, config_of(&platform));
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_INVALID_STATE);
  EXPECT_EQ(session.last_error(),
            "invoke: the thread pool gave a task or worker number out of range; it has 2 threads");
}

// ---- variants ----

TEST(SessionIsa, LimitChoosesTheVariant) {
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.isa_limit = QPLAN_ISA_REFERENCE;
  {
    const TestSession session(plan, config);
    reset_kernel_calls();
    run(session.get(), counting(24));
    EXPECT_EQ(kernel_calls().add_byte_ref, 3u);
    EXPECT_EQ(kernel_calls().add_byte_avx2, 0u);
    qplan_session_info info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(qplan_session_get_info(session.get(), &info), QPLAN_OK);
    EXPECT_EQ(info.isa, uint32_t{QPLAN_ISA_REFERENCE});
    EXPECT_STREQ(info.isa_name, "reference");
  }
  if (!qplan_isa_available(QPLAN_ISA_AVX2)) GTEST_SKIP() << "this machine or build lacks avx2";
  config.isa_limit = QPLAN_ISA_AUTO;
  const TestSession session(plan, config);
  reset_kernel_calls();
  run(session.get(), counting(24));
  EXPECT_EQ(kernel_calls().add_byte_ref, 0u);
  EXPECT_EQ(kernel_calls().add_byte_avx2, 3u);
  qplan_session_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_session_get_info(session.get(), &info), QPLAN_OK);
  EXPECT_EQ(info.isa, uint32_t{QPLAN_ISA_AVX2});
  EXPECT_EQ(info.num_steps, 3u);
  EXPECT_EQ(info.num_threads, 1u);
  EXPECT_EQ(info.macs, 18u);
  EXPECT_EQ(info.memory_bytes, needs_of(plan.get(), config)[0].size);
}

TEST(SessionIsa, UnknownLimitIsRefused) {
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.isa_limit = 33;
  const TestSession session(plan, config);
  EXPECT_EQ(session.status(), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session.text(), "session: isa_limit 33 is not a QPLAN_ISA_* value");
}

TEST(SessionIsa, LimitBeyondTheMachineIsRefused) {
  uint32_t beyond = 0;
  for (const uint32_t isa : {QPLAN_ISA_SSE41, QPLAN_ISA_AVX2, QPLAN_ISA_AVXVNNI, QPLAN_ISA_AVX512VNNI}) {
    if (!qplan_isa_available(isa)) beyond = isa;
  }
  if (beyond == 0) GTEST_SKIP() << "this machine has every ISA of this build";
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.isa_limit = beyond;
  const TestSession session(plan, config);
  EXPECT_EQ(session.status(), QPLAN_INVALID_ARGUMENT);
}

// ---- functions ----

TEST(SessionFunction, EntryPointIsChosenByName) {
  PlanSpec spec = sequence_spec();
  FunctionSpec second;
  second.name = "second";
  second.inputs = {1};
  second.outputs = {2};
  second.first_step = 1;
  second.num_steps = 1;
  second.scratch_per_worker = 64;
  spec.functions.push_back(second);
  const TestPlan plan(spec);
  EXPECT_EQ(qplan_plan_io_count(plan.get(), "second", QPLAN_INPUT), 1u);
  qplan_session_config config = config_of();
  config.function = "second";
  const TestSession session(plan, config);
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), counting(24)), counting(24, 2));
  qplan_event event = {};
  event.struct_size = sizeof(event);
  ASSERT_EQ(qplan_session_step_info(session.get(), 0, &event), QPLAN_OK);
  EXPECT_EQ(event.step, 1u);
  EXPECT_STREQ(event.name, "second");
  EXPECT_EQ(qplan_session_step_info(session.get(), 1, &event), QPLAN_INVALID_ARGUMENT);
  config.function = "third";
  uint32_t count = 0;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, nullptr, &count, &error), QPLAN_NOT_FOUND);
  EXPECT_STREQ(error.text, "session: the plan has no function 'third'; it has 'main', 'second'");
}

// A model may hand its input through, or name one result twice.
TEST(SessionFunction, InputAndOutputMayBeOneTensor) {
  PlanSpec spec = sequence_spec();
  spec.functions[0].outputs = {3, 0, 3};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), counting(24)), counting(24, 6));
  HostTensor out({2, 3, 4}, std::vector<uint8_t>(24));
  EXPECT_EQ(qplan_session_read(session.get(), 1, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24));
  EXPECT_EQ(qplan_session_read(session.get(), 2, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24, 6));
}

TEST(SessionFunction, WithoutStepsHandsItsInputThrough) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({2, 3, 4});
  spec.add_main({x}, {x});
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), counting(24, 9)), counting(24, 9));
}

TEST(SessionFunction, ScalarsHaveRankZero) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({}), y = spec.add_tensor({});
  spec.add_step(kAddByte, {x}, {y}, copy_params(5));
  spec.add_main({x}, {y}, 64);
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  HostTensor in({}, {7}), out({}, {0});
  in.tensor.shape = nullptr;
  EXPECT_EQ(qplan_session_write(session.get(), 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes[0], 12);
}

TEST(SessionFunction, SeveralInputsAndOutputs) {
  PlanSpec spec;
  const std::vector<int64_t> shape = {4};
  const uint32_t a = spec.add_tensor(shape), b = spec.add_tensor(shape),
                 c = spec.add_constant(shape, {1, 2, 3, 4});
  const uint32_t total = spec.add_tensor(shape), y0 = spec.add_tensor(shape), y1 = spec.add_tensor(shape);
  spec.add_step(kSum, {a, b, c}, {total}, concat_params(0));
  spec.add_step(kFan, {total}, {y0, y1}, split_params(0));
  spec.add_main({a, b}, {y1, y0});
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  HostTensor in_a({4}, {10, 10, 10, 10}), in_b({4}, {0, 1, 2, 3}), out({4}, {0, 0, 0, 0});
  EXPECT_EQ(qplan_session_write(session.get(), 0, &in_a.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_write(session.get(), 1, &in_b.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, (std::vector<uint8_t>{12, 14, 16, 18}));
  EXPECT_EQ(qplan_session_read(session.get(), 1, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, (std::vector<uint8_t>{11, 13, 15, 17}));
}

// ---- state ----

TEST(SessionState, PollTellsOfTheLastRun) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_INVALID_STATE);
  EXPECT_EQ(session.last_error(), "poll: nothing was submitted");
  EXPECT_EQ(qplan_session_wait(session.get(), 0), QPLAN_INVALID_STATE);
  EXPECT_EQ(session.last_error(), "wait: nothing was submitted");
  EXPECT_EQ(qplan_session_submit(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_wait(session.get(), 0), QPLAN_OK);
  EXPECT_EQ(qplan_session_reset_state(session.get()), QPLAN_OK);
}

TEST(SessionState, ASessionThatWasTakenDownRefusesCalls) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  qplan_session_deinit(session.get());
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(session.last_error(), "session: NULL or taken down");
}

}  // namespace
}  // namespace qplan::testing::session_test
