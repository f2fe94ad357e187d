#include "src/vta/compiler/streams/stream.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/isa/vta.h"

namespace qplan::vta::compiler {
namespace {

static_assert(std::endian::native == std::endian::little, "structs are written as they lie in memory");

class Writer {
 public:
  // The offset at which the section begins.
  template <typename T>
  size_t append(const T* values, size_t count) {
    bytes_.resize((bytes_.size() + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment);
    const size_t at = bytes_.size();
    bytes_.resize(at + count * sizeof(T));
    if (count != 0) std::memcpy(bytes_.data() + at, values, count * sizeof(T));
    return at;
  }
  template <typename T>
  void overwrite(size_t at, const T* values, size_t count) {
    if (count != 0) std::memcpy(bytes_.data() + at, values, count * sizeof(T));
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

uint32_t add_text(std::string* text, const std::string& name) {
  if (name.empty()) return kNoText;
  const auto at = static_cast<uint32_t>(text->size());
  *text += name;
  *text += '\0';
  return at;
}

std::vector<uint8_t> encode_all(const Config& config, const std::vector<Instruction>& instructions) {
  std::vector<uint8_t> bytes(instructions.size() * kInstructionBytes);
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!encode(config, instructions[i], bytes.data() + i * kInstructionBytes)) {
      throw PackError(QPLAN_INTERNAL, cat("vta: a field of instruction ", i, " (",
                                          opcode_name(instructions[i].opcode), ") does not fit"));
    }
  }
  return bytes;
}

// When the tokens of a queue were given, and how many were taken.
struct TokenTimes {
  std::vector<uint64_t> given;
  size_t taken = 0;
};

class Estimator {
 public:
  explicit Estimator(const Config& config) : config_(config) {}

  // Streams are written in an order in which every token is given before it is taken: one pass is enough.
  void add(const Instruction& instruction) {
    const auto module = static_cast<size_t>(module_of(instruction));
    TokenUse use;
    if (!token_use(instruction, &use)) return;
    uint64_t begin = free_[module];
    for (size_t q = 0; q < kNumQueues; ++q) {
      TokenTimes& queue = queues_[q];
      if ((use.pops >> q & 1) != 0 && queue.taken < queue.given.size())
        begin = std::max(begin, queue.given[queue.taken++]);
    }
    const uint64_t cycles = vta::cycles(config_, instruction);
    free_[module] = begin + cycles;
    busy_[module] += cycles;
    for (size_t q = 0; q < kNumQueues; ++q) {
      if ((use.pushes >> q & 1) != 0) queues_[q].given.push_back(free_[module]);
    }
  }
  uint64_t now() const { return *std::ranges::max_element(free_); }
  Estimate estimate() const { return {now(), busy_}; }

 private:
  const Config& config_;
  std::array<uint64_t, kNumModules> free_{}, busy_{};
  std::array<TokenTimes, kNumQueues> queues_;
};

UnitRegion bound_region(UnitRegion::Kind kind, const char* name, uint32_t operand) {
  UnitRegion region;
  region.kind = kind;
  region.name = name;
  region.operand = operand;
  return region;
}

}  // namespace

UnitRegion carried_region(std::string name, std::vector<uint8_t> data, RegionKind kind) {
  UnitRegion region;
  region.blob_kind = kind;
  region.name = std::move(name);
  region.data = std::move(data);
  return region;
}
UnitRegion input_region(uint32_t operand) { return bound_region(UnitRegion::Kind::kInput, "input", operand); }
UnitRegion output_region() { return bound_region(UnitRegion::Kind::kOutput, "output", 0); }

std::vector<uint8_t> write_blob(const Config& config, const Stream& stream,
                                const std::vector<Region>& regions, uint64_t estimated_cycles) {
  std::string text(1, '\0');
  std::vector<BlobRegion> table;
  for (const Region& region : regions) {
    BlobRegion entry = {};
    entry.kind = static_cast<uint32_t>(region.kind);
    entry.flags = region.flags;
    entry.bytes = region.bytes;
    entry.alignment = region.alignment;
    entry.name = add_text(&text, region.name);
    if (!region.data.empty()) {
      entry.flags |= kRegionHasData;
      entry.bytes = entry.data_bytes = region.data.size();
    }
    table.push_back(entry);
  }
  std::vector<BlobLabel> labels;
  for (const Label& label : stream.labels) labels.push_back({label.instruction, add_text(&text, label.name)});

  BlobHeader header = {};
  header.magic = kBlobMagic;
  header.major = kBlobMajor;
  header.minor = kBlobMinor;
  header.config_hash = config_hash(config);
  header.estimated_cycles = estimated_cycles;
  header.num_regions = static_cast<uint32_t>(table.size());
  header.num_instructions = static_cast<uint32_t>(stream.instructions.size());
  header.num_relocations = static_cast<uint32_t>(stream.relocations.size());
  header.num_labels = static_cast<uint32_t>(labels.size());
  header.text_bytes = static_cast<uint32_t>(text.size());

  Writer writer;
  writer.append(&header, 1);
  const size_t table_at = writer.append(table.data(), table.size());
  const std::vector<uint8_t> code = encode_all(config, stream.instructions);
  writer.append(code.data(), code.size());
  writer.append(stream.relocations.data(), stream.relocations.size());
  writer.append(labels.data(), labels.size());
  writer.append(text.data(), text.size());
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].data.empty())
      table[i].data_offset = writer.append(regions[i].data.data(), regions[i].data.size());
  }
  header.total_bytes = writer.bytes().size();
  writer.overwrite(table_at, table.data(), table.size());
  writer.overwrite(0, &header, 1);
  header.checksum = blob_checksum(writer.bytes().data(), writer.bytes().size());
  writer.overwrite(0, &header, 1);
  return std::move(writer.bytes());
}

Estimate estimate_cycles(const Config& config, std::span<const Instruction> stream) {
  Estimator estimator(config);
  for (const Instruction& instruction : stream) estimator.add(instruction);
  return estimator.estimate();
}

std::vector<uint64_t> cycles_at(const Config& config, std::span<const Instruction> stream,
                                std::span<const size_t> ends) {
  Estimator estimator(config);
  std::vector<uint64_t> times;
  size_t next = 0;
  for (const size_t end : ends) {
    while (next < end) estimator.add(stream[next++]);
    times.push_back(estimator.now());
  }
  return times;
}

}  // namespace qplan::vta::compiler
