#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "src/packer/memory/arena.h"
#include "tests/support/random.h"

namespace qplan::memory::parts_test {
namespace {

using target::Program;
using target::ProgramStep;

// A step: what it reads and writes, and whether it moves bytes without a change (several inputs into one
// output, or one input into several outputs) or computes.
struct StepOf {
  std::vector<uint32_t> inputs, outputs;
  bool moves = false;
};

struct TestProgram {
  Program program;
  std::vector<StepOf> steps;

  TestProgram(const std::vector<int64_t>& sizes, std::vector<StepOf> all_steps, std::vector<uint32_t> inputs,
              std::vector<uint32_t> outputs)
      : steps(std::move(all_steps)) {
    for (const int64_t size : sizes) program.tensors.push_back({{ir::kInt8, {size}}, "", nullptr, {}});
    for (const StepOf& s : steps) {
      ProgramStep step;
      step.inputs = s.inputs;
      step.outputs = s.outputs;
      program.steps.push_back(std::move(step));
    }
    program.inputs = std::move(inputs);
    program.outputs = std::move(outputs);
  }

  uint64_t size(uint32_t t) const { return static_cast<uint64_t>(program.tensors[t].type.size_bytes()); }
  uint64_t bytes_before(const std::vector<uint32_t>& tensors, uint32_t index) const {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < index; ++i) bytes += size(tensors[i]);
    return bytes;
  }
  SharingQueries sharing(bool with_parts = true) const {
    const auto in_place = [this](uint32_t s, uint32_t, uint32_t) { return !steps[s].moves; };
    if (!with_parts) return {in_place, nullptr};
    return {in_place, [this](uint32_t s, uint32_t o, uint32_t i) -> std::optional<uint64_t> {
              const StepOf& step = steps[s];
              if (!step.moves) return std::nullopt;
              return step.outputs.size() == 1 ? bytes_before(step.inputs, i) : bytes_before(step.outputs, o);
            }};
  }
  Arena plan() const { return plan_arena(program, sharing(), 0); }
};

TEST(Parts, InputsOfAConcatenationLieInItsOutput) {
  // x -> a, x -> b, (a, b) -> c, c -> y
  const TestProgram p({8, 64, 128, 192, 8}, {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{3}, {4}}}, {0},
                      {4});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside, (std::vector<uint32_t>{kNone, 3, 3, kNone, kNone}));
  EXPECT_EQ(arena.offsets[1], arena.offsets[3]);
  EXPECT_EQ(arena.offsets[2], arena.offsets[3] + 64);
  EXPECT_EQ(arena.size, 64u + 192 + 64);
  EXPECT_EQ(arena.lower_bound, arena.size);
}

TEST(Parts, OutputsOfASplitLieInItsInput) {
  // x -> a, a -> (b, c), b -> d in place, c -> e in place, (d, e) -> y
  const TestProgram p({8, 192, 64, 128, 64, 128, 8},
                      {{{0}, {1}}, {{1}, {2, 3}, true}, {{2}, {4}}, {{3}, {5}}, {{4, 5}, {6}}}, {0}, {6});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, 1, 1, kNone, kNone, kNone}));
  EXPECT_EQ(arena.offsets[4], arena.offsets[1]);
  EXPECT_EQ(arena.offsets[5], arena.offsets[1] + 64);
  EXPECT_EQ(arena.size, 64u + 192 + 64);
}

// A slice, whose one output is smaller than its one input, lies in the input.
TEST(Parts, ASliceLiesInItsInput) {
  // x -> a, a -> b (the first bytes of it), b -> y
  const TestProgram p({8, 192, 64, 8}, {{{0}, {1}}, {{1}, {2}, true}, {{2}, {3}}}, {0}, {3});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, 1, kNone}));
  EXPECT_EQ(arena.offsets[2], arena.offsets[1]);
}

TEST(Parts, WhatAPartWasComputedInPlaceOfComesAlong) {
  // x -> a, a -> b in place, (b, x) -> c, c -> y
  const TestProgram p({64, 64, 64, 128, 8}, {{{0}, {1}}, {{1}, {2}}, {{0, 2}, {3}, true}, {{3}, {4}}}, {0},
                      {4});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside[0], kNone);  // the function's input is copied
  EXPECT_EQ(arena.lifetimes.inside[2], 3u);
  EXPECT_EQ(arena.offsets[1], arena.offsets[3] + 64);
}

TEST(Parts, ConcatenationsOfConcatenationsAreOneBuffer) {
  const TestProgram p(
      {8, 64, 64, 128, 64, 192, 8},
      {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{0}, {4}}, {{4, 3}, {5}, true}, {{5}, {6}}}, {0}, {6});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside, (std::vector<uint32_t>{kNone, 3, 3, 5, 5, kNone, kNone}));
  EXPECT_EQ(arena.offsets[2], arena.offsets[5] + 128);
  EXPECT_EQ(arena.lifetimes.buffers.size(), 3u);
}

TEST(Parts, WhatACallerMayBindIsNoPartAndHasNone) {
  // The whole is an output; a part is an output; the whole is an input.
  const TestProgram whole({8, 64, 64, 128}, {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}}, {0}, {3});
  EXPECT_EQ(whole.plan().lifetimes.inside, (std::vector<uint32_t>(4, kNone)));
  const TestProgram part({8, 64, 64, 128, 8}, {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{3}, {4}}}, {0},
                         {4, 1});
  EXPECT_EQ(part.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, 3, kNone, kNone}));
  const TestProgram split({128, 64, 64, 8}, {{{0}, {1, 2}, true}, {{1, 2}, {3}}}, {0}, {3});
  EXPECT_EQ(split.plan().lifetimes.inside, (std::vector<uint32_t>(4, kNone)));
}

TEST(Parts, ATensorThatIsTwoPartsIsCopied) {
  const TestProgram p({8, 64, 128, 8}, {{{0}, {1}}, {{1, 1}, {2}, true}, {{2}, {3}}}, {0}, {3});
  EXPECT_EQ(p.plan().lifetimes.inside, (std::vector<uint32_t>(4, kNone)));
}

TEST(Parts, AnInputThatLiesInAnotherInputKeepsThatOut) {
  // (a, b) -> c, (a, c) -> d: with c in d, a would be read from the middle of d for its beginning.
  const TestProgram p({8, 64, 64, 128, 192, 8},
                      {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{1, 3}, {4}, true}, {{4}, {5}}}, {0},
                      {5});
  EXPECT_EQ(p.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, 3, 3, kNone, kNone, kNone}));
}

TEST(Parts, OfTwoConcatenationsOneGetsTheTensor) {
  const TestProgram p({8, 64, 64, 128, 128, 8},
                      {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{2, 1}, {4}, true}, {{3, 4}, {5}}}, {0},
                      {5});
  EXPECT_EQ(p.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, 3, 3, kNone, kNone, kNone}));
}

TEST(Parts, APartThatIsReadLaterStaysOutWhereTheWholeIsComputedOver) {
  // (a, b) -> c, c -> d in place, (d, a) -> y
  const std::vector<StepOf> steps = {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{3}, {4}}, {{4, 1}, {5}}};
  const TestProgram p({8, 64, 64, 128, 128, 8}, steps, {0}, {5});
  EXPECT_EQ(p.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, 3, kNone, kNone, kNone}));
  // And where something is computed over the part.
  const TestProgram over({8, 64, 64, 128, 64, 8},
                         {{{0}, {1}}, {{0}, {2}}, {{1, 2}, {3}, true}, {{1}, {4}}, {{3, 4}, {5}}}, {0}, {5});
  EXPECT_EQ(over.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, 3, kNone, kNone, kNone}));
}

TEST(Parts, AnOutputThatIsComputedOverStaysOutWhereTheInputIsReadLater) {
  // a -> (b, c), b -> d in place, (a, c, d) -> y
  const TestProgram p({8, 128, 64, 64, 64, 8},
                      {{{0}, {1}}, {{1}, {2, 3}, true}, {{2}, {4}}, {{1, 3, 4}, {5}}}, {0}, {5});
  EXPECT_EQ(p.plan().lifetimes.inside, (std::vector<uint32_t>{kNone, kNone, kNone, 1, kNone, kNone}));
}

TEST(Parts, NotWhereMoreBytesWouldBeNeededAtATime) {
  // a is made early and small, then there is much else, then b: a whole that starts at a would need room next
  // to all of that.
  const TestProgram p({8, 64, 10000, 8, 1024, 1088, 8},
                      {{{0}, {1}}, {{0}, {2}}, {{2}, {3}}, {{3}, {4}}, {{1, 4}, {5}, true}, {{5}, {6}}}, {0},
                      {6});
  const Arena arena = p.plan();
  EXPECT_EQ(arena.lifetimes.inside[1], kNone);
  EXPECT_EQ(arena.lifetimes.inside[4], 5u);
  EXPECT_EQ(arena.size, plan_arena(p.program, p.sharing(false), 0).size);
}

// Bytes as names of where they came from: what a program does to them is done to the arena, and every step
// finds in its inputs what was written there.
class Simulation {
 public:
  Simulation(const TestProgram& p, const Arena& arena)
      : p_(p), arena_(arena), bytes_(arena.size, 0), expected_(p.program.tensors.size()) {}

  void run() {
    for (const uint32_t t : p_.program.inputs) compute(t);
    for (const StepOf& step : p_.steps) {
      for (const uint32_t t : step.inputs) expect_whole(t);
      if (step.moves) {
        move(step);
      } else {
        for (const uint32_t t : step.outputs) compute(t);
      }
      for (const uint32_t t : step.outputs) expect_whole(t);
    }
    for (const uint32_t t : p_.program.inputs) expect_whole(t);
    for (const uint32_t t : p_.program.outputs) expect_whole(t);
  }

 private:
  void compute(uint32_t t) {
    expected_[t].resize(p_.size(t));
    for (uint64_t& byte : expected_[t]) byte = ++names_;
    std::ranges::copy(expected_[t], bytes_.begin() + static_cast<ptrdiff_t>(arena_.offsets[t]));
  }
  void move(const StepOf& step) {
    const bool joins = step.outputs.size() == 1;
    const uint32_t whole = joins ? step.outputs[0] : step.inputs[0];
    const std::vector<uint32_t>& parts = joins ? step.inputs : step.outputs;
    for (uint32_t i = 0; i < parts.size(); ++i) {
      const uint64_t at = p_.bytes_before(parts, i);
      const uint64_t inside = arena_.offsets[whole] + at, apart = arena_.offsets[parts[i]];
      std::vector<uint64_t>& of_part = expected_[parts[i]];
      std::vector<uint64_t>& of_whole = expected_[whole];
      if (joins) {
        of_whole.insert(of_whole.end(), of_part.begin(), of_part.end());
      } else {
        const auto begin = of_whole.begin() + static_cast<ptrdiff_t>(at);
        of_part.assign(begin, begin + static_cast<ptrdiff_t>(p_.size(parts[i])));
      }
      if (inside == apart) continue;
      const uint64_t whole_begin = arena_.offsets[whole];
      EXPECT_TRUE(apart >= whole_begin + p_.size(whole) || whole_begin >= apart + p_.size(parts[i]))
          << "tensor " << parts[i] << " lies somewhere in " << whole;
      for (uint64_t k = 0; k < p_.size(parts[i]); ++k) {
        bytes_[(joins ? inside : apart) + k] = bytes_[(joins ? apart : inside) + k];
      }
    }
  }
  void expect_whole(uint32_t t) const {
    const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(arena_.offsets[t]);
    EXPECT_TRUE(std::equal(expected_[t].begin(), expected_[t].end(), begin)) << "tensor " << t;
  }

  const TestProgram& p_;
  const Arena& arena_;
  std::vector<uint64_t> bytes_;
  std::vector<std::vector<uint64_t>> expected_;  // per tensor
  uint64_t names_ = 0;
};

TestProgram random_program(testing::Random& random) {
  std::vector<int64_t> sizes;
  std::vector<StepOf> steps;
  std::vector<uint32_t> inputs, outputs;
  const auto add = [&](int64_t size) {
    sizes.push_back(size);
    return static_cast<uint32_t>(sizes.size() - 1);
  };
  const auto pick = [&] {  // rather a young one
    const auto count = static_cast<int64_t>(sizes.size());
    return static_cast<uint32_t>(
        random.integer(random.chance(0.7) ? std::max<int64_t>(0, count - 4) : 0, count - 1));
  };
  for (int64_t i = random.integer(1, 2); i > 0; --i) inputs.push_back(add(random.integer(1, 200)));
  for (int64_t s = random.integer(3, 30); s > 0; --s) {
    StepOf step;
    const int64_t kind = random.integer(0, 9);
    step.moves = kind < 5;
    if (kind < 3) {
      int64_t size = 0;
      for (int64_t i = random.integer(1, 4); i > 0; --i) {
        step.inputs.push_back(pick());
        size += sizes[step.inputs.back()];
      }
      if (size > 5000) continue;
      step.outputs = {add(size)};
    } else if (kind < 5) {
      const uint32_t from = pick();
      step.inputs = {from};
      int64_t rest = sizes[from];
      while (rest > 0) {
        const int64_t size = step.outputs.size() == 3 ? rest : random.integer(1, rest);
        step.outputs.push_back(add(size));
        rest -= size;
      }
    } else {
      step.inputs = {pick()};
      if (random.chance(0.3)) step.inputs.push_back(pick());
      const int64_t size = random.chance(0.6) ? sizes[step.inputs[0]] : random.integer(1, 300);
      step.outputs = {add(size)};
    }
    steps.push_back(std::move(step));
  }
  std::set<uint32_t> chosen;
  for (int64_t i = random.integer(1, 2); i > 0; --i) {
    const uint32_t t = pick();
    if (std::ranges::find(inputs, t) == inputs.end()) chosen.insert(t);
  }
  outputs.assign(chosen.begin(), chosen.end());
  return TestProgram(sizes, std::move(steps), std::move(inputs), std::move(outputs));
}

TEST(Parts, RandomProgramsFindTheirBytesAndNeedNoMoreOfThem) {
  size_t num_parts = 0;
  for (uint64_t seed = 1; seed <= 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::Random random(seed);
    const TestProgram p = random_program(random);
    const Arena arena = p.plan();
    num_parts += static_cast<size_t>(
        std::ranges::count_if(arena.lifetimes.inside, [](uint32_t t) { return t != kNone; }));
    Simulation(p, arena).run();
    const Arena apart = plan_arena(p.program, p.sharing(false), 0);
    EXPECT_LE(arena.size, apart.size);
    EXPECT_LE(arena.lower_bound, apart.lower_bound);
  }
  EXPECT_GT(num_parts, 3000u);
}

TEST(LiveBytes, ArePeakOfLiveBytesOfThePlanner) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    testing::Random random(seed);
    const auto num_steps = static_cast<uint32_t>(random.integer(1, 40));
    LiveBytes live(num_steps, 64);
    std::vector<Buffer> buffers;
    for (int64_t i = random.integer(0, 30); i > 0; --i) {
      const auto first = static_cast<uint32_t>(random.integer(0, num_steps - 1));
      buffers.push_back({static_cast<uint64_t>(random.integer(1, 1000)), first,
                         static_cast<uint32_t>(random.integer(first, num_steps - 1))});
      live.add(buffers.back());
      if (random.chance(0.4)) {
        live.remove(buffers.front());
        buffers.erase(buffers.begin());
      }
      ASSERT_EQ(live.peak(), live_bytes_peak(buffers, 64)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace qplan::memory::parts_test
