// Which slots a blob may have, and which memories its regions may ask for.
#include "src/ethosu/isa/blob.h"

#include <gtest/gtest.h>
#include <string.h>

#include <string>

#include "src/ethosu/compiler/target.h"

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

// A blob of version 1.`minor` whose constants and bound region are for these classes.
std::vector<uint8_t> blob_with(uint32_t constants, uint32_t bound, uint16_t minor = kBlobMinor) {
  const Config& config = *find_config("ethos-u65-256");
  compiler::BlobParts parts;
  parts.regions = {{static_cast<uint32_t>(RegionKind::kConstants), constants, 0, 0},
                   {static_cast<uint32_t>(RegionKind::kBound), bound, 64, 0}};
  parts.slots = {{kScratch, 1, 0, 64}, {kIn, 1, 0, 16}};
  const std::vector<uint32_t> stop = {0xffffu << 16};
  parts.payload = compiler::payload_of(config, stop);
  parts.cycles = 1;
  std::vector<uint8_t> bytes = compiler::write_blob(config, parts);
  BlobHeader header;
  memcpy(&header, bytes.data(), sizeof(header));
  header.minor = minor;
  memcpy(bytes.data(), &header, sizeof(header));
  header.checksum = blob_checksum(bytes.data(), bytes.size());
  memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

struct Classes {
  std::string text;  // "" or why the blob is refused
  uint32_t constants = 99, scratch = 99, input = 99;
};
Classes classes_of(const std::vector<uint8_t>& bytes) {
  Blob blob;
  qplan_npu_reason why = {};
  if (read_blob(bytes.data(), bytes.size(), *find_config("ethos-u65-256"), &blob, &why) != QPLAN_NPU_OK)
    return {why.text};
  return {"", constants_memory_class(blob), slot_memory_class(blob, 0), slot_memory_class(blob, 1)};
}

TEST(EthosuBlob, RegionsStateTheirClassOfMemory) {
  const Classes said = classes_of(blob_with(QPLAN_NPU_MEMORY_CLASS_DRAM, QPLAN_NPU_MEMORY_CLASS_SRAM));
  EXPECT_EQ(said.text, "");
  EXPECT_EQ(said.constants, uint32_t{QPLAN_NPU_MEMORY_CLASS_DRAM});
  EXPECT_EQ(said.scratch, uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM});
  EXPECT_EQ(said.input, uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY});  // the driver copies it
  EXPECT_EQ(classes_of(blob_with(QPLAN_NPU_MEMORY_CLASS_FLASH, 0)).text, "");
  EXPECT_EQ(classes_of(blob_with(0, QPLAN_NPU_MEMORY_CLASS_FLASH)).text,
            "ethos-u: a region that is no constants, for flash");
  EXPECT_EQ(classes_of(blob_with(4, 0)).text, "ethos-u: a region for an unknown class of memory");
}

// Loaders before 1.2 looked at none of these bytes.
TEST(EthosuBlob, BlobsOfEarlierVersionsHaveNoClasses) {
  const Classes said = classes_of(blob_with(0xdeadbeef, 3, 1));
  EXPECT_EQ(said.text, "");
  EXPECT_EQ(said.constants, uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY});
  EXPECT_EQ(said.scratch, uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY});
}

}  // namespace
}  // namespace qplan::ethosu
