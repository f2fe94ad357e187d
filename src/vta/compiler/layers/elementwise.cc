#include <algorithm>
#include <array>
#include <memory>
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

// The largest part of `extent` that is at most `limit`, such that parts are equal but for the last.
int64_t even_part(int64_t extent, int64_t limit) {
  return ceil_div(extent, ceil_div(extent, std::min(extent, limit)));
}

// Whole rows where they fit, else part of one, else some of its channels.
Extent choose_part(const ActivationLayout& layout, int64_t limit) {
  const int64_t blocks = layout.channel_blocks(), row = layout.w * blocks;
  if (row <= limit) return {even_part(layout.h, limit / row), layout.w, blocks};
  if (blocks <= limit) return {1, even_part(layout.w, limit / blocks), blocks};
  return {1, 1, even_part(blocks, limit)};
}

// ---- addition
//
// Step by step. The input with the larger scale has the multiplier 1/2: its requantised value is d 2^19, with
// d = x - zero_point, |d| <= 255. The other one's, with a multiplier M = mh 2^11 + ml and a right shift r, is
// v = floor((d M + 2^10) / 2^11) = d mh + ((d ml + 2^10) >> 11), then rounded by r. mh < 2^20 and ml < 2^11:
// nothing leaves 29 bits. The sum is below 2^28, so that the sequence for TFL2 (alu_steps.h) is exact.

constexpr int32_t kLeftShift = layer::kAddLeftShift;
constexpr QuantizedMultiplier kHalf = {1 << 30, 0};

// PackError (QPLAN_MODEL_UNSUPPORTED) where the CPU refuses the scales too.
layer::AddMultipliers multipliers_of(const AddOperator& add) {
  const layer::AddMultipliers m = layer::add_multipliers(add.scale1, add.scale2, add.output_scale);
  if (m.output.shift > 0) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: '", add.name, "': the output's scale is too small for those of the inputs"));
  }
  return m;
}

bool is_half(const QuantizedMultiplier& m) {
  return m.multiplier == kHalf.multiplier && m.shift == kHalf.shift;
}

// block: d. Becomes v, rounded by the multiplier's shift.
void scale_small(const QuantizedMultiplier& m, AccBlock block, StepList* s) {
  constexpr AccBlock low = AccBlock::kLow;
  s->copy(low, block);
  s->constant(AluOp::kMul, block, m.multiplier >> 11);
  s->immediate(AluOp::kMul, low, m.multiplier & 0x7ff);
  s->immediate(AluOp::kAdd, low, 1 << 10);
  s->immediate(AluOp::kShr, low, 11);
  s->block(AluOp::kAdd, block, low);
  if (m.shift == 0) return;
  s->copy(low, block);
  s->immediate(AluOp::kShr, low, 31);
  s->block(AluOp::kAdd, block, low);
  s->immediate_or_constant(AluOp::kAdd, block, int32_t{1} << (-m.shift - 1));
  s->immediate(AluOp::kShr, block, -m.shift);
}

// ---- units

UnitPlan elementwise_plan(UnitPlan plan, Elementwise elementwise) {
  const auto shared = std::make_shared<const Elementwise>(std::move(elementwise));
  plan.compile = [shared](const Config& config, std::span<const ActivationLayout> inputs,
                          const ActivationLayout& output) {
    return compile_elementwise(config, *shared, inputs, output);
  };
  return plan;
}

}  // namespace

Elementwise make_clip(std::string name, int32_t min, int32_t max) {
  StepList s;
  s.clamp(min, max);
  // A copy is an operation too.
  if (s.steps().empty()) s.immediate(AluOp::kMax, AccBlock::kAccumulator, -128);
  return {std::move(name), {AccBlock::kAccumulator}, s.steps(), {}};
}

CompiledUnit compile_elementwise(const Config& config, const Elementwise& elementwise,
                                 std::span<const ActivationLayout> inputs, const ActivationLayout& output) {
  for (const ActivationLayout& layout : inputs) {
    const int64_t row = std::max(layout.row_elements(), output.row_elements());
    if (row > kMaxDmaStride) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("vta: '", elementwise.name, "': a row of ", row,
                          " elements, the strides of load and store reach ", kMaxDmaStride));
    }
  }
  int64_t temporaries = num_temporaries(elementwise.steps);
  for (const AccBlock block : elementwise.operands)
    temporaries = std::max(temporaries, static_cast<int64_t>(block));
  const auto num_constants = static_cast<int64_t>(elementwise.constants.size());
  const int64_t left = int64_t{config.acc_elements} - num_constants;
  const int64_t all = output.h * output.w * output.channel_blocks();
  // One piece if all fits, else two slots if they fit, the next piece for the time that one is stored.
  const bool is_one_piece = all <= left / (1 + temporaries);
  const int64_t slots = is_one_piece || left < 2 + temporaries ? 1 : 2;
  if (left < slots + temporaries) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: '", elementwise.name, "': ", num_constants, " constants and ",
                        slots + temporaries, " elements for its smallest piece, the accumulators have ",
                        config.acc_elements, "; use a configuration with larger memories"));
  }
  const Extent part = choose_part(output, left / (slots + temporaries));

  AluStream stream(config, elementwise.constants, inputs.size(), slots);
  int64_t slot = 0;
  for (int64_t y = 0; y < output.h; y += part.rows) {
    for (int64_t x = 0; x < output.w; x += part.cols) {
      for (int64_t b = 0; b < output.channel_blocks(); b += part.blocks) {
        const Extent piece = {std::min(part.rows, output.h - y), std::min(part.cols, output.w - x),
                              std::min(part.blocks, output.channel_blocks() - b)};
        std::vector<Plane> planes = {dense_plane(num_constants + slot * part.elements(), piece)};
        for (int64_t t = 0; t < temporaries; ++t)
          planes.push_back(dense_plane(num_constants + (slots + t) * part.elements(), piece));
        const Box box = {y, x, piece.rows, piece.cols, b, piece.blocks};
        for (size_t i = 0; i < inputs.size(); ++i)
          stream.load(i, inputs[i], box, planes[static_cast<size_t>(elementwise.operands[i])].base);
        add_steps(elementwise.steps, piece, planes, &stream);
        stream.store(output, box, planes[0].base);
        slot = (slot + 1) % slots;
      }
    }
  }
  return stream.finish(elementwise.name);
}

std::optional<Elementwise> make_affine_add(const AddOperator& add) {
  const layer::AddMultipliers scaling = multipliers_of(add);
  const auto table = [](int32_t zero_point, const QuantizedMultiplier& m) {
    std::array<int32_t, 256> values;
    for (int32_t x = -128; x < 128; ++x) {
      values[static_cast<size_t>(x + 128)] =
          requantize_tfl2((x - zero_point) * (1 << kLeftShift), m.multiplier, m.shift);
    }
    return values;
  };
  const auto first = table(add.zero_point1, scaling.lhs);
  const auto second = table(add.zero_point2, scaling.rhs);
  const double output_scale = static_cast<double>(add.output_scale);
  AffineProblem problem;
  problem.x1 = {-128, 127, static_cast<double>(add.scale1) / output_scale, add.zero_point1};
  problem.x2 = {-128, 127, static_cast<double>(add.scale2) / output_scale, add.zero_point2};
  problem.zero_point = add.output_zero_point;
  problem.lo = add.clamp_min;
  problem.hi = add.clamp_max;
  problem.f = [&](int32_t x1, int32_t x2) {
    const int32_t sum = first[static_cast<size_t>(x1 + 128)] + second[static_cast<size_t>(x2 + 128)];
    return add_clamp(requantize_tfl2(sum, scaling.output.multiplier, scaling.output.shift),
                     add.output_zero_point, add.clamp_min, add.clamp_max);
  };
  const std::optional<AffineForm> form = find_affine_form(problem);
  if (!form) return std::nullopt;
  StepList s;
  s.immediate_or_constant(AluOp::kMul, AccBlock::kAccumulator, form->weight1);
  s.immediate_or_constant(AluOp::kMul, AccBlock::kLow, form->weight2);
  s.block(AluOp::kAdd, AccBlock::kAccumulator, AccBlock::kLow);
  s.finish_affine(*form, add.clamp_min, add.clamp_max);
  return Elementwise{add.name, {AccBlock::kAccumulator, AccBlock::kLow}, s.steps(), s.constants()};
}

Elementwise make_stepwise_add(const AddOperator& add) {
  const layer::AddMultipliers scaling = multipliers_of(add);
  // The input with the multiplier 1/2 is in the accumulator.
  const bool is_swapped = !is_half(scaling.lhs);
  const QuantizedMultiplier& other = is_swapped ? scaling.lhs : scaling.rhs;
  const int32_t large_zero_point = is_swapped ? add.zero_point2 : add.zero_point1;
  const int32_t other_zero_point = is_swapped ? add.zero_point1 : add.zero_point2;
  constexpr AccBlock a = AccBlock::kAccumulator, b = AccBlock::kOther;

  StepList s;
  s.immediate(AluOp::kShr, a, -(kLeftShift - 1));
  s.immediate(AluOp::kAdd, b, -other_zero_point);
  if (is_half(other)) {
    s.immediate(AluOp::kShr, b, -(kLeftShift - 1));
  } else if (other.multiplier != 0) {
    scale_small(other, b, &s);
  }
  if (other.multiplier != 0) s.block(AluOp::kAdd, a, b);
  // The larger one's zero point goes into the bias.
  s.requantize_tfl2(-large_zero_point * (1 << (kLeftShift - 1)), scaling.output, add.output_zero_point,
                    add.clamp_min, add.clamp_max);
  return {add.name, is_swapped ? std::vector{b, a} : std::vector{a, b}, s.steps(), s.constants()};
}

Elementwise make_add(const AddOperator& add) {
  std::optional<Elementwise> affine = make_affine_add(add);
  return affine ? *std::move(affine) : make_stepwise_add(add);
}

// Positions follow each other, each padded to blocks of channels. Where nothing is padded, it does not matter
// where one position ends and the next begins.
bool lie_alike(const UnitActivation& a, const UnitActivation& b) {
  const bool are_whole_blocks = a.channels % kBlock == 0 && b.channels % kBlock == 0;
  return a.channels == b.channels || are_whole_blocks;
}

UnitPlan read_add_unit(const Candidate& c) {
  const ir::Node& sum = *c.node("sum");
  AddOperator add;
  add.name = sum.name;
  add.scale1 = scale_operand(c, sum, 2, "the left scale");
  add.zero_point1 = device_zero_point(c, sum, 3, "the left zero point");
  add.scale2 = scale_operand(c, sum, 4, "the right scale");
  add.zero_point2 = device_zero_point(c, sum, 5, "the right zero point");
  add.output_scale = scale_operand(c, sum, 6, "the output's scale");
  add.output_zero_point = device_zero_point(c, sum, 7, "the output's zero point");
  const layer::Clamp clamp = device_clamp(c);
  add.clamp_min = clamp.min;
  add.clamp_max = clamp.max;
  return elementwise_plan(plan_unit(c, sum.name, {sum.operands[0], sum.operands[1]}), make_add(add));
}

UnitPlan read_clip_unit(const Candidate& c) {
  const ir::Node& clip = c.root();
  const layer::Clamp clamp = device_clamp(c);
  return elementwise_plan(plan_unit(c, clip.name, {clip.operands[0]}),
                          make_clip(clip.name, clamp.min, clamp.max));
}

UnitPlan read_rename_unit(const Candidate& c) {
  return {c.root().name, {activation(c, c.root().operands[0])}, activation(c, c.root().results[0]), {}};
}

}  // namespace qplan::vta::compiler
