// Plans that open() accepts and init refuses, and mutated plans from end to end.
#include <gtest/gtest.h>

#include "format/container.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/random.h"

namespace qplan::testing::hostile_plan_test {
namespace {

struct Wrong {
  const char* name;
  void (*change)(PlanSpec&);
  qplan_status status;
  const char* text;
  int32_t step;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }
std::string name_of(const ::testing::TestParamInfo<Wrong>& wrong) { return wrong.param.name; }

class HostilePlan : public ::testing::TestWithParam<Wrong> {};

TEST_P(HostilePlan, InitRefusesWithTheReason) {
  PlanSpec spec = sequence_spec();
  GetParam().change(spec);
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  EXPECT_EQ(session.status(), GetParam().status);
  EXPECT_EQ(session.text(), GetParam().text);
  EXPECT_EQ(session.step(), GetParam().step);
}

const Wrong kWrong[] = {
    {"UnknownKernel", [](PlanSpec& s) { s.steps[1].kernel = 4000; }, QPLAN_KERNEL_MISSING,
     "session: step 1 'second' needs kernel 4000 (unknown to this build), which is not in the kernel set", 1},
    {"AbsentKernel",
     [](PlanSpec& s) {
       s.steps[1].kernel = 11;
       s.steps[1].params = [](flatbuffers::FlatBufferBuilder& builder) {
         return std::pair(format::KernelParams_Lut8Params, format::CreateLut8Params(builder).Union());
       };
     },
     QPLAN_KERNEL_MISSING, "session: step 1 'second' needs kernel 11 (lut8), which is not in the kernel set",
     1},
    {"FamilyRefuses", [](PlanSpec& s) { s.steps[2].params = copy_params(255); }, QPLAN_PLAN_CORRUPT,
     "add_byte 'third' (step 2): addend 255 is out of range", 2},
    {"ReadBeforeWritten", [](PlanSpec& s) { s.steps[0].inputs = {2}; }, QPLAN_PLAN_CORRUPT,
     "add_byte 'first' (step 0): input 0 (tensor 2) is written by no earlier step", 0},
    {"WrittenTwice",
     [](PlanSpec& s) {
       s.steps[1].outputs = {1};
       s.steps[1].inputs = {0};
     },
     QPLAN_PLAN_CORRUPT, "add_byte 'second' (step 1): output 0 (tensor 1) has been written before", 1},
    {"InputWritten", [](PlanSpec& s) { s.steps[1].outputs = {0}; }, QPLAN_PLAN_CORRUPT,
     "add_byte 'second' (step 1): output 0 (tensor 0) has been written before", 1},
    {"OutputNotWritten", [](PlanSpec& s) { s.functions[0].num_steps = 2; }, QPLAN_PLAN_CORRUPT,
     "session: output 0 (tensor 3) is written by no step", -1},
    {"PartialOverlap", [](PlanSpec& s) { s.tensors[2].offset = s.tensors[1].offset + 8; }, QPLAN_PLAN_CORRUPT,
     "add_byte 'second' (step 1): output 0 overlaps input 0 in memory", 1},
    {"InPlaceRefused",
     [](PlanSpec& s) {
       s.steps[1].kernel = kSum;
       s.steps[1].params = concat_params(0);
       s.tensors[2].offset = s.tensors[1].offset;
     },
     QPLAN_PLAN_CORRUPT, "sum 'second' (step 1): output 0 overlaps input 0 in memory", 1},
    {"OutputsOverlap",
     [](PlanSpec& s) {
       s.steps[1].kernel = kFan;
       s.steps[1].params = split_params(0);
       s.steps[1].outputs = {2, s.add_tensor({2, 3, 4})};
       s.tensors[4].offset = s.tensors[2].offset;
     },
     QPLAN_PLAN_CORRUPT, "fan 'second' (step 1): outputs 0 and 1 overlap in memory", 1},
    {"InPlaceOverFunctionInput", [](PlanSpec& s) { s.tensors[2].offset = s.tensors[0].offset; },
     QPLAN_PLAN_CORRUPT, "add_byte 'second' (step 1): output 0 overlaps input 0 of the function in memory",
     1},
    {"InPlaceOverFunctionOutput",
     [](PlanSpec& s) {
       s.functions[0].outputs = {1, 3};
       s.tensors[2].offset = s.tensors[1].offset;
     },
     QPLAN_PLAN_CORRUPT, "add_byte 'second' (step 1): output 0 overlaps output 0 of the function in memory",
     1},
    {"InputAndOutputOverlap", [](PlanSpec& s) { s.tensors[3].offset = s.tensors[0].offset; },
     QPLAN_PLAN_CORRUPT, "session: inputs or outputs of the function overlap: tensors 0 and 3", -1},
    {"InputTwice",
     [](PlanSpec& s) {
       s.functions[0].inputs = {0, 0};
     },
     QPLAN_PLAN_CORRUPT, "session: tensor 0 is two inputs of the function", -1},
    {"InputReadAfterItWasWrittenOver",
     [](PlanSpec& s) {
       s.functions[0].overwrites_inputs = true;
       s.tensors[1].offset = s.tensors[0].offset;
       s.steps[1].inputs = {0};
     },
     QPLAN_PLAN_CORRUPT,
     "add_byte 'second' (step 1): input 0 (tensor 0) has been written over by an earlier step", 1},
    {"InputReadAfterAPartOfItWasWrittenOver",
     [](PlanSpec& s) {
       s.functions[0].overwrites_inputs = true;
       s.tensors[2].offset = s.tensors[0].offset + 8;
       s.steps[2].inputs = {0};
     },
     QPLAN_PLAN_CORRUPT,
     "add_byte 'third' (step 2): input 0 (tensor 0) has been written over by an earlier step", 2},
    {"InputReadAfterItWasScratch",
     [](PlanSpec& s) {
       s.functions[0].overwrites_inputs = true;
       s.functions[0].scratch_offsets = {0, static_cast<uint32_t>(s.tensors[0].offset), 0};
       s.functions[0].scratch_sizes = {0, 64, 0};
       s.banks[s.tensors[0].bank].size += 64;
       s.tensors[2].offset = s.add_range(s.tensors[0].bank, 64);
       s.tensors[1].offset = s.add_range(s.tensors[0].bank, 64);
       s.steps[2].inputs = {0};
     },
     QPLAN_PLAN_CORRUPT,
     "add_byte 'third' (step 2): input 0 (tensor 0) has been written over by an earlier step", 2},
    {"TensorReadAfterItWasScratch",
     [](PlanSpec& s) {
       s.steps[1].inputs = {0};
       s.functions[0].scratch_offsets = {0, static_cast<uint32_t>(s.tensors[1].offset), 0};
       s.functions[0].scratch_sizes = {0, 64, 0};
       s.banks[s.tensors[1].bank].size += 64;
       s.tensors[2].offset = s.add_range(s.tensors[1].bank, 64);
       s.steps[2].inputs = {1};
     },
     QPLAN_PLAN_CORRUPT,
     "add_byte 'third' (step 2): input 0 (tensor 1) has been written over by an earlier step", 2},
    {"WriteOverAnInputThatIsAnOutput",
     [](PlanSpec& s) {
       s.functions[0].overwrites_inputs = true;
       s.tensors[1].offset = s.tensors[0].offset;
       s.functions[0].outputs = {3, 0};
     },
     QPLAN_PLAN_CORRUPT, "add_byte 'first' (step 0): output 0 overlaps output 1 of the function in memory", 0},
    {"TensorReadAfterAnOutputWasWrittenOverIt",
     [](PlanSpec& s) {
       s.tensors[2].offset = s.tensors[1].offset;
       s.functions[0].outputs = {2, 3};
       s.steps[2].inputs = {1};
     },
     QPLAN_PLAN_CORRUPT,
     "add_byte 'third' (step 2): input 0 (tensor 1) has been written over by an earlier step", 2},
    {"ScratchMissing", [](PlanSpec& s) { s.functions[0].scratch_per_worker = 0; }, QPLAN_PLAN_CORRUPT,
     "add_byte 'first' (step 0): kernel 'add_byte_ref' needs 64 bytes of scratch, the plan provides 0", 0},
};
INSTANTIATE_TEST_SUITE_P(Init, HostilePlan, ::testing::ValuesIn(kWrong), name_of);

TEST(HostilePlanTest, InPlaceWhereTheFamilyAllowsIt) {
  PlanSpec spec = sequence_spec();
  spec.tensors[2].offset = spec.tensors[1].offset;
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  HostTensor in({2, 3, 4}, counting(24)), out({2, 3, 4}, counting(24));
  EXPECT_EQ(qplan_session_write(session.get(), 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, counting(24, 6));
}

// A buffer that is bound as an input is only read: the step that would work in place of the input does not.
TEST(HostilePlanTest, TheLastReaderOfAnInputMayWriteOverIt) {
  PlanSpec spec = sequence_spec();
  spec.functions[0].overwrites_inputs = true;
  spec.tensors[1].offset = spec.tensors[0].offset;
  const TestPlan plan(spec);
  for (const bool is_bound : {false, true}) {
    const TestSession session(plan, config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    HostTensor in({2, 3, 4}, counting(24)), out({2, 3, 4}, counting(24));
    EXPECT_EQ(is_bound ? qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor)
                       : qplan_session_write(session.get(), 0, &in.tensor),
              QPLAN_OK)
        << session.last_error();
    EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
    EXPECT_EQ(out.bytes, counting(24, 6));
    EXPECT_EQ(in.bytes, counting(24));
  }
}

// Opens, inits and runs bytes that may be anything. Every read and write beyond a buffer is
// AddressSanitizer's to find.
qplan_status open_and_run(const AlignedBytes& bytes) {
  qplan_plan plan;
  qplan_status status = qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, nullptr);
  if (status != QPLAN_OK) return status;
  const qplan_session_config config = config_of();
  qplan_memory_need needs[8];
  uint32_t count = 8;
  status = qplan_session_memory_needs(&plan, &config, needs, &count, nullptr);
  if (status != QPLAN_OK) return status;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += needs[i].size;
  if (total > (uint64_t{64} << 20)) return QPLAN_OUT_OF_MEMORY;  // the caller's to decide
  GuardedMemories memories(needs, count);
  qplan_session* session = nullptr;
  status = qplan_session_init(&plan, &config, memories.get().data(), count, &session, nullptr);
  if (status != QPLAN_OK) return status;
  for (const int direction : {QPLAN_INPUT, QPLAN_OUTPUT}) {
    for (uint32_t i = 0; i < qplan_plan_io_count(&plan, nullptr, direction); ++i) {
      DLTensor view;
      if (qplan_session_view(session, direction, i, &view) != QPLAN_OK) return QPLAN_INTERNAL;
      qplan_tensor_info info = {};
      info.struct_size = sizeof(info);
      if (qplan_plan_io_info(&plan, nullptr, direction, i, &info) != QPLAN_OK) return QPLAN_INTERNAL;
      memset(view.data, 0x11, static_cast<size_t>(info.size_bytes));
    }
  }
  status = qplan_session_invoke(session);
  qplan_session_deinit(session);
  return status;
}

PlanSpec rich_spec() {
  PlanSpec spec = sequence_spec();
  spec.functions.clear();
  const uint32_t c = spec.add_constant({2, 3, 4}, counting(24), "constant");
  const uint32_t total = spec.add_tensor({2, 3, 4}, "total"), y0 = spec.add_tensor({2, 3, 4}, "y0"),
                 y1 = spec.add_tensor({24}, "y1");
  spec.add_step(kSum, {0, 3, c}, {total}, concat_params(0), "sum");
  spec.add_step(kFan, {total}, {y0, y1}, split_params(1), "fan");
  spec.add_main({0}, {y0, y1, 3}, 64);
  spec.functions.push_back(spec.functions[0]);
  spec.functions[1].name = "again";
  return spec;
}

TEST(HostilePlanTest, FlippedBitsNeverCrash) {
  const AlignedBytes good = build_plan(rich_spec());
  ASSERT_EQ(open_and_run(good), QPLAN_OK);
  uint32_t refused = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    AlignedBytes bytes(good.data(), good.size());
    const int64_t flips = random.integer(1, 4);
    for (int64_t i = 0; i < flips; ++i) {
      bytes[static_cast<size_t>(random.integer(0, static_cast<int64_t>(good.size()) - 1))] ^=
          static_cast<uint8_t>(1 << random.integer(0, 7));
    }
    refused += open_and_run(bytes) != QPLAN_OK ? 1 : 0;
  }
  EXPECT_GT(refused, 200u);
}

// Whole words changed to values that arithmetic on sizes stumbles over.
TEST(HostilePlanTest, ExtremeWordsNeverCrash) {
  const AlignedBytes good = build_plan(rich_spec());
  constexpr uint32_t kWords[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc, 0x40, 0x10000};
  for (size_t at = 64; at + 4 <= good.size(); at += 4) {
    for (const uint32_t word : kWords) {
      SCOPED_TRACE(at);
      AlignedBytes bytes(good.data(), good.size());
      memcpy(bytes.data() + at, &word, 4);
      (void)open_and_run(bytes);
    }
  }
}

TEST(HostilePlanTest, SpliceOfItselfNeverCrashes) {
  const AlignedBytes good = build_plan(rich_spec());
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    AlignedBytes bytes(good.data(), good.size());
    const int64_t size = random.integer(1, 64), last = static_cast<int64_t>(good.size()) - size;
    memmove(bytes.data() + random.integer(64, last), good.data() + random.integer(0, last),
            static_cast<size_t>(size));
    (void)open_and_run(bytes);
  }
}

}  // namespace
}  // namespace qplan::testing::hostile_plan_test
