#include "src/ethosu/compiler/blob_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace qplan::ethosu::compiler {
namespace {

constexpr size_t kBlobAlignment = 16;

template <typename T>
uint64_t append_items(std::vector<uint8_t>* blob, const T* items, size_t count) {
  blob->resize((blob->size() + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment);
  const uint64_t at = blob->size();
  const auto* const bytes = reinterpret_cast<const uint8_t*>(items);
  blob->insert(blob->end(), bytes, bytes + count * sizeof(T));
  return at;
}

}  // namespace

void state_memories(const Memories& memories, BlobParts* parts, std::vector<target::RegionSlot>* slots) {
  constexpr format::MemoryClass kClasses[] = {format::MemoryClass_SRAM, format::MemoryClass_DRAM,
                                              format::MemoryClass_FLASH};
  for (size_t r = 0; r < parts->regions.size(); ++r)
    parts->regions[r].memory_class = kClasses[static_cast<uint32_t>(memories.of[r])];
  std::vector<bool> is_bound(parts->regions.size(), false);
  for (target::RegionSlot& slot : *slots) {
    const uint32_t r = parts->slots[slot.slot].region;
    const bool is_whole = parts->regions[r].kind == static_cast<uint32_t>(RegionKind::kBound) && !is_bound[r];
    is_bound[r] = true;
    if (is_whole) slot.memory_class = static_cast<format::MemoryClass>(parts->regions[r].memory_class);
  }
}

std::vector<uint8_t> payload_of(const Config& config, std::span<const uint32_t> stream) {
  std::vector<uint8_t> payload(payload_bytes(static_cast<uint32_t>(stream.size())));
  write_payload_header(config, static_cast<uint32_t>(stream.size()), payload.data());
  for (size_t i = 0; i < stream.size(); ++i) store_word(stream[i], payload.data() + kStreamOffset + 4 * i);
  return payload;
}

std::vector<uint8_t> write_blob(const Config& config, const BlobParts& parts) {
  std::string text(1, '\0');
  std::vector<BlobLabel> labels;
  std::map<std::string, uint32_t> places;  // each name is kept once
  for (const Label& label : parts.labels) {
    const auto [place, is_new] = places.try_emplace(label.name, static_cast<uint32_t>(text.size()));
    labels.push_back({label.word, place->second});
    if (is_new) text.append(label.name.c_str(), label.name.size() + 1);
  }
  BlobHeader header = {};
  header.magic = kBlobMagic;
  header.major = kBlobMajor, header.minor = kBlobMinor;
  header.config_hash = config_hash(config);
  header.estimated_cycles = parts.cycles;
  header.num_regions = static_cast<uint32_t>(parts.regions.size());
  header.num_slots = static_cast<uint32_t>(parts.slots.size());
  header.num_labels = static_cast<uint32_t>(labels.size());
  header.text_bytes = static_cast<uint32_t>(text.size());
  header.payload_bytes = parts.payload.size();

  std::vector<uint8_t> blob(sizeof(header));
  const uint64_t regions_at = append_items(&blob, parts.regions.data(), parts.regions.size());
  append_items(&blob, parts.slots.data(), parts.slots.size());
  append_items(&blob, labels.data(), labels.size());
  append_items(&blob, text.data(), text.size());
  header.payload_offset = append_items(&blob, parts.payload.data(), parts.payload.size());
  const uint64_t constants_at = append_items(&blob, parts.constants.data(), parts.constants.size());
  for (size_t r = 0; r < parts.regions.size(); ++r) {
    BlobRegion region = parts.regions[r];
    if (region.kind != static_cast<uint32_t>(RegionKind::kConstants)) continue;
    region.data_offset = constants_at;
    std::memcpy(blob.data() + regions_at + r * sizeof(region), &region, sizeof(region));
  }
  header.total_bytes = blob.size();
  std::memcpy(blob.data(), &header, sizeof(header));
  header.checksum = blob_checksum(blob.data(), blob.size());
  std::memcpy(blob.data(), &header, sizeof(header));
  return blob;
}

}  // namespace qplan::ethosu::compiler
