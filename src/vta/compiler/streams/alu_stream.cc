// Tokens: the first instruction of a tile takes one from the store module where its slot's last tile must be
// stored first; the last one before the tile's stores gives one to them. Loads into ACC are the compute
// module's own.
#include <algorithm>
#include <cstring>
#include <utility>

#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
namespace {

// Constants follow the output, where there are some.
enum AluRegion : uint32_t { kUopsOfAlu, kFirstInput };

std::vector<UnitRegion> alu_regions(const std::vector<int32_t>& constants, size_t num_inputs) {
  std::vector<UnitRegion> regions = {carried_region("micro-ops")};
  for (uint32_t i = 0; i < num_inputs; ++i) regions.push_back(input_region(i));
  regions.push_back(output_region());
  if (constants.empty()) return regions;
  std::vector<int32_t> lanes;
  for (const int32_t constant : constants) lanes.insert(lanes.end(), kLanes, constant);
  std::vector<uint8_t> bytes(lanes.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), lanes.data(), bytes.size());
  regions.push_back(carried_region("constants", std::move(bytes)));
  return regions;
}

bool is_dense(const Plane& plane, const Extent& extent) {
  return (plane.position == extent.blocks || extent.cols == 1) &&
         (plane.row == extent.cols * extent.blocks || extent.rows == 1);
}

Instruction alu_instruction(AluOp op) {
  Instruction i;
  i.opcode = Opcode::kAlu;
  i.alu_op = op;
  return i;
}

}  // namespace

AluStream::AluStream(const Config& config, const std::vector<int32_t>& constants, size_t num_inputs,
                     int64_t slots)
    : config_(config),
      output_(kFirstInput + static_cast<uint32_t>(num_inputs)),
      slots_(slots),
      stream_(config, alu_regions(constants, num_inputs), kUopsOfAlu) {
  if (constants.empty()) return;
  const auto count = static_cast<int64_t>(constants.size());
  stream_.add(transfer(Opcode::kLoad, Memory::kAcc, 0, 0, 1, count, count), output_ + 1);
}

void AluStream::load(size_t input, const ActivationLayout& layout, const Box& box, int64_t acc) {
  stream_.transfer_box(Opcode::kLoad, Memory::kAcc8, acc, layout, box,
                       kFirstInput + static_cast<uint32_t>(input));
}

void AluStream::add_operation(Instruction i, const Extent& extent, const Plane& dst, const Plane* src) {
  std::vector<Uop> uops;
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
    std::vector<Uop> table;
    size_t end = begin;
    for (; end < operations_.size(); ++end) {
      const std::vector<Uop>& uops = operations_[end].uops;
      if (table.size() + uops.size() > config_.uop_elements && end > begin) break;
      table.insert(table.end(), uops.begin(), uops.end());
    }
    int64_t uop = stream_.use_uops(table);
    for (; begin < end; ++begin) {
      Instruction& i = operations_[begin].instruction;
      i.uop_begin = u16(uop);
      uop += static_cast<int64_t>(operations_[begin].uops.size());
      i.uop_end = u16(uop);
      stream_.add(i);
    }
  }
  operations_.clear();
}

void AluStream::store(const ActivationLayout& layout, const Box& box, int64_t acc) {
  emit_operations();
  const size_t tile = last_of_stores_.size();
  if (tile >= static_cast<size_t>(slots_)) {
    stream_.at(tile_begin_).pop_next = true;
    stream_.at(last_of_stores_[tile - static_cast<size_t>(slots_)]).push_prev = true;
  }
  stream_.back().push_next = true;
  const size_t first = stream_.size();
  stream_.transfer_box(Opcode::kStore, Memory::kOut, acc, layout, box, output_);
  stream_.at(first).pop_prev = true;
  last_of_stores_.push_back(stream_.size() - 1);
  tile_begin_ = stream_.size();
}

CompiledUnit AluStream::finish(std::string name) {
  stream_.at(last_of_stores_.back()).push_prev = true;
  CompiledUnit unit = stream_.finish(std::move(name));
  const auto num_tiles = static_cast<int64_t>(last_of_stores_.size());
  unit.alu_instructions_per_tile = (num_operations_ + num_tiles - 1) / num_tiles;
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

}  // namespace qplan::vta::compiler
