// The reader of blobs: what it takes, and each rule it refuses by.
#include "src/vta/isa/vta_blob.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "src/vta/isa/vta.h"
#include "src/vta/sim/machine.h"
#include "tests/vta/sim/blob_builder.h"
#include "tests/vta/sim/product_blob.h"

namespace qplan::vta::vta_blob_test {
namespace {

using testing::alu_imm;
using testing::BlobBuilder;
using testing::finish;
using testing::gemm;
using testing::load;
using testing::product_blob;
using testing::store;
using testing::tokens;

struct Verdict {
  qplan_npu_status status;
  qplan_npu_reason why;
};

// A copy of exact size, so that a read past the end is one that ASan sees.
Verdict read(const std::vector<uint8_t>& bytes, const Config& config = kDefaultConfig, Blob* blob = nullptr) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  std::vector<uint32_t> scratch(blob_scratch_bytes(config) / 4 + 1);
  Verdict verdict = {};
  Blob ignored;
  verdict.status =
      read_blob(blob == nullptr ? copy.get() : bytes.data(), bytes.size(), config, scratch.data(),
                scratch.size() * 4, blob == nullptr ? &ignored : blob, &verdict.why);
  return verdict;
}

void expect_refused(const std::vector<uint8_t>& bytes, BlobRule rule, const std::string& text) {
  const Verdict verdict = read(bytes);
  EXPECT_LT(verdict.status, 0);
  EXPECT_EQ(verdict.why.code, rule) << verdict.why.text;
  EXPECT_NE(std::string(verdict.why.text).find(text), std::string::npos) << verdict.why.text;
}

TEST(VtaBlob, ReadsWhatWasWritten) {
  const std::vector<uint8_t> bytes = product_blob();
  Blob blob;
  const Verdict verdict = read(bytes, kDefaultConfig, &blob);
  ASSERT_EQ(verdict.status, QPLAN_NPU_OK) << verdict.why.text;
  EXPECT_EQ(blob.header.num_instructions, 7u);
  EXPECT_STREQ(blob_region_name(blob, 2), "x");
  EXPECT_EQ(blob_region(blob, 1).kind, static_cast<uint32_t>(RegionKind::kWeights));
  EXPECT_STREQ(blob_node(blob, 0), "");
  EXPECT_STREQ(blob_node(blob, 4), "dense_1");
  EXPECT_STREQ(blob_node(blob, 6), "dense_1");
  EXPECT_EQ(blob_relocation(blob, 3).instruction, 5u);
}

TEST(VtaBlob, HeaderRules) {
  std::vector<uint8_t> bytes = product_blob();
  expect_refused({bytes.begin(), bytes.begin() + 63}, kBlobTruncated,
                 "63 bytes are less than its header's 64");
  expect_refused({bytes.begin(), bytes.end() - 1}, kBlobTruncated, "its header says");
  bytes[0] ^= 1;
  expect_refused(bytes, kBlobMagicWrong, "magic");
  bytes = product_blob();
  bytes[4] = 2;
  expect_refused(bytes, kBlobVersion, "version 2, this driver reads version 1");
  EXPECT_EQ(read(bytes).status, QPLAN_NPU_E_VERSION);
  bytes = product_blob();
  bytes.back() ^= 0x80;
  expect_refused(bytes, kBlobChecksum, "checksum differs");
  bytes = product_blob();
  EXPECT_EQ(read(bytes, kQuarterConfig).status, QPLAN_NPU_E_VERSION);
  EXPECT_NE(std::string(read(bytes, kQuarterConfig).why.text).find("made for another configuration"),
            std::string::npos);
}

// The product blob's stream with one instruction replaced.
std::vector<uint8_t> with(size_t index, const std::function<void(Instruction&)>& change) {
  return product_blob(kDefaultConfig, [&](size_t i, Instruction& instruction) {
    if (i == index) change(instruction);
  });
}

TEST(VtaBlob, InstructionRules) {
  expect_refused(with(1, [](Instruction& i) { i.sram_base = 2048; }), kBlobOnchipRange,
                 "instruction 1 (load inp): it ends past the memory: 2049, limit 2048");
  expect_refused(with(1, [](Instruction& i) { i.dram_base = 1; }), kBlobDramRange,
                 "ends past the region's bytes: 32, limit 16");
  expect_refused(with(1, [](Instruction& i) { i.dram_base = 0xffffffff; }), kBlobDramRange,
                 "ends past the region's bytes");
  expect_refused(with(5, [](Instruction& i) { i.x_pad_0 = 1; }), kBlobMemoryUse, "a store cannot pad");
  expect_refused(with(5, [](Instruction& i) { i.memory = Memory::kAcc; }), kBlobMemoryUse,
                 "a store takes from out only");
  expect_refused(with(1, [](Instruction& i) { i.memory = Memory::kOut; }), kBlobMemoryUse,
                 "out cannot be loaded");
  expect_refused(with(3, [](Instruction& i) { i.uop_end = 2; }), kBlobUopRange,
                 "a micro-op that no load has written: 1");
  expect_refused(with(3, [](Instruction& i) { i.uop_end = 8193; }), kBlobUopRange,
                 "uop_end: 8193, limit 8192");
  expect_refused(with(3, [](Instruction& i) { i.uop_end = 0; }), kBlobLoop, "an empty loop");
  expect_refused(with(3, [](Instruction& i) { i.iter_in = 0; }), kBlobLoop, "an empty loop");
  expect_refused(with(4,
                      [](Instruction& i) {
                        i.iter_in = 2;
                        i.dst_factor_in = 2047;
                        i.iter_out = 2;
                        i.dst_factor_out = 1;
                      }),
                 kBlobOnchipRange, "acc index written: 2048, limit 2047");
  expect_refused(with(4,
                      [](Instruction& i) {
                        i.iter_in = 1025;
                        i.wgt_factor_in = 1;
                      }),
                 kBlobOnchipRange, "wgt index: 1024, limit 1023");
  // The source that an immediate replaces: a device may read it all the same.
  expect_refused(with(3,
                      [](Instruction& i) {
                        i = alu_imm(AluOp::kAdd, 0, 1, 1);
                        i.iter_in = 2;
                        i.src_factor_in = 2047;
                        i.iter_out = 2;
                        i.src_factor_out = 1;
                      }),
                 kBlobOnchipRange, "acc index read: 2048, limit 2047");
  expect_refused(with(6, [](Instruction& i) { i = gemm(0, 1); }), kBlobFinish,
                 "finish is allowed as the last instruction only");
  expect_refused(with(3, [](Instruction& i) { i = finish(); }), kBlobFinish,
                 "finish is allowed as the last instruction only");
  expect_refused(with(3, [](Instruction& i) { i = alu_imm(AluOp::kShr, 0, 1, 32); }), kBlobAluRule,
                 "a shift by 32");
  expect_refused(with(3,
                      [](Instruction& i) {
                        i = alu_imm(AluOp::kAdd, 0, 1, 1);
                        i.reset = true;
                      }),
                 kBlobAluRule, "cannot reset");
}

TEST(VtaBlob, TokenRules) {
  expect_refused(with(2, [](Instruction& i) { i.push_next = false; }), kBlobTokens,
                 "instruction 4: module compute waits for ever for a token from queue load->compute");
  expect_refused(with(1, [](Instruction& i) { i.push_next = true; }), kBlobTokens,
                 "queue load->compute ends with 1 tokens that were never taken");
  expect_refused(with(6, [](Instruction& i) { i.pop_next = false; }), kBlobTokens,
                 "queue store->compute ends with 1 tokens");
  expect_refused(with(1, [](Instruction& i) { i.pop_prev = true; }), kBlobTokens,
                 "module load has no such neighbour");
  expect_refused(with(5, [](Instruction& i) { i.push_next = true; }), kBlobTokens,
                 "module store has no such neighbour");
}

TEST(VtaBlob, FinishWaitsForTheLastStore) {
  const std::vector<uint8_t> bytes = product_blob(kDefaultConfig, [](size_t i, Instruction& instruction) {
    if (i == 5) instruction.push_prev = false;
    if (i == 6) instruction.pop_next = false;
  });
  expect_refused(bytes, kBlobFinish, "instruction 5 (store out): the last store pushes no token");
}

TEST(VtaBlob, RegionRules) {
  BlobBuilder writes_input;
  const uint32_t x = writes_input.region(RegionKind::kInput, 64);
  writes_input.add(store(0, 0, 1), x).add(finish());
  expect_refused(writes_input.build(), kBlobMemoryUse, "a store goes into outputs and scratch only");
  BlobBuilder bound_uops;
  const uint32_t u = bound_uops.region(RegionKind::kConstants, 64);
  bound_uops.add(load(Memory::kUop, 0, 0, 1), u).add(finish());
  expect_refused(bound_uops.build(), kBlobMemoryUse,
                 "micro-ops come only from regions that the blob carries");
  BlobBuilder data_output;
  data_output.region(RegionKind::kOutput, std::vector<uint8_t>(16));
  data_output.add(finish());
  expect_refused(data_output.build(), kBlobRegionRule, "only weights and constants may come with data");
  BlobBuilder no_relocation;
  no_relocation.region(RegionKind::kInput, 64);
  no_relocation.add(load(Memory::kInp, 0, 0, 1)).add(finish());
  expect_refused(no_relocation.build(), kBlobRelocation, "no relocation says which region it means");
  BlobBuilder stray;
  const uint32_t s = stray.region(RegionKind::kInput, 64);
  stray.add(load(Memory::kInp, 0, 0, 0), s).add(finish());
  expect_refused(stray.build(), kBlobRelocation, "a relocation, but no DRAM is touched");
  BlobBuilder nothing;
  expect_refused(nothing.build(), kBlobFinish, "no instructions");
}

// An instruction that resets iter_out * iter_in * uops elements, then FINISH.
std::vector<uint8_t> resets(uint32_t iter_out, uint32_t iter_in, uint32_t uops, uint64_t estimated_cycles,
                            uint32_t count = 1) {
  BlobBuilder builder;
  const uint32_t table =
      builder.region(RegionKind::kConstants, testing::uops_raw(kDefaultConfig, std::vector<Uop>(uops)));
  builder.add(load(Memory::kUop, 0, 0, uops), table);
  for (uint32_t n = 0; n < count; ++n) {
    Instruction reset = gemm(0, uops, true);
    reset.iter_out = static_cast<uint16_t>(iter_out);
    reset.iter_in = static_cast<uint16_t>(iter_in);
    builder.add(reset);
  }
  return builder.add(finish()).estimate(estimated_cycles).build();
}

TEST(VtaBlob, ExecutesNoMoreMicroOpsThanItDeclaresCycles) {
  EXPECT_EQ(read(resets(100, 7, 3, 2100)).status, QPLAN_NPU_OK);
  expect_refused(resets(100, 7, 3, 2099), kBlobWork,
                 "instruction 1 (gemm): 2100 micro-ops, after 0 before it, exceed the 2099 cycles that the "
                 "blob declares; pack the model again");
  EXPECT_EQ(read(resets(100, 7, 3, 4200, 2)).status, QPLAN_NPU_OK);
  expect_refused(resets(100, 7, 3, 4199, 2), kBlobWork,
                 "instruction 2 (gemm): 2100 micro-ops, after 2100 before it, exceed the 4199");
  const Verdict verdict = read(resets(100, 7, 3, 4199, 2));
  EXPECT_EQ(verdict.status, QPLAN_NPU_E_BLOB);
  EXPECT_EQ(verdict.why.place, 2u);
  EXPECT_EQ(verdict.why.limit, 4199);
  EXPECT_EQ(verdict.why.actual, 2100);
  // ALU instructions count as well, by immediate and by register.
  expect_refused(
      with(3, [](Instruction& i) { i = alu_imm(AluOp::kAdd, 0, 1, 1), i.iter_in = i.iter_out = 16383; }),
      kBlobWork, "instruction 3 (alu): 268402689 micro-ops");
}

TEST(VtaBlob, WorkIsBoundedWithoutAnEstimateAndForTheLargestNumbers) {
  EXPECT_EQ(read(resets(4096, 4096, 1, 0)).status, QPLAN_NPU_OK);  // 2^24
  expect_refused(
      resets(4096, 4096, 1, 0, 2), kBlobWork,
      "instruction 2 (gemm): 16777216 micro-ops, after 16777216 before it, exceed the 16777216 that a "
      "blob without an estimate may execute");
  // 2^41 micro-ops each: what is declared is taken, and no sum wraps around.
  const uint64_t most = uint64_t{16383} * 16383 * 8192;
  expect_refused(resets(16383, 16383, 8192, 1), kBlobWork, "2198754828288 micro-ops");
  EXPECT_EQ(read(resets(16383, 16383, 8192, 3 * most, 3)).status, QPLAN_NPU_OK);
  expect_refused(resets(16383, 16383, 8192, 3 * most - 1, 3), kBlobWork, "instruction 3 (gemm)");
  EXPECT_EQ(read(resets(16383, 16383, 8192, UINT64_MAX, 3)).status, QPLAN_NPU_OK);
}

TEST(VtaBlob, ANoOpCarriesTokensAndNeedsNothingElse) {
  BlobBuilder builder;
  builder.add(tokens("push.next", load(Memory::kInp, 65535, 0, 0))).add(tokens("pop.prev", finish()));
  EXPECT_EQ(read(builder.build()).status, QPLAN_NPU_OK) << read(builder.build()).why.text;
}

TEST(VtaBlob, AReaderNeedsItsScratch) {
  const std::vector<uint8_t> bytes = product_blob();
  Blob blob;
  uint32_t small[4] = {};
  EXPECT_EQ(read_blob(bytes.data(), bytes.size(), kDefaultConfig, small, sizeof(small), &blob, nullptr),
            QPLAN_NPU_E_ARGUMENT);
}

TEST(VtaBlob, EveryTruncationIsRefused) {
  const std::vector<uint8_t> bytes = product_blob();
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_LT(read(cut).status, 0) << size;
    // A writer that made the header fit the cut.
    if (size < sizeof(BlobHeader)) continue;
    const uint64_t total = size;
    std::memcpy(cut.data() + offsetof(BlobHeader, total_bytes), &total, sizeof(total));
    BlobBuilder::seal(cut);
    ASSERT_LT(read(cut).status, 0) << size;
  }
}

TEST(VtaBlob, EveryFlippedBitIsFoundByTheChecksum) {
  std::vector<uint8_t> bytes = product_blob();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_LT(read(bytes).status, 0) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

// Hostile: the checksum is right. The simulator must be able to run every blob that the reader accepts
// without leaving a memory.
TEST(VtaBlob, FlippedBitsWithARightChecksumAreSafe) {
  int taken = 0, refused = 0;
  std::mt19937 random(11);
  const std::vector<uint8_t> original = product_blob();
  const auto attempt = [&](std::vector<uint8_t> bytes) {
    BlobBuilder::seal(bytes);
    sim::Program program;
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), copy.get());
    if (sim::load_program(kDefaultConfig, copy.get(), bytes.size(), &program, nullptr) != QPLAN_NPU_OK) {
      ++refused;
      return;
    }
    ++taken;
    uint64_t work =
        program.schedule.total_cycles;  // long loops and large regions are right, but take their time
    for (const sim::ProgramRegion& region : program.regions) work += region.bytes / 16;
    if (work < 200000) testing::run_program(kDefaultConfig, copy.get(), &program);
  };
  for (size_t bit = 0; bit < original.size() * 8; ++bit) {
    std::vector<uint8_t> bytes = original;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    attempt(std::move(bytes));
  }
  for (int n = 0; n < 2000; ++n) {
    std::vector<uint8_t> bytes = original;
    const uint32_t count = 2 + random() % 6;
    for (uint32_t k = 0; k < count; ++k) {
      const size_t at = random() % bytes.size();
      bytes[at] = random() % 2 == 0 ? static_cast<uint8_t>(random())
                                    : static_cast<uint8_t>(bytes[at] ^ (1 << random() % 8));
    }
    attempt(std::move(bytes));
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace qplan::vta::vta_blob_test
