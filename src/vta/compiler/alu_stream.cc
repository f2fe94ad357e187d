// Tokens: the first instruction of a tile takes one from the store module where its slot's last tile must be
// stored first; the last one before the tile's stores gives one to them. Loads into ACC are the compute
// module's own.
#include "src/vta/compiler/alu_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;
using isa::AluOp;
using isa::Instruction;
using isa::Memory;
using isa::Opcode;

enum AluRegion : uint32_t { kUopRegion, kFirstInput };

bool is_dense(const Plane& plane, const Extent& extent) {
  return (plane.position == extent.blocks || extent.cols == 1) &&
         (plane.row == extent.cols * extent.blocks || extent.rows == 1);
}

UnitRegion region(UnitRegion::Kind kind, const char* name) {
  UnitRegion result;
  result.kind = kind;
  result.name = name;
  return result;
}

Instruction alu_instruction(AluOp op) {
  Instruction i;
  i.opcode = Opcode::kAlu;
  i.alu_op = op;
  return i;
}

}  // namespace

AluStream::AluStream(const Config& config, std::vector<int32_t> constants, size_t num_inputs, int64_t slots)
    : config_(config),
      constants_(std::move(constants)),
      num_inputs_(static_cast<uint32_t>(num_inputs)),
      slots_(slots),
      uops_(config) {
  if (constants_.empty()) return;
  const auto count = static_cast<int64_t>(constants_.size());
  add(transfer(Opcode::kLoad, Memory::kAcc, 0, 0, 1, count, count), kFirstInput + num_inputs_ + 1);
}

void AluStream::add(const Instruction& instruction, uint32_t region) {
  stream_.relocations.push_back({static_cast<uint32_t>(stream_.instructions.size()), region});
  stream_.instructions.push_back(instruction);
}

void AluStream::load(size_t input, const ActivationLayout& layout, const Box& box, int64_t acc) {
  for (const Instruction& load : transfer_box(Opcode::kLoad, Memory::kAcc8, acc, layout, box))
    add(load, kFirstInput + static_cast<uint32_t>(input));
}

void AluStream::add_operation(Instruction i, const Extent& extent, const Plane& dst, const Plane* src) {
  std::vector<isa::Uop> uops;
  const bool is_flat =
      is_dense(dst, extent) && (src == nullptr || src->position == 0 || is_dense(*src, extent));
  for (int64_t b = 0; b < (is_flat ? 1 : extent.blocks); ++b) {
    // A source without positions is a constant: one element for all.
    const int64_t from = src == nullptr ? 0 : src->base + (src->position == 0 ? 0 : b);
    uops.push_back({u16(dst.base + b), u16(from), 0});
  }
  const bool steps_src = src != nullptr && src->position != 0;
  i.iter_out = u16(is_flat ? 1 : extent.rows);
  i.iter_in = u16(is_flat ? extent.elements() : extent.cols);
  // Factors of loops that run once are 0: theirs may be wider than the field.
  if (i.iter_out > 1) {
    i.dst_factor_out = u16(dst.row);
    if (steps_src) i.src_factor_out = u16(src->row);
  }
  if (i.iter_in > 1) {
    i.dst_factor_in = u16(is_flat ? 1 : dst.position);
    if (steps_src) i.src_factor_in = u16(is_flat ? 1 : src->position);
  }
  operations_.push_back({i, std::move(uops)});
}

void AluStream::reset(const Extent& extent, const Plane& dst) {
  Instruction i;
  i.opcode = Opcode::kGemm;
  i.reset = true;
  add_operation(i, extent, dst, nullptr);
}

void AluStream::alu(AluOp op, const Extent& extent, const Plane& dst, const Plane& src) {
  add_operation(alu_instruction(op), extent, dst, &src);
  ++num_operations_;
}

void AluStream::alu(AluOp op, const Extent& extent, const Plane& dst, int16_t immediate) {
  Instruction i = alu_instruction(op);
  i.use_imm = true;
  i.imm = immediate;
  add_operation(i, extent, dst, nullptr);
  ++num_operations_;
}

void AluStream::alu_constant(AluOp op, const Extent& extent, const Plane& dst, int64_t constant) {
  const Plane src = {constant, 0, 0};
  add_operation(alu_instruction(op), extent, dst, &src);
  ++num_operations_;
}

// As many operations as possible share a table of micro-ops: loading one takes longer than most operations.
void AluStream::emit_operations() {
  for (size_t begin = 0; begin < operations_.size();) {
    std::vector<isa::Uop> table;
    size_t end = begin;
    for (; end < operations_.size(); ++end) {
      const std::vector<isa::Uop>& uops = operations_[end].uops;
      if (table.size() + uops.size() > config_.uop_elements && end > begin) break;
      table.insert(table.end(), uops.begin(), uops.end());
    }
    const UopTables::Place place = uops_.use(table);
    if (place.must_load) {
      const auto size = static_cast<int64_t>(table.size());
      add(transfer(Opcode::kLoad, Memory::kUop, place.begin, place.dram, 1, size, size), kUopRegion);
    }
    int64_t uop = place.begin;
    for (; begin < end; ++begin) {
      Instruction& i = operations_[begin].instruction;
      i.uop_begin = u16(uop);
      uop += static_cast<int64_t>(operations_[begin].uops.size());
      i.uop_end = u16(uop);
      stream_.instructions.push_back(i);
    }
  }
  operations_.clear();
}

void AluStream::store(const ActivationLayout& layout, const Box& box, int64_t acc) {
  emit_operations();
  const size_t tile = last_of_stores_.size();
  if (tile >= static_cast<size_t>(slots_)) {
    stream_.instructions[tile_begin_].pop_next = true;
    stream_.instructions[last_of_stores_[tile - static_cast<size_t>(slots_)]].push_prev = true;
  }
  stream_.instructions.back().push_next = true;
  const size_t first = stream_.instructions.size();
  for (const Instruction& store : transfer_box(Opcode::kStore, Memory::kOut, acc, layout, box))
    add(store, kFirstInput + num_inputs_);
  stream_.instructions[first].pop_prev = true;
  last_of_stores_.push_back(stream_.instructions.size() - 1);
  tile_begin_ = stream_.instructions.size();
}

CompiledUnit AluStream::finish(std::string name) {
  stream_.instructions[last_of_stores_.back()].push_prev = true;
  Instruction finish;
  finish.pop_next = true;
  stream_.instructions.push_back(finish);
  stream_.labels.push_back({0, name});

  CompiledUnit unit;
  unit.name = std::move(name);
  unit.regions.push_back(region(UnitRegion::Kind::kCarried, "micro-ops"));
  unit.regions.back().data = uops_.bytes();
  for (uint32_t i = 0; i < num_inputs_; ++i) {
    unit.regions.push_back(region(UnitRegion::Kind::kInput, "input"));
    unit.regions.back().operand = i;
  }
  unit.regions.push_back(region(UnitRegion::Kind::kOutput, "output"));
  if (!constants_.empty()) {
    unit.regions.push_back(region(UnitRegion::Kind::kCarried, "constants"));
    std::vector<int32_t> lanes;
    for (const int32_t constant : constants_) lanes.insert(lanes.end(), isa::kLanes, constant);
    unit.regions.back().data.resize(lanes.size() * sizeof(int32_t));
    std::memcpy(unit.regions.back().data.data(), lanes.data(), unit.regions.back().data.size());
  }
  const auto num_tiles = static_cast<int64_t>(last_of_stores_.size());
  unit.alu_instructions_per_tile = (num_operations_ + num_tiles - 1) / num_tiles;
  unit.stream = std::move(stream_);
  unit.estimate = estimate_cycles(config_, unit.stream.instructions);
  return unit;
}

void add_steps(const std::vector<AluStep>& steps, const Extent& part, const std::vector<Plane>& planes,
               AluStream* stream) {
  for (const AluStep& step : steps) {
    const Plane& dst = planes[static_cast<size_t>(step.dst)];
    switch (step.source) {
      case AluStep::Source::kReset:
        stream->reset(part, dst);
        break;
      case AluStep::Source::kImmediate:
        stream->alu(step.op, part, dst, step.immediate);
        break;
      case AluStep::Source::kAccBlock:
        stream->alu(step.op, part, dst, planes[static_cast<size_t>(step.block)]);
        break;
      case AluStep::Source::kConstant:
        stream->alu_constant(step.op, part, dst, step.constant);
        break;
    }
  }
}

int64_t num_temporaries(const std::vector<AluStep>& steps) {
  int64_t most = 0;
  for (const AluStep& step : steps) {
    most = std::max(most, static_cast<int64_t>(step.dst));
    if (step.source == AluStep::Source::kAccBlock) most = std::max(most, static_cast<int64_t>(step.block));
  }
  return most;
}

int64_t alu_cycles(const std::vector<AluStep>& steps) {
  Requantization sequence;
  sequence.steps = steps;
  return sequence.cycles_per_element();
}

}  // namespace qplan::target::vta
