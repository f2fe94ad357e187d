// Step by step. The input with the larger scale has the multiplier 1/2: its requantised value is d 2^19, with
// d = x - zero_point, |d| <= 255. The other one's, with a multiplier M = mh 2^11 + ml and a right shift r, is
// v = floor((d M + 2^10) / 2^11) = d mh + ((d ml + 2^10) >> 11), then rounded by r. mh < 2^20 and ml < 2^11:
// nothing leaves 29 bits. The sum is below 2^28, so that the sequence for TFL2 (requantize.h) is exact.
#include "src/vta/compiler/add.h"

#include <algorithm>
#include <array>

#include "kernels/numeric/quantize_multiplier.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/exact_affine.h"
#include "src/vta/compiler/step_list.h"

namespace qplan::target::vta {
namespace {

using ::qplan::vta::AluOp;

constexpr int32_t kLeftShift = 20;
constexpr QuantizedMultiplier kHalf = {1 << 30, 0};

struct Scaling {
  QuantizedMultiplier multiplier1, multiplier2, output;
};

// As TFLite's Prepare computes it.
Scaling scaling_of(const AddOperator& add) {
  const double scale1 = static_cast<double>(add.scale1), scale2 = static_cast<double>(add.scale2);
  const double twice_max = 2.0 * std::max(scale1, scale2);
  const Scaling scaling = {quantize_multiplier(scale1 / twice_max), quantize_multiplier(scale2 / twice_max),
                           quantize_multiplier(twice_max / (static_cast<double>(1 << kLeftShift) *
                                                            static_cast<double>(add.output_scale)))};
  if (scaling.output.shift > 0) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: '", add.name, "': the output's scale is too small for those of the inputs"));
  }
  return scaling;
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

}  // namespace

std::optional<Elementwise> make_affine_add(const AddOperator& add) {
  const Scaling scaling = scaling_of(add);
  const auto table = [](int32_t zero_point, const QuantizedMultiplier& m) {
    std::array<int32_t, 256> values;
    for (int32_t x = -128; x < 128; ++x) {
      values[static_cast<size_t>(x + 128)] =
          requantize_tfl2((x - zero_point) * (1 << kLeftShift), m.multiplier, m.shift);
    }
    return values;
  };
  const auto first = table(add.zero_point1, scaling.multiplier1);
  const auto second = table(add.zero_point2, scaling.multiplier2);
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
  const Scaling scaling = scaling_of(add);
  // The input with the multiplier 1/2 is in the accumulator.
  const bool is_swapped = !is_half(scaling.multiplier1);
  const QuantizedMultiplier& other = is_swapped ? scaling.multiplier1 : scaling.multiplier2;
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

}  // namespace qplan::target::vta
