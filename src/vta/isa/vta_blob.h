// The blob of a VTA region: what the packer writes into a plan and a driver's `load` takes. Little-endian;
// format FourCC 'VTA1'. Sections follow each other, each starting at a multiple of 16:
//
//   BlobHeader                    64 bytes
//   BlobRegion[num_regions]       48 bytes each: memory in DRAM that the stream addresses; the index is the
//   bind's slot instructions                  16 bytes each, the last one FINISH. dram_base counts elements
//   from the region's start BlobRelocation[n]             8 bytes each: which region an instruction's
//   dram_base is relative to; ascending, one for
//                                 each LOAD and STORE that touches DRAM
//   BlobLabel[num_labels]         8 bytes each: from this instruction on, the stream computes this node;
//   ascending text                          NUL-terminated strings, text_bytes in all; the first is "" data
//   bytes of the regions that the blob carries, each at its own data_offset (multiple of 16)
//
// A driver adds region address / element bytes to dram_base, so a region's address is a multiple of its
// alignment, and that is a multiple of the size of every element that is loaded from or stored to it.
//
// A stream may LOAD micro-ops only from regions that the blob carries: that is what lets the reader prove
// every index of every GEMM and ALU instruction before anything runs. The reader needs neither heap nor the
// standard library, never reads outside the bytes it was given, and takes time linear in the blob plus the
// micro-ops that its instructions name.
//
// Work is bounded too. A GEMM or ALU instruction of 16 bytes can ask for 2^41 micro-ops, so the header states
// how long the program takes: no device executes more than one micro-op a cycle, so a blob whose instructions
// execute more micro-ops than estimated_cycles is refused. A LOAD or STORE moves no more elements than its
// memory has, so the number of instructions bounds that work.
#ifndef QPLAN_SRC_VTA_ISA_VTA_BLOB_H_
#define QPLAN_SRC_VTA_ISA_VTA_BLOB_H_

#include <stddef.h>
#include <stdint.h>

#include "qplan/npu_driver.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta {

constexpr uint32_t kBlobMagic = 0x31415456;  // "VTA1"
constexpr uint16_t kBlobMajor = 1;
constexpr uint16_t kBlobMinor = 0;
constexpr uint32_t kBlobAlignment = 16;
constexpr uint32_t kMaxRegions = 4096;
constexpr uint32_t kMaxRegionAlignment = 4096;
constexpr uint32_t kNoText = 0;
// Micro-ops that a blob without an estimate may execute: 0.17 s at 100 MHz.
constexpr uint64_t kMaxUndeclaredUops = uint64_t{1} << 24;

// The structs are the bytes on little-endian machines; blob_header() and its like read them on all.
struct BlobHeader {
  uint32_t magic;
  uint16_t major;  // a reader takes its own major only, and any minor
  uint16_t minor;
  uint64_t config_hash;
  uint64_t total_bytes;
  uint64_t checksum;          // blob_checksum of the blob with zero in this field
  uint64_t estimated_cycles;  // from first to last instruction; 0: unknown, see kMaxUndeclaredUops
  uint32_t num_regions;
  uint32_t num_instructions;
  uint32_t num_relocations;
  uint32_t num_labels;
  uint32_t text_bytes;
  uint32_t reserved;  // 0
};
static_assert(sizeof(BlobHeader) == 64, "the layout is a file format");

enum class RegionKind : uint32_t { kWeights = 0, kConstants = 1, kInput = 2, kOutput = 3, kScratch = 4 };
const char* region_kind_name(RegionKind kind);
enum : uint32_t {
  kRegionHasData = 1u,  // the blob carries the bytes, and nobody binds the slot; weights and constants only
  // Outputs and scratch: whoever binds it wrote its bytes before (a border, an earlier job's result). Without
  // it a stream that loads what it has not stored is wrong.
  kRegionInitialised = 2u,
};
struct BlobRegion {
  uint32_t kind;
  uint32_t flags;
  uint64_t bytes;
  uint32_t alignment;    // a power of two, 16..4096
  uint32_t name;         // offset into text
  uint64_t data_offset;  // from the blob's start; 0 without data
  uint64_t data_bytes;   // equal to bytes, or 0
  uint64_t reserved;     // 0
};
static_assert(sizeof(BlobRegion) == 48, "the layout is a file format");

struct BlobRelocation {
  uint32_t instruction;
  uint32_t region;
};
struct BlobLabel {
  uint32_t instruction;
  uint32_t name;  // offset into text
};

uint64_t blob_checksum(const uint8_t* blob, uint64_t bytes);

// Codes of qplan_npu_reason. Append only.
enum BlobRule : uint32_t {
  kBlobTruncated = 1,
  kBlobMagicWrong = 2,
  kBlobVersion = 3,
  kBlobConfig = 4,
  kBlobChecksum = 5,
  kBlobLayout = 6,
  kBlobRegionRule = 7,
  kBlobRelocation = 8,
  kBlobInstruction = 9,
  kBlobMemoryUse = 10,
  kBlobOnchipRange = 11,
  kBlobDramRange = 12,
  kBlobUopRange = 13,
  kBlobLoop = 14,
  kBlobAluRule = 15,
  kBlobTokens = 16,
  kBlobFinish = 17,
  kBlobLabelRule = 18,
  kBlobScratch = 19,
  kBlobWork = 20,
};

// A blob that was read. Points into the caller's bytes.
struct Blob {
  const uint8_t* bytes = nullptr;
  BlobHeader header = {};
  const uint8_t* regions = nullptr;
  const uint8_t* instructions = nullptr;
  const uint8_t* relocations = nullptr;
  const uint8_t* labels = nullptr;
  const char* text = nullptr;
};
BlobRegion blob_region(const Blob& blob, uint32_t index);
BlobRelocation blob_relocation(const Blob& blob, uint32_t index);
BlobLabel blob_label(const Blob& blob, uint32_t index);
// The node that instruction computes, "" when nothing is known.
const char* blob_node(const Blob& blob, uint32_t instruction);
const char* blob_region_name(const Blob& blob, uint32_t index);

// Memory the reader needs: the micro-op memory as the stream fills it.
constexpr uint64_t blob_scratch_bytes(const Config& config) { return uint64_t{config.uop_elements} * 5; }

// Reads and validates all of it. QPLAN_NPU_OK; QPLAN_NPU_E_BLOB; QPLAN_NPU_E_VERSION where the version or the
// configuration is another. why may be null. scratch: blob_scratch_bytes(config), aligned to 4.
[[nodiscard]] qplan_npu_status read_blob(const void* bytes, uint64_t size, const Config& config,
                                         void* scratch, uint64_t scratch_bytes, Blob* blob,
                                         qplan_npu_reason* why);

}  // namespace qplan::vta

#endif  // QPLAN_SRC_VTA_ISA_VTA_BLOB_H_
