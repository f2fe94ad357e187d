// Encoding, decoding, disassembly, cost of single instructions.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "src/vta/isa/vta.h"
#include "tests/vta/sim/blob_builder.h"

namespace qplan::vta::vta_isa_test {
namespace {

using testing::alu_imm;
using testing::gemm;
using testing::load;
using testing::tokens;

using Bytes = std::array<uint8_t, kInstructionBytes>;

// Field after field from bit 0 of a word: {value, bits}.
uint64_t pack(std::initializer_list<std::pair<uint64_t, uint32_t>> fields) {
  uint64_t word = 0;
  uint32_t at = 0;
  for (const auto& [value, bits] : fields) {
    word += value << at;
    at += bits;
  }
  return word;
}

Bytes two_words(uint64_t low, uint64_t high) {
  Bytes bytes;
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<uint8_t>(low >> 8 * i);
    bytes[8 + i] = static_cast<uint8_t>(high >> 8 * i);
  }
  return bytes;
}

Bytes encoded(const Instruction& i, const Config& config = kDefaultConfig) {
  Bytes bytes{};
  EXPECT_TRUE(encode(config, i, bytes.data()));
  return bytes;
}

TEST(VtaEncoding, FinishThatWaitsForTheStore) {
  // opcode 3, pop_next is bit 4.
  EXPECT_EQ(encoded(tokens("pop.next", testing::finish())), two_words(0x13, 0));
}

TEST(VtaEncoding, LoadWrittenOutByHand) {
  Instruction i = load(Memory::kInp, 0x1234, 0x89abcdef, 0);
  i.y_size = 0x0102;
  i.x_size = 0x0304;
  i.x_stride = 0x0506;
  i.y_pad_0 = 1;
  i.y_pad_1 = 2;
  i.x_pad_0 = 3;
  i.x_pad_1 = 4;
  i.pop_next = i.push_next = true;
  // opcode 000, pop_prev 0, pop_next 1, push_prev 0, push_next 1: 0x50; memory type 2 from bit 7: 0x100.
  const uint64_t low = 0x150 + (uint64_t{0x1234} << 10) + (uint64_t{0x89abcdef} << 26);
  EXPECT_EQ(encoded(i), two_words(low, 0x4321050603040102));
}

TEST(VtaEncoding, GemmWrittenOutByHand) {
  Instruction i = gemm(0x1001, 0x2000);
  i.iter_out = 0x2345;
  i.iter_in = 0x1fff;
  i.dst_factor_out = 0x401;
  i.dst_factor_in = 0x002;
  i.src_factor_out = 0x7ff;
  i.src_factor_in = 0x003;
  i.wgt_factor_out = 0x201;
  i.wgt_factor_in = 0x004;
  i.pop_prev = i.push_prev = true;
  const uint64_t low = pack({{2, 3},
                             {1, 1},
                             {0, 1},
                             {1, 1},
                             {0, 1},
                             {0, 1},
                             {0x1001, 13},
                             {0x2000, 14},
                             {0x2345, 14},
                             {0x1fff, 14}});
  const uint64_t high = pack({{0x401, 11}, {2, 11}, {0x7ff, 11}, {3, 11}, {0x201, 10}, {4, 10}});
  EXPECT_EQ(encoded(i), two_words(low, high));
  // The same numbers as bytes, so that pack() is not its own judge.
  EXPECT_EQ(low, 0x3fff1a2c0010012au);
}

TEST(VtaEncoding, AluWithNegativeImmediate) {
  const Instruction i = alu_imm(AluOp::kShr, 0, 1, -15);
  // opcode 4; uop_bgn 0 from bit 8; uop_end 1 at 21; iter_out 1 at 35; iter_in 1 at 49.
  const uint64_t low = 4 | uint64_t{1} << 21 | uint64_t{1} << 35 | uint64_t{1} << 49;
  // alu_opcode 3 at 44, use_imm at 47, imm 0xfff1 at 48.
  EXPECT_EQ(encoded(i), two_words(low, uint64_t{3} << 44 | uint64_t{1} << 47 | uint64_t{0xfff1} << 48));
}

TEST(VtaEncoding, UopWrittenOutByHand) {
  uint32_t word = 0;
  ASSERT_TRUE(encode(kDefaultConfig, Uop{0x7ff, 0x401, 0x201}, &word));
  EXPECT_EQ(word, 0x7ffu | 0x401u << 11 | 0x201u << 22);
  const Uop uop = decode(kDefaultConfig, word);
  EXPECT_EQ(uop.dst, 0x7ff);
  EXPECT_EQ(uop.src, 0x401);
  EXPECT_EQ(uop.wgt, 0x201);
}

TEST(VtaEncoding, RefusesFieldsThatDoNotFit) {
  Bytes bytes{};
  Instruction i = gemm(0, 1);
  i.dst_factor_in = 2048;
  EXPECT_FALSE(encode(kDefaultConfig, i, bytes.data()));
  i = gemm(0, 1);
  i.iter_in = 1 << 14;
  EXPECT_FALSE(encode(kDefaultConfig, i, bytes.data()));
  i = load(Memory::kInp, 0, 0, 1);
  i.x_pad_1 = 16;
  EXPECT_FALSE(encode(kDefaultConfig, i, bytes.data()));
  uint32_t word = 0;
  EXPECT_FALSE(encode(kDefaultConfig, Uop{0, 2048, 0}, &word));
  EXPECT_FALSE(encode(kDefaultConfig, Uop{0, 0, 1024}, &word));
}

// A device with narrower fields, as the public formulas give for buffers of 2^13, 2^16, 2^13 and 2^15 bytes.
constexpr Config kNarrow = {"narrow", 2048, 256, 512, 512, 11, 8, 9, 9, true, 100000, 8, 64};

TEST(VtaEncoding, FieldsMoveWithTheConfiguration) {
  Instruction i = gemm(3, 5);
  i.iter_out = 2;
  i.iter_in = 7;
  i.dst_factor_in = 1;
  i.wgt_factor_in = 0xff;
  const uint64_t low = pack({{2, 3}, {0, 5}, {3, 11}, {5, 12}, {2, 14}, {7, 14}});
  const uint64_t high = pack({{0, 9}, {1, 9}, {0, 18}, {0, 8}, {0xff, 8}});
  EXPECT_EQ(encoded(i, kNarrow), two_words(low, high));
}

Instruction random_instruction(const Config& config, std::mt19937& random) {
  const auto bits = [&](uint32_t count) {
    return static_cast<uint32_t>(random() & ((uint64_t{1} << count) - 1));
  };
  Instruction i;
  i.opcode = static_cast<Opcode>(random() % 5);
  i.pop_prev = bits(1) != 0;
  i.pop_next = bits(1) != 0;
  i.push_prev = bits(1) != 0;
  i.push_next = bits(1) != 0;
  if (is_memory(i)) {
    i.memory = static_cast<Memory>(random() % 6);
    i.sram_base = static_cast<uint16_t>(bits(16));
    i.dram_base = bits(32);
    i.y_size = static_cast<uint16_t>(bits(16));
    i.x_size = static_cast<uint16_t>(bits(16));
    i.x_stride = static_cast<uint16_t>(bits(16));
    i.y_pad_0 = static_cast<uint8_t>(bits(4));
    i.y_pad_1 = static_cast<uint8_t>(bits(4));
    i.x_pad_0 = static_cast<uint8_t>(bits(4));
    i.x_pad_1 = static_cast<uint8_t>(bits(4));
  } else if (i.opcode != Opcode::kFinish) {
    const bool is_gemm = i.opcode == Opcode::kGemm;
    const uint32_t src_bits = is_gemm ? config.inp_index_bits : config.acc_index_bits;
    i.reset = bits(1) != 0;
    i.uop_begin = static_cast<uint16_t>(bits(config.uop_index_bits));
    i.uop_end = static_cast<uint16_t>(bits(config.uop_index_bits + 1));
    i.iter_out = static_cast<uint16_t>(bits(14));
    i.iter_in = static_cast<uint16_t>(bits(14));
    i.dst_factor_out = static_cast<uint16_t>(bits(config.acc_index_bits));
    i.dst_factor_in = static_cast<uint16_t>(bits(config.acc_index_bits));
    i.src_factor_out = static_cast<uint16_t>(bits(src_bits));
    i.src_factor_in = static_cast<uint16_t>(bits(src_bits));
    if (is_gemm) {
      i.wgt_factor_out = static_cast<uint16_t>(bits(config.wgt_index_bits));
      i.wgt_factor_in = static_cast<uint16_t>(bits(config.wgt_index_bits));
    } else {
      i.alu_op = static_cast<AluOp>(random() % 5);
      i.use_imm = bits(1) != 0;
      i.imm = static_cast<int16_t>(bits(16));
    }
  }
  return i;
}

TEST(VtaEncoding, RandomInstructionsComeBack) {
  std::mt19937 random(20240501);
  for (const Config* config : {&kDefaultConfig, &kQuarterConfig, &kNarrow}) {
    for (int n = 0; n < 20000; ++n) {
      const Instruction in = random_instruction(*config, random);
      Bytes bytes{};
      ASSERT_TRUE(encode(*config, in, bytes.data()));
      Instruction out;
      ASSERT_TRUE(decode(*config, bytes.data(), &out)) << config->name << " " << n;
      ASSERT_TRUE(in == out) << config->name << " " << n;
    }
  }
}

// Every instruction that decodes encodes to the same bytes: no bit is lost.
TEST(VtaEncoding, RandomBytesComeBackOrAreRefused) {
  std::mt19937 random(7);
  int decoded = 0;
  for (int n = 0; n < 200000; ++n) {
    Bytes bytes{};
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (n % 2 == 0) bytes[7] &= 0x7f;  // the bit above iter_in means nothing
    Instruction i;
    if (!decode(kDefaultConfig, bytes.data(), &i)) continue;
    ++decoded;
    Bytes again{};
    ASSERT_TRUE(encode(kDefaultConfig, i, again.data()));
    ASSERT_EQ(bytes, again);
  }
  EXPECT_GT(decoded, 10000);
}

TEST(VtaEncoding, BitsWithoutMeaningAreRefused) {
  Instruction i;
  Bytes bytes = encoded(testing::finish());
  bytes[15] = 1;
  EXPECT_FALSE(decode(kDefaultConfig, bytes.data(), &i));
  bytes = encoded(gemm(0, 1));
  bytes[7] |= 0x80;
  EXPECT_FALSE(decode(kDefaultConfig, bytes.data(), &i));
  bytes = two_words(5, 0);  // opcode 5
  EXPECT_FALSE(decode(kDefaultConfig, bytes.data(), &i));
  bytes = two_words(uint64_t{6} << 7, 0);  // a load of memory 6
  EXPECT_FALSE(decode(kDefaultConfig, bytes.data(), &i));
}

TEST(VtaModules, GoByOpcodeAndMemory) {
  EXPECT_EQ(module_of(load(Memory::kInp, 0, 0, 1)), Module::kLoad);
  EXPECT_EQ(module_of(load(Memory::kWgt, 0, 0, 1)), Module::kLoad);
  EXPECT_EQ(module_of(load(Memory::kUop, 0, 0, 1)), Module::kCompute);
  EXPECT_EQ(module_of(load(Memory::kAcc, 0, 0, 1)), Module::kCompute);
  EXPECT_EQ(module_of(load(Memory::kAcc8, 0, 0, 1)), Module::kCompute);
  EXPECT_EQ(module_of(testing::store(0, 0, 1)), Module::kStore);
  EXPECT_EQ(module_of(gemm(0, 1)), Module::kCompute);
  EXPECT_EQ(module_of(testing::finish()), Module::kCompute);
}

TEST(VtaExtents, CountPaddingOnTheChipAndGapsInDram) {
  Instruction i = load(Memory::kInp, 0, 0, 14);
  i.y_size = 3;
  i.x_stride = 20;
  i.x_pad_0 = 1;
  i.x_pad_1 = 2;
  i.y_pad_0 = 1;
  EXPECT_EQ(sram_extent(i), 17u * 4);
  EXPECT_EQ(dram_extent(i), 2u * 20 + 14);
  i.x_size = 0;
  EXPECT_EQ(sram_extent(i), 0u);
  EXPECT_EQ(dram_extent(i), 0u);
  i.x_size = 1;
  i.y_size = 0;  // rows of zeros only
  EXPECT_EQ(sram_extent(i), 4u);
  EXPECT_EQ(dram_extent(i), 0u);
}

TEST(VtaCost, FollowsTheStatedRules) {
  Instruction i = gemm(0, 9);
  i.iter_out = 4;
  i.iter_in = 14;
  EXPECT_EQ(cycles(kDefaultConfig, i), 504u);
  EXPECT_EQ(macs(i), 504u * 256);
  i.reset = true;
  EXPECT_EQ(macs(i), 0u);
  EXPECT_EQ(cycles(kDefaultConfig, testing::alu(AluOp::kAdd, 0, 5)), 10u);
  EXPECT_EQ(cycles(kDefaultConfig, alu_imm(AluOp::kAdd, 0, 5, 1)), 5u);
  EXPECT_EQ(cycles(kDefaultConfig, load(Memory::kWgt, 0, 0, 3)), 64u + 3 * 32);
  EXPECT_EQ(cycles(kDefaultConfig, load(Memory::kUop, 0, 0, 3)), 64u + 2);
  EXPECT_EQ(cycles(kDefaultConfig, load(Memory::kUop, 0, 0, 0)), 0u);
}

TEST(VtaConfigs, AreFoundByNameAndToldApart) {
  EXPECT_EQ(find_config("default"), &kDefaultConfig);
  EXPECT_EQ(find_config("quarter"), &kQuarterConfig);
  EXPECT_EQ(find_config("half"), nullptr);
  EXPECT_NE(config_hash(kDefaultConfig), config_hash(kQuarterConfig));
  Config slower = kDefaultConfig;
  slower.clock_khz = 1;
  EXPECT_EQ(config_hash(kDefaultConfig), config_hash(slower));
}

std::string text_of(const Instruction& i) {
  char text[kDisassemblyBytes];
  disassemble(i, text);
  return text;
}

TEST(VtaDisassembly, ReadsLikeTheFormulas) {
  Instruction i = load(Memory::kInp, 16, 0x40, 14);
  i.y_size = 8;
  i.x_stride = 32;
  i.x_pad_0 = 1;
  EXPECT_EQ(text_of(i), "load.inp   [16+120] <- 0x40 8x14/32 pad 0,0,1,0");
  i = gemm(0, 9);
  i.iter_out = i.iter_in = 14;
  i.dst_factor_out = 14;
  i.dst_factor_in = 1;
  i.src_factor_out = 32;
  EXPECT_EQ(text_of(tokens("pop.prev push.next", i)),
            "gemm       uop[0,9) 14x14 dst+14,+1 src+32,+0 wgt+0,+0           pop.prev push.next");
  EXPECT_EQ(text_of(alu_imm(AluOp::kShr, 2, 3, -15)), "alu.shr    uop[2,3) 1x1 dst+0,+0 imm -15");
  EXPECT_EQ(text_of(gemm(0, 1, true)), "gemm.reset uop[0,1) 1x1 dst+0,+0");
  EXPECT_EQ(text_of(load(Memory::kUop, 0, 0, 0)), "load.uop   nothing");
  EXPECT_EQ(text_of(testing::store(3, 0, 2)), "store.out  [3+2] -> 0x0 1x2/2");
  EXPECT_EQ(text_of(testing::finish()), "finish");
}

TEST(VtaDisassembly, EveryInstructionFits) {
  std::mt19937 random(3);
  for (int n = 0; n < 50000; ++n) {
    ASSERT_LT(text_of(random_instruction(kDefaultConfig, random)).size(), kDisassemblyBytes - 1);
  }
}

}  // namespace
}  // namespace qplan::vta::vta_isa_test
