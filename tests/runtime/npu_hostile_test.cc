// Plans with regions that open() accepts and init refuses, and mutated ones from end to end, with a device
// and without.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"
#include "tests/support/random.h"

namespace qplan::testing::npu_hostile_test {
namespace {

class HostileRegion : public ::testing::TestWithParam<WrongRegion> {};

// Tensors: x 0, a 1, b 2, y 3, blob 4, t 5. Steps: pre 0, region 1, alternatives 2 and 3, post 4.
TEST_P(HostileRegion, InitRefusesWithTheReason) { expect_refused(region_spec(), GetParam()); }

const WrongRegion kWrong[] = {
    {"InputNotWritten", [](PlanSpec& s) { s.steps[0].outputs = {s.add_tensor({24})}; },
     "npu 'npu_main_0' (step 1): input 0 (tensor 1) is written by no earlier step", 1},
    {"OutputWrittenBefore",
     [](PlanSpec& s) {
       s.steps[0].kernel = kFan;
       s.steps[0].params = split_params(0);
       s.steps[0].outputs = {1, 2};
     },
     "npu 'npu_main_0' (step 1): output 0 (tensor 2) has been written before", 1},
    {"AlternativeLacksTheOutput", [](PlanSpec& s) { s.steps[3].outputs = {s.add_tensor({24})}; },
     "npu 'npu_main_0' (step 1): output 0 (tensor 2) is written by no fallback step", 1},
    {"IntermediateReadAfterwards", [](PlanSpec& s) { s.steps[4].inputs = {5}; },
     "add_byte 'post' (step 4): input 0 (tensor 5) is written by no earlier step where its region runs on a "
     "device",
     4},
    {"IntermediateIsAnOutput", [](PlanSpec& s) { s.functions[0].outputs = {5}; },
     "session: output 0 (tensor 5) is written by no step where its region runs on a device", -1},
    {"AlternativeOverTheInput",
     [](PlanSpec& s) { s.tensors[5].bank = s.tensors[1].bank, s.tensors[5].offset = s.tensors[1].offset; },
     "npu 'alternative_0' (step 2): is a fallback step of a region and overwrites input 0 of it in memory",
     2},
    {"OutputOverFunctionInput",
     [](PlanSpec& s) { s.tensors[0].bank = s.tensors[2].bank, s.tensors[0].offset = s.tensors[2].offset; },
     "npu 'npu_main_0' (step 1): tensor 2 overlaps input 0 of the function in memory", 1},
    {"ScratchOverFunctionInput",
     [](PlanSpec& s) {
       s.move_to_device(0, 1);
       s.steps[1].npu->binds.push_back(
           {2, format::NpuUse_SCRATCH, 0, s.tensors[0].offset + 8, 8, {}, 0, 1, 0, 0});
     },
     "npu 'npu_main_0' (step 1): bind 2 overlaps input 0 of the function in memory", 1},
    {"OutputOverInput",
     [](PlanSpec& s) {
       s = region_spec({false, true, 24});
       s.tensors[2].offset = s.tensors[1].offset + 8;
     },
     "npu 'npu_main_0' (step 1): output 0 overlaps input 0 in memory", 1},
    {"ReadsAnInputThatWasWrittenOver",
     [](PlanSpec& s) {
       s = region_spec({false, false, 24});
       s.functions[0].overwrites_inputs = true;
       s.tensors[1].offset = s.tensors[0].offset;
       s.steps[1].inputs = {0};
     },
     "npu 'npu_main_0' (step 1): input 0 (tensor 0) has been written over by an earlier step", 1},
    {"DeviceScratchOverAnInputThatIsReadAfterwards",
     [](PlanSpec& s) {
       s.move_to_device(0, 1);
       s.functions[0].overwrites_inputs = true;
       s.steps[1].npu->binds.push_back(
           {2, format::NpuUse_SCRATCH, 0, s.tensors[0].offset + 8, 8, {}, 0, 1, 0, 0});
       s.steps[4].inputs = {0};
     },
     "add_byte 'post' (step 4): input 0 (tensor 0) has been written over by an earlier step", 4},
    {"OutputOverAnInputThatIsReadAfterwards",
     [](PlanSpec& s) {
       s = region_spec({false, false, 24});
       s.functions[0].overwrites_inputs = true;
       s.tensors[2].offset = s.tensors[0].offset;
       s.steps[2].inputs = {0};
     },
     "add_byte 'post' (step 2): input 0 (tensor 0) has been written over by an earlier step", 2},
};
INSTANTIATE_TEST_SUITE_P(Init, HostileRegion, ::testing::ValuesIn(kWrong),
                         [](const ::testing::TestParamInfo<WrongRegion>& wrong) {
                           return std::string(wrong.param.name);
                         });

// The session is in the memory of the first ARENA bank: the first of those that it is given.
TEST(HostileRegionTest, ADeviceBankBeforeTheArenaIsRefused) {
  PlanSpec spec = region_spec();
  spec.banks[2].size = 64;
  std::swap(spec.banks[0], spec.banks[2]);
  for (TensorSpec& tensor : spec.tensors) tensor.bank = tensor.bank == 0 ? 2 : tensor.bank == 2 ? 0 : 1;
  const AlignedBytes bytes = build_plan(spec);
  qplan_plan plan;
  qplan_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, &error), QPLAN_PLAN_CORRUPT);
  EXPECT_STREQ(error.text, "plan: bank 0: memory of a device before the first arena, expected after it");
}

// Opens, inits and runs bytes that may be anything: on the device, and on the CPU.
qplan_status open_and_run(const AlignedBytes& bytes, bool with_device) {
  qplan_plan plan;
  qplan_status status = qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, nullptr);
  if (status != QPLAN_OK) return status;
  FakeNpu npu;
  DeviceConfigs devices;
  if (with_device) devices.add("fake", npu);
  const qplan_session_config config = npu_config(devices, QPLAN_NPU_FALLBACK, QPLAN_NPU_VERIFY);
  qplan_memory_need needs[8];
  uint32_t count = 8;
  status = qplan_session_memory_needs(&plan, &config, needs, &count, nullptr);
  if (status != QPLAN_OK) return status;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += needs[i].size;
  if (total > (uint64_t{16} << 20)) return QPLAN_OUT_OF_MEMORY;  // the caller's to decide
  GuardedMemories memories(needs, count);
  qplan_session* session = nullptr;
  status = qplan_session_init(&plan, &config, memories.get().data(), count, &session, nullptr);
  if (status == QPLAN_OK) {
    status = qplan_session_invoke(session);
    qplan_session_deinit(session);
  }
  EXPECT_EQ(npu.live_buffers() + npu.live_programs() + npu.counts.live_jobs, 0u);
  return status;
}

PlanSpec arranged() {
  PlanSpec spec = region_spec({false, true, 24});
  for (BindSpec& bind : spec.steps[1].npu->binds) {
    bind.size = 32;
    bind.origin = 3;
    bind.strides = std::vector<uint64_t>{1};
  }
  spec.steps[1].npu->binds[1].offset = 64;
  spec.banks[2].size = 96;
  return spec;
}

TEST(HostileRegionTest, FlippedBitsAndExtremeWordsNeverCrash) {
  constexpr uint32_t kWords[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x40, 0x10000};
  for (const PlanSpec& spec : {region_spec(), arranged()}) {
    const AlignedBytes good = build_plan(spec);
    ASSERT_EQ(open_and_run(good, true), QPLAN_OK);
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      SCOPED_TRACE(seed);
      Random random(seed);
      AlignedBytes bytes(good.data(), good.size());
      for (int64_t i = random.integer(1, 4); i > 0; --i) {
        bytes[static_cast<size_t>(random.integer(0, static_cast<int64_t>(good.size()) - 1))] ^=
            static_cast<uint8_t>(1 << random.integer(0, 7));
      }
      refused += open_and_run(bytes, seed % 2 == 0) != QPLAN_OK ? 1 : 0;
    }
    EXPECT_GT(refused, 200u);
    for (size_t at = 64; at + 4 <= good.size(); at += 4) {
      for (const uint32_t word : kWords) {
        SCOPED_TRACE(at);
        AlignedBytes bytes(good.data(), good.size());
        std::memcpy(bytes.data() + at, &word, 4);
        (void)open_and_run(bytes, true);
      }
    }
  }
}

}  // namespace
}  // namespace qplan::testing::npu_hostile_test
