#include <cstring>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

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
