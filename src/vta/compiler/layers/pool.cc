// Pools and means as units, and their tiles of windows on the ALU.
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/alu_steps.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
namespace {

// Trying all sums takes time; more cells than this have no exact form for an average anyway.
constexpr int64_t kMaxTriedCells = 4096;

// f: of sums of count int8 values, clamped to [lo, hi].
std::optional<AffineForm> find_sum_form(int64_t count, double slope, int32_t input_zero_point,
                                        int32_t output_zero_point, int32_t lo, int32_t hi,
                                        const std::function<int32_t(int32_t)>& f) {
  if (count > kMaxTriedCells) return std::nullopt;
  const auto cells = static_cast<int32_t>(count);
  AffineProblem problem;
  problem.x1 = {-128 * cells, 127 * cells, slope, input_zero_point * cells};
  problem.zero_point = output_zero_point;
  problem.lo = lo;
  problem.hi = hi;
  problem.f = [&](int32_t sum, int32_t) { return f(sum); };
  return find_affine_form(problem);
}

void add_affine(const AffineForm& form, int32_t lo, int32_t hi, StepList* s) {
  s->immediate_or_constant(AluOp::kMul, AccBlock::kAccumulator, form.weight1);
  s->finish_affine(form, lo, hi);
}

// In the device's terms: a uint8's average less 128 is floor((sum + count / 2) / count) of the values less
// 128, since sums of uint8 are not negative.
int32_t average(int64_t sum, int64_t count, bool is_unsigned) {
  const int64_t half = count / 2;
  if (is_unsigned) return static_cast<int32_t>((sum + 128 * count + half) / count - 128);
  return static_cast<int32_t>((sum + (sum > 0 ? half : -half)) / count);
}

UnitPlan pool_plan(const Candidate& c, const ir::Node& node, Pool pool) {
  UnitPlan plan = plan_unit(c, node.name, {node.operands[0]});
  const auto shared = std::make_shared<const Pool>(std::move(pool));
  plan.compile = [shared](const Config& config, std::span<const ActivationLayout> inputs,
                          const ActivationLayout& output) {
    return compile_pool(config, *shared, inputs[0], output);
  };
  return plan;
}

}  // namespace

Pool make_max_pool(std::string name, const Geometry& geometry, int32_t clamp_min, int32_t clamp_max) {
  Pool pool;
  pool.name = std::move(name);
  pool.geometry = geometry;
  pool.combine = AluOp::kMax;
  StepList s;
  s.clamp(clamp_min, clamp_max);
  pool.epilogues.push_back({0, s.steps()});
  return pool;
}

std::optional<Pool> make_average_pool(std::string name, const Geometry& geometry, bool is_unsigned,
                                      int32_t clamp_min, int32_t clamp_max) {
  Pool pool;
  pool.name = std::move(name);
  pool.geometry = geometry;
  pool.combine = AluOp::kAdd;
  std::set<int64_t> counts;
  for (const WindowSpan& rows : window_spans_h(geometry, 0, geometry.out_h)) {
    for (const WindowSpan& cols : window_spans_w(geometry, 0, geometry.out_w))
      counts.insert(rows.cells * cols.cells);
  }
  for (const int64_t count : counts) {
    const auto form = find_sum_form(
        count, 1.0 / static_cast<double>(count), 0, 0, clamp_min, clamp_max,
        [&](int32_t sum) { return std::clamp(average(sum, count, is_unsigned), clamp_min, clamp_max); });
    if (!form) return std::nullopt;
    StepList s(pool.constants);
    add_affine(*form, clamp_min, clamp_max, &s);
    pool.constants = s.constants();
    pool.epilogues.push_back({counts.size() == 1 ? 0 : count, s.steps()});
  }
  return pool;
}

Pool make_mean(const MeanOperator& mean) {
  Pool pool;
  pool.name = mean.name;
  Geometry& g = pool.geometry;
  g.in_h = g.window.kernel_h = mean.h;
  g.in_w = g.window.kernel_w = mean.w;
  g.in_c = g.out_c = mean.channels;
  pool.combine = AluOp::kAdd;
  const int64_t count = mean.h * mean.w;
  const QuantizedMultiplier& m = mean.multiplier;
  const int32_t left = std::max(m.shift, 0);
  if (m.multiplier != 0 && (left > 30 || 255 * count > kTfl2Bound >> left)) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: '", mean.name, "': the sum of ", count, " cells may reach ", 255 * count,
                        ", shifted left by ", left, "; limit ", kTfl2Bound));
  }
  const auto bias = static_cast<int32_t>(-mean.input_zero_point * count);
  const double slope = static_cast<double>(m.multiplier) * std::ldexp(1.0, m.shift - 31);
  const auto form =
      find_sum_form(count, slope, mean.input_zero_point, mean.output_zero_point, -128, 127, [&](int32_t sum) {
        return add_clamp(requantize_tfl2(sum + bias, m.multiplier, m.shift), mean.output_zero_point, -128,
                         127);
      });
  StepList s;
  if (form) {
    add_affine(*form, -128, 127, &s);
  } else {
    s.requantize_tfl2(bias, m, mean.output_zero_point, -128, 127);
  }
  pool.constants = s.constants();
  pool.epilogues.push_back({0, s.steps()});
  return pool;
}

UnitPlan read_max_pool_unit(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  const layer::Clamp clamp = device_clamp(c);
  return pool_plan(c, node,
                   make_max_pool(node.name, layer::pool_geometry(c.function(), node), clamp.min, clamp.max));
}

std::optional<Pool> average_pool(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  const layer::Clamp clamp = device_clamp(c);
  return make_average_pool(node.name, layer::pool_geometry(c.function(), node),
                           is_unsigned(c, node.operands[0]), clamp.min, clamp.max);
}

UnitPlan read_average_pool_unit(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  std::optional<Pool> pool = average_pool(c);
  if (!pool) refuse_node(node, "no multiplier divides its sums exactly");
  return pool_plan(c, node, *std::move(pool));
}

std::optional<MeanOperator> mean_operator(const Candidate& c) {
  const ir::Node& node = *c.node("mean");
  const ir::TensorType& data = c.function().type(node.operands[0]);
  for (size_t i = 1; i < 5; ++i) {
    const ir::ConstantRef& constant = c.function().value(node.operands[i]).constant;
    if (constant == nullptr || constant->type().num_elements() != 1) return std::nullopt;
  }
  MeanOperator mean;
  mean.name = node.name;
  mean.h = data.shape[1], mean.w = data.shape[2], mean.channels = data.shape[3];
  mean.input_zero_point = device_zero_point(c, node, 2, "the input's zero point");
  mean.output_zero_point = device_zero_point(c, node, 4, "the output's zero point");
  mean.multiplier = layer::mean_multiplier(scale_operand(c, node, 1, "the input's scale"),
                                           scale_operand(c, node, 3, "the output's scale"),
                                           static_cast<uint64_t>(mean.h * mean.w));
  return mean;
}

UnitPlan read_mean_unit(const Candidate& c) {
  const ir::Node& node = *c.node("mean");
  const std::optional<MeanOperator> mean = mean_operator(c);
  if (!mean) refuse_node(node, "its scales or zero points are not one constant each");
  return pool_plan(c, node, make_mean(*mean));
}

// ---- tiles of windows on the ALU

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
