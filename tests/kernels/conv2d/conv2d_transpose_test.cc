// conv2d_transpose: every variant has the bytes of the definition, each element of the input added to the
// window of outputs that it reaches, in 64 bits; rounding is written out here (TFL2) or that of a power of
// two (F32E).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/support/random.h"
#include "tests/support/step_runner.h"
#include "tests/support/weights.h"

namespace qplan::conv2d_transpose_test {
namespace {

using testing::Random;
using testing::TestStep;

// v * multiplier / 2^31, rounded with halves up, and then / 2^-shift, rounded with halves away from zero.
int64_t scaled(int64_t v, int32_t multiplier, int32_t shift) {
  const int64_t high = (v * multiplier + (int64_t{1} << 30)) >> 31;
  const int64_t half = shift == 0 ? 0 : int64_t{1} << (-shift - 1);
  return high < 0 ? -((-high + half) >> -shift) : (high + half) >> -shift;
}

struct Layer {
  int64_t batch, in_h, in_w, in_c, out_h, out_w, out_c, kernel_h, kernel_w, stride_h, stride_w, pad_top,
      pad_left;
  int32_t input_zero, weights_zero, output_zero, clamp_min, clamp_max;
  bool is_signed, is_f32e;
  uint16_t layout;
  std::vector<int32_t> x, bias, multiplier, shift;
  std::vector<int8_t> weights;  // [o, ky, kx, i]

  static Layer random(uint64_t seed) {
    Random random(seed);
    const auto draw = [&](int64_t low, int64_t high) { return random.integer(low, high); };
    Layer l{};
    l.batch = draw(1, 2), l.in_h = draw(1, 6), l.in_w = draw(1, 9), l.in_c = draw(1, 21),
    l.out_c = draw(1, 37);
    l.kernel_h = draw(1, 5), l.kernel_w = draw(1, 5);
    // Sometimes larger than the kernel: outputs that nothing reaches.
    l.stride_h = draw(1, 3), l.stride_w = draw(1, 3);
    l.pad_top = draw(0, 2), l.pad_left = draw(0, 2);
    l.out_h =
        std::max<int64_t>(1, (l.in_h - 1) * l.stride_h + l.kernel_h - l.pad_top - draw(0, 3) + draw(0, 2));
    l.out_w =
        std::max<int64_t>(1, (l.in_w - 1) * l.stride_w + l.kernel_w - l.pad_left - draw(0, 3) + draw(0, 2));
    l.is_signed = random.chance(0.5), l.is_f32e = random.chance(0.4);
    l.layout = random.chance(0.7) ? kLayout_o16p4 : kLayout_ohwi;
    const int32_t low = l.is_signed ? -128 : 0;
    const auto number = [&] { return static_cast<int32_t>(draw(low, low + 255)); };
    l.input_zero = number(), l.output_zero = number();
    l.weights_zero = random.chance(0.8) ? 0 : static_cast<int32_t>(draw(-128, 127));
    l.clamp_min = random.chance(0.3) ? std::min(l.output_zero, number()) : low;
    l.clamp_max = random.chance(0.3) ? std::max(l.output_zero, number()) : low + 255;
    for (int64_t i = 0; i < l.batch * l.in_h * l.in_w * l.in_c; ++i) l.x.push_back(number());
    for (int64_t i = 0; i < l.out_c * l.kernel_h * l.kernel_w * l.in_c; ++i)
      l.weights.push_back(static_cast<int8_t>(draw(-128, 127)));
    for (int64_t o = 0; o < l.out_c; ++o) {
      l.bias.push_back(static_cast<int32_t>(draw(-20000, 20000)));
      l.multiplier.push_back(static_cast<int32_t>(draw(1 << 30, INT32_MAX)));
      l.shift.push_back(static_cast<int32_t>(draw(-13, -5)));
    }
    return l;
  }

  template <typename T>
  void make_of(TestStep& step) const {
    const auto channels = static_cast<int64_t>(layout_channels(layout, static_cast<uint64_t>(out_c)));
    const auto u = [](int64_t value) { return static_cast<uint32_t>(value); };
    const std::vector<int8_t> packed =
        testing::pack_weights(layout, weights, static_cast<size_t>(out_c),
                              {u(kernel_h), u(kernel_w), u(in_c), u(stride_h), u(stride_w)});
    step.input<T>({batch, in_h, in_w, in_c}, std::vector<T>(x.begin(), x.end()));
    step.constant<int8_t>({static_cast<int64_t>(packed.size())}, packed);
    step.constant<int32_t>({channels}, testing::pack_channels(layout, bias, INT32_MAX));
    if (is_f32e) {
      std::vector<float> scales;
      for (const int32_t s : shift) scales.push_back(std::ldexp(1.0f, s));
      step.constant<float>({channels}, testing::pack_channels(layout, scales, 1.0f));
    } else {
      step.constant<int32_t>({channels}, testing::pack_channels(layout, multiplier, 1 << 30));
      step.constant<int32_t>({channels}, testing::pack_channels(layout, shift, 0));
    }
    step.output<T>({batch, out_h, out_w, out_c});
    step.finish(format::KernelParams_Conv2dParams,
                format::CreateConv2dParams(
                    step.builder(), is_f32e ? format::Contract_F32E : format::Contract_TFL2, layout,
                    u(kernel_h), u(kernel_w), u(stride_h), u(stride_w), 1, 1, u(pad_top), u(pad_left), 1,
                    input_zero, weights_zero, input_zero, output_zero, clamp_min, clamp_max)
                    .Union());
  }
  void make(TestStep& step) const {
    if (is_signed) {
      make_of<int8_t>(step);
    } else {
      make_of<uint8_t>(step);
    }
  }

  std::vector<uint8_t> expected() const {
    std::vector<int64_t> sums;
    for (int64_t i = 0; i < batch * out_h * out_w * out_c; ++i)
      sums.push_back(bias[static_cast<size_t>(i % out_c)]);
    for (int64_t i = 0; i < std::ssize(x); ++i) {
      const int64_t c = i % in_c, at_x = i / in_c % in_w, at_y = i / in_c / in_w % in_h,
                    n = i / in_c / in_w / in_h;
      for (int64_t tap = 0; tap < kernel_h * kernel_w; ++tap) {
        const int64_t y = at_y * stride_h + tap / kernel_w - pad_top;
        const int64_t z = at_x * stride_w + tap % kernel_w - pad_left;
        if (y < 0 || y >= out_h || z < 0 || z >= out_w) continue;
        for (int64_t o = 0; o < out_c; ++o) {
          const int64_t w = weights[static_cast<size_t>((o * kernel_h * kernel_w + tap) * in_c + c)];
          sums[static_cast<size_t>(((n * out_h + y) * out_w + z) * out_c + o)] +=
              (x[static_cast<size_t>(i)] - input_zero) * (w - weights_zero);
        }
      }
    }
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto o = i % static_cast<size_t>(out_c);
      const auto rounded =
          is_f32e ? static_cast<int64_t>(std::nearbyint(std::ldexp(static_cast<float>(sums[i]), shift[o])))
                  : scaled(sums[i], multiplier[o], shift[o]);
      bytes.push_back(static_cast<uint8_t>(std::clamp<int64_t>(rounded + output_zero, clamp_min, clamp_max)));
    }
    return bytes;
  }
};

class Conv2dTransposeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, Conv2dTransposeVariant,
                         ::testing::ValuesIn(testing::variants_of(kConv2dTransposeFamily)),
                         testing::variant_test_name);

TEST_P(Conv2dTransposeVariant, HasTheBytesOfTheDefinition) {
  size_t num_run = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const Layer layer = Layer::random(seed);
    TestStep step(kKernel_conv2d_transpose);
    layer.make(step);
    if (!testing::run_step(step, kConv2dTransposeFamily, *GetParam(), seed)) continue;
    ++num_run;
    ASSERT_EQ(testing::output_values<uint8_t>(step), layer.expected()) << "seed " << seed;
  }
  EXPECT_GE(num_run, 60u);
}

}  // namespace
}  // namespace qplan::conv2d_transpose_test
