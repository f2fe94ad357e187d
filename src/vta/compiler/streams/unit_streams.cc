// The instructions of a unit, on the GEMM core or on the ALU alone, and the tokens by which the modules wait
// for each other.
#include <algorithm>
#include <cstring>
#include <utility>

#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

// ---- layers on the GEMM core

namespace {

std::vector<uint8_t> constant_bytes(const Requantization& requantization) {
  std::vector<uint8_t> bytes;
  for (const std::vector<int32_t>& values : requantization.constants) {
    const size_t at = bytes.size();
    bytes.resize(at + values.size() * sizeof(int32_t));
    std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(int32_t));
  }
  return bytes;
}

// In the order of LayerRegion.
std::vector<UnitRegion> layer_regions(const Requantization& requantization, std::vector<uint8_t> weights) {
  return {carried_region("weights", std::move(weights), RegionKind::kWeights),
          carried_region("constants", constant_bytes(requantization)), carried_region("micro-ops"),
          input_region(), output_region()};
}

// Tokens. A step's loads: the first takes one from the compute module where it overwrites a slot that a GEMM
// had in use, the last gives one to the step's GEMM. A tile: its reset takes one from the store module when
// the slot's last tile must be stored first; the end of its requantisation gives one to its store. finish
// waits for the last store. A module works in order, so what it does itself needs none: constants and
// micro-ops are loaded by the module that uses them.
class Emitter {
 public:
  Emitter(const Config& config, const TileProblem& problem, const Tiling& tiling,
          const Requantization& requantization, std::vector<uint8_t> weights)
      : p_(problem),
        g_(problem.geometry),
        t_(tiling),
        r_(requantization),
        work_(plan_work(problem, tiling)),
        stream_(config, layer_regions(requantization, std::move(weights)), kUopRegion) {}

  CompiledUnit run(std::string name) {
    for (size_t index = 0; index < work_.tiles.size(); ++index) add_tile(index);
    CompiledUnit unit = stream_.finish(std::move(name));
    unit.alu_instructions_per_tile = r_.num_alu_instructions();
    return unit;
  }

 private:
  // From its first load to its last store.
  void add_tile(size_t index) {
    const Tile& tile = work_.tiles[index];
    const std::span<const Step> steps = work_.steps_of(tile);
    for (const Step& step : steps) {
      load(step, tile);
      if (&step == &steps.front()) clear(index);
      multiply(step, tile, block_base(index, AccBlock::kAccumulator));
    }
    requantise_and_store(index);
  }

  // ---- places on the chip
  int64_t in_cols(const Tile& tile) const {
    return window_extent(tile.cols, g_.window.stride_w, g_.window_w());
  }
  int64_t inp_base(const Step& step) const { return step.inp_slot * inp_slot_elements(p_, t_); }
  int64_t wgt_base(const Step& step) const { return step.wgt_slot * wgt_slot_elements(p_, t_); }
  // ACC: constants, accumulators of each slot, temporaries.
  int64_t block_base(size_t tile, AccBlock block) const {
    const int64_t slot = block == AccBlock::kAccumulator ? static_cast<int64_t>(tile) % t_.acc_slots
                                                         : t_.acc_slots + static_cast<int64_t>(block) - 1;
    return r_.num_constants() * t_.constant_blocks(p_) + slot * t_.acc_slot_elements();
  }
  // Constant k of a tile's first block of channels.
  int64_t constant_base(const Tile& tile, int64_t k) const {
    return t_.keeps_constants ? k * p_.out_blocks() + tile.out_block : k * tile.out_blocks;
  }

  // ---- load module
  void load(const Step& step, const Tile& tile) {
    if (!step.loads()) return;
    const size_t first = stream_.size();
    if (step.loads_wgt) {
      const int64_t rows = tile.out_blocks * g_.taps(), row = step.in_blocks * p_.weight_planes;
      const int64_t stride = p_.in_blocks() * p_.weight_planes;
      const int64_t dram = tile.out_block * g_.taps() * stride + step.in_block * p_.weight_planes;
      stream_.add(row == stride
                      ? transfer(Opcode::kLoad, Memory::kWgt, wgt_base(step), dram, 1, rows * row, rows * row)
                      : transfer(Opcode::kLoad, Memory::kWgt, wgt_base(step), dram, rows, row, stride),
                  kWeightRegion);
    }
    if (step.loads_inp) {
      const op::Window2d& w = g_.window;
      const Box box = {tile.y * w.stride_h - w.pad_top,
                       tile.x * w.stride_w - w.pad_left,
                       window_extent(tile.rows, w.stride_h, g_.window_h()),
                       in_cols(tile),
                       step.inp_block,
                       step.inp_blocks};
      stream_.transfer_box(Opcode::kLoad, Memory::kInp, inp_base(step), p_.input, box, kInputRegion);
    }
    stream_.at(first).pop_next = step.load_waits;
    stream_.back().push_next = true;
  }

  // ---- compute module
  // Loads the tile's constants and clears its accumulators.
  void clear(size_t index) {
    const Tile& tile = work_.tiles[index];
    const int64_t kinds = r_.num_constants();
    const int64_t wanted = t_.keeps_constants ? 0 : tile.out_block;
    if (constants_of_ != wanted) {
      const int64_t row = t_.keeps_constants ? p_.out_blocks() : tile.out_blocks;
      stream_.add(transfer(Opcode::kLoad, Memory::kAcc, 0, wanted, kinds, row, p_.out_blocks()),
                  kConstantRegion);
      constants_of_ = wanted;
    }
    Instruction reset = over_elements(tile.positions() * tile.out_blocks, alu_uops(index));
    reset.opcode = Opcode::kGemm;
    reset.reset = true;
    // The tile before in this slot must be stored.
    reset.pop_next = static_cast<int64_t>(index) >= t_.acc_slots && !waits_late();
    stream_.add(reset);
  }

  // acc: of the tile's accumulators.
  void multiply(const Step& step, const Tile& tile, int64_t acc) {
    const int64_t cols = in_cols(tile);
    const bool is_diagonal = g_.is_depthwise();
    std::vector<Uop> table;
    int64_t weight = wgt_base(step);
    for (int64_t ob = 0; ob < tile.out_blocks; ++ob) {
      for (int64_t ky = 0; ky < g_.window.kernel_h; ++ky) {
        for (int64_t kx = 0; kx < g_.window.kernel_w; ++kx) {
          const int64_t tap =
              (ky * g_.window.dilation_h * cols + kx * g_.window.dilation_w) * step.inp_blocks;
          for (int64_t ib = 0; ib < step.in_blocks; ++ib) {
            for (int64_t plane = 0; plane < p_.weight_planes; ++plane)
              table.push_back(
                  {u16(acc + ob), u16(inp_base(step) + tap + (is_diagonal ? ob : ib)), u16(weight++)});
          }
        }
      }
    }
    Instruction i;
    i.opcode = Opcode::kGemm;
    i.uop_begin = stream_.use_uops(table);
    i.uop_end = u16(i.uop_begin + static_cast<int64_t>(table.size()));
    i.iter_out = u16(tile.rows);
    i.iter_in = u16(tile.cols);
    // Factors of loops that run once are 0: theirs may be wider than the field.
    if (tile.rows > 1) {
      i.dst_factor_out = u16(tile.cols * tile.out_blocks);
      i.src_factor_out = u16(g_.window.stride_h * cols * step.inp_blocks);
    }
    if (tile.cols > 1) {
      i.dst_factor_in = u16(tile.out_blocks);
      i.src_factor_in = u16(g_.window.stride_w * step.inp_blocks);
    }
    i.pop_prev = step.loads();
    i.push_prev = step.frees;
    stream_.add(i);
  }

  // The micro-op of every step of the requantisation, and before them that of the reset.
  uint16_t alu_uops(size_t index) {
    std::vector<Uop> table = {{u16(block_base(index, AccBlock::kAccumulator)), 0, 0}};
    for (const AluStep& step : r_.steps) {
      int64_t src = 0;
      if (step.source == AluStep::Source::kAccBlock) src = block_base(index, step.block);
      if (step.source == AluStep::Source::kConstant) src = constant_base(work_.tiles[index], step.constant);
      table.push_back({u16(block_base(index, step.dst)), u16(src), 0});
    }
    return stream_.use_uops(table);
  }

  // Whether a tile waits for the one before it when it ends. Between its own stores it waits for each of
  // them, and tokens come in the order of the stores.
  bool waits_late() const { return r_.num_planes > 1 && t_.acc_slots > 1; }

  void requantise_and_store(size_t index) {
    const Tile& tile = work_.tiles[index];
    const int64_t first_uop = alu_uops(index);
    const size_t begin = stream_.size();
    int64_t uop = first_uop;
    for (const AluStep& step : r_.steps)
      stream_.add(alu_instruction(step, tile.positions(), tile.out_blocks, ++uop));
    stream_.at(begin).pop_next = waits_late() && index > 0;
    for (int64_t plane = 0; plane < r_.num_planes; ++plane) {
      if (plane > 0) {
        // The next byte, once the last one is stored.
        const AluStep shift = AluStep::by_immediate(AluOp::kShr, AccBlock::kAccumulator, 8);
        stream_.add(alu_instruction(shift, tile.positions(), tile.out_blocks, first_uop));
        stream_.back().pop_next = true;
      }
      stream_.back().push_next = true;
      store(index, plane);
    }
  }

  void store(size_t index, int64_t plane) {
    const Tile& tile = work_.tiles[index];
    const Box box = {tile.y, tile.x, tile.rows, tile.cols, tile.out_block, tile.out_blocks};
    const size_t first = stream_.size();
    stream_.transfer_box(Opcode::kStore, Memory::kOut, block_base(index, AccBlock::kAccumulator), p_.output,
                         box, kOutputRegion, plane * p_.output.elements());
    stream_.at(first).pop_prev = true;
    // Awaited by the slot's next tile, by the next plane, or by FINISH.
    const bool is_last = index + 1 == work_.tiles.size();
    stream_.back().push_prev =
        r_.num_planes > 1 || is_last || index + static_cast<size_t>(t_.acc_slots) < work_.tiles.size();
  }

  const TileProblem& p_;
  const Geometry& g_;
  const Tiling& t_;
  const Requantization& r_;
  const Work work_;
  StreamWriter stream_;
  int64_t constants_of_ = -1;  // the first block of channels whose constants are in ACC
};

}  // namespace

CompiledUnit emit_gemm_layer(const Config& config, const std::string& name, const TileProblem& problem,
                             const Tiling& tiling, const Requantization& requantization,
                             std::vector<uint8_t> weights) {
  return Emitter(config, problem, tiling, requantization, std::move(weights)).run(name);
}

// ---- the ALU alone. Tokens: the first instruction of a tile takes one from the store module where its
// slot's last tile must be stored first; the last one before the tile's stores gives one to them. Loads into
// ACC are the compute module's own.

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
