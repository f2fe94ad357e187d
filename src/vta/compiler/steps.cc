#include "src/vta/compiler/steps.h"

#include <algorithm>

namespace qplan::target::vta {
namespace {

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
      places.push_back({y, x, std::min(t.rows, g.out_h - y), std::min(t.cols, g.out_w - x), 0, 0});
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

}  // namespace

Work plan_work(const TileProblem& problem, const Tiling& tiling) {
  Work work;
  work.tiles = cut(problem, tiling);
  Slots inp(tiling.inp_slots), wgt(tiling.wgt_slots);
  std::vector<int64_t> needed;  // by each step's loads: a step that must be over
  for (size_t n = 0; n < work.tiles.size(); ++n) {
    const Tile& tile = work.tiles[n];
    const int64_t place = tile.y * problem.geometry.out_w + tile.x;
    for (int64_t ib = 0; ib < problem.in_blocks(); ib += tiling.in_blocks) {
      const auto now = static_cast<int64_t>(work.steps.size());
      Step step;
      step.tile = n;
      step.in_block = ib;
      step.in_blocks = std::min(tiling.in_blocks, problem.in_blocks() - ib);
      step.is_first = ib == 0;
      step.is_last = ib + step.in_blocks == problem.in_blocks();
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
  }
  give_tokens(needed, &work.steps);
  return work;
}

}  // namespace qplan::target::vta
