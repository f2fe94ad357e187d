// Sessions that share an arena: what each keeps from run to run is its own, whatever happens to the arena.
#include <gtest/gtest.h>

#include <cstring>

#include "format/plan_view.h"
#include "qplan/firmware.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/counter_spec.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::shared_arena_test {
namespace {

using counter::counter_spec;
using Bytes = std::vector<uint8_t>;

qplan_firmware_model model_of(const TestPlan& plan) {
  const qplan_kernel_set& kernels = *config_of().kernels;
  return {plan.bytes().data(), plan.bytes().size(),
          reinterpret_cast<const qplan_kernel_family* const*>(kernels.families), kernels.num_families};
}

// Memories of exactly the stated sizes.
GuardedMemories memories_of(const TestPlan& plan) {
  format::PlanView view;
  Error error;
  EXPECT_EQ(view.open(plan.bytes().data(), plan.bytes().size(), false, &error), QPLAN_OK) << error.text();
  const format::Function& main = *view.find_function(nullptr);
  format::MemoryLayout layout;
  EXPECT_TRUE(format::memory_layout(view.memory_counts(main, sizeof(void*)), sizeof(void*), 1, &layout));
  const format::SharedLayout shared = format::shared_layout(layout, view.state_bytes(main, sizeof(void*)));
  const qplan_memory_need needs[] = {{0, 64, shared.own}, {0, 64, shared.arena}};
  return {needs, 2};
}

int32_t init(const TestPlan& plan, const qplan_memory& own, const qplan_memory& arena) {
  const qplan_firmware_model model = model_of(plan);
  return qplan_firmware_init_in_arena(&model, own.base, own.size, arena.base, arena.size);
}

Bytes run(void* memory, const Bytes& x) {
  std::memcpy(qplan_firmware_tensor(memory, 0, 0), x.data(), x.size());
  EXPECT_EQ(qplan_firmware_run(memory), 0);
  const auto* out = static_cast<const uint8_t*>(qplan_firmware_tensor(memory, 1, 0));
  return {out, out + x.size()};
}

TEST(SharedArena, StatesSurviveWhatIsWrittenToTheArenaBetweenRuns) {
  for (const bool in_place : {false, true}) {
    const TestPlan plan(counter_spec(in_place, {1, 2, 3, 4}));
    GuardedMemories memories = memories_of(plan);
    const qplan_memory own = memories.get()[0], arena = memories.get()[1];
    ASSERT_EQ(init(plan, own, arena), 0);
    const auto spoil = [&](int byte) { std::memset(arena.base, byte, arena.size); };
    spoil(0x5a);
    EXPECT_EQ(run(own.base, {1, 1, 1, 1}), (Bytes{12, 13, 14, 15}));
    spoil(0xff);
    EXPECT_EQ(run(own.base, {1, 2, 3, 4}), (Bytes{13, 15, 17, 19}));
    spoil(0);
    qplan_firmware_reset_state(own.base);
    spoil(1);
    EXPECT_EQ(run(own.base, {0, 0, 0, 0}), (Bytes{11, 12, 13, 14}));
  }
}

TEST(SharedArena, TwoSessionsTakeTurns) {
  const TestPlan a(counter_spec(false, {0, 0, 0, 0})), b(counter_spec(true, {100, 100, 100, 100}));
  GuardedMemories of_a = memories_of(a), of_b = memories_of(b);
  const size_t size = std::max(of_a.get()[1].size, of_b.get()[1].size);
  const qplan_memory_need need = {0, 64, size};
  GuardedMemories arena(&need, 1);
  ASSERT_EQ(init(a, of_a.get()[0], arena.get()[0]), 0);
  ASSERT_EQ(init(b, of_b.get()[0], arena.get()[0]), 0);
  for (uint8_t turn = 1; turn <= 3; ++turn) {
    EXPECT_EQ(run(of_a.get()[0].base, {1, 1, 1, 1}), Bytes(4, static_cast<uint8_t>(10 + turn)));
    EXPECT_EQ(run(of_b.get()[0].base, {2, 2, 2, 2}), Bytes(4, static_cast<uint8_t>(110 + 2 * turn)));
  }
}

TEST(SharedArena, MemoriesThatDoNotSufficeAreRefusedUntouched) {
  const TestPlan plan(counter_spec(false, {1, 2, 3, 4}));
  GuardedMemories memories = memories_of(plan);
  const qplan_memory own = memories.get()[0], arena = memories.get()[1];
  EXPECT_EQ(init(plan, {own.base, own.size - 1}, arena), QPLAN_MEMORY_TOO_SMALL);
  EXPECT_EQ(init(plan, own, {arena.base, arena.size - 1}), QPLAN_MEMORY_TOO_SMALL);
  EXPECT_EQ(init(plan, own, {static_cast<uint8_t*>(arena.base) + 16, arena.size}), QPLAN_MISALIGNED);
  EXPECT_EQ(init(plan, {static_cast<uint8_t*>(own.base) + 8, own.size}, arena), QPLAN_MISALIGNED);
  EXPECT_EQ(init(plan, own, {nullptr, arena.size}), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(init(plan, own, {own.base, arena.size}), QPLAN_INVALID_ARGUMENT);  // they overlap
  EXPECT_TRUE(memories.untouched());
}

TEST(SharedArena, APlanOfTwoMemoriesIsRefused) {
  PlanSpec spec = counter_spec(false, {1, 2, 3, 4});
  spec.banks.push_back({format::BankKind_ARENA, 64, 64, {}, {}});
  const TestPlan plan(spec);
  GuardedMemories memories = memories_of(plan);
  EXPECT_EQ(init(plan, memories.get()[0], memories.get()[1]), QPLAN_INVALID_ARGUMENT);
  EXPECT_TRUE(memories.untouched());
}

}  // namespace
}  // namespace qplan::testing::shared_arena_test
