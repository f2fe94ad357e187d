// Convolutions for tests: random problems, an oracle in double precision, and the buffers of one run.
#ifndef QPLAN_TESTS_SUPPORT_CONV2D_PROBLEM_H_
#define QPLAN_TESTS_SUPPORT_CONV2D_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "kernels/conv2d/conv2d.h"
#include "tests/support/buffer.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/operands.h"
#include "tests/support/random.h"
#include "tests/support/variants.h"
#include "tests/support/weights.h"

namespace qplan::testing {

struct Conv2dProblem {
  uint64_t seed = 0;
  // Geometry and scalars; the pointers stay null.
  Conv2dArgs args;
  Values values = Values::kWithEnds;
  Bias bias_kind = Bias::kSmall;
  int32_t largest_weight = 128;  // either way
  // Operands in natural order: input NHWC, weights OHWI.
  std::vector<int32_t> input;
  std::vector<int8_t> weights;
  std::vector<int32_t> bias, multiplier, shift;
  std::vector<int32_t> weight_rests;  // channel, k and rest of each of args.num_weight_rests
  std::vector<float> scale;
  std::vector<float> given_scales;  // in turn, in the place of drawn ones; for F32E
  std::vector<float> float_scale, float_offset;
  std::vector<int32_t> expected, form_expected;  // by the contract; by the float epilogue where there is one

  size_t group_c() const { return args.input_c / args.groups; }
  size_t num_k() const { return size_t{args.kernel_h} * args.kernel_w * group_c(); }
  LayoutWindow window() const { return {args.kernel_h, args.kernel_w, group_c()}; }
  size_t num_outputs() const { return size_t{args.batch} * args.output_h * args.output_w * args.output_c; }

  std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ": " << args.batch << "x" << args.input_h << "x" << args.input_w << "x"
        << args.input_c << " -> " << args.output_h << "x" << args.output_w << "x" << args.output_c
        << ", kernel " << args.kernel_h << "x" << args.kernel_w << ", stride " << args.stride_h << "x"
        << args.stride_w << ", dilation " << args.dilation_h << "x" << args.dilation_w << ", pad "
        << args.pad_top << "," << args.pad_left << ", groups " << args.groups << ", zero points "
        << args.input_zero_point << " " << args.weights_zero_point << " " << args.output_zero_point
        << ", pad value " << args.pad_value << ", clamp " << args.clamp_min << ".." << args.clamp_max << ", "
        << dtype_name(args.input_dtype) << " -> " << dtype_name(args.output_dtype) << ", layout "
        << layout_name(args.weights_layout) << ", contract " << static_cast<int>(args.contract)
        << ", float epilogue " << static_cast<int>(args.float_epilogue) << ", rests "
        << static_cast<int>(args.num_weight_rests);
    return out.str();
  }
};

// True sums [n, y, x, o], exact in double: the padded input, shifted by its zero point, is multiplied tap by
// tap with the weights of a group, for all positions and outputs at once.
inline xt::xtensor<double, 4> conv2d_sums(const Conv2dProblem& problem) {
  const Conv2dArgs& a = problem.args;
  const size_t reach_h = size_t{a.output_h - 1} * a.stride_h + size_t{a.kernel_h - 1} * a.dilation_h + 1;
  const size_t reach_w = size_t{a.output_w - 1} * a.stride_w + size_t{a.kernel_w - 1} * a.dilation_w + 1;
  const size_t padded_h = std::max<size_t>(reach_h, a.pad_top + a.input_h);
  const size_t padded_w = std::max<size_t>(reach_w, a.pad_left + a.input_w);
  xt::xtensor<double, 4> padded({a.batch, padded_h, padded_w, a.input_c}, a.pad_value);
  xt::view(padded, xt::all(), xt::range(a.pad_top, a.pad_top + a.input_h),
           xt::range(a.pad_left, a.pad_left + a.input_w), xt::all()) =
      xt::adapt(problem.input, std::vector<size_t>{a.batch, a.input_h, a.input_w, a.input_c});
  padded -= a.input_zero_point;
  const size_t group_c = problem.group_c(), group_o = a.output_c / a.groups;
  xt::xtensor<double, 4> weights =
      xt::adapt(problem.weights, std::vector<size_t>{a.output_c, a.kernel_h, a.kernel_w, group_c});
  weights -= a.weights_zero_point;
  for (size_t i = 0; i < problem.weight_rests.size(); i += 3) {
    const auto channel = static_cast<size_t>(problem.weight_rests[i]),
               k = static_cast<size_t>(problem.weight_rests[i + 1]);
    weights.data()[channel * problem.num_k() + k] += problem.weight_rests[i + 2];
  }

  xt::xtensor<double, 4> sums({a.batch, a.output_h, a.output_w, a.output_c}, 0.0);
  for (size_t o = 0; o < a.output_c; ++o)
    xt::view(sums, xt::all(), xt::all(), xt::all(), o) = problem.bias[o];
  for (size_t g = 0; g < a.groups; ++g) {
    auto group_sums =
        xt::view(sums, xt::all(), xt::all(), xt::all(), xt::range(g * group_o, (g + 1) * group_o));
    for (size_t ky = 0; ky < a.kernel_h; ++ky) {
      for (size_t kx = 0; kx < a.kernel_w; ++kx) {
        const size_t y = ky * a.dilation_h, x = kx * a.dilation_w;
        for (size_t i = 0; i < group_c; ++i) {
          const xt::xtensor<double, 3> tap = xt::view(
              padded, xt::all(), xt::range(y, y + size_t{a.output_h - 1} * a.stride_h + 1, a.stride_h),
              xt::range(x, x + size_t{a.output_w - 1} * a.stride_w + 1, a.stride_w), g * group_c + i);
          const xt::xtensor<double, 1> w =
              xt::view(weights, xt::range(g * group_o, (g + 1) * group_o), ky, kx, i);
          group_sums += xt::view(tap, xt::all(), xt::all(), xt::all(), xt::newaxis()) * w;
        }
      }
    }
  }
  return sums;
}

// For given_scales: all below 1, by as little as there is; none; one in the second group of 16 channels.
inline std::vector<std::vector<float>> scales_around_one() {
  constexpr float kBelow = 0x1.fffffep-1f;
  std::vector<float> one_in_many(37, 0.001f);
  one_in_many[20] = 1.0f;
  return {{kBelow, 0.25f, 1e-9f}, {1.0f, 3.0f, 1e6f, 0x1p100f}, one_in_many};
}

// Draws operands for the geometry in `args`, scales that suit them, and the expected output.
inline void fill_conv2d_problem(Random& random, Conv2dProblem* problem) {
  Conv2dArgs& a = problem->args;
  problem->input.clear();
  for (size_t i = 0; i < size_t{a.batch} * a.input_h * a.input_w * a.input_c; ++i) {
    problem->input.push_back(random_value(random, a.input_dtype, problem->values));
  }
  problem->weights.clear();
  for (size_t i = 0; i < problem->num_k() * a.output_c; ++i) {
    const int32_t weight = random_value(random, Dtype::kS8, problem->values), most = problem->largest_weight;
    problem->weights.push_back(static_cast<int8_t>(std::clamp(weight, -most, most)));
  }
  problem->bias.clear();
  for (size_t o = 0; o < a.output_c; ++o) problem->bias.push_back(random_bias(random, problem->bias_kind));
  problem->weight_rests.clear();
  for (uint32_t i = 0; i < a.num_weight_rests; ++i) {
    problem->weight_rests.push_back(static_cast<int32_t>(random.integer(0, int64_t{a.output_c} - 1)));
    problem->weight_rests.push_back(
        static_cast<int32_t>(random.integer(0, static_cast<int64_t>(problem->num_k()) - 1)));
    problem->weight_rests.push_back(random_value(random, Dtype::kS8, problem->values));
  }

  const xt::xtensor<double, 4> sums = conv2d_sums(*problem);
  problem->multiplier.clear();
  problem->shift.clear();
  problem->scale.clear();
  for (size_t o = 0; o < a.output_c; ++o) {
    const double largest = xt::amax(xt::abs(xt::view(sums, xt::all(), xt::all(), xt::all(), o)))();
    const ChannelScale scale = random_scale(random, largest);
    problem->multiplier.push_back(scale.multiplier);
    problem->shift.push_back(scale.shift);
    const std::vector<float>& given = problem->given_scales;
    problem->scale.push_back(given.empty() ? scale.scale : given[o % given.size()]);
  }
  draw_float_epilogue(random, &a, problem);
  problem->expected.clear();
  problem->form_expected.clear();
  size_t at = 0;
  for (const double sum : sums) {
    const size_t o = at++ % a.output_c;
    const auto wrapped = static_cast<int64_t>(wrap32(static_cast<int64_t>(sum)));
    problem->expected.push_back(exact_output(a, *problem, wrapped, o));
    problem->form_expected.push_back(exact_form_output(a, *problem, wrapped, o));
  }
}

// Zero points, clamps, dtypes: anything legal.
inline void draw_conv2d_scalars(Random& random, Conv2dArgs* a) {
  const std::vector<Dtype> dtypes = {Dtype::kU8, Dtype::kS8};
  a->input_dtype = random.pick(dtypes);
  a->output_dtype = random.pick(dtypes);
  a->input_zero_point = random_zero_point(random, a->input_dtype);
  // Mostly symmetric weights and padding with zeros, as networks have them.
  a->weights_zero_point = random.chance(0.5) ? 0 : random_zero_point(random, Dtype::kS8);
  a->pad_value =
      random.chance(0.75) ? a->input_zero_point : random_value(random, a->input_dtype, Values::kWithEnds);
  a->output_zero_point = random_zero_point(random, a->output_dtype);
  random_clamp(random, a->output_dtype, &a->clamp_min, &a->clamp_max);
  a->contract = random_contract(random);
}

// Output extents from the input's, with `after` rows or columns of padding after it; false where no output is
// left.
inline bool set_output_extents(Conv2dArgs* a, uint32_t pad_bottom, uint32_t pad_right) {
  const int64_t room_h =
      int64_t{a->input_h} + a->pad_top + pad_bottom - int64_t{a->kernel_h - 1} * a->dilation_h - 1;
  const int64_t room_w =
      int64_t{a->input_w} + a->pad_left + pad_right - int64_t{a->kernel_w - 1} * a->dilation_w - 1;
  if (room_h < 0 || room_w < 0) return false;
  a->output_h = static_cast<uint32_t>(room_h / a->stride_h) + 1;
  a->output_w = static_cast<uint32_t>(room_w / a->stride_w) + 1;
  return true;
}

// Windows, strides, dilations, pads for given channels; small images.
inline void draw_conv2d_geometry(Random& random, Conv2dArgs* a) {
  const auto draw = [&](int64_t lo, int64_t hi) { return static_cast<uint32_t>(random.integer(lo, hi)); };
  do {
    a->batch = draw(1, 2);
    a->input_h = draw(1, 9);
    a->input_w = draw(1, 9);
    a->kernel_h = draw(1, 5);
    a->kernel_w = random.chance(0.5) ? a->kernel_h : draw(1, 5);
    a->stride_h = draw(1, 3);
    a->stride_w = random.chance(0.5) ? a->stride_h : draw(1, 3);
    a->dilation_h = random.chance(0.7) ? 1 : draw(1, 3);
    a->dilation_w = random.chance(0.7) ? a->dilation_h : draw(1, 3);
    a->pad_top = draw(0, a->kernel_h);
    a->pad_left = draw(0, a->kernel_w);
  } while (!set_output_extents(a, draw(0, 3), draw(0, 3)));
}

// A convolution whose output may be written over the beginning of its input: each window begins no earlier
// in the input than its pixel in the output.
inline void draw_overwriting_geometry(Random& random, Conv2dArgs* a) {
  const auto draw = [&](int64_t lo, int64_t hi) { return static_cast<uint32_t>(random.integer(lo, hi)); };
  const auto fits = [&] {
    return a->stride_w * a->input_c >= a->output_c &&
           a->stride_h * a->input_w * a->input_c >= a->output_w * a->output_c &&
           a->output_h * a->output_w * a->output_c < a->input_h * a->input_w * a->input_c;
  };
  do {
    draw_conv2d_geometry(random, a);
    a->groups = 1;
    a->pad_top = a->pad_left = 0;
    a->dilation_w = 1;
    a->input_w += draw(0, 20);
    a->input_c = draw(1, 20);
    a->output_c = random.chance(0.5) ? a->stride_w * a->input_c : draw(1, 40);
  } while (!set_output_extents(a, draw(0, 3), draw(0, 3)) || !fits());
}

// The operands of one run where kernels expect them. Activations may have any address.
class Conv2dRun {
 public:
  explicit Conv2dRun(const Conv2dProblem& problem)
      : args_(problem.args),
        input_(to_bytes(problem.input), problem.seed % 5),
        weights_(pack_weights(args_.weights_layout, problem.weights, args_.output_c, problem.window())),
        bias_(with_rests(pack_channels(args_.weights_layout, problem.bias, int32_t{12345}), problem)),
        multiplier_(pack_channels(args_.weights_layout, problem.multiplier, int32_t{INT32_MAX})),
        scale_(pack_channels(args_.weights_layout, problem.scale, FLT_MAX)),
        shift_(pack_channels(args_.weights_layout, problem.shift, int32_t{-31})),
        float_scale_(pack_channels(args_.weights_layout, problem.float_scale, FLT_MAX)),
        float_offset_(pack_channels(args_.weights_layout, problem.float_offset, -FLT_MAX)),
        output_(problem.num_outputs() * dtype_bytes(args_.output_dtype),
                problem.seed % 3 * dtype_bytes(args_.output_dtype)) {
    args_.input = input_.data();
    args_.weights = weights_.data();
    args_.int16_groups =
        int16_groups(pack_weights(args_.weights_layout, problem.weights, args_.output_c, problem.window()));
    args_.bias = bias_.data();
    if (args_.contract == Contract::kF32e) {
      args_.scale = scale_.data();
    } else if (args_.contract != Contract::kAcc32) {
      args_.multiplier = multiplier_.data();
      args_.shift = shift_.data();
    }
    if (args_.float_epilogue != FloatEpilogue::kNone) {
      args_.float_scale = float_scale_.data();
      args_.float_offset = float_offset_.data();
    }
    args_.output = output_.data();
  }
  Conv2dRun(const Conv2dRun&) = delete;
  Conv2dRun& operator=(const Conv2dRun&) = delete;

  const Conv2dArgs& args() const { return args_; }
  std::vector<int32_t> output() { return from_bytes(output_.values(), args_.output_dtype); }
  bool guards_intact() const { return output_.guards_intact(); }

 private:
  static std::vector<int32_t> with_rests(std::vector<int32_t> bias, const Conv2dProblem& problem) {
    bias.insert(bias.end(), problem.weight_rests.begin(), problem.weight_rests.end());
    return bias;
  }

  Conv2dArgs args_;
  Buffer<uint8_t> input_;
  Buffer<int8_t> weights_;
  Buffer<int32_t> bias_, multiplier_;
  Buffer<float> scale_;
  Buffer<int32_t> shift_;
  Buffer<float> float_scale_, float_offset_;
  OutputBuffer<uint8_t> output_;
};

// A residual, with a sum as networks have them. Its floats are not proved: a variant that uses them gives
// other bytes than the integers do.
inline void draw_residual_sum(Random& random, Conv2dArgs* args) {
  AddFormula& sum = args->residual_sum;
  args->has_residual = true;
  args->residual_is_a = random.chance(0.5);
  sum.contract = random.chance(0.7) ? Contract::kTfl2 : Contract::kF32e;
  sum.dtype = args->output_dtype;
  sum.left_shift = 20;
  const auto multiplier = [&] { return static_cast<int32_t>(random.integer(1 << 30, INT32_MAX)); };
  sum.input1_multiplier = multiplier();
  sum.input2_multiplier = multiplier();
  sum.output_multiplier = multiplier();
  sum.input1_shift = -static_cast<int32_t>(random.integer(0, 3));
  sum.input2_shift = -static_cast<int32_t>(random.integer(0, 3));
  sum.output_shift = -static_cast<int32_t>(random.integer(16, 20));
  sum.input1_zero_point = random_zero_point(random, sum.dtype);
  sum.input2_zero_point = random_zero_point(random, sum.dtype);
  sum.output_zero_point = random_zero_point(random, sum.dtype);
  random_clamp(random, sum.dtype, &sum.clamp_min, &sum.clamp_max);
  sum.input1_scale = 0.031f;
  sum.input2_scale = 0.0173f;
  sum.output_scale = 0.042f;
  if (sum.contract == Contract::kTfl2 && random.chance(0.6)) {
    sum.float_scale1 = static_cast<float>(random.integer(1, 1000)) / 700.0f;
    sum.float_scale2 = static_cast<float>(random.integer(1, 1000)) / 700.0f;
    sum.float_offset = static_cast<float>(random.integer(-9000, 9000)) / 100.0f;
  }
}

// True if the variant takes the problem; then its output was compared with what is expected, or with what the
// contract makes, where a variant may choose between that and a float epilogue.
inline bool expect_outputs(const KernelVariant& variant, const Conv2dProblem& problem,
                           const std::vector<int32_t>& expected, const std::vector<int32_t>& contract,
                           bool in_pieces) {
  Conv2dRun run(problem);
  if (!variant.accepts(&run.args())) return false;
  if (in_pieces) {
    run_variant_in_pieces(variant, &run.args(), problem.seed);
  } else {
    run_variant(variant, &run.args());
  }
  const std::vector<int32_t> output = run.output();
  EXPECT_EQ(output, either_expected(expected, contract, output, variant)) << problem.text();
  EXPECT_TRUE(run.guards_intact()) << problem.text();
  return true;
}
inline bool expect_outputs(const KernelVariant& variant, const Conv2dProblem& problem,
                           const std::vector<int32_t>& expected, bool in_pieces) {
  return expect_outputs(variant, problem, expected, expected, in_pieces);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_CONV2D_PROBLEM_H_
