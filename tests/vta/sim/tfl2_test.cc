// The requantisation of contract TFL2 as ALU instructions, against the kernels' arithmetic.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/vta/sim/machine.h"
#include "tests/vta/sim/blob_builder.h"

namespace qplan::sim::tfl2_test {
namespace {

using vta::AluOp;
using vta::Instruction;
using vta::kDefaultConfig;
using vta::Memory;
using vta::testing::alu;
using vta::testing::alu_imm;
using vta::testing::gemm;
using vta::testing::load;
using vta::testing::store;
using vta::testing::tokens;

// ACC: constants per channel first, then the working set, each of kCount elements.
enum Constant : uint32_t { kBias, kLeft, kHigh, kLow, kIsRight, kHalf, kRight, kNumConstants };
enum Work : uint32_t { kA, kT1, kT2, kT3, kT4, kT5, kT6, kNumBlocks };
constexpr uint32_t kCount = 32;

// Micro-op numbers: an operation on two blocks, or on a block and a constant, each with a source factor of 1
// or 0.
class Program {
 public:
  Program() {
    for (uint32_t d = 0; d < kNumBlocks; ++d) {
      for (uint32_t s = 0; s < kNumBlocks; ++s) uops_.push_back(uop(block(d), block(s)));
    }
    for (uint32_t d = 0; d < kNumBlocks; ++d) {
      for (uint32_t c = 0; c < kNumConstants; ++c) uops_.push_back(uop(block(d), c));
    }
  }
  const std::vector<vta::Uop>& uops() const { return uops_; }
  std::vector<Instruction>& stream() { return stream_; }
  uint32_t alu_count() const { return alu_count_; }

  static uint32_t block(uint32_t b) { return kNumConstants + b * kCount; }

  void clear(Work d) { add(gemm(d * kNumBlocks, d * kNumBlocks + 1, true), 0); }
  void op(AluOp which, Work d, Work s) {
    const uint32_t u = d * kNumBlocks + s;
    add(alu(which, u, u + 1), 1);
  }
  void op(AluOp which, Work d, Constant c) {
    const uint32_t u = kNumBlocks * kNumBlocks + uint32_t{d} * kNumConstants + uint32_t{c};
    add(alu(which, u, u + 1), 0);
  }
  void op(AluOp which, Work d, int32_t imm) {
    add(alu_imm(which, d * kNumBlocks, d * kNumBlocks + 1, imm), 0);
  }
  void copy(Work d, Work s) {
    clear(d);
    op(AluOp::kAdd, d, s);
  }

 private:
  static vta::Uop uop(uint32_t dst, uint32_t src) {
    return {static_cast<uint16_t>(dst), static_cast<uint16_t>(src), 0};
  }
  void add(Instruction i, uint32_t src_factor) {
    i.iter_in = kCount;
    i.dst_factor_in = 1;
    i.src_factor_in = static_cast<uint16_t>(i.reset ? 0 : src_factor);
    alu_count_ += i.opcode == vta::Opcode::kAlu ? 1 : 0;
    stream_.push_back(i);
  }
  std::vector<vta::Uop> uops_;
  std::vector<Instruction> stream_;
  uint32_t alu_count_ = 0;
};

// The public sequence; A holds the accumulator and in the end the output before its low byte is taken.
void requantise(Program& p, int32_t zero_point, int32_t low, int32_t high) {
  p.op(AluOp::kAdd, kA, kBias);
  p.op(AluOp::kMul, kA, kLeft);
  p.copy(kT1, kA);
  p.op(AluOp::kShr, kT1, 15);
  p.copy(kT6, kT1);  // T2 = A - (T1 << 15)
  p.op(AluOp::kShr, kT6, -15);
  p.op(AluOp::kMul, kT6, -1);
  p.copy(kT2, kA);
  p.op(AluOp::kAdd, kT2, kT6);
  p.copy(kT3, kT1);
  p.op(AluOp::kMul, kT3, kHigh);
  p.copy(kT4, kT2);
  p.op(AluOp::kMul, kT4, kHigh);
  p.copy(kT5, kT4);
  p.op(AluOp::kShr, kT5, 15);
  p.op(AluOp::kAdd, kT3, kT5);
  p.op(AluOp::kShr, kT5, -15);
  p.op(AluOp::kMul, kT5, -1);
  p.op(AluOp::kAdd, kT4, kT5);
  p.op(AluOp::kMul, kT1, kLow);
  p.op(AluOp::kAdd, kT4, kT1);
  p.op(AluOp::kMul, kT2, kLow);
  p.op(AluOp::kShr, kT2, 15);
  p.op(AluOp::kAdd, kT4, kT2);
  p.op(AluOp::kAdd, kT4, 32767);
  p.op(AluOp::kAdd, kT4, 1);
  p.op(AluOp::kShr, kT4, 15);
  p.op(AluOp::kAdd, kT3, kT4);
  p.op(AluOp::kShr, kT3, 1);
  p.copy(kT6, kT3);
  p.op(AluOp::kShr, kT6, 31);
  p.op(AluOp::kMul, kT6, kIsRight);
  p.op(AluOp::kAdd, kT3, kT6);
  p.op(AluOp::kAdd, kT3, kHalf);
  p.op(AluOp::kShr, kT3, kRight);
  p.op(AluOp::kAdd, kT3, zero_point);
  p.op(AluOp::kMax, kT3, low);
  p.op(AluOp::kMin, kT3, high);
}

struct Channel {
  int32_t bias;
  int32_t multiplier;
  int32_t shift;  // positive to the left
};

// accumulators: kCount * 16 values, channel = lane. Returns the bytes stored.
std::vector<int8_t> on_the_device(const std::vector<int32_t>& accumulators,
                                  const std::vector<Channel>& channels, int32_t zero_point, int32_t low,
                                  int32_t high) {
  std::vector<int32_t> constants(kNumConstants * 16);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    const Channel& c = channels[lane];
    const int32_t right = c.shift < 0 ? -c.shift : 0;
    constants[kBias * 16 + lane] = c.bias;
    constants[kLeft * 16 + lane] = 1 << (c.shift > 0 ? c.shift : 0);
    constants[kHigh * 16 + lane] = c.multiplier >> 15;
    constants[kLow * 16 + lane] = c.multiplier & 0x7fff;
    constants[kIsRight * 16 + lane] = right > 0 ? 1 : 0;
    constants[kHalf * 16 + lane] = right > 0 ? 1 << (right - 1) : 0;
    constants[kRight * 16 + lane] = right;
  }
  Program program;
  requantise(program, zero_point, low, high);
  const auto num_uops = static_cast<uint32_t>(program.uops().size());
  std::vector<uint8_t> memory(65536);
  const auto put = [&](size_t at, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, vta::testing::uops_raw(kDefaultConfig, program.uops()));
  put(4096, vta::testing::raw(constants));
  put(8192, vta::testing::raw(accumulators));
  constexpr uint32_t kBase = 0x1000;
  std::vector<Instruction> stream = {load(Memory::kUop, 0, kBase / 4, num_uops),
                                     load(Memory::kAcc, 0, (kBase + 4096) / 64, kNumConstants),
                                     load(Memory::kAcc, Program::block(kA), (kBase + 8192) / 64, kCount)};
  program.stream().back() = tokens("push.next", program.stream().back());
  stream.insert(stream.end(), program.stream().begin(), program.stream().end());
  stream.push_back(tokens("pop.prev push.prev", store(Program::block(kT3), (kBase + 32768) / 16, kCount)));
  stream.push_back(tokens("pop.next", vta::testing::finish()));
  Dram dram;
  Segment all;
  all.address = kBase;
  all.bytes = memory.size();
  all.memory = memory.data();
  all.is_writable = true;
  all.name = "memory";
  dram.add(all);
  const Outcome outcome = execute(kDefaultConfig, stream, make_schedule(kDefaultConfig, stream), {}, &dram);
  EXPECT_FALSE(outcome.fault.is_set()) << outcome.fault.text;
  std::vector<int8_t> bytes(kCount * 16);
  std::memcpy(bytes.data(), memory.data() + 32768, bytes.size());
  return bytes;
}

void expect_equal(const std::vector<int32_t>& accumulators, const std::vector<Channel>& channels,
                  int32_t zero_point, int32_t low, int32_t high, uint32_t seed) {
  const std::vector<int8_t> actual = on_the_device(accumulators, channels, zero_point, low, high);
  for (size_t n = 0; n < actual.size(); ++n) {
    const Channel& c = channels[n % 16];
    const int32_t a = accumulators[n] + c.bias;
    ASSERT_EQ(actual[n], add_clamp(requantize_tfl2(a, c.multiplier, c.shift), zero_point, low, high))
        << "seed " << seed << ": a " << a << ", multiplier " << c.multiplier << ", shift " << c.shift;
  }
}

constexpr int32_t kBound = 1 << 29;  // |a << left| of the sequence

TEST(Tfl2OnVta, EdgeValues) {
  const int32_t multipliers[] = {1 << 30,    (1 << 30) + 1, 0x40007fff, 0x40008000,
                                 0x5a827999, 0x7fff8000,    0x7fffffff, INT32_MAX - 1};
  const int32_t values[] = {0,
                            1,
                            -1,
                            2,
                            -2,
                            3,
                            -3,
                            127,
                            -128,
                            32767,
                            -32767,
                            32768,
                            -32768,
                            65535,
                            -65536,
                            kBound,
                            -kBound,
                            kBound - 1,
                            1 - kBound,
                            1 << 20,
                            -(1 << 20),
                            (1 << 20) + 1,
                            0x2aaaaaaa / 2,
                            -0x15555555};
  for (int32_t shift = -31; shift <= 16; ++shift) {
    std::vector<Channel> channels(16);
    for (uint32_t lane = 0; lane < 16; ++lane) channels[lane] = {0, multipliers[lane % 8], shift};
    std::vector<int32_t> accumulators(kCount * 16);
    for (size_t n = 0; n < accumulators.size(); ++n) {
      int32_t value = values[n / 16 % std::size(values)];
      if (shift > 0) value = (value >> shift) + (n % 2 == 0 ? 0 : value < 0 ? 1 : 0);
      accumulators[n] = value;
    }
    expect_equal(accumulators, channels, 3, -128, 127, 0);
  }
}

// Where both roundings are ties or next to one: the product is an odd multiple of half a unit.
TEST(Tfl2OnVta, Ties) {
  for (int32_t shift = -12; shift <= -1; ++shift) {
    std::vector<Channel> channels(16, Channel{0, 1 << 30, shift});
    std::vector<int32_t> accumulators(kCount * 16);
    for (size_t n = 0; n < accumulators.size(); ++n) {
      accumulators[n] = (static_cast<int32_t>(n) - 256) * (1 << -shift) + static_cast<int32_t>(n % 5) - 2;
    }
    expect_equal(accumulators, channels, 0, -128, 127, 0);
  }
}

TEST(Tfl2OnVta, RandomValuesPerChannel) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<Channel> channels(16);
    for (Channel& c : channels) {
      c.multiplier = static_cast<int32_t>((1u << 30) + random() % (1u << 30));
      c.shift = static_cast<int32_t>(random() % 20) - 15;
      c.bias = static_cast<int32_t>(random() % 2001) - 1000;
    }
    std::vector<int32_t> accumulators(kCount * 16);
    for (size_t n = 0; n < accumulators.size(); ++n) {
      const Channel& c = channels[n % 16];
      const int32_t bound = (kBound >> (c.shift > 0 ? c.shift : 0)) - 1000;
      // Small ones often, so that outputs are not all clamped.
      const uint32_t bits = random() % 30;
      const int32_t value = static_cast<int32_t>(random() % ((1u << bits) + 1));
      accumulators[n] = std::min(value, bound) * (random() % 2 == 0 ? 1 : -1);
    }
    const int32_t zero_point = static_cast<int32_t>(random() % 256) - 128;
    expect_equal(accumulators, channels, zero_point, -128, 127, seed);
  }
}

TEST(Tfl2OnVta, ThirtyEightAluInstructionsAndCopies) {
  Program program;
  requantise(program, 0, -128, 127);
  size_t resets = 0;
  for (const Instruction& i : program.stream()) resets += i.reset ? 1 : 0;
  EXPECT_EQ(program.alu_count(), 38u);
  EXPECT_EQ(resets, 7u);
}

}  // namespace
}  // namespace qplan::sim::tfl2_test
