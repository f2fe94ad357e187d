#include <algorithm>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
namespace {

constexpr int64_t kRequantizationInstructions = 30;  // of a tile, resets included, roughly
// Loads come in bursts and wait for slots: of what could overlap, this part is taken not to (1 / 8).
constexpr int64_t kOverlapLoss = 8;

class Chooser {
 public:
  Chooser(const Config& config, const TileProblem& problem)
      : config_(config), p_(problem), g_(problem.geometry) {}

  // False: nothing fits.
  bool choose() {
    const std::vector<int64_t> row_cuts = even_cuts(g_.out_h), col_cuts = even_cuts(g_.out_w);
    for (const int64_t out_blocks : even_cuts(p_.out_blocks())) {
      for (const int64_t in_blocks : even_cuts(p_.in_blocks())) {
        tiling_.out_blocks = out_blocks;
        tiling_.in_blocks = in_blocks;
        const int64_t weights = wgt_slot_elements(p_, tiling_);
        // The micro-ops of a GEMM are one for each weight element.
        if (weights > config_.wgt_elements || weights > config_.uop_elements) continue;
        tiling_.wgt_slots = slots(config_.wgt_elements, weights, num_out() * num_in());
        for (const int64_t cols : col_cuts) {
          for (const int64_t rows : row_cuts) {
            tiling_.rows = rows;
            tiling_.cols = cols;
            if (fits_inp()) consider_acc();
          }
        }
      }
    }
    return best_.cycles != 0;
  }
  const Tiling& best() const { return best_; }

 private:
  int64_t num_out() const { return ceil_div(p_.out_blocks(), tiling_.out_blocks); }
  int64_t num_in() const { return ceil_div(p_.in_blocks(), tiling_.in_blocks); }
  int64_t num_inp_pieces() const { return num_places() * (g_.is_depthwise() ? num_out() : num_in()); }
  int64_t num_places() const { return ceil_div(g_.out_h, tiling_.rows) * ceil_div(g_.out_w, tiling_.cols); }

  // Two are enough to load one while the other is in use.
  static int64_t slots(int64_t memory, int64_t slot, int64_t pieces) {
    return std::min<int64_t>({2, memory / slot, pieces});
  }

  bool fits_inp() {
    const int64_t elements = inp_slot_elements(p_, tiling_);
    if (elements > config_.inp_elements) return false;
    tiling_.inp_slots = slots(config_.inp_elements, elements, num_inp_pieces());
    return true;
  }

  void consider_acc() {
    for (const bool keeps_constants : {true, false}) {
      tiling_.keeps_constants = keeps_constants;
      const int64_t constants = p_.num_constants * tiling_.constant_blocks(p_);
      const int64_t left = config_.acc_elements - constants;
      tiling_.acc_slots = std::min<int64_t>(
          {2, left / tiling_.acc_slot_elements() - kNumTemporaries, num_places() * num_out()});
      if (left <= 0 || tiling_.acc_slots < 1) continue;
      for (const bool place_by_place : {false, true}) {
        tiling_.place_by_place = place_by_place;
        tiling_.cycles = cycles();
        if (best_.cycles == 0 || tiling_.cycles < best_.cycles) best_ = tiling_;
      }
    }
  }

  int64_t transfer(int64_t instructions, int64_t bytes) const {
    return instructions * config_.dma_latency_cycles + bytes / config_.dma_bytes_per_cycle;
  }

  // How often pieces of a kind are loaded: `distinct` of them when the slots hold what comes again, else all
  // `uses`.
  static int64_t loads(bool stay, int64_t distinct, int64_t uses) { return stay ? distinct : uses; }

  // Busy cycles of the modules as if each were never kept waiting, and what cannot overlap: the first load,
  // the last store, and whatever has one slot only. An estimate to choose by; the exact count comes from the
  // stream.
  int64_t cycles() const {
    const Tiling& t = tiling_;
    const int64_t places = num_places(), outs = num_out(), ins = num_in();
    const int64_t uses = places * outs * ins;

    const int64_t in_rows = window_extent(t.rows, g_.window.stride_h, g_.window_h());
    const int64_t inp_instructions =
        inp_slot_blocks(p_, t.out_blocks, t.in_blocks) == p_.input.channel_blocks() ? 1 : in_rows;
    const int64_t inp = transfer(inp_instructions, inp_slot_elements(p_, t) * kInpBytes);
    const bool inp_stays =
        outs == 1 || g_.is_depthwise() || (t.place_by_place ? ins : places * ins) <= t.inp_slots;
    const int64_t inp_cycles = inp * loads(inp_stays, num_inp_pieces(), uses);

    const int64_t wgt = transfer(1, wgt_slot_elements(p_, t) * kWgtBytes);
    const bool wgt_stays = places == 1 || (t.place_by_place ? outs * ins : ins) <= t.wgt_slots;
    const int64_t wgt_cycles = wgt * loads(wgt_stays, outs * ins, uses);

    const int64_t elements = g_.out_h * g_.out_w * p_.out_blocks();
    const int64_t constant_loads = t.keeps_constants || outs == 1 ? 1
                                   : t.place_by_place             ? places * outs
                                                                  : outs;
    const int64_t gemm = elements * g_.taps() * p_.in_blocks() * p_.weight_planes;
    // Micro-ops depend on where their pieces lie; there is a table for each combination of slots.
    const int64_t tables = t.inp_slots * t.wgt_slots * t.acc_slots;
    const int64_t store_instructions = t.out_blocks == p_.out_blocks() ? 1 : t.rows;
    const int64_t instructions =
        places * outs * (kRequantizationInstructions + ins * (1 + inp_instructions) + store_instructions);
    const int64_t compute =
        gemm + elements * (p_.alu_cycles + 1) + instructions * kInstructionCycles +
        tables * transfer(1, wgt_slot_elements(p_, t) * 4) +
        constant_loads * transfer(1, p_.num_constants * t.constant_blocks(p_) * kAccBytes);

    const int64_t store = transfer(store_instructions, t.acc_slot_elements() * kInpBytes);
    const int64_t store_cycles = store * places * outs;

    int64_t total =
        inp + wgt + store + std::max({compute, inp_cycles + wgt_cycles - inp - wgt, store_cycles - store});
    total += std::min(compute, inp_cycles + wgt_cycles) / kOverlapLoss;
    if (t.inp_slots == 1) total += inp_cycles - inp;
    if (t.wgt_slots == 1) total += wgt_cycles - wgt;
    if (t.acc_slots == 1) total += store_cycles - store;
    return total;
  }

  const Config& config_;
  const TileProblem& p_;
  const Geometry& g_;
  Tiling tiling_;
  Tiling best_;
};

// ---- order of work

constexpr int64_t kNobody = -1;

// The pieces of one memory that are on the chip; the least recently used one makes room.
class Slots {
 public:
  explicit Slots(int64_t count) : slots_(static_cast<size_t>(count)) {}

  struct Result {
    int64_t slot;
    bool is_new;
    int64_t last_user;  // is_new: the step that last used what is overwritten
  };
  Result acquire(int64_t piece, int64_t step) {
    const auto found = std::ranges::find(slots_, piece, &Slot::piece);
    const auto slot = found != slots_.end() ? found : std::ranges::min_element(slots_, {}, &Slot::last_user);
    const Result result = {slot - slots_.begin(), found == slots_.end(), slot->last_user};
    *slot = {piece, step};
    return result;
  }

 private:
  struct Slot {
    int64_t piece = kNobody;
    int64_t last_user = kNobody;
  };
  std::vector<Slot> slots_;
};

std::vector<Tile> cut(const TileProblem& problem, const Tiling& t) {
  const Geometry& g = problem.geometry;
  std::vector<Tile> places;
  for (int64_t y = 0; y < g.out_h; y += t.rows) {
    for (int64_t x = 0; x < g.out_w; x += t.cols)
      places.push_back({y, x, std::min(t.rows, g.out_h - y), std::min(t.cols, g.out_w - x)});
  }
  std::vector<Tile> tiles;
  const auto add = [&](Tile place, int64_t out_block) {
    place.out_block = out_block;
    place.out_blocks = std::min(t.out_blocks, problem.out_blocks() - out_block);
    tiles.push_back(place);
  };
  if (t.place_by_place) {
    for (const Tile& place : places) {
      for (int64_t ob = 0; ob < problem.out_blocks(); ob += t.out_blocks) add(place, ob);
    }
  } else {
    for (int64_t ob = 0; ob < problem.out_blocks(); ob += t.out_blocks) {
      for (const Tile& place : places) add(place, ob);
    }
  }
  return tiles;
}

// Step n frees at most one token, and loads take them in the order in which they are given: a load that needs
// step n to be over takes the token of step n, and later ones need none for steps up to n.
void give_tokens(const std::vector<int64_t>& needed, std::vector<Step>* steps) {
  int64_t known = kNobody;
  for (size_t s = 0; s < steps->size(); ++s) {
    if (needed[s] <= known) continue;
    known = needed[s];
    (*steps)[s].load_waits = true;
    (*steps)[static_cast<size_t>(known)].frees = true;
  }
}

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: layer '", name, "': ", reason));
}

}  // namespace

int64_t inp_slot_elements(const TileProblem& problem, const Tiling& tiling) {
  const Geometry& g = problem.geometry;
  return window_extent(tiling.rows, g.window.stride_h, g.window_h()) *
         window_extent(tiling.cols, g.window.stride_w, g.window_w()) *
         inp_slot_blocks(problem, tiling.out_blocks, tiling.in_blocks);
}

int64_t wgt_slot_elements(const TileProblem& problem, const Tiling& tiling) {
  return tiling.out_blocks * problem.geometry.taps() * tiling.in_blocks * problem.weight_planes;
}

Tiling choose_tiling(const Config& config, const TileProblem& problem, const std::string& name) {
  const Geometry& g = problem.geometry;
  const int64_t row = std::max(problem.input.row_elements(), problem.output.row_elements());
  if (row > kMaxDmaStride)
    refuse(name, cat("a row of ", row, " elements, the strides of load and store reach ", kMaxDmaStride));
  // Strides of weights and of constants between blocks of channels.
  const int64_t stride = std::max(problem.in_blocks() * problem.weight_planes, problem.out_blocks());
  if (stride > kMaxDmaStride)
    refuse(name, cat(stride, " blocks of channels, the strides of load and store reach ", kMaxDmaStride));
  Chooser chooser(config, problem);
  if (chooser.choose()) return chooser.best();
  Tiling least;
  refuse(name, cat("the smallest tile needs ", inp_slot_elements(problem, least), " of ", config.inp_elements,
                   " input elements, ", wgt_slot_elements(problem, least), " of ", config.wgt_elements,
                   " weight elements and ", config.uop_elements, " micro-ops, ",
                   problem.num_constants + 1 + kNumTemporaries, " of ", config.acc_elements,
                   " accumulators (", g.window_h(), " x ", g.window_w(), " window, ", problem.weight_planes,
                   " planes of weights); use a configuration with larger memories"));
}

Work plan_work(const TileProblem& problem, const Tiling& tiling) {
  Work work;
  work.tiles = cut(problem, tiling);
  Slots inp(tiling.inp_slots), wgt(tiling.wgt_slots);
  std::vector<int64_t> needed;  // by each step's loads: a step that must be over
  for (Tile& tile : work.tiles) {
    tile.first_step = work.steps.size();
    const int64_t place = tile.y * problem.geometry.out_w + tile.x;
    for (int64_t ib = 0; ib < problem.in_blocks(); ib += tiling.in_blocks) {
      const auto now = static_cast<int64_t>(work.steps.size());
      Step step;
      step.in_block = ib;
      step.in_blocks = std::min(tiling.in_blocks, problem.in_blocks() - ib);
      const bool is_diagonal = problem.geometry.is_depthwise();
      step.inp_block = is_diagonal ? tile.out_block : ib;
      step.inp_blocks = is_diagonal ? tile.out_blocks : step.in_blocks;
      int64_t need = kNobody;
      const auto acquire = [&](Slots& slots, int64_t piece, int64_t* slot, bool* loads) {
        const Slots::Result result = slots.acquire(piece, now);
        *slot = result.slot;
        *loads = result.is_new;
        if (result.is_new) need = std::max(need, result.last_user);
      };
      acquire(wgt, tile.out_block * problem.in_blocks() + ib, &step.wgt_slot, &step.loads_wgt);
      acquire(inp, place * problem.input.channel_blocks() + step.inp_block, &step.inp_slot, &step.loads_inp);
      needed.push_back(need);
      work.steps.push_back(step);
    }
    tile.num_steps = work.steps.size() - tile.first_step;
  }
  give_tokens(needed, &work.steps);
  return work;
}

}  // namespace qplan::vta::compiler
