// Tiles of windows on the ALU.
#include <algorithm>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/alu_stream.h"
#include "src/vta/compiler/streams/gemm.h"

namespace qplan::vta::compiler {
namespace {

[[noreturn]] void refuse(const Pool& pool, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: '", pool.name, "': ", reason));
}

// Along one axis, [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Cells of the input that the windows of positions [begin, begin + count) of the output look at.
Range cells_of(int64_t begin, int64_t count, int64_t stride, int64_t pad, int64_t window, int64_t extent) {
  const int64_t first = begin * stride - pad;
  return {std::max<int64_t>(first, 0), std::min(first + (count - 1) * stride + window, extent)};
}

// Positions in [begin, begin + count) of the output for which a tap at `offset` (less the padding) is a cell.
Range positions_of(int64_t begin, int64_t count, int64_t stride, int64_t offset, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : ceil_div(-offset, stride);
  const int64_t end = extent > offset ? (extent - 1 - offset) / stride + 1 : 0;
  return {std::max(begin, first), std::max(std::max(begin, first), std::min(begin + count, end))};
}

class Compiler {
 public:
  Compiler(const Config& config, const Pool& pool, const ActivationLayout& input,
           const ActivationLayout& output)
      : config_(config), pool_(pool), g_(pool.geometry), w_(g_.window), input_(input), output_(output) {
    for (const Pool::Epilogue& epilogue : pool.epilogues) {
      temporaries_ = std::max(temporaries_, num_temporaries(epilogue.steps));
      epilogue_cycles_ = std::max(epilogue_cycles_, alu_cycles(epilogue.steps));
    }
  }

  CompiledUnit run() {
    choose();
    AluStream stream(config_, pool_.constants, 1, slots_);
    int64_t slot = 0;
    for (int64_t b = 0; b < output_.channel_blocks(); b += tile_.blocks) {
      for (int64_t y = 0; y < g_.out_h; y += tile_.rows) {
        for (int64_t x = 0; x < g_.out_w; x += tile_.cols) {
          const Extent extent = {std::min(tile_.rows, g_.out_h - y), std::min(tile_.cols, g_.out_w - x),
                                 std::min(tile_.blocks, output_.channel_blocks() - b)};
          tile(y, x, b, extent, slot, &stream);
          slot = (slot + 1) % slots_;
        }
      }
    }
    return stream.finish(pool_.name);
  }

 private:
  int64_t num_constants() const { return static_cast<int64_t>(pool_.constants.size()); }
  // The most cells of input that one tile reads.
  int64_t cells(const Extent& e) const {
    const int64_t rows = std::min((e.rows - 1) * w_.stride_h + g_.window_h(), g_.in_h);
    const int64_t cols = std::min((e.cols - 1) * w_.stride_w + g_.window_w(), g_.in_w);
    return rows * cols * e.blocks;
  }

  // The cheapest tile that fits, with two slots where there is more than one tile and room for them.
  void choose() {
    const int64_t row = std::max(input_.row_elements(), output_.row_elements());
    if (row > kMaxDmaStride)
      refuse(pool_, cat("a row of ", row, " elements, the strides of load and store reach ", kMaxDmaStride));
    int64_t best = 0;
    for (const int64_t blocks : even_cuts(output_.channel_blocks())) {
      // An operation on strided cells has a micro-op for each block.
      if (blocks > config_.uop_elements) continue;
      for (const int64_t cols : even_cuts(g_.out_w)) {
        for (const int64_t rows : even_cuts(g_.out_h)) {
          const Extent e = {rows, cols, blocks};
          const int64_t tiles = ceil_div(g_.out_h, rows) * ceil_div(g_.out_w, cols) *
                                ceil_div(output_.channel_blocks(), blocks);
          const int64_t left =
              config_.acc_elements - num_constants() - cells(e) - temporaries_ * e.elements();
          const int64_t slots = std::min<int64_t>({2, tiles, left < 0 ? 0 : left / e.elements()});
          if (slots < 1) continue;
          const int64_t cost = cycles(e, tiles, slots);
          if (best != 0 && cost >= best) continue;
          best = cost;
          tile_ = e;
          slots_ = slots;
        }
      }
    }
    if (best == 0) {
      refuse(pool_, cat("a window of ", g_.window_h(), " x ", g_.window_w(), " needs ", cells({1, 1, 1}),
                        " accumulators and ", num_constants() + 1 + temporaries_,
                        " for the working set, limit ", config_.acc_elements));
    }
  }

  int64_t transfer(int64_t instructions, int64_t elements) const {
    return instructions * config_.dma_latency_cycles + elements * kInpBytes / config_.dma_bytes_per_cycle;
  }

  int64_t cycles(const Extent& e, int64_t tiles, int64_t slots) const {
    const bool is_whole = e.blocks == output_.channel_blocks();
    const int64_t load = transfer(is_whole ? 1 : e.rows * w_.stride_h, cells(e));
    const int64_t store = transfer(is_whole ? 1 : e.rows, e.elements());
    const int64_t alu = e.elements() * (1 + 2 * g_.taps() + epilogue_cycles_);
    const int64_t compute = load + alu + (g_.taps() + 8) * kInstructionCycles;
    return slots == 1 ? tiles * (compute + store) : tiles * std::max(compute, store) + store;
  }

  void tile(int64_t y, int64_t x, int64_t block, const Extent& e, int64_t slot, AluStream* stream) {
    // On the chip: constants, slots, temporaries, cells.
    const int64_t first = num_constants(), size = tile_.elements();
    std::vector<Plane> planes = {dense_plane(first + slot * size, e)};
    for (int64_t t = 0; t < temporaries_; ++t) planes.push_back(dense_plane(first + (slots_ + t) * size, e));
    const Range in_y = cells_of(y, e.rows, w_.stride_h, w_.pad_top, g_.window_h(), g_.in_h);
    const Range in_x = cells_of(x, e.cols, w_.stride_w, w_.pad_left, g_.window_w(), g_.in_w);
    const Extent in = {in_y.size(), in_x.size(), e.blocks};
    const Plane cells = dense_plane(first + (slots_ + temporaries_) * size, in);
    stream->load(0, input_, {in_y.begin, in_x.begin, in.rows, in.cols, block, in.blocks}, cells.base);

    combine(y, x, e, planes[0], cells, {in_y.begin, in_x.begin}, stream);
    for (const WindowSpan& rows : window_spans_h(g_, y, y + e.rows)) {
      for (const WindowSpan& cols : window_spans_w(g_, x, x + e.cols)) {
        // One sequence for all windows takes the whole tile at once.
        const bool is_common = pool_.epilogues.size() == 1;
        const Extent part = is_common ? e : Extent{rows.end - rows.begin, cols.end - cols.begin, e.blocks};
        std::vector<Plane> parts;
        for (const Plane& plane : planes)
          parts.push_back(is_common ? plane : plane.at(rows.begin - y, cols.begin - x));
        add_steps(epilogue(rows.cells * cols.cells), part, parts, stream);
        if (is_common) {
          stream->store(output_, {y, x, e.rows, e.cols, block, e.blocks}, planes[0].base);
          return;
        }
      }
    }
    stream->store(output_, {y, x, e.rows, e.cols, block, e.blocks}, planes[0].base);
  }

  const std::vector<AluStep>& epilogue(int64_t count) const {
    if (pool_.epilogues.size() == 1) return pool_.epilogues.front().steps;
    return std::ranges::find(pool_.epilogues, count, &Pool::Epilogue::count)->steps;
  }

  struct Tap {
    Range y, x;  // positions of the output
    int64_t offset_y, offset_x;
  };

  // Each tap over the positions for which it is a cell. origin: of the cells on the chip.
  void combine(int64_t y, int64_t x, const Extent& e, const Plane& result, const Plane& cells,
               std::pair<int64_t, int64_t> origin, AluStream* stream) {
    std::vector<Tap> taps;
    for (int64_t ky = 0; ky < w_.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < w_.kernel_w; ++kx) {
        Tap tap;
        tap.offset_y = ky * w_.dilation_h - w_.pad_top;
        tap.offset_x = kx * w_.dilation_w - w_.pad_left;
        tap.y = positions_of(y, e.rows, w_.stride_h, tap.offset_y, g_.in_h);
        tap.x = positions_of(x, e.cols, w_.stride_w, tap.offset_x, g_.in_w);
        if (tap.y.size() > 0 && tap.x.size() > 0) taps.push_back(tap);
      }
    }
    // A tap of all positions goes first: it is copied, or else all begin with the neutral value.
    const auto full = std::ranges::find_if(
        taps, [&](const Tap& tap) { return tap.y.size() == e.rows && tap.x.size() == e.cols; });
    const bool has_full = full != taps.end();
    if (has_full) std::iter_swap(taps.begin(), full);
    stream->reset(e, result);
    if (!has_full && pool_.combine == AluOp::kMax) stream->alu(AluOp::kAdd, e, result, int16_t{-128});
    for (size_t t = 0; t < taps.size(); ++t) {
      const Tap& tap = taps[t];
      const Extent part = {tap.y.size(), tap.x.size(), e.blocks};
      const Plane from = cells.at(tap.y.begin * w_.stride_h + tap.offset_y - origin.first,
                                  tap.x.begin * w_.stride_w + tap.offset_x - origin.second);
      const Plane strided = {from.base, from.row * w_.stride_h, from.position * w_.stride_w};
      stream->alu(t == 0 && has_full ? AluOp::kAdd : pool_.combine, part,
                  result.at(tap.y.begin - y, tap.x.begin - x), strided);
    }
  }

  const Config& config_;
  const Pool& pool_;
  const Geometry& g_;
  const op::Window2d& w_;
  const ActivationLayout& input_;
  const ActivationLayout& output_;
  int64_t temporaries_ = 0, epilogue_cycles_ = 0;
  Extent tile_;
  int64_t slots_ = 1;
};

struct Axis {
  int64_t kernel, stride, dilation, pad, extent;
};

int64_t cells_at(const Axis& axis, int64_t at) {
  int64_t cells = 0;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t from = at * axis.stride - axis.pad + k * axis.dilation;
    cells += from >= 0 && from < axis.extent ? 1 : 0;
  }
  return cells;
}

std::vector<WindowSpan> spans(const Axis& axis, int64_t begin, int64_t end) {
  std::vector<WindowSpan> result;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t cells = cells_at(axis, at);
    if (result.empty() || result.back().cells != cells) result.push_back({at, at, cells});
    result.back().end = at + 1;
  }
  return result;
}

}  // namespace

CompiledUnit compile_pool(const Config& config, const Pool& pool, const ActivationLayout& input,
                          const ActivationLayout& output) {
  return Compiler(config, pool, input, output).run();
}

std::vector<WindowSpan> window_spans_h(const Geometry& g, int64_t begin, int64_t end) {
  return spans({g.window.kernel_h, g.window.stride_h, g.window.dilation_h, g.window.pad_top, g.in_h}, begin,
               end);
}

std::vector<WindowSpan> window_spans_w(const Geometry& g, int64_t begin, int64_t end) {
  return spans({g.window.kernel_w, g.window.stride_w, g.window.dilation_w, g.window.pad_left, g.in_w}, begin,
               end);
}

}  // namespace qplan::vta::compiler
