#include "src/ethosu/isa/blob.h"

#include <string.h>

#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

constexpr uint64_t kAlignment = 16;

uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

class Reader {
 public:
  Reader(const void* bytes, uint64_t size, const Config& config, Blob* blob, qplan_npu_reason* why)
      : bytes_(static_cast<const uint8_t*>(bytes)), size_(size), config_(config), blob_(*blob), why_(why) {}

  qplan_npu_status read() {
    blob_ = {};
    if (size_ < sizeof(BlobHeader))
      return refuse(kBlobTruncated, "a blob ends within its header", size_, sizeof(BlobHeader));
    memcpy(&blob_.header, bytes_, sizeof(BlobHeader));
    blob_.bytes = bytes_;
    const BlobHeader& h = blob_.header;
    if (h.magic != kBlobMagic)
      return refuse(kBlobMagicWrong, "a blob begins with 'ETU1'", h.magic, kBlobMagic);
    if (h.major != kBlobMajor) {
      (void)refuse(kBlobVersion, "a blob of another version", h.major, kBlobMajor);
      return QPLAN_NPU_E_VERSION;
    }
    if (h.config_hash != config_hash(config_)) {
      (void)refuse(kBlobConfig, "a blob for another configuration of the device", 0, 0);
      return QPLAN_NPU_E_VERSION;
    }
    if (h.total_bytes != size_)
      return refuse(kBlobTruncated, "a blob of another size than its header says", size_, h.total_bytes);
    if (h.checksum != blob_checksum(bytes_, size_))
      return refuse(kBlobChecksum, "a blob's checksum is wrong", 0, 0);
    if (!read_layout()) return QPLAN_NPU_E_BLOB;
    if (!read_regions() || !read_slots()) return QPLAN_NPU_E_BLOB;
    return read_stream() ? QPLAN_NPU_OK : QPLAN_NPU_E_BLOB;
  }

 private:
  qplan_npu_status refuse(uint32_t code, const char* text, uint64_t actual, uint64_t limit,
                          uint32_t place = UINT32_MAX) {
    if (why_ == nullptr) return QPLAN_NPU_E_BLOB;
    why_->code = code;
    why_->place = place;
    why_->actual = static_cast<int64_t>(actual);
    why_->limit = static_cast<int64_t>(limit);
    size_t at = 0;
    const auto put = [&](const char* from) {
      while (*from != '\0' && at + 1 < sizeof(why_->text)) why_->text[at++] = *from++;
      why_->text[at] = '\0';
    };
    put("ethos-u: ");
    put(text);
    return QPLAN_NPU_E_BLOB;
  }
  bool fail(uint32_t code, const char* text, uint64_t actual, uint64_t limit, uint32_t place = UINT32_MAX) {
    (void)refuse(code, text, actual, limit, place);
    return false;
  }

  // Whether bytes [at, at + count * bytes) are in the blob; moves at to the next part.
  const uint8_t* take(uint64_t* at, uint64_t count, uint64_t bytes) {
    if (*at > size_ || count * bytes > size_ - *at) return nullptr;
    const uint8_t* const part = bytes_ + *at;
    *at = aligned(*at + count * bytes);
    return part;
  }

  bool read_layout() {
    const BlobHeader& h = blob_.header;
    if (h.num_regions > kMaxRegions)
      return fail(kBlobLayout, "a blob has too many regions", h.num_regions, kMaxRegions);
    if (h.num_slots > kMaxSlots)
      return fail(kBlobLayout, "a blob has too many slots", h.num_slots, kMaxSlots);
    if (h.num_labels > kMaxLabels)
      return fail(kBlobLayout, "a blob has too many labels", h.num_labels, kMaxLabels);
    uint64_t at = aligned(sizeof(BlobHeader));
    blob_.regions = take(&at, h.num_regions, sizeof(BlobRegion));
    blob_.slots = take(&at, h.num_slots, sizeof(BlobSlot));
    blob_.labels = take(&at, h.num_labels, sizeof(BlobLabel));
    const uint8_t* const text = take(&at, h.text_bytes, 1);
    if (blob_.regions == nullptr || blob_.slots == nullptr || blob_.labels == nullptr || text == nullptr)
      return fail(kBlobLayout, "a blob's tables end after it", at, size_);
    blob_.text = reinterpret_cast<const char*>(text);
    if (h.text_bytes == 0 || text[0] != '\0' || text[h.text_bytes - 1] != '\0')
      return fail(kBlobLayout, "a blob's text begins and ends with a zero", h.text_bytes, 1);
    for (uint32_t i = 0; i < h.num_labels; ++i) {
      if (blob_label(blob_, i).name >= h.text_bytes)
        return fail(kBlobLayout, "a label's name is outside of the text", blob_label(blob_, i).name,
                    h.text_bytes);
    }
    if (h.payload_offset % kAlignment != 0 || h.payload_offset > size_ ||
        h.payload_bytes > size_ - h.payload_offset)
      return fail(kBlobLayout, "a blob's payload ends after it", h.payload_offset, size_);
    return true;
  }

  bool read_regions() {
    for (uint32_t r = 0; r < blob_.header.num_regions; ++r) {
      const BlobRegion region = blob_region(blob_, r);
      if (region.kind > static_cast<uint32_t>(RegionKind::kArena))
        return fail(kBlobRegionRule, "a region of an unknown kind", region.kind, 2, r);
      if (region.memory_class >= QPLAN_NPU_NUM_MEMORY_CLASSES)
        return fail(kBlobRegionRule, "a region for an unknown class of memory", region.memory_class,
                    QPLAN_NPU_NUM_MEMORY_CLASSES - 1, r);
      if (region.bytes >> address_bits(config_) != 0)
        return fail(kBlobRegionRule, "a region has more bytes than the device has addresses", region.bytes,
                    uint64_t{1} << address_bits(config_), r);
      const bool has_data = region.kind == static_cast<uint32_t>(RegionKind::kConstants);
      if (has_data && (region.data_offset % kAlignment != 0 || region.data_offset > size_ ||
                       region.bytes > size_ - region.data_offset))
        return fail(kBlobRegionRule, "a region's constants end after the blob", region.data_offset, size_, r);
      if (!has_data && region.memory_class == QPLAN_NPU_MEMORY_CLASS_FLASH)
        return fail(kBlobRegionRule, "a region that is no constants, for flash", region.memory_class,
                    QPLAN_NPU_MEMORY_CLASS_DRAM, r);
      if (!has_data && region.data_offset != 0)
        return fail(kBlobRegionRule, "a region without constants has data", region.data_offset, 0, r);
    }
    return true;
  }

  bool read_slots() {
    uint32_t binder[kMaxRegions];  // the first slot of each bound region
    for (uint32_t& slot : binder) slot = kMaxSlots;
    for (uint32_t s = 0; s < blob_.header.num_slots; ++s) {
      const BlobSlot slot = blob_slot(blob_, s);
      if (slot.usage != QPLAN_NPU_USE_INPUT && slot.usage != QPLAN_NPU_USE_OUTPUT &&
          slot.usage != QPLAN_NPU_USE_SCRATCH)
        return fail(kBlobSlotRule, "a slot of an unknown usage", slot.usage, 0, s);
      if (slot.region >= blob_.header.num_regions)
        return fail(kBlobSlotRule, "a slot of an unknown region", slot.region, blob_.header.num_regions, s);
      const BlobRegion region = blob_region(blob_, slot.region);
      if (region.kind == static_cast<uint32_t>(RegionKind::kConstants))
        return fail(kBlobSlotRule, "a slot of constants", slot.region, 0, s);
      if (slot.offset > region.bytes || slot.bytes > region.bytes - slot.offset)
        return fail(kBlobSlotRule, "a slot ends after its region", slot.offset + slot.bytes, region.bytes, s);
      if (region.kind == static_cast<uint32_t>(RegionKind::kArena)) continue;
      if (binder[slot.region] == kMaxSlots) {
        if (slot.offset != 0 || slot.bytes != region.bytes)
          return fail(kBlobSlotRule, "a slot is a bound region as a whole", slot.bytes, region.bytes, s);
        binder[slot.region] = s;
      } else if (blob_slot(blob_, binder[slot.region]).usage != QPLAN_NPU_USE_SCRATCH ||
                 slot.usage == QPLAN_NPU_USE_SCRATCH) {
        return fail(kBlobSlotRule, "a region is bound twice", slot.region, 1, s);
      }
    }
    for (uint32_t r = 0; r < blob_.header.num_regions; ++r) {
      if (blob_region(blob_, r).kind == static_cast<uint32_t>(RegionKind::kBound) && binder[r] == kMaxSlots)
        return fail(kBlobSlotRule, "a region that no slot binds", r, 0, r);
    }
    return true;
  }

  bool read_stream() {
    const BlobHeader& h = blob_.header;
    if (const Problem p = read_payload(bytes_ + h.payload_offset, h.payload_bytes, &blob_.payload))
      return fail(kBlobPayload, p.text, static_cast<uint64_t>(p.found), static_cast<uint64_t>(p.limit));
    if (blob_.payload.config_word != config_.config_word)
      return fail(kBlobPayload, "a payload for another configuration", blob_.payload.config_word,
                  config_.config_word);
    RegionLimits limits;
    for (uint32_t r = 0; r < h.num_regions; ++r) {
      const BlobRegion region = blob_region(blob_, r);
      limits.bytes[r] = region.bytes;
      limits.is_writable[r] = region.kind == static_cast<uint32_t>(RegionKind::kArena);
    }
    for (uint32_t s = 0; s < h.num_slots; ++s) {
      const BlobSlot slot = blob_slot(blob_, s);
      if (slot.usage != QPLAN_NPU_USE_INPUT) limits.is_writable[slot.region] = true;
    }
    uint32_t word = 0;
    StreamWork work;
    if (const Problem p = check_stream(config_, blob_.payload, limits, &word, &work))
      return fail(kBlobStream, p.text, static_cast<uint64_t>(p.found), static_cast<uint64_t>(p.limit), word);
    // Whoever waits for a job relies on the blob's estimate; operations one after the other take no less.
    if (work.total_cycles > h.estimated_cycles)
      return fail(kBlobWork, "a stream takes more cycles than its blob declares", work.total_cycles,
                  h.estimated_cycles);
    return true;
  }

  const uint8_t* bytes_;
  uint64_t size_;
  const Config& config_;
  Blob& blob_;
  qplan_npu_reason* why_;
};

template <typename T>
T load(const uint8_t* from, uint32_t index) {
  T value;
  memcpy(&value, from + uint64_t{index} * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

const char* region_kind_name(RegionKind kind) {
  constexpr const char* kNames[] = {"constants", "bound", "arena"};
  return static_cast<uint32_t>(kind) < 3 ? kNames[static_cast<uint32_t>(kind)] : "?";
}

BlobRegion blob_region(const Blob& blob, uint32_t index) {
  BlobRegion region = load<BlobRegion>(blob.regions, index);
  if (blob.header.minor < kBlobMinorWithClasses) region.memory_class = QPLAN_NPU_MEMORY_CLASS_ANY;
  return region;
}
BlobSlot blob_slot(const Blob& blob, uint32_t index) { return load<BlobSlot>(blob.slots, index); }
BlobLabel blob_label(const Blob& blob, uint32_t index) { return load<BlobLabel>(blob.labels, index); }

uint32_t slot_memory_class(const Blob& blob, uint32_t index) {
  return is_copied_slot(blob, index) ? uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY}
                                     : blob_region(blob, blob_slot(blob, index).region).memory_class;
}

uint32_t constants_memory_class(const Blob& blob) {
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) {
    const BlobRegion region = blob_region(blob, r);
    if (region.kind == static_cast<uint32_t>(RegionKind::kConstants)) return region.memory_class;
  }
  return QPLAN_NPU_MEMORY_CLASS_ANY;
}

bool is_copied_slot(const Blob& blob, uint32_t index) {
  const uint32_t region = blob_slot(blob, index).region;
  if (blob_region(blob, region).kind == static_cast<uint32_t>(RegionKind::kArena)) return true;
  for (uint32_t s = 0; s < index; ++s) {
    if (blob_slot(blob, s).region == region) return true;
  }
  return false;
}

const char* blob_node(const Blob& blob, uint32_t word) {
  const char* name = "";
  for (uint32_t i = 0; i < blob.header.num_labels; ++i) {
    const BlobLabel label = blob_label(blob, i);
    if (label.word > word) break;
    name = blob.text + label.name;
  }
  return name;
}

// FNV-1a over 8 bytes at a time, the checksum's own bytes as zeros.
uint64_t blob_checksum(const uint8_t* blob, uint64_t bytes) {
  constexpr uint64_t kField = 24;  // of BlobHeader::checksum
  static_assert(__builtin_offsetof(BlobHeader, checksum) == kField, "the checksum's place");
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t value = 0;
    if (at != kField) memcpy(&value, blob + at, static_cast<size_t>(bytes - at < 8 ? bytes - at : 8));
    hash = (hash ^ value) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

qplan_npu_status read_blob(const void* bytes, uint64_t size, const Config& config, Blob* blob,
                           qplan_npu_reason* why) {
  return Reader(bytes, size, config, blob, why).read();
}

}  // namespace qplan::ethosu
