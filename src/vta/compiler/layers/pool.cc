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

}  // namespace qplan::vta::compiler
