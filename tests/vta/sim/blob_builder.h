// Blobs written by hand, byte by byte as src/vta/isa/vta_blob.h describes the layout.
#ifndef QPLAN_TESTS_VTA_SIM_BLOB_BUILDER_H_
#define QPLAN_TESTS_VTA_SIM_BLOB_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/vta/isa/vta.h"
#include "src/vta/isa/vta_blob.h"

namespace qplan::vta::testing {

inline Instruction load(Memory memory, uint32_t sram, uint32_t dram, uint32_t count) {
  Instruction i;
  i.opcode = Opcode::kLoad;
  i.memory = memory;
  i.sram_base = static_cast<uint16_t>(sram);
  i.dram_base = dram;
  i.y_size = 1;
  i.x_size = static_cast<uint16_t>(count);
  i.x_stride = static_cast<uint16_t>(count);
  return i;
}

inline Instruction store(uint32_t sram, uint32_t dram, uint32_t count) {
  Instruction i = load(Memory::kOut, sram, dram, count);
  i.opcode = Opcode::kStore;
  return i;
}

inline Instruction gemm(uint32_t uop_begin, uint32_t uop_end, bool reset = false) {
  Instruction i;
  i.opcode = Opcode::kGemm;
  i.reset = reset;
  i.uop_begin = static_cast<uint16_t>(uop_begin);
  i.uop_end = static_cast<uint16_t>(uop_end);
  i.iter_out = i.iter_in = 1;
  return i;
}

inline Instruction alu(AluOp op, uint32_t uop_begin, uint32_t uop_end) {
  Instruction i = gemm(uop_begin, uop_end);
  i.opcode = Opcode::kAlu;
  i.alu_op = op;
  return i;
}

inline Instruction alu_imm(AluOp op, uint32_t uop_begin, uint32_t uop_end, int32_t imm) {
  Instruction i = alu(op, uop_begin, uop_end);
  i.use_imm = true;
  i.imm = static_cast<int16_t>(imm);
  return i;
}

inline Instruction finish() { return Instruction(); }

// tokens("pop.prev push.next", i): i with these flags and no others.
inline Instruction tokens(const std::string& which, Instruction i) {
  i.pop_prev = which.find("pop.prev") != std::string::npos;
  i.pop_next = which.find("pop.next") != std::string::npos;
  i.push_prev = which.find("push.prev") != std::string::npos;
  i.push_next = which.find("push.next") != std::string::npos;
  return i;
}

inline std::vector<uint8_t> bytes_of(const Config& config, const std::vector<Instruction>& stream) {
  std::vector<uint8_t> bytes(stream.size() * kInstructionBytes);
  for (size_t i = 0; i < stream.size(); ++i) {
    if (!encode(config, stream[i], bytes.data() + i * kInstructionBytes))
      throw std::logic_error("a field is too wide");
  }
  return bytes;
}

template <typename T>
std::vector<uint8_t> raw(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<uint8_t> uops_raw(const Config& config, const std::vector<Uop>& uops) {
  std::vector<uint32_t> words(uops.size());
  for (size_t i = 0; i < uops.size(); ++i) {
    if (!encode(config, uops[i], &words[i])) throw std::logic_error("a micro-op is too wide");
  }
  return raw(words);
}

class BlobBuilder {
 public:
  explicit BlobBuilder(const Config& config = kDefaultConfig) : config_(config) {}

  uint32_t region(RegionKind kind, uint64_t bytes, const std::string& name = "") {
    regions_.push_back({static_cast<uint32_t>(kind), 0, bytes, 256, text(name), 0, 0, 0});
    data_.emplace_back();
    return static_cast<uint32_t>(regions_.size() - 1);
  }
  uint32_t region(RegionKind kind, std::vector<uint8_t> data, const std::string& name = "") {
    const uint32_t index = region(kind, data.size(), name);
    regions_[index].flags = kRegionHasData;
    data_[index] = std::move(data);
    return index;
  }
  BlobBuilder& add(const Instruction& i) {
    stream_.push_back(i);
    return *this;
  }
  // A LOAD or STORE of that region.
  BlobBuilder& add(const Instruction& i, uint32_t region) {
    relocations_.push_back({static_cast<uint32_t>(stream_.size()), region});
    return add(i);
  }
  // Cycles that the header declares; without it 0, for unknown.
  BlobBuilder& estimate(uint64_t cycles) {
    estimated_cycles_ = cycles;
    return *this;
  }
  BlobBuilder& label(const std::string& name) {
    labels_.push_back({static_cast<uint32_t>(stream_.size()), text(name)});
    return *this;
  }

  std::vector<uint8_t> build() {
    BlobHeader header = {};
    header.magic = kBlobMagic;
    header.major = kBlobMajor;
    header.config_hash = config_hash(config_);
    header.estimated_cycles = estimated_cycles_;
    header.num_regions = static_cast<uint32_t>(regions_.size());
    header.num_instructions = static_cast<uint32_t>(stream_.size());
    header.num_relocations = static_cast<uint32_t>(relocations_.size());
    header.num_labels = static_cast<uint32_t>(labels_.size());
    header.text_bytes = static_cast<uint32_t>(text_.size());
    std::vector<uint8_t> blob(sizeof(header));
    const size_t regions_at = append(blob, raw(regions_));
    append(blob, bytes_of(config_, stream_));
    append(blob, raw(relocations_));
    append(blob, raw(labels_));
    append(blob, std::vector<uint8_t>(text_.begin(), text_.end()));
    for (size_t i = 0; i < regions_.size(); ++i) {
      if ((regions_[i].flags & kRegionHasData) == 0) continue;
      regions_[i].data_bytes = data_[i].size();
      regions_[i].data_offset = append(blob, data_[i]);
    }
    if (!regions_.empty())
      std::memcpy(blob.data() + regions_at, regions_.data(), regions_.size() * sizeof(BlobRegion));
    header.total_bytes = blob.size();
    std::memcpy(blob.data(), &header, sizeof(header));
    seal(blob);
    return blob;
  }

  // Makes the checksum right again after bytes were changed.
  static void seal(std::vector<uint8_t>& blob) {
    if (blob.size() < sizeof(BlobHeader)) return;
    const uint64_t sum = blob_checksum(blob.data(), blob.size());
    std::memcpy(blob.data() + offsetof(BlobHeader, checksum), &sum, sizeof(sum));
  }

 private:
  uint32_t text(const std::string& name) {
    if (name.empty()) return kNoText;
    const uint32_t at = static_cast<uint32_t>(text_.size());
    text_ += name;
    text_ += '\0';
    return at;
  }
  static size_t append(std::vector<uint8_t>& blob, const std::vector<uint8_t>& bytes) {
    blob.resize((blob.size() + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment);
    const size_t at = blob.size();
    blob.insert(blob.end(), bytes.begin(), bytes.end());
    return at;
  }

  const Config& config_;
  uint64_t estimated_cycles_ = 0;
  std::vector<BlobRegion> regions_;
  std::vector<std::vector<uint8_t>> data_;
  std::vector<Instruction> stream_;
  std::vector<BlobRelocation> relocations_;
  std::vector<BlobLabel> labels_;
  std::string text_ = std::string(1, '\0');
};

}  // namespace qplan::vta::testing

#endif  // QPLAN_TESTS_VTA_SIM_BLOB_BUILDER_H_
