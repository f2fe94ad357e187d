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

// ---- the stream of one unit as it is written

Instruction transfer(Opcode opcode, Memory memory, int64_t sram, int64_t dram, int64_t rows, int64_t row,
                     int64_t stride) {
  Instruction i;
  i.opcode = opcode;
  i.memory = memory;
  i.sram_base = u16(sram);
  i.dram_base = static_cast<uint32_t>(dram);
  i.y_size = u16(rows);
  i.x_size = u16(row);
  i.x_stride = u16(stride);
  return i;
}

std::vector<Instruction> transfer_box(Opcode opcode, Memory memory, int64_t sram,
                                      const ActivationLayout& layout, const Box& box) {
  const int64_t per_position = layout.channel_blocks(), row = layout.row_elements();
  const int64_t dram = layout.element(box.y, box.x) + box.block;
  if (box.blocks == per_position)
    return {transfer(opcode, memory, sram, dram, box.rows, box.cols * per_position, row)};
  // Across whole rows, positions are evenly spaced.
  if (box.cols * per_position == row)
    return {transfer(opcode, memory, sram, dram, box.rows * box.cols, box.blocks, per_position)};
  std::vector<Instruction> result;
  for (int64_t y = 0; y < box.rows; ++y) {
    result.push_back(transfer(opcode, memory, sram + y * box.cols * box.blocks, dram + y * row, box.cols,
                              box.blocks, per_position));
  }
  return result;
}

Instruction over_elements(int64_t elements, int64_t uop) {
  Instruction i;
  i.opcode = Opcode::kAlu;
  i.uop_begin = u16(uop);
  i.uop_end = u16(uop + 1);
  i.iter_out = 1;
  i.iter_in = u16(elements);
  i.dst_factor_in = 1;
  return i;
}

Instruction alu_instruction(const AluStep& step, int64_t positions, int64_t out_blocks, int64_t uop) {
  Instruction i = over_elements(positions * out_blocks, uop);
  i.alu_op = step.op;
  switch (step.source) {
    case AluStep::Source::kReset:
      i.opcode = Opcode::kGemm;
      i.reset = true;
      i.alu_op = AluOp::kMin;
      break;
    case AluStep::Source::kImmediate:
      i.use_imm = true;
      i.imm = step.immediate;
      break;
    case AluStep::Source::kAccBlock:
      i.src_factor_in = 1;
      break;
    case AluStep::Source::kConstant:
      // The same constants at every position.
      i.iter_out = u16(positions);
      i.iter_in = u16(out_blocks);
      i.dst_factor_out = u16(out_blocks);
      i.src_factor_in = 1;
      break;
  }
  return i;
}

UopTables::Place UopTables::use(const std::vector<Uop>& table) {
  if (table.size() > config_.uop_elements) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: a sequence of ", table.size(), " micro-ops, their memory has ",
                        config_.uop_elements, "; use a configuration with larger memories"));
  }
  std::vector<uint32_t> words(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    if (!encode(config_, table[i], &words[i]))
      throw PackError(QPLAN_INTERNAL, "vta: a micro-op does not fit");
  }
  const auto [at, is_new] = tables_.try_emplace(words);
  Table& entry = at->second;
  if (is_new) {
    entry.dram = static_cast<uint32_t>(words_.size());
    entry.size = static_cast<uint32_t>(words.size());
    words_.insert(words_.end(), words.begin(), words.end());
  }
  if (entry.is_resident) return {entry.begin, false, entry.dram};
  if (entry.size > config_.uop_elements - next_) next_ = 0;
  const uint32_t begin = next_, end = begin + entry.size;
  for (auto& [content, other] : tables_) {
    if (other.begin < end && begin < other.begin + other.size) other.is_resident = false;
  }
  entry.begin = begin;
  entry.is_resident = true;
  next_ = end;
  return {begin, true, entry.dram};
}

std::vector<uint8_t> UopTables::bytes() const {
  std::vector<uint8_t> bytes(words_.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words_.data(), bytes.size());
  return bytes;
}

StreamWriter::StreamWriter(const Config& config, std::vector<UnitRegion> regions, uint32_t uop_region)
    : config_(config), regions_(std::move(regions)), uop_region_(uop_region), uops_(config) {}

void StreamWriter::add(const Instruction& instruction, uint32_t region) {
  stream_.relocations.push_back({static_cast<uint32_t>(size()), region});
  add(instruction);
}

void StreamWriter::transfer_box(Opcode opcode, Memory memory, int64_t sram, const ActivationLayout& layout,
                                const Box& box, uint32_t region, int64_t dram_offset) {
  for (Instruction instruction : compiler::transfer_box(opcode, memory, sram, layout, box)) {
    instruction.dram_base += static_cast<uint32_t>(dram_offset);
    add(instruction, region);
  }
}

uint16_t StreamWriter::use_uops(const std::vector<Uop>& table) {
  const UopTables::Place place = uops_.use(table);
  if (place.must_load) {
    const auto size = static_cast<int64_t>(table.size());
    add(transfer(Opcode::kLoad, Memory::kUop, place.begin, place.dram, 1, size, size), uop_region_);
  }
  return u16(place.begin);
}

CompiledUnit StreamWriter::finish(std::string name) {
  Instruction finish;
  finish.pop_next = true;
  add(finish);
  stream_.labels.push_back({0, name});
  regions_[uop_region_].data = uops_.bytes();
  CompiledUnit unit;
  unit.name = std::move(name);
  unit.estimate = estimate_cycles(config_, stream_.instructions);
  unit.stream = std::move(stream_);
  unit.regions = std::move(regions_);
  return unit;
}

}  // namespace qplan::vta::compiler
