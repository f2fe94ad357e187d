// The blob of a region for Ethos-U: the driver payload, what its regions are, and constants.
//
//   header, regions, slots, labels, text, payload, constants; each part at a multiple of 16 bytes
//
// The device has eight base pointers. A region of the blob is one of them: constants that the blob carries, a
// buffer that a job binds, or memory that the driver holds for the program (an arena). Slots are what a job
// binds: a region as a whole, or a part of an arena or of bound scratch, to which the driver copies inputs
// and from which it copies outputs.
#ifndef QPLAN_SRC_ETHOSU_ISA_BLOB_H_
#define QPLAN_SRC_ETHOSU_ISA_BLOB_H_

#include <stdint.h>

#include "qplan/npu_driver.h"
#include "src/ethosu/isa/architecture.h"

namespace qplan::ethosu {

constexpr uint32_t kBlobMagic = 0x31555445;  // "ETU1"
constexpr uint16_t kBlobMajor = 1;
constexpr uint16_t kBlobMinor = 2;  // 1: slots that are parts of bound scratch; 2: classes of memory
constexpr uint16_t kBlobMinorWithClasses = 2;
constexpr uint32_t kMaxSlots = 256;
constexpr uint32_t kMaxLabels = 1u << 16;

// The structs are the bytes on little-endian machines.
struct BlobHeader {
  uint32_t magic;
  uint16_t major;  // a reader takes its own major only, and any minor
  uint16_t minor;
  uint64_t config_hash;
  uint64_t total_bytes;
  uint64_t checksum;          // blob_checksum of the blob with zero in this field
  uint64_t estimated_cycles;  // at least the sum of the operations' by the cost model
  uint32_t num_regions;
  uint32_t num_slots;
  uint32_t num_labels;
  uint32_t text_bytes;
  uint64_t payload_offset;
  uint64_t payload_bytes;
};
static_assert(sizeof(BlobHeader) == 72, "the layout is a file format");

enum class RegionKind : uint32_t { kConstants = 0, kBound = 1, kArena = 2 };
const char* region_kind_name(RegionKind kind);
// The region that Arm's driver puts its fast memory in the place of, where it was given some.
constexpr uint32_t kFastMemoryRegion = 2;
struct BlobRegion {
  uint32_t kind;
  uint32_t
      memory_class;  // since 1.2: where it should be, QPLAN_NPU_MEMORY_CLASS_*; before: any value, not read
  uint64_t bytes;
  uint64_t data_offset;  // of constants, from the blob's start; else 0
};
static_assert(sizeof(BlobRegion) == 24, "the layout is a file format");

struct BlobSlot {
  uint32_t usage;  // QPLAN_NPU_USE_*, one of them
  uint32_t region;
  // Into the region. The first slot of a bound region is all of it; where that is scratch, further ones are
  // parts.
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(BlobSlot) == 24, "the layout is a file format");

struct BlobLabel {
  uint32_t word;  // of the stream
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
  kBlobSlotRule = 8,
  kBlobPayload = 9,
  kBlobStream = 10,
  kBlobRange = 11,
  kBlobShram = 12,
  kBlobHazard = 13,
  kBlobWork = 14,
};

// A blob that was read. Points into the caller's bytes.
struct Blob {
  const uint8_t* bytes = nullptr;
  BlobHeader header = {};
  const uint8_t* regions = nullptr;
  const uint8_t* slots = nullptr;
  const uint8_t* labels = nullptr;
  const char* text = nullptr;
  Payload payload;
};
BlobRegion blob_region(const Blob& blob, uint32_t index);
BlobSlot blob_slot(const Blob& blob, uint32_t index);
BlobLabel blob_label(const Blob& blob, uint32_t index);
// The driver copies between the slot's buffer and the region, of which it is a part.
bool is_copied_slot(const Blob& blob, uint32_t index);
// Where the buffer of a slot should be; ANY of one that is copied.
uint32_t slot_memory_class(const Blob& blob, uint32_t index);
// Where the constants, of the first region that is some, should be.
uint32_t constants_memory_class(const Blob& blob);
// The node that a word of the stream belongs to, "" when nothing is known.
const char* blob_node(const Blob& blob, uint32_t word);

// Reads and validates all of it, every operation of the stream too. QPLAN_NPU_OK; QPLAN_NPU_E_BLOB;
// QPLAN_NPU_E_VERSION where the version or the configuration is another. why may be null.
[[nodiscard]] qplan_npu_status read_blob(const void* bytes, uint64_t size, const Config& config, Blob* blob,
                                         qplan_npu_reason* why);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_BLOB_H_
