// Plans with regions on devices that open() refuses.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_plan_test {
namespace {

struct Wrong {
  const char* name;
  void (*change)(PlanSpec&);
  const char* text;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

NpuSpec& npu(PlanSpec& s) { return *s.steps[1].npu; }
BindSpec& bind(PlanSpec& s, size_t i) { return npu(s).binds[i]; }
// Bind i becomes a copy of 48 bytes at the end of the bank, the tensor goes to the arena.
void arrange(PlanSpec& s, size_t i) {
  BindSpec& b = bind(s, i);
  const uint32_t bank = s.bank_of(1);
  b.offset = s.add_range(bank, 48);
  b.size = 48;
  b.strides = std::vector<uint64_t>{2};
}

// Its 24 elements are in blocks of 9, 9 and 6, of which the last ends with the range.
void divide(PlanSpec& s) {
  arrange(s, 0);
  bind(s, 0).block = 9;
  bind(s, 0).block_stride = 18;
}

class NpuPlan : public ::testing::TestWithParam<Wrong> {};

TEST_P(NpuPlan, OpenRefusesWithTheReason) {
  PlanSpec spec = region_spec();
  GetParam().change(spec);
  const AlignedBytes bytes = build_plan(spec);
  qplan_plan plan;
  qplan_error error = empty_error();
  const qplan_status status = qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, &error);
  EXPECT_EQ(status, GetParam().text[0] == '\0' ? QPLAN_OK : QPLAN_PLAN_CORRUPT);
  EXPECT_STREQ(error.text, GetParam().text);
}

const Wrong kWrong[] = {
    {"Nothing", [](PlanSpec&) {}, ""},
    {"ArrangedFits", [](PlanSpec& s) { arrange(s, 0), bind(s, 0).origin = 1; }, ""},
    {"NoFeatureBit", [](PlanSpec& s) { s.required_features = 0; },
     "plan: bank 2: memory of a device, but the header lacks feature bit 0"},
    {"NoFeatureBitNorBank",
     [](PlanSpec& s) { s.required_features = 0, s.banks[2].kind = format::BankKind_ARENA; },
     "plan: step 1 'npu_main_0': runs on a device, but the header lacks feature bit 0"},
    {"UnknownFeatureKind", [](PlanSpec& s) { s.banks[2].kind = static_cast<format::BankKind>(3); },
     "plan: bank 2: unknown kind 3"},
    {"BankOfUnknownTarget", [](PlanSpec& s) { s.banks[2].target = 2; },
     "plan: bank 2: memory of target 2 of 2"},
    {"TwoBanksOfATarget", [](PlanSpec& s) { s.banks.push_back(s.banks[2]); },
     "plan: bank 3: target 1 has bank 2 already"},
    {"TwoClassesOfATarget", [](PlanSpec& s) { s.add_device_bank(1, format::MemoryClass_SRAM); }, ""},
    {"UnknownClassOfABank",
     [](PlanSpec& s) { s.banks[2].memory_class = static_cast<format::MemoryClass>(4); },
     "plan: bank 2: memory of class 4, expected one that is written, at most 2"},
    {"FlashThatIsWritten", [](PlanSpec& s) { s.banks[2].memory_class = format::MemoryClass_FLASH; },
     "plan: bank 2: memory of class 3, expected one that is written, at most 2"},
    {"BindOfAClassWithoutBank", [](PlanSpec& s) { bind(s, 1).memory_class = format::MemoryClass_DRAM; },
     "plan: step 1 'npu_main_0': bind 1: target 1 has no memory bank of class 2"},
    {"BindOfAnUnknownClass",
     [](PlanSpec& s) { bind(s, 0).memory_class = static_cast<format::MemoryClass>(255); },
     "plan: step 1 'npu_main_0': bind 0: target 1 has no memory bank of class 255"},
    {"ProgramOfAnUnknownClass",
     [](PlanSpec& s) { npu(s).memory_class = static_cast<format::MemoryClass>(4); },
     "plan: step 1 'npu_main_0': its program is for memory of class 4, expected at most 3"},
    {"InPlaceInAnotherBank",
     [](PlanSpec& s) {
       (void)s.add_range(s.add_device_bank(1, format::MemoryClass_SRAM), 256);
       bind(s, 1).memory_class = format::MemoryClass_SRAM;
     },
     "plan: step 1 'npu_main_0': slot 1 has no strides, but is not the bytes of tensor 2"},
    {"ScratchOfAnotherBankAtTheSameOffset",
     [](PlanSpec& s) {
       (void)s.add_range(s.add_device_bank(1, format::MemoryClass_SRAM), 256);
       npu(s).binds.push_back(
           {2, format::NpuUse_SCRATCH, 0, 64, 24, {}, 0, 1, 0, 0, 0, 0, 0, format::MemoryClass_SRAM});
     },
     ""},
    {"UnknownTarget", [](PlanSpec& s) { npu(s).target = 2; },
     "plan: step 1 'npu_main_0': runs on target 2 of 2, expected one of the first 32"},
    {"TargetWithoutBank", [](PlanSpec& s) { npu(s).target = 0; },
     "plan: step 1 'npu_main_0': bind 0: target 0 has no memory bank of class 0"},
    {"NamelessTarget", [](PlanSpec& s) { s.targets[1].name = ""; },
     "plan: step 1 'npu_main_0': target 1 has no name"},
    {"NoOutput", [](PlanSpec& s) { s.steps[1].outputs.clear(); },
     "plan: step 1 'npu_main_0': 1 inputs and 0 outputs, expected an output and at most 64 in all"},
    {"InputIsConstant", [](PlanSpec& s) { s.steps[1].inputs = {npu(s).blob}; },
     "plan: step 1 'npu_main_0': input 0 (tensor 4) is a constant"},
    {"UnknownTensor", [](PlanSpec& s) { s.steps[1].outputs = {77}; },
     "plan: step 1 'npu_main_0': output 0 is tensor 77 of 6"},
    {"UnknownBlob", [](PlanSpec& s) { npu(s).blob = 66; },
     "plan: step 1 'npu_main_0': its blob is tensor 66 of 6"},
    {"BlobInArena", [](PlanSpec& s) { npu(s).blob = 0; },
     "plan: step 1 'npu_main_0': its blob (tensor 0) is no constant uint8 [n]"},
    {"SlotTwice", [](PlanSpec& s) { bind(s, 1).slot = 0; },
     "plan: step 1 'npu_main_0': bind 1: slot 0 is bound by bind 0 already"},
    {"InputTwice", [](PlanSpec& s) { npu(s).binds.push_back(bind(s, 0)), bind(s, 2).slot = 9; },
     "plan: step 1 'npu_main_0': bind 2: input 0 is in two binds"},
    {"OutputNotBound", [](PlanSpec& s) { npu(s).binds.pop_back(); },
     "plan: step 1 'npu_main_0': an input or output is in no bind"},
    {"UnknownUse", [](PlanSpec& s) { bind(s, 0).use = static_cast<format::NpuUse>(3); },
     "plan: step 1 'npu_main_0': bind 0: unknown use 3"},
    {"UnknownIndex", [](PlanSpec& s) { bind(s, 0).index = 1; },
     "plan: step 1 'npu_main_0': bind 0: tensor 1 of 1"},
    {"BindBeyondTheBank", [](PlanSpec& s) { bind(s, 1).size = 25; },
     "plan: step 1 'npu_main_0': bind 1: 25 bytes at offset 64 of the 88 bytes of bank 2"},
    {"BindWraps", [](PlanSpec& s) { bind(s, 1).offset = ~uint64_t{0} - 8; },
     "plan: step 1 'npu_main_0': bind 1: 24 bytes at offset 18446744073709551607 of the 88 bytes of bank 2"},
    {"EmptyBind", [](PlanSpec& s) { bind(s, 1).size = 0; },
     "plan: step 1 'npu_main_0': bind 1: 0 bytes at offset 64 of the 88 bytes of bank 2"},
    {"NotTheTensorsBytes", [](PlanSpec& s) { bind(s, 0).offset = 8; },
     "plan: step 1 'npu_main_0': slot 0 has no strides, but is not the bytes of tensor 1"},
    {"WrongRank",
     [](PlanSpec& s) {
       arrange(s, 0), bind(s, 0).strides = std::vector<uint64_t>{1, 1};
     },
     "plan: step 1 'npu_main_0': slot 0 has 2 strides for a tensor of rank 1"},
    {"ElementBeyondTheRange", [](PlanSpec& s) { arrange(s, 0), bind(s, 0).origin = 2; },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"StridesWrap",
     [](PlanSpec& s) {
       arrange(s, 0);
       bind(s, 0).strides = std::vector<uint64_t>{~uint64_t{0} / 23 + 1};
     },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"BlocksFit", [](PlanSpec& s) { divide(s); }, ""},
    {"NoFeatureBitOfBlocks", [](PlanSpec& s) { divide(s), s.required_features = format::kFeatureNpuRegions; },
     "plan: step 1 'npu_main_0': slot 0 has blocks of channels, but the header lacks feature bit 2"},
    {"ShortBlockBeyondTheRange", [](PlanSpec& s) { divide(s), bind(s, 0).block_stride = 19; },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"FullBlockBeyondTheRange",
     [](PlanSpec& s) {
       divide(s), bind(s, 0).block_stride = 0;
       bind(s, 0).strides = std::vector<uint64_t>{6};
     },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"BlocksWrap", [](PlanSpec& s) { divide(s), bind(s, 0).block_stride = ~uint64_t{0} / 2 + 1; },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"OriginWraps", [](PlanSpec& s) { arrange(s, 0), bind(s, 0).origin = ~uint64_t{0} - 45; },
     "plan: step 1 'npu_main_0': slot 0: the elements of tensor 1 reach beyond its 48 bytes"},
    {"BindsOverlap",
     [](PlanSpec& s) {
       npu(s).binds.push_back({2, format::NpuUse_SCRATCH, 0, 80, 8, {}, 0, 1, 0, 0});
     },
     "plan: step 1 'npu_main_0': bind 2: overlaps bind 1"},
    {"CopyOverATensorOfTheStep", [](PlanSpec& s) { bind(s, 1).strides = std::vector<uint64_t>{1}; },
     "plan: step 1 'npu_main_0': bind 1: overlaps output 0"},
    {"AlternativesBeyondThePlan", [](PlanSpec& s) { npu(s).num_alternative_steps = 4; },
     "plan: step 1 'npu_main_0': 4 fallback steps reach beyond the plan's 5"},
    {"AlternativeIsARegion", [](PlanSpec& s) { s.steps[2] = s.steps[1]; },
     "plan: step 1 'npu_main_0': step 2, a fallback step, is not a kernel's"},
    {"FunctionCutsAlternatives", [](PlanSpec& s) { s.functions[0].num_steps = 3; },
     "plan: function 'main': ends before step 3, the last fallback step of step 1"},
};
INSTANTIATE_TEST_SUITE_P(Open, NpuPlan, ::testing::ValuesIn(kWrong),
                         [](const ::testing::TestParamInfo<Wrong>& wrong) {
                           return std::string(wrong.param.name);
                         });

}  // namespace
}  // namespace qplan::testing::npu_plan_test
