// Bytes of a device's bank that several things have: a value that a region reads there, or a tensor that a
// later step reads, must not have been written over where only some runs write. Such plans are made by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_bank_test {
namespace {

using format::NpuUse_INPUT;
using format::NpuUse_OUTPUT;
using format::NpuUse_SCRATCH;

constexpr uint64_t kBytes = 24;

// All tensors have 24 bytes: x 0, m 1, y 2, t 3, z 4, blobs 5 and 6. Steps:
//   0  "make"    region: m = x + 5, in the bank's bytes 128 to 151, where it is kept
//   1            fallback of it
//   2  "between" t = x + 1 on the CPU; t is in the arena
//   3  "read"    region: y = m + 7, of what "make" has kept
//   4            fallback of it
//   5  "after"   z = t + 1 on the CPU
// The copies of x and y are in bytes 0 to 23 and 64 to 87, bytes from 192 to 255 are free.
constexpr uint64_t kCopyOfX = 0, kCopyOfY = 64, kKept = 128, kFree = 192;
constexpr uint32_t kX = 0, kM = 1, kY = 2, kT = 3, kZ = 4;

PlanSpec two_regions() {
  PlanSpec spec;
  for (const char* name : {"x", "m", "y", "t", "z"}) spec.add_tensor({kBytes}, name);
  const uint32_t target = spec.add_device("fake");
  spec.banks[spec.bank_of(target)].size = 256;
  const auto add = [&](uint32_t from, uint64_t in, uint32_t to, uint64_t out, uint8_t addend,
                       const char* name) {
    spec.add_region(target, kFakeBlobFormat, fake_blob(addend, {kBytes}, {kBytes}), {from}, {to}, 1, name);
    const std::vector<uint64_t> strides = {1};
    spec.steps.back().npu->binds = {{0, NpuUse_INPUT, 0, in, kBytes, strides, 0, 1, 0, 0},
                                    {1, NpuUse_OUTPUT, 0, out, kBytes, strides, 0, 1, 0, 0}};
    spec.add_step(kAddByte, {from}, {to}, copy_params(addend), std::string(name) + "_on_cpu");
  };
  add(kX, kCopyOfX, kM, kKept, 5, "make");
  spec.add_step(kAddByte, {kX}, {kT}, copy_params(1), "between");
  add(kM, kKept, kY, kCopyOfY, 7, "read");
  spec.add_step(kAddByte, {kT}, {kZ}, copy_params(1), "after");
  spec.steps[0].npu->binds[1].kept = format::kKeptAlone;
  spec.steps[3].npu->binds[0].kept = 3;  // steps
  spec.add_main({kX}, {kY, kZ}, 64);
  return spec;
}

void place_in_bank(PlanSpec* spec, uint32_t tensor, uint64_t offset) {
  spec->tensors[tensor].bank = spec->bank_of(1);
  spec->tensors[tensor].offset = offset;
}
// t is computed before the region "make".
void compute_t_first(PlanSpec* spec) {
  std::swap(spec->steps[1], spec->steps[2]);
  std::swap(spec->steps[0], spec->steps[1]);
  spec->steps[3].npu->binds[0].kept = 2;
}
// The region "other" before step 2, which becomes its fallback: t = x + 1. Steps from there on are one later.
void compute_t_on_device(PlanSpec* spec, uint64_t in, uint64_t out) {
  spec->add_region(1, kFakeBlobFormat, fake_blob(1, {kBytes}, {kBytes}), {kX}, {kT}, 1, "other");
  const std::vector<uint64_t> strides = {1};
  spec->steps.back().npu->binds = {{0, NpuUse_INPUT, 0, in, kBytes, strides, 0, 1, 0, 0},
                                   {1, NpuUse_OUTPUT, 0, out, kBytes, strides, 0, 1, 0, 0}};
  std::rotate(spec->steps.begin() + 2, spec->steps.end() - 1, spec->steps.end());
  spec->steps[4].npu->binds[0].kept = 4;
  ++spec->functions[0].num_steps;
}

class SharedBank : public ::testing::TestWithParam<WrongRegion> {};

TEST_P(SharedBank, InitRefusesWithTheReason) { expect_refused(two_regions(), GetParam()); }

constexpr char kAfterReadsOver[] =
    "add_byte 'after' (step 5): input 0 (tensor 3) has been written over by an earlier step";

constexpr const char* kReadsWhatWasKept[] = {
    "npu 'read' (step 3): input 0 (tensor 1) is kept in the device's bank by step 0, and step 2 has written "
    "over it there; plan other bytes for one of the two",
    "npu 'read' (step 4): input 0 (tensor 1) is kept in the device's bank by step 0, and step 2 has written "
    "over it there; plan other bytes for one of the two"};

const WrongRegion kWrong[] = {
    // A copy, scratch or output over a tensor that is read afterwards: there where a device runs the region,
    // and the caller has bound no buffer of the device.
    {"CopyOfAnInputOverATensor",
     [](PlanSpec& s) {
       compute_t_first(&s);
       place_in_bank(&s, kT, kCopyOfX);
     },
     kAfterReadsOver, 5},
    {"CopyOfAnOutputOverATensor", [](PlanSpec& s) { place_in_bank(&s, kT, kCopyOfY + 8); }, kAfterReadsOver,
     5},
    {"KeptOutputOverATensor",
     [](PlanSpec& s) {
       compute_t_first(&s);
       place_in_bank(&s, kT, kKept - 8);
     },
     kAfterReadsOver, 5},
    {"ScratchOverATensor",
     [](PlanSpec& s) {
       place_in_bank(&s, kT, kFree);
       s.steps[3].npu->binds.push_back({2, NpuUse_SCRATCH, 0, kFree + 16, 16, {}, 0, 1, 0, 0});
     },
     kAfterReadsOver, 5},
    {"OutputOverATensorOfTheFallback",
     [](PlanSpec& s) {
       s.tensors[kT].offset = s.tensors[kY].offset;
       s.functions[0].outputs = {kZ};
       s.steps[4].inputs = {kT};
     },
     "add_byte 'read_on_cpu' (step 4): input 0 (tensor 3) has been written over by an earlier step", 4},
    {"TensorOfTheFallbackOverATensor",
     [](PlanSpec& s) {
       const uint32_t inner = s.add_tensor({kBytes}, "inner");
       s.tensors[inner].offset = s.tensors[kT].offset;
       s.steps[3].npu->num_alternative_steps = 2;
       s.add_step(kAddByte, {kM}, {inner}, copy_params(3), "read_on_cpu_first");
       std::swap(s.steps[5], s.steps[6]);
       std::swap(s.steps[4], s.steps[5]);
       s.steps[5].inputs = {inner};
       s.functions[0].num_steps = 7;
     },
     "add_byte 'after' (step 6): input 0 (tensor 3) has been written over by an earlier step", 6},

    // Between the region that keeps a tensor in the bank and the one that reads it there.
    {"TensorOfTheCpuOverAKeptOne", [](PlanSpec& s) { place_in_bank(&s, kT, kKept + 16); },
     kReadsWhatWasKept[0], 3},
    {"FunctionOutputOverAKeptTensor",
     [](PlanSpec& s) {
       place_in_bank(&s, kT, kKept);
       s.functions[0].outputs = {kY, kT};
       s.functions[0].num_steps = 5;
       s.steps.pop_back();
     },
     kReadsWhatWasKept[0], 3},
    {"CopyOfAnInputOverAKeptTensor", [](PlanSpec& s) { compute_t_on_device(&s, kKept, kFree); },
     kReadsWhatWasKept[1], 4},
    {"CopyOfAnOutputOverAKeptTensor", [](PlanSpec& s) { compute_t_on_device(&s, kFree, kKept - 16); },
     kReadsWhatWasKept[1], 4},
    {"ScratchOverAKeptTensor",
     [](PlanSpec& s) {
       compute_t_on_device(&s, kCopyOfX, kFree);
       s.steps[2].npu->binds.push_back({2, NpuUse_SCRATCH, 0, kKept + 23, 8, {}, 0, 1, 0, 0});
     },
     kReadsWhatWasKept[1], 4},
    {"OutputInPlaceOverAKeptTensor",
     [](PlanSpec& s) {
       compute_t_on_device(&s, kCopyOfX, kKept + 8);
       place_in_bank(&s, kT, kKept + 8);
       s.steps[2].npu->binds[1].strides.reset();
     },
     kReadsWhatWasKept[1], 4},
    {"TensorOfTheFallbackOverWhatItsRegionKeeps",
     [](PlanSpec& s) {
       const uint32_t inner = s.add_tensor({kBytes}, "inner");
       place_in_bank(&s, inner, kKept);
       s.steps[0].npu->num_alternative_steps = 2;
       s.steps[2].outputs = {inner};
       s.steps[2].name = "make_on_cpu_too";
       s.steps[5].inputs = {kY};
     },
     kReadsWhatWasKept[0], 3},

    // The region says that only others that read it in the bank need the tensor.
    {"KeptAloneAndReadByTheCpu", [](PlanSpec& s) { s.steps[5].inputs = {kM}; },
     "add_byte 'after' (step 5): input 0 (tensor 1) is written by no earlier step where its region runs on a "
     "device",
     5},
    {"KeptAloneAndReadByAnotherFallback",
     [](PlanSpec& s) {
       s.steps[3].inputs = {kX};
       s.steps[3].npu->binds[0].offset = kCopyOfX;
       s.steps[3].npu->binds[0].kept = 0;
     },
     "add_byte 'read_on_cpu' (step 4): input 0 (tensor 1) is written by no earlier step where its region "
     "runs "
     "on a device",
     4},
    {"KeptAloneAndAnOutput",
     [](PlanSpec& s) {
       s.functions[0].outputs = {kY, kM};
     },
     "session: output 1 (tensor 1) is written by no step where its region runs on a device", -1},
    {"KeptAloneAndTheNextState",
     [](PlanSpec& s) {
       s.functions[0].states = {{s.add_tensor({kBytes}, "state"), kM, UINT32_MAX, 0}};
     },
     "session: the next value of state 0 (tensor 1) is written by no step", -1},
    {"KeptAloneAndReadFromACopy",
     [](PlanSpec& s) {
       s.steps[3].npu->binds[0].kept = 0;
       s.steps[3].npu->binds[0].offset = kFree;
     },
     "npu 'read' (step 3): input 0 (tensor 1) is written by no earlier step where its region runs on a "
     "device",
     3},
};
INSTANTIATE_TEST_SUITE_P(Init, SharedBank, ::testing::ValuesIn(kWrong),
                         [](const ::testing::TestParamInfo<WrongRegion>& wrong) {
                           return std::string(wrong.param.name);
                         });

// y = x + 12 and z = x + 2 whatever is bound.
void expect_right(const PlanSpec& spec) {
  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestPlan plan(spec);
  for (const bool with_device : {false, true}) {
    const TestSession session(plan, with_device ? npu_config(devices) : config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    EXPECT_EQ(run_and_check(session, 100, 12), QPLAN_OK);
    EXPECT_EQ(read_bytes(session, kBytes, 1), counting(kBytes, 102));
  }
}

TEST(SharedBankTest, BytesAreReusedBeforeAndAfter) {
  expect_right(two_regions());
  PlanSpec before = two_regions();  // z is t, which "between" reads
  compute_t_first(&before);
  place_in_bank(&before, kT, kCopyOfX + 32);
  expect_right(before);
  PlanSpec other = two_regions();
  compute_t_on_device(&other, kCopyOfX, kFree);
  expect_right(other);
  PlanSpec after = two_regions();
  place_in_bank(&after, kZ, kKept);
  expect_right(after);
}

// Two regions read the kept tensor; its bytes serve other things when the last one has.
TEST(SharedBankTest, AKeptTensorHasSeveralReaders) {
  PlanSpec spec = two_regions();
  spec.add_region(1, kFakeBlobFormat, fake_blob(0, {kBytes}, {kBytes}), {kM},
                  {spec.add_tensor({kBytes}, "w")}, 1, "read_again");
  spec.steps.back().npu->binds = {{0, NpuUse_INPUT, 0, kKept, kBytes, std::vector<uint64_t>{1}, 0, 1, 0, 0},
                                  {1, NpuUse_OUTPUT, 0, kFree, kBytes, std::vector<uint64_t>{1}, 0, 1, 0, 0}};
  spec.steps.back().npu->binds[0].kept = 6;
  const auto w = static_cast<uint32_t>(spec.tensors.size() - 2);  // its blob follows
  spec.add_step(kAddByte, {kM}, {w}, copy_params(0), "read_again_on_cpu");
  spec.functions[0].num_steps = 8;
  expect_right(spec);
}

// 1,500 regions with 64 binds, of which 62 are scratch, and 3,000 tensors: 288 million comparisons.
TEST(SharedBankTest, AnEndlessComparisonIsRefused) {
  PlanSpec spec = two_regions();
  for (uint32_t slot = 2; slot < 64; ++slot)
    spec.steps[3].npu->binds.push_back({slot, NpuUse_SCRATCH, 0, kFree + slot - 2, 1, {}, 0, 1, 0, 0});
  spec.steps[3].npu->num_alternative_steps = 0;
  spec.steps.resize(4);
  for (int i = 0; i < 1500; ++i) {
    spec.tensors.push_back(spec.tensors[kY]);
    spec.tensors.back().offset = spec.banks[0].size;
    spec.tensors.push_back(spec.tensors.back());
    spec.steps.push_back(spec.steps[3]);
    spec.steps.back().outputs = {static_cast<uint32_t>(spec.tensors.size() - 1)};
    spec.steps.back().npu->binds[0].kept = 0;
    spec.steps.back().npu->binds[0].offset = kCopyOfX;
    spec.steps.back().inputs = {kX};
  }
  spec.banks[0].size += kBytes;
  spec.functions[0].outputs = {kY};
  spec.functions[0].num_steps = static_cast<uint32_t>(spec.steps.size());
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  EXPECT_EQ(session.status(), QPLAN_PLAN_CORRUPT);
  EXPECT_NE(
      session.text().find("to compare what regions write with tensors takes more than 268435456 comparisons; "
                          "give the plan fewer regions, binds or tensors"),
      std::string::npos)
      << session.text();
}

}  // namespace
}  // namespace qplan::testing::npu_bank_test
