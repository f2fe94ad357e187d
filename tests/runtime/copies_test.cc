// Constants that sessions copy into their memories: steps read the copy, and the plan's own bytes no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "format/plan_view.h"
#include "qplan/firmware.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::copies_test {
namespace {

using Bytes = std::vector<uint8_t>;

const Bytes kConstant = {101, 73, 12, 250, 9, 44, 178, 203};
const Bytes kInput = {1, 2, 3, 4, 5, 6, 7, 8};

// y = x + the constant, int8 [8], which is copied to the first arena or to a second one.
PlanSpec copied_spec(bool to_other_arena) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({8}, "x"), y = spec.add_tensor({8}, "y");
  const uint32_t w = spec.add_constant({8}, kConstant, "w");
  spec.add_step(kSum, {x, w}, {y}, concat_params(0), "add");
  spec.add_main({x}, {y}, 64);
  if (to_other_arena) {
    spec.banks.push_back({format::BankKind_ARENA, 64, 24, {}, std::nullopt, 0});
    spec.copies = {{w, 2, 16}};
  } else {
    spec.copies = {{w, 0, spec.banks[0].size}};
    spec.banks[0].size += 8;
  }
  return spec;
}

Bytes sum_of(const Bytes& a, const Bytes& b) {
  Bytes sum(a.size());
  std::transform(a.begin(), a.end(), b.begin(), sum.begin(),
                 [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x + y); });
  return sum;
}

// Where the constant's bytes are; they must be there once.
uint8_t* find_constant(uint8_t* begin, size_t size) {
  uint8_t* const end = begin + size;
  uint8_t* const found = std::search(begin, end, kConstant.begin(), kConstant.end());
  if (found == end) return nullptr;
  EXPECT_EQ(std::search(found + 1, end, kConstant.begin(), kConstant.end()), end);
  return found;
}

Bytes run(qplan_session* session) {
  HostTensor in({8}, kInput), out({8}, Bytes(8));
  EXPECT_EQ(qplan_session_write(session, 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session, 0, &out.tensor), QPLAN_OK);
  return out.bytes;
}

TEST(CopiesOfConstants, AreWhatStepsRead) {
  for (const bool to_other_arena : {false, true}) {
    const TestPlan plan(copied_spec(to_other_arena));
    const TestSession session(plan, config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    std::vector<qplan_memory> memories = const_cast<GuardedMemories&>(session.memories()).get();
    ASSERT_EQ(memories.size(), to_other_arena ? 2u : 1u);
    const qplan_memory& memory = memories.back();
    uint8_t* const copy = find_constant(static_cast<uint8_t*>(memory.base), memory.size);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(run(session.get()), sum_of(kInput, kConstant));
    uint8_t* const constant = find_constant(plan.bytes().data(), plan.bytes().size());
    ASSERT_NE(constant, nullptr);
    std::memset(constant, 0x55, kConstant.size());
    EXPECT_EQ(run(session.get()), sum_of(kInput, kConstant)) << "the plan's own bytes are not read";
    std::memset(copy, 3, kConstant.size());
    EXPECT_EQ(run(session.get()), sum_of(kInput, Bytes(8, 3)));
  }
}

TEST(CopiesOfConstants, StayWhereTheyAreWhenAnInputIsBound) {
  const TestPlan plan(copied_spec(false));
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  std::memset(find_constant(plan.bytes().data(), plan.bytes().size()), 0x55, kConstant.size());
  HostTensor in({8}, kInput), out({8}, Bytes(8));
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &in.tensor), QPLAN_OK) << session.last_error();
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, sum_of(kInput, kConstant));
}

// What `qplan emit-c` calls for plans with copies.
class Firmware {
 public:
  explicit Firmware(const PlanSpec& spec)
      : plan_(spec), memories_(needs_of(plan_.get(), config_of()).data(), 1) {}

  int32_t init(bool with_copies) {
    const qplan_kernel_set& kernels = *config_of().kernels;
    const qplan_firmware_model model = {plan_.bytes().data(), plan_.bytes().size(),
                                        reinterpret_cast<const qplan_kernel_family* const*>(kernels.families),
                                        kernels.num_families};
    const qplan_memory& memory = memories_.get()[0];
    const qplan_firmware_memory only = {memory.base, memory.size};
    return with_copies ? qplan_firmware_init_with_copies(&model, &only, 1)
                       : qplan_firmware_init(&model, memory.base, memory.size);
  }
  void damage_plan() const {
    std::memset(find_constant(plan_.bytes().data(), plan_.bytes().size()), 0x55, kConstant.size());
  }
  Bytes run() {
    void* const memory = memories_.get()[0].base;
    std::memcpy(qplan_firmware_tensor(memory, 0, 0), kInput.data(), kInput.size());
    EXPECT_EQ(qplan_firmware_run(memory), 0);
    const auto* out = static_cast<const uint8_t*>(qplan_firmware_tensor(memory, 1, 0));
    return {out, out + 8};
  }

 private:
  TestPlan plan_;
  GuardedMemories memories_;
};

TEST(CopiesOfConstants, AreMadeByFirmwareThatAsksForThem) {
  Firmware firmware(copied_spec(false));
  ASSERT_EQ(firmware.init(true), QPLAN_OK);
  firmware.damage_plan();
  EXPECT_EQ(firmware.run(), sum_of(kInput, kConstant));
}

TEST(CopiesOfConstants, AreLeftOutByFirmwareThatDoesNot) {
  Firmware firmware(copied_spec(false));
  ASSERT_EQ(firmware.init(false), QPLAN_OK);
  EXPECT_EQ(firmware.run(), sum_of(kInput, kConstant));
  firmware.damage_plan();
  EXPECT_EQ(firmware.run(), sum_of(kInput, Bytes(8, 0x55)));
}

TEST(CopiesOfConstants, OfADamagedPlanAreRefusedByFirmware) {
  PlanSpec spec = copied_spec(false);
  const TestPlan sound(spec);
  const std::vector<qplan_memory_need> needs = needs_of(sound.get(), config_of());
  --spec.copies[0].offset;  // over the last byte of y
  const AlignedBytes plan = build_plan(spec);
  GuardedMemories memories(needs.data(), 1);
  const qplan_kernel_set& kernels = *config_of().kernels;
  const qplan_firmware_model model = {plan.data(), plan.size(),
                                      reinterpret_cast<const qplan_kernel_family* const*>(kernels.families),
                                      kernels.num_families};
  const qplan_firmware_memory only = {memories.get()[0].base, memories.get()[0].size};
  EXPECT_EQ(qplan_firmware_init_with_copies(&model, &only, 1), QPLAN_PLAN_CORRUPT);
  EXPECT_TRUE(memories.untouched());
}

}  // namespace
}  // namespace qplan::testing::copies_test
