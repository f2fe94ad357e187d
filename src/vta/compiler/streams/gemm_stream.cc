// Tokens. A step's loads: the first takes one from the compute module where it overwrites a slot that a GEMM
// had in use, the last gives one to the step's GEMM. A tile: its reset takes one from the store module when
// the slot's last tile must be stored first; the end of its requantisation gives one to its store. finish
// waits for the last store. A module works in order, so what it does itself needs none: constants and
// micro-ops are loaded by the module that uses them.
#include <cstring>
#include <utility>

#include "src/vta/compiler/streams/gemm.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
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

}  // namespace qplan::vta::compiler
