// Hooks, struct sizes, wrong arguments, and the heap, which stays unused.
#include <gtest/gtest.h>

#include <memory>

#include "format/container.h"
#include "kernels/cpu.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/isas.h"
#include "tests/support/malloc_trap.h"
#include "tests/support/sanitizers.h"

namespace qplan::testing::platform_test {
namespace {

struct Recorder {
  qplan_platform platform = {};
  std::vector<std::string> lines;
  qplan_session* session = nullptr;
  qplan_status nested = QPLAN_OK;

  Recorder() {
    platform.struct_size = sizeof(platform);
    platform.user = this;
    platform.log_level = QPLAN_LOG_DEBUG;
    platform.log = [](void* user, uint32_t level, const char* text) {
      static_cast<Recorder*>(user)->lines.push_back("log " + std::to_string(level) + " " + text);
    };
    platform.step_begin = [](void* user, const qplan_event* event) {
      auto* self = static_cast<Recorder*>(user);
      self->lines.push_back("begin " + describe(*event));
      if (self->session != nullptr) self->nested = qplan_session_invoke(self->session);
    };
    platform.step_end = [](void* user, const qplan_event* event, qplan_status status) {
      static_cast<Recorder*>(user)->lines.push_back("end " + describe(*event) + " " +
                                                    qplan_status_name(status));
    };
  }
  static std::string describe(const qplan_event& event) {
    return std::to_string(event.step) + " " + event.op + " " + event.kernel + " '" + event.name + "' macs " +
           std::to_string(event.macs) + " bytes " + std::to_string(event.bytes);
  }
};

qplan_session_config reference_config(const qplan_platform* platform) {
  qplan_session_config config = config_of(platform);
  config.isa_limit = QPLAN_ISA_REFERENCE;
  return config;
}

TEST(Platform, EventsComeInOrderWithWhatTheStepIs) {
  const TestPlan plan(sequence_spec());
  Recorder recorder;
  recorder.platform.log = nullptr;
  const TestSession session(plan, reference_config(&recorder.platform));
  EXPECT_TRUE(recorder.lines.empty());
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{
                                "begin 0 add_byte add_byte_ref 'first' macs 7 bytes 48",
                                "end 0 add_byte add_byte_ref 'first' macs 7 bytes 48 QPLAN_OK",
                                "begin 1 add_byte add_byte_ref 'second' macs 0 bytes 48",
                                "end 1 add_byte add_byte_ref 'second' macs 0 bytes 48 QPLAN_OK",
                                "begin 2 add_byte add_byte_ref 'third' macs 11 bytes 48",
                                "end 2 add_byte add_byte_ref 'third' macs 11 bytes 48 QPLAN_OK",
                            }));
}

TEST(Platform, LogTellsOfInitAndErrors) {
  PlanSpec spec = sequence_spec();
  spec.with_names = false;
  const TestPlan plan(spec);
  Recorder recorder;
  recorder.platform.step_begin = nullptr;
  recorder.platform.step_end = nullptr;
  const TestSession session(plan, reference_config(&recorder.platform));
  const std::string bytes = std::to_string(needs_of(plan.get(), config_of())[0].size);
  EXPECT_EQ(recorder.lines,
            (std::vector<std::string>{
                "log 4 session: step 0: add_byte_ref", "log 4 session: step 1: add_byte_ref",
                "log 4 session: step 2: add_byte_ref",
                "log 3 session: function 'main', 3 steps, isa 'reference', 1 threads, " + bytes + " bytes"}));
  recorder.lines.clear();
  EXPECT_EQ(qplan_session_read(session.get(), 3, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(recorder.lines, std::vector<std::string>{"log 1 read: output 3 of 1"});
}

// Names come from the plan, which is untrusted: a text stays one line.
TEST(Platform, LogQuotesNamesOfThePlan) {
  PlanSpec spec = sequence_spec();
  spec.functions.push_back(spec.functions[0]);
  spec.functions[1].name = "a\nb\x1b[2J";
  const TestPlan plan(spec);
  Recorder recorder;
  recorder.platform.log_level = QPLAN_LOG_INFO;
  qplan_session_config config = reference_config(&recorder.platform);
  config.function = spec.functions[1].name.c_str();
  const TestSession session(plan, config);
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  ASSERT_EQ(recorder.lines.size(), 1u);
  EXPECT_EQ(recorder.lines[0].find("log 3 session: function 'a?b?[2J', 3 steps"), 0u) << recorder.lines[0];
}

// A plan runs anywhere, but one that was packed for another processor runs slowly, which would go unnoticed.
TEST(Platform, APlanForAnotherArchitectureIsTold) {
  const std::string here = qplan::cpu_arch();
  if (here == "unknown") GTEST_SKIP() << "the architecture of this build has no name";
  const auto warnings_of = [](const std::string& options, qplan_plan_info* info) {
    PlanSpec spec = sequence_spec();
    spec.targets = {{"vta", "arch=z80"}, {"cpu", options}};
    const TestPlan plan(spec);
    info->struct_size = sizeof(*info);
    EXPECT_EQ(qplan_plan_get_info(plan.get(), info), QPLAN_OK);
    EXPECT_EQ(info->target_options, options);
    Recorder recorder;
    recorder.platform.log_level = QPLAN_LOG_WARNING;
    const TestSession session(plan, config_of(&recorder.platform));
    EXPECT_EQ(session.status(), QPLAN_OK) << session.text();
    return recorder.lines;
  };
  qplan_plan_info info = {};
  for (const std::string& options : {"arch=" + here + ",isa=reference", "isa=avx2,arch=" + here,
                                     std::string("isa=reference"), std::string()}) {
    EXPECT_EQ(warnings_of(options, &info), std::vector<std::string>{}) << options;
    EXPECT_EQ(info.is_for_other_arch, 0u) << options;
    EXPECT_EQ(info.runtime_arch, here);
    EXPECT_EQ(info.version_major, format::kVersionMajor);
  }
  const std::vector<std::string> told = {
      "log 2 session: the plan was packed for arch 'z81', and this is '" + here +
      "': results are the same, but it may take several times the time and memory; pack the model again with "
      "--target cpu,arch=..."};
  for (const char* options : {"arch=z81,isa=reference", "isa=x,arch=z81"}) {
    EXPECT_EQ(warnings_of(options, &info), told);
    EXPECT_EQ(info.is_for_other_arch, 1u);
  }
  for (const std::string isa : {"dsp", "mve"}) {
    const std::vector<std::string> lacking = {"log 2 session: the plan was packed for arch '" + here +
                                              "' with isa '" + isa + "', and this is '" + here +
                                              "' without it: results are the same, but it may take several "
                                              "times the time and memory; pack the model again with "
                                              "--target cpu,arch=..."};
    EXPECT_EQ(warnings_of("arch=" + here + ",isa=" + isa, &info), lacking);
    EXPECT_EQ(info.is_for_other_arch, 1u);
  }
  EXPECT_EQ(qplan_plan_get_info(nullptr, &info), QPLAN_INVALID_ARGUMENT);
}

TEST(Platform, LogLevelIsObeyed) {
  const TestPlan plan(sequence_spec());
  for (const uint32_t level :
       {QPLAN_LOG_OFF, QPLAN_LOG_ERROR, QPLAN_LOG_WARNING, QPLAN_LOG_INFO, QPLAN_LOG_DEBUG}) {
    Recorder recorder;
    recorder.platform.log_level = level;
    recorder.platform.step_begin = nullptr;
    recorder.platform.step_end = nullptr;
    const TestSession session(plan, config_of(&recorder.platform));
    (void)qplan_session_read(session.get(), 3, nullptr);
    const size_t expected[] = {0, 1, 1, 2, 5};
    EXPECT_EQ(recorder.lines.size(), expected[level]);
  }
}

TEST(Platform, LogWarnsOfKernelsThatScratchIsTooShortFor) {
  QPLAN_SKIP_UNLESS_ISA(QPLAN_ISA_AVX2);
  PlanSpec spec = sequence_spec();
  spec.steps[1].params = copy_params(77);
  const TestPlan plan(spec);
  Recorder recorder;
  recorder.platform.log_level = QPLAN_LOG_WARNING;
  const TestSession session(plan, config_of(&recorder.platform));
  EXPECT_EQ(
      recorder.lines,
      std::vector<std::string>{
          "log 2 session: step 1 'second': add_byte_avx2 needs 128 bytes of scratch, the plan provides 64: "
          "add_byte_ref runs in its place, which is slower; pack the model again"});
}

TEST(Platform, CallsFromAHookAreRefused) {
  const TestPlan plan(sequence_spec());
  Recorder recorder;
  const TestSession session(plan, config_of(&recorder.platform));
  recorder.session = session.get();
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(recorder.nested, QPLAN_INVALID_STATE);
  EXPECT_EQ(session.last_error(), "invoke: the session is running");
}

// ---- struct_size ----

TEST(StructSize, FieldsBeyondItCountAsZero) {
  const TestPlan plan(sequence_spec());
  Recorder recorder;
  recorder.platform.struct_size = offsetof(qplan_platform, step_begin);
  const TestSession session(plan, config_of(&recorder.platform));
  recorder.lines.clear();
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_TRUE(recorder.lines.empty());

  qplan_session_config config = config_of();
  config.struct_size = offsetof(qplan_session_config, kernels);
  const TestSession without_kernels(plan, config);
  EXPECT_EQ(without_kernels.status(), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(without_kernels.text(),
            "session: config.kernels is NULL; pass qplan_kernels_all() or qplan_kernels_reference()");
}

TEST(StructSize, LargerStructsOfNewerCallersAreFine) {
  struct Newer {
    qplan_session_config config;
    uint64_t more[4];
  } newer = {config_of(), {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}}};
  newer.config.struct_size = sizeof(newer);
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, newer.config);
  EXPECT_EQ(session.status(), QPLAN_OK) << session.text();
  struct NewerInfo {
    qplan_session_info info;
    uint64_t more;
  } info = {{}, 77};
  info.info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_get_info(session.get(), &info.info), QPLAN_OK);
  EXPECT_EQ(info.info.struct_size, sizeof(qplan_session_info));
  EXPECT_EQ(info.more, 77u);
}

TEST(StructSize, SmallerOutputsAreFilledAsFarAsTheyReach) {
  const TestPlan plan(sequence_spec());
  qplan_tensor_info info;
  memset(&info, 0xee, sizeof(info));
  info.struct_size = offsetof(qplan_tensor_info, dtype);
  ASSERT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_INPUT, 0, &info), QPLAN_OK);
  EXPECT_EQ(info.ndim, 3);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.alignment, 0xeeeeeeeeu);
  info.struct_size = 0;
  EXPECT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_INPUT, 0, &info), QPLAN_INVALID_ARGUMENT);
  qplan_error error = empty_error();
  error.struct_size = offsetof(qplan_error, text) + 10;
  memset(error.text, 'x', sizeof(error.text));
  EXPECT_EQ(qplan_plan_open(nullptr, nullptr, 0, 0, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "plan: pla");
  EXPECT_EQ(error.text[10], 'x');
}

TEST(StructSize, ForgottenOnesAreNamed) {
  const TestPlan plan(sequence_spec());
  Recorder recorder;
  recorder.platform.struct_size = 0;
  const qplan_session_config config = config_of(&recorder.platform);
  uint32_t count = 0;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, nullptr, &count, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "session: struct_size of qplan_platform is 0; set it to sizeof(qplan_platform)");
}

// ---- wrong arguments ----

TEST(Arguments, NullIsAnErrorEverywhere) {
  const TestPlan plan(sequence_spec());
  const qplan_session_config config = config_of();
  qplan_plan opened = {};
  EXPECT_EQ(qplan_plan_open(nullptr, plan.bytes().data(), 64, 0, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_open(&opened, nullptr, 64, 0, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_open(&opened, plan.bytes().data(), plan.bytes().size(), 2, nullptr),
            QPLAN_INVALID_ARGUMENT);
  uint32_t count = 0;
  qplan_session* session = nullptr;
  qplan_memory memory = {};
  for (const qplan_plan* unopened :
       {static_cast<const qplan_plan*>(nullptr), static_cast<const qplan_plan*>(&opened)}) {
    EXPECT_EQ(qplan_plan_io_count(unopened, nullptr, QPLAN_INPUT), 0u);
    qplan_tensor_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(qplan_plan_io_info(unopened, nullptr, QPLAN_INPUT, 0, &info), QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(qplan_session_memory_needs(unopened, &config, nullptr, &count, nullptr),
              QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(qplan_session_init(unopened, &config, &memory, 1, &session, nullptr), QPLAN_INVALID_ARGUMENT);
  }
  EXPECT_EQ(qplan_plan_io_count(plan.get(), "absent", QPLAN_INPUT), 0u);
  EXPECT_EQ(qplan_plan_io_count(plan.get(), nullptr, 7), 0u);
  qplan_tensor_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_INPUT, 1, &info), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_io_info(plan.get(), nullptr, 7, 0, &info), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_INPUT, 0, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_plan_io_info(plan.get(), "absent", QPLAN_INPUT, 0, &info), QPLAN_NOT_FOUND);
  EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, nullptr, nullptr, nullptr),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_init(plan.get(), nullptr, &memory, 1, &session, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_init(plan.get(), &config, nullptr, 1, &session, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_init(plan.get(), &config, &memory, 1, nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
  DLTensor tensor = {};
  EXPECT_EQ(qplan_session_view(nullptr, 0, 0, &tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_bind(nullptr, 0, 0, &tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_write(nullptr, 0, &tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_read(nullptr, 0, &tensor), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_invoke(nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_submit(nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_poll(nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_wait(nullptr, 1), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_reset_state(nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_get_info(nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_step_info(nullptr, 0, nullptr), QPLAN_INVALID_ARGUMENT);
  qplan_session_last_error(nullptr, nullptr);
  qplan_session_deinit(nullptr);
  const TestSession live(plan, config);
  EXPECT_EQ(qplan_session_get_info(live.get(), nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_session_step_info(live.get(), 0, nullptr), QPLAN_INVALID_ARGUMENT);
}

TEST(Arguments, PoolsAreChecked) {
  const TestPlan plan(sequence_spec());
  for (const uint32_t threads : {0u, 4097u, 2u}) {
    qplan_thread_pool pool = {};
    pool.struct_size = sizeof(pool);
    pool.num_threads = threads;
    if (threads != 2) pool.parallel_for = [](void*, uint32_t, void (*)(void*, uint32_t, uint32_t), void*) {};
    qplan_platform platform = {};
    platform.struct_size = sizeof(platform);
    platform.thread_pool = &pool;
    const qplan_session_config config = config_of(&platform);
    uint32_t count = 0;
    qplan_error error = empty_error();
    EXPECT_EQ(qplan_session_memory_needs(plan.get(), &config, nullptr, &count, &error),
              QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(error.text, "session: thread pool with " + std::to_string(threads) + " threads and " +
                              (threads == 2 ? "no parallel_for" : "a parallel_for") +
                              ", expected 1 to 4096 and a function");
  }
}

TEST(Arguments, AFailedOpenLeavesAClosedPlan) {
  const AlignedBytes good = build_plan(sequence_spec());
  qplan_plan plan;
  ASSERT_EQ(qplan_plan_open(&plan, good.data(), good.size(), 0, nullptr), QPLAN_OK);
  EXPECT_EQ(qplan_plan_io_count(&plan, nullptr, QPLAN_INPUT), 1u);
  ASSERT_EQ(qplan_plan_open(&plan, good.data(), 10, 0, nullptr), QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(qplan_plan_io_count(&plan, nullptr, QPLAN_INPUT), 0u);
}

TEST(PlanInfo, TellsShapeAndQuantization) {
  const TestPlan plan(sequence_spec());
  qplan_tensor_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_plan_io_info(plan.get(), "main", QPLAN_INPUT, 0, &info), QPLAN_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.ndim, 3);
  EXPECT_EQ(info.shape[2], 4);
  EXPECT_EQ(info.size_bytes, 24u);
  EXPECT_EQ(info.alignment, 1u);
  ASSERT_EQ(info.num_scales, 1u);
  EXPECT_EQ(info.scales[0], 0.5F);
  EXPECT_EQ(info.zero_points[0], -3);
  info.struct_size = sizeof(info);
  ASSERT_EQ(qplan_plan_io_info(plan.get(), nullptr, QPLAN_OUTPUT, 0, &info), QPLAN_OK);
  EXPECT_EQ(info.num_scales, 3u);
  EXPECT_EQ(info.quant_axis, 1);
  EXPECT_EQ(info.scales[2], 3.0F);
}

// ---- heap ----

TEST(Heap, NothingIsAllocatedFromOpenToDeinit) {
  const AlignedBytes bytes = build_plan(sequence_spec());
  const qplan_session_config config = config_of();
  GuardedMemories memories;
  {
    qplan_plan plan;
    ASSERT_EQ(qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, nullptr), QPLAN_OK);
    const auto needs = needs_of(&plan, config);
    memories = GuardedMemories(needs.data(), 1);
  }
  HostTensor in({2, 3, 4}, counting(24)), out({2, 3, 4}, std::vector<uint8_t>(24));
  int64_t strides[] = {1, 2, 6};
  HostTensor strided({2, 3, 4}, counting(24));
  strided.tensor.strides = strides;
  qplan_status worst = QPLAN_OK;
  const auto note = [&](qplan_status status) { worst = status < worst ? status : worst; };

  const uint64_t before = allocation_count();
  qplan_plan plan;
  qplan_error error = empty_error();
  qplan_session* session = nullptr;
  qplan_memory_need need;
  uint32_t count = 1;
  qplan_session_info info = {};
  info.struct_size = sizeof(info);
  note(qplan_plan_open(&plan, bytes.data(), bytes.size(), QPLAN_PLAN_DIGEST, &error));
  note(qplan_session_memory_needs(&plan, &config, &need, &count, &error));
  note(qplan_session_init(&plan, &config, memories.get().data(), 1, &session, &error));
  note(qplan_session_write(session, 0, &strided.tensor));
  note(qplan_session_write(session, 0, &in.tensor));
  note(qplan_session_invoke(session));
  note(qplan_session_read(session, 0, &out.tensor));
  note(qplan_session_bind(session, QPLAN_INPUT, 0, &in.tensor));
  note(qplan_session_invoke(session));
  note(qplan_session_get_info(session, &info));
  (void)qplan_session_read(session, 5, nullptr);  // an error with its text
  qplan_session_last_error(session, &error);
  qplan_session_deinit(session);
  const uint64_t after = allocation_count();

  EXPECT_EQ(worst, QPLAN_OK);
  EXPECT_EQ(after - before, 0u);
  EXPECT_EQ(out.bytes, counting(24, 6));
}

TEST(Heap, TheTrapSeesAllocations) {
  const uint64_t before = allocation_count();
  const auto one = std::make_unique<std::vector<int>>(3);
  void* volatile two = malloc(10);
  free(two);
#if QPLAN_ASAN || QPLAN_TSAN
  GTEST_SKIP() << "the sanitizer's own malloc stands before the trap";
#endif
  EXPECT_GE(allocation_count() - before, 3u);
}

}  // namespace
}  // namespace qplan::testing::platform_test
