// The effect of instructions on memories, against plain loops over the formulas.
#include "src/vta/sim/machine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/vta/sim/blob_builder.h"
#include "tests/vta/sim/interpreter.h"

namespace qplan::sim::machine_test {
namespace {

using vta::AluOp;
using vta::Instruction;
using vta::kDefaultConfig;
using vta::Memory;
using vta::testing::alu;
using vta::testing::alu_imm;
using vta::testing::finish;
using vta::testing::gemm;
using vta::testing::load;
using vta::testing::store;
using vta::testing::tokens;

constexpr uint64_t kBase = 0x1000;

// One region that holds everything, all of it known.
struct Memories {
  std::vector<uint8_t> bytes;
  Dram dram;
  explicit Memories(size_t size) : bytes(size) { attach(); }
  void attach() {
    dram = Dram();
    Segment all;
    all.address = kBase;
    all.bytes = bytes.size();
    all.memory = bytes.data();
    all.is_writable = true;
    all.name = "memory";
    dram.add(all);
  }
};

Outcome run(const std::vector<Instruction>& stream, Dram* dram, ExecuteOptions options = {},
            const vta::Config& config = kDefaultConfig) {
  return execute(config, stream, make_schedule(config, stream), options, dram);
}

// Runs instructions one after the other on a machine alone: no modules, no tokens.
class Bench {
 public:
  explicit Bench(const vta::Config& config = kDefaultConfig)
      : config_(config), machine_(config), memories_(1 << 16) {}

  std::vector<uint8_t>& dram() { return memories_.bytes; }
  Machine& machine() { return machine_; }
  Fault& fault() { return fault_; }

  bool run(Instruction i) {
    if (is_memory(i)) i.dram_base += static_cast<uint32_t>(kBase / element_bytes(i.memory));
    ++number_;
    // Everything before it is complete.
    const Clock clock = {number_, number_, number_};
    return machine_.execute(i, number_, clock, number_, &memories_.dram, &fault_);
  }
  void put_uops(const std::vector<vta::Uop>& uops) {
    const std::vector<uint8_t> bytes = vta::testing::uops_raw(config_, uops);
    std::copy(bytes.begin(), bytes.end(), dram().begin());
    ASSERT_TRUE(run(load(Memory::kUop, 0, 0, static_cast<uint32_t>(uops.size()))));
  }
  void put_acc(uint32_t element, const std::vector<int32_t>& lanes) {
    std::memcpy(dram().data() + 4096, lanes.data(), 64);
    ASSERT_TRUE(run(load(Memory::kAcc, element, 64, 1)));
  }

 private:
  const vta::Config& config_;
  Machine machine_;
  Memories memories_;
  Fault fault_;
  uint32_t number_ = 0;
};

std::vector<int32_t> lanes(int32_t first, int32_t second) {
  std::vector<int32_t> all(16, second);
  all[0] = first;
  return all;
}

TEST(SimMachine, StoreKeepsTheLowByteAndDoesNotSaturate) {
  Bench bench;
  bench.put_acc(5, lanes(300, -129));
  ASSERT_TRUE(bench.run(store(5, 2, 1)));
  EXPECT_EQ(bench.dram()[32], 300 - 256);
  EXPECT_EQ(bench.dram()[33], 127);
}

TEST(SimMachine, SumsAndProductsWrap) {
  Bench bench;
  bench.put_uops({{0, 0, 0}});
  bench.put_acc(0, lanes(INT32_MAX, INT32_MIN));
  ASSERT_TRUE(bench.run(alu_imm(AluOp::kAdd, 0, 1, 1)));
  EXPECT_EQ(bench.machine().acc()[0][0], INT32_MIN);
  EXPECT_EQ(bench.machine().acc()[0][1], INT32_MIN + 1);
  bench.put_acc(0, lanes(0x12345678, -65537));
  ASSERT_TRUE(bench.run(alu(AluOp::kMul, 0, 1)));
  EXPECT_EQ(bench.machine().acc()[0][0], static_cast<int32_t>(0x12345678u * 0x12345678u));
  EXPECT_EQ(bench.machine().acc()[0][1], 131073);
}

TEST(SimMachine, ShiftRightIsArithmeticAndNegativeCountsShiftLeft) {
  Bench bench;
  bench.put_uops({{0, 0, 0}});
  bench.put_acc(0, lanes(-5, 7));
  ASSERT_TRUE(bench.run(alu_imm(AluOp::kShr, 0, 1, 1)));
  EXPECT_EQ(bench.machine().acc()[0][0], -3);
  EXPECT_EQ(bench.machine().acc()[0][1], 3);
  ASSERT_TRUE(bench.run(alu_imm(AluOp::kShr, 0, 1, -30)));
  EXPECT_EQ(bench.machine().acc()[0][0], 0x40000000);
  EXPECT_EQ(bench.machine().acc()[0][1], static_cast<int32_t>(0xc0000000));
}

TEST(SimMachine, ShiftCountsOutsideFiveBitsAreFaults) {
  Bench bench;
  bench.put_uops({{0, 1, 0}});
  bench.put_acc(0, lanes(1, 1));
  bench.put_acc(1, lanes(1, 32));
  EXPECT_FALSE(bench.run(alu(AluOp::kShr, 0, 1)));
  EXPECT_EQ(bench.fault().status, QPLAN_NPU_E_ILLEGAL);
  EXPECT_NE(bench.fault().text.find("a shift by 32"), std::string::npos) << bench.fault().text;
}

TEST(SimMachine, PaddingWritesZerosAroundRows) {
  Bench bench;
  for (size_t i = 0; i < 16 * 16; ++i) bench.dram()[i] = static_cast<uint8_t>(i / 16 + 1);
  Instruction i = load(Memory::kInp, 10, 0, 2);
  i.y_size = 2;
  i.x_stride = 4;
  i.x_pad_0 = i.y_pad_0 = 1;
  ASSERT_TRUE(bench.run(i));
  const int expected[] = {0, 0, 0, 0, 1, 2, 0, 5, 6};
  for (uint32_t e = 0; e < 9; ++e) {
    EXPECT_EQ(bench.machine().inp()[10 + e][0], expected[e]) << e;
    EXPECT_EQ(bench.machine().inp()[10 + e][15], expected[e]) << e;
  }
}

TEST(SimMachine, ReadsOfWhatNothingWroteAreFaults) {
  Bench bench;
  bench.put_uops({{3, 4, 5}});
  EXPECT_FALSE(bench.run(gemm(1, 2)));
  EXPECT_NE(bench.fault().text.find("reads uop element 1, which was never written"), std::string::npos);
  EXPECT_FALSE(bench.run(gemm(0, 1)));
  EXPECT_NE(bench.fault().text.find("reads inp element 4"), std::string::npos) << bench.fault().text;
  EXPECT_FALSE(bench.run(alu_imm(AluOp::kAdd, 0, 1, 1)));
  EXPECT_NE(bench.fault().text.find("reads acc element 3"), std::string::npos) << bench.fault().text;
  EXPECT_FALSE(bench.run(store(3, 0, 1)));
  EXPECT_NE(bench.fault().text.find("(store): reads acc element 3"), std::string::npos) << bench.fault().text;
  // Clearing is no read: by reset, and by a product with zero.
  EXPECT_TRUE(bench.run(alu_imm(AluOp::kMul, 0, 1, 0)));
  EXPECT_EQ(bench.machine().acc()[3][7], 0);
  EXPECT_TRUE(bench.run(gemm(0, 1, true)));
}

TEST(SimMachine, RangesAreChecked) {
  Bench bench;
  bench.put_uops({{2047, 0, 0}});
  Instruction i = gemm(0, 1, true);
  i.iter_in = 2;
  i.dst_factor_in = 1;
  EXPECT_FALSE(bench.run(i));
  EXPECT_NE(bench.fault().text.find("acc element 2048 is past the memory's 2048"), std::string::npos)
      << bench.fault().text;
  EXPECT_FALSE(bench.run(load(Memory::kInp, 2047, 0, 2)));
  EXPECT_FALSE(bench.run(load(Memory::kInp, 0, 4096, 1)));  // 64 KiB of DRAM hold 4096 elements
  EXPECT_EQ(bench.fault().status, QPLAN_NPU_E_BUS);
  EXPECT_EQ(bench.fault().address, kBase + 65536);
  i = store(2047, 0, 1);
  i.x_pad_0 = 1;
  EXPECT_FALSE(bench.run(i));
  EXPECT_NE(bench.fault().text.find("a store cannot pad"), std::string::npos) << bench.fault().text;
}

TEST(SimMachine, ADeviceWithoutProductsRefusesThem) {
  vta::Config config = kDefaultConfig;
  config.has_multiply = false;
  Bench bench(config);
  bench.put_uops({{0, 0, 0}});
  bench.put_acc(0, lanes(1, 1));
  EXPECT_FALSE(bench.run(alu_imm(AluOp::kMul, 0, 1, 2)));
  EXPECT_FALSE(bench.run(alu_imm(AluOp::kShr, 0, 1, -1)));
  EXPECT_TRUE(bench.run(alu_imm(AluOp::kShr, 0, 1, 1)));
}

// Random streams in one module order: every memory equals the interpreter's afterwards.
TEST(SimMachine, RandomInstructionsEqualTheFormulas) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
    constexpr size_t kSize = 1 << 19;  // all of WGT and some
    Memories memories(kSize);
    for (uint8_t& byte : memories.bytes) byte = static_cast<uint8_t>(random());
    // Micro-ops whose indices stay below 256, so that loops can add to them; at the end of memory.
    std::vector<vta::Uop> uops(64);
    for (vta::Uop& uop : uops) {
      uop = {static_cast<uint16_t>(below(256)), static_cast<uint16_t>(below(256)),
             static_cast<uint16_t>(below(256))};
    }
    const std::vector<uint8_t> raw = vta::testing::uops_raw(kDefaultConfig, uops);
    std::copy(raw.begin(), raw.end(), memories.bytes.end() - 256);

    // Everything is written once, so that nothing reads poison.
    std::vector<Instruction> stream = {load(Memory::kUop, 0, (kSize - 256) / 4, 64),
                                       load(Memory::kWgt, 0, 0, 1024), load(Memory::kInp, 0, 7, 2048),
                                       load(Memory::kAcc, 0, 3, 2048)};
    for (int n = 0; n < 40; ++n) {
      Instruction i;
      switch (below(6)) {
        case 0: {
          const Memory memory = static_cast<Memory>(1 + below(5));
          i = load(memory == Memory::kOut ? Memory::kAcc8 : memory, below(300), below(100), 1 + below(8));
          i.y_size = static_cast<uint16_t>(below(5));
          i.x_stride = static_cast<uint16_t>(below(20));
          i.y_pad_0 = static_cast<uint8_t>(below(3));
          i.y_pad_1 = static_cast<uint8_t>(below(3));
          i.x_pad_0 = static_cast<uint8_t>(below(3));
          i.x_pad_1 = static_cast<uint8_t>(below(3));
          if (below(10) == 0) i.x_size = 0;
          break;
        }
        case 1:
          i = store(below(1000), below(500), 1 + below(8));
          i.y_size = static_cast<uint16_t>(below(4));
          i.x_stride = static_cast<uint16_t>(below(20));
          break;
        default: {
          const uint32_t begin = below(60);
          const uint32_t end = begin + 1 + below(4);
          if (below(2) == 0) {
            i = gemm(begin, end, below(8) == 0);
            i.wgt_factor_out = static_cast<uint16_t>(below(64));
            i.wgt_factor_in = static_cast<uint16_t>(below(64));
          } else {
            i = alu_imm(static_cast<AluOp>(below(5)), begin, end, static_cast<int16_t>(random()));
            if (i.alu_op == AluOp::kShr) i.imm = static_cast<int16_t>(static_cast<int>(below(63)) - 31);
            i.use_imm = i.alu_op == AluOp::kShr || below(2) == 0;
            if (!i.use_imm) i.imm = 0;
          }
          i.iter_out = static_cast<uint16_t>(1 + below(6));
          i.iter_in = static_cast<uint16_t>(1 + below(6));
          i.dst_factor_out = static_cast<uint16_t>(below(128));
          i.dst_factor_in = static_cast<uint16_t>(below(128));
          i.src_factor_out = static_cast<uint16_t>(below(128));
          i.src_factor_in = static_cast<uint16_t>(below(128));
          break;
        }
      }
      stream.push_back(i);
    }
    std::vector<uint8_t> expected = memories.bytes;
    vta::testing::Interpreter interpreter;
    interpreter.run(stream, expected);

    Machine machine(kDefaultConfig);
    Fault fault;
    for (uint32_t n = 0; n < stream.size(); ++n) {
      Instruction i = stream[n];
      if (is_memory(i)) i.dram_base += static_cast<uint32_t>(kBase / 16);
      if (i.memory == Memory::kUop && is_memory(i))
        i.dram_base += static_cast<uint32_t>(kBase / 4 - kBase / 16);
      if (i.memory == Memory::kWgt && is_memory(i))
        i.dram_base -= static_cast<uint32_t>(kBase / 16 - kBase / 256);
      if (i.memory == Memory::kAcc && is_memory(i))
        i.dram_base -= static_cast<uint32_t>(kBase / 16 - kBase / 64);
      ASSERT_TRUE(machine.execute(i, n, {n, n, n}, n + 1, &memories.dram, &fault))
          << "seed " << seed << fault.text;
    }
    ASSERT_EQ(memories.bytes, expected) << "seed " << seed;
    for (uint32_t e = 0; e < 2048; ++e) {
      for (uint32_t lane = 0; lane < 16; ++lane) {
        ASSERT_EQ(machine.acc()[e][lane], interpreter.acc[e * 16 + lane]) << "seed " << seed << " acc " << e;
        ASSERT_EQ(machine.inp()[e][lane], interpreter.inp[e * 16 + lane]) << "seed " << seed << " inp " << e;
      }
    }
  }
}

// ---- modules and tokens ----

// INP and WGT in, one product, out again.
std::vector<Instruction> one_product(const char* first_gemm, const char* last_load) {
  const uint32_t b = kBase;
  return {load(Memory::kUop, 0, b / 4, 1),
          load(Memory::kInp, 0, b / 16 + 16, 1),
          tokens(last_load, load(Memory::kWgt, 0, b / 256 + 2, 1)),
          gemm(0, 1, true),
          tokens(first_gemm, gemm(0, 1)),
          tokens("pop.prev push.prev", store(0, b / 16 + 64, 1)),
          tokens("pop.next", finish())};
}

TEST(SimExecutor, OrderedStreamsRunInEveryInterleaving) {
  Memories memories(4096);
  for (size_t i = 256; i < 1024; ++i) memories.bytes[i] = static_cast<uint8_t>(i * 7);
  ExecuteOptions options;
  options.explore = 32;
  const Outcome outcome = run(one_product("pop.prev push.next", "push.next"), &memories.dram, options);
  EXPECT_FALSE(outcome.fault.is_set()) << outcome.fault.text;
  EXPECT_EQ(outcome.hazards, 0u);
  EXPECT_EQ(outcome.interleavings, 32u);
  for (size_t o = 0; o < 16; ++o) {
    int sum = 0;
    for (size_t k = 0; k < 16; ++k) {
      sum += static_cast<int8_t>(memories.bytes[256 + k]) *
             static_cast<int8_t>(memories.bytes[512 + o * 16 + k]);
    }
    EXPECT_EQ(memories.bytes[1024 + o], static_cast<uint8_t>(sum));
  }
}

// The load may or may not be first: sometimes there is nothing to read, sometimes all is well; both are
// reported.
TEST(SimExecutor, AMissingTokenIsAHazardEvenWhenTheOutcomeIsRight) {
  int read_poison = 0, were_right = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Memories memories(4096);
    ExecuteOptions options;
    options.seed = seed;
    const Outcome outcome = run(one_product("push.next", ""), &memories.dram, options);
    ASSERT_TRUE(outcome.fault.is_set());
    if (outcome.fault.status == QPLAN_NPU_E_HAZARD) {
      ++were_right;
      EXPECT_EQ(outcome.fault.instruction, 4u);
      EXPECT_NE(
          outcome.fault.text.find("instruction 4 (gemm): reads inp element 0; no token orders that after the "
                                  "write by the load module"),
          std::string::npos)
          << outcome.fault.text;
    } else {
      ++read_poison;
      EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_ILLEGAL);
    }
  }
  EXPECT_GT(read_poison, 0);
  EXPECT_GT(were_right, 0);
}

TEST(SimExecutor, HazardsCanBeCountedOnly) {
  Memories memories(4096);
  ExecuteOptions options;
  options.hazards_fail = false;
  uint64_t hazards = 0;
  for (options.seed = 0; hazards == 0 && options.seed < 40; ++options.seed) {
    const Outcome outcome = run(one_product("push.next", ""), &memories.dram, options);
    if (outcome.fault.is_set()) continue;
    hazards = outcome.hazards;
    EXPECT_EQ(outcome.first_hazard.instruction, 4u);
  }
  EXPECT_EQ(hazards, 2u);  // INP and WGT
}

// Two tiles; the second load overwrites INP. Without the token back to LOAD it may come too early.
std::vector<Instruction> two_tiles(bool waits) {
  const uint32_t b = kBase;
  return {load(Memory::kUop, 0, b / 4, 1),
          load(Memory::kInp, 0, b / 16 + 16, 1),
          tokens("push.next", load(Memory::kWgt, 0, b / 256 + 2, 1)),
          gemm(0, 1, true),
          tokens(waits ? "pop.prev push.prev" : "pop.prev", gemm(0, 1)),
          tokens(waits ? "pop.next push.next" : "push.next", load(Memory::kInp, 0, b / 16 + 17, 1)),
          tokens("pop.prev push.next", gemm(0, 1)),
          tokens("pop.prev push.prev", store(0, b / 16 + 64, 1)),
          tokens("pop.next", finish())};
}

TEST(SimExecutor, OverwritingWhatIsInUseIsAHazard) {
  Memories memories(4096);
  ExecuteOptions options;
  options.explore = 16;
  EXPECT_FALSE(run(two_tiles(true), &memories.dram, options).fault.is_set());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    options.explore = 1;
    const Outcome outcome = run(two_tiles(false), &memories.dram, options);
    ASSERT_EQ(outcome.fault.status, QPLAN_NPU_E_HAZARD) << seed;
    const std::string& text = outcome.fault.text;
    EXPECT_TRUE(
        text.find("overwrites inp element 0; no token orders that after the read by the compute module") !=
            std::string::npos ||
        text.find("reads inp element 0; no token orders") != std::string::npos)
        << text;
  }
}

TEST(SimExecutor, InterleavingsThatDisagreeAreFound) {
  Memories memories(4096);
  for (size_t i = 256; i < 1024; ++i) memories.bytes[i] = static_cast<uint8_t>(i * 7);
  ExecuteOptions options;
  options.explore = 16;
  options.hazards_fail = false;
  const Outcome outcome = run(two_tiles(false), &memories.dram, options);
  EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_HAZARD);
  EXPECT_NE(outcome.fault.text.find("differ in byte"), std::string::npos) << outcome.fault.text;
}

// A store whose element is written again, and a load of what a store wrote.
TEST(SimExecutor, AccumulatorsAndDramAreWatchedToo) {
  const uint32_t b = kBase;
  Memories memories(4096);
  std::vector<Instruction> stream = {load(Memory::kUop, 0, b / 4, 1), tokens("push.next", gemm(0, 1, true)),
                                     tokens("pop.prev push.prev", store(0, b / 16 + 64, 1)), gemm(0, 1, true),
                                     tokens("pop.next", finish())};
  ExecuteOptions options;
  Outcome outcome = run(stream, &memories.dram, options);
  EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_HAZARD);
  EXPECT_NE(outcome.fault.text.find("acc element 0"), std::string::npos) << outcome.fault.text;
  std::swap(stream[3], stream[4]);
  stream = {stream[0], stream[1], stream[2], load(Memory::kInp, 0, b / 16 + 64, 1),
            tokens("pop.next", finish())};
  outcome = run(stream, &memories.dram, options);
  EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_HAZARD);
  EXPECT_TRUE(outcome.fault.text.find("loads 0x1400 in memory; no token orders that after its store") !=
                  std::string::npos ||
              outcome.fault.text.find("stores to 0x1400 in memory; no token orders that after its load") !=
                  std::string::npos)
      << outcome.fault.text;
}

TEST(SimExecutor, ADeadlockNamesModuleAndQueue) {
  Memories memories(4096);
  const Outcome outcome = run(one_product("pop.prev push.next", ""), &memories.dram);
  EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_TIMEOUT);
  EXPECT_EQ(outcome.fault.text,
            "deadlock: instruction 4 of module compute waits for a token from queue load->compute");
}

TEST(SimExecutor, TokensThatNobodyTakesAreReported) {
  Memories memories(4096);
  std::vector<Instruction> stream = one_product("pop.prev push.next", "push.next");
  stream[1].push_next = true;
  const Outcome outcome = run(stream, &memories.dram);
  EXPECT_TRUE(outcome.fault.is_set());
}

TEST(SimExecutor, FinishMustWaitForTheLastStore) {
  Memories memories(4096);
  std::vector<Instruction> stream = one_product("pop.prev push.next", "push.next");
  stream[5].push_prev = stream[6].pop_next = false;
  const Outcome outcome = run(stream, &memories.dram);
  EXPECT_EQ(outcome.fault.status, QPLAN_NPU_E_HAZARD);
  EXPECT_EQ(outcome.fault.text,
            "instruction 6 (finish): no token orders it after the store of instruction 5");
}

TEST(SimSchedule, TimesFollowTheTokens) {
  const Schedule schedule = make_schedule(kDefaultConfig, one_product("pop.prev push.next", "push.next"));
  ASSERT_EQ(schedule.tokens.fault, vta::TokenFault::kNone);
  // load: 64 + 2, then 64 + 32; compute: 64 + 1, reset 1, waits for the weights at 162, product 1; store 64
  // + 2.
  EXPECT_EQ(schedule.begin, (std::vector<uint64_t>{0, 0, 66, 65, 162, 163, 229}));
  EXPECT_EQ(schedule.end, (std::vector<uint64_t>{65, 66, 162, 66, 163, 229, 229}));
  EXPECT_EQ(schedule.total_cycles, 229u);
  EXPECT_EQ(schedule.busy_cycles[0], 162u);
  EXPECT_EQ(schedule.busy_cycles[1], 67u);
  EXPECT_EQ(schedule.busy_cycles[2], 66u);
  EXPECT_EQ(schedule.stall_cycles[static_cast<uint32_t>(vta::Queue::kLoadToCompute)], 162u - 66);
  EXPECT_EQ(schedule.bytes_read, 4u + 16 + 256);
  EXPECT_EQ(schedule.bytes_written, 16u);
  EXPECT_EQ(schedule.macs, 256u);
}

}  // namespace
}  // namespace qplan::sim::machine_test
