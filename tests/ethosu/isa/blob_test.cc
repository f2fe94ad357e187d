// Which slots a blob may have.
#include "src/ethosu/isa/blob.h"

#include <gtest/gtest.h>

#include <string>

#include "src/ethosu/compiler/blob_writer.h"

namespace qplan::ethosu {
namespace {

constexpr uint32_t kIn = QPLAN_NPU_USE_INPUT, kOut = QPLAN_NPU_USE_OUTPUT, kScratch = QPLAN_NPU_USE_SCRATCH;

// What the check says of a stream that ends at once, with constants and a bound region of 64 bytes.
std::string verdict(std::vector<BlobSlot> slots, RegionKind kind = RegionKind::kBound) {
  const Config& config = *find_config("ethos-u55-128");
  compiler::BlobParts parts;
  parts.regions = {{static_cast<uint32_t>(RegionKind::kConstants), 0, 0, 0},
                   {static_cast<uint32_t>(kind), 0, 64, 0}};
  parts.slots = std::move(slots);
  const std::vector<uint32_t> stop = {0xffffu << 16};
  parts.payload = compiler::payload_of(config, stop);
  parts.cycles = 1;
  const std::vector<uint8_t> bytes = compiler::write_blob(config, parts);
  Blob blob;
  qplan_npu_reason why = {};
  return read_blob(bytes.data(), bytes.size(), config, &blob, &why) == QPLAN_NPU_OK ? "taken" : why.text;
}

TEST(EthosuBlob, SlotsAreRegionsOrPartsOfScratch) {
  EXPECT_EQ(verdict({{kIn, 1, 0, 64}}), "taken");
  EXPECT_EQ(verdict({{kScratch, 1, 0, 64}, {kIn, 1, 0, 16}, {kOut, 1, 48, 16}, {kOut, 1, 0, 64}}), "taken");
  EXPECT_EQ(verdict({{kIn, 1, 8, 16}, {kOut, 1, 48, 16}}, RegionKind::kArena), "taken");
  const std::string twice = "ethos-u: a region is bound twice",
                    whole = "ethos-u: a slot is a bound region as a whole";
  EXPECT_EQ(verdict({{kIn, 1, 0, 64}, {kOut, 1, 0, 16}}), twice);
  EXPECT_EQ(verdict({{kScratch, 1, 0, 64}, {kScratch, 1, 0, 64}}), twice);
  EXPECT_EQ(verdict({{kIn, 1, 0, 16}}), whole);
  EXPECT_EQ(verdict({{kIn, 1, 0, 16}, {kScratch, 1, 0, 64}}), whole);
  EXPECT_EQ(verdict({{kScratch, 1, 0, 64}, {kOut, 1, 56, 16}}), "ethos-u: a slot ends after its region");
  EXPECT_EQ(verdict({}), "ethos-u: a region that no slot binds");
}

}  // namespace
}  // namespace qplan::ethosu
