#include "src/vta/compiler/blob_writer.h"

#include <bit>
#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

static_assert(std::endian::native == std::endian::little, "structs are written as they lie in memory");

class Writer {
 public:
  // The offset at which the section begins.
  template <typename T>
  size_t append(const T* values, size_t count) {
    bytes_.resize((bytes_.size() + isa::kBlobAlignment - 1) / isa::kBlobAlignment * isa::kBlobAlignment);
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
  if (name.empty()) return isa::kNoText;
  const auto at = static_cast<uint32_t>(text->size());
  *text += name;
  *text += '\0';
  return at;
}

std::vector<uint8_t> encode_all(const Config& config, const std::vector<isa::Instruction>& instructions) {
  std::vector<uint8_t> bytes(instructions.size() * isa::kInstructionBytes);
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!encode(config, instructions[i], bytes.data() + i * isa::kInstructionBytes)) {
      throw PackError(QPLAN_INTERNAL, cat("vta: a field of instruction ", i, " (",
                                          isa::opcode_name(instructions[i].opcode), ") does not fit"));
    }
  }
  return bytes;
}

}  // namespace

std::vector<uint8_t> write_blob(const Config& config, const Stream& stream,
                                const std::vector<Region>& regions, uint64_t estimated_cycles) {
  std::string text(1, '\0');
  std::vector<isa::BlobRegion> table;
  for (const Region& region : regions) {
    isa::BlobRegion entry = {};
    entry.kind = static_cast<uint32_t>(region.kind);
    entry.flags = region.flags;
    entry.bytes = region.bytes;
    entry.alignment = region.alignment;
    entry.name = add_text(&text, region.name);
    if (!region.data.empty()) {
      entry.flags |= isa::kRegionHasData;
      entry.bytes = entry.data_bytes = region.data.size();
    }
    table.push_back(entry);
  }
  std::vector<isa::BlobLabel> labels;
  for (const Label& label : stream.labels) labels.push_back({label.instruction, add_text(&text, label.name)});

  isa::BlobHeader header = {};
  header.magic = isa::kBlobMagic;
  header.major = isa::kBlobMajor;
  header.minor = isa::kBlobMinor;
  header.config_hash = isa::config_hash(config);
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
  header.checksum = isa::blob_checksum(writer.bytes().data(), writer.bytes().size());
  writer.overwrite(0, &header, 1);
  return std::move(writer.bytes());
}

}  // namespace qplan::target::vta
