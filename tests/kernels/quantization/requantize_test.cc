// Every variant of requantize against exact roundings in 128 bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/quantization/quantization.h"
#include "src/runtime/bind/family.h"
#include "tests/support/buffer.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/operands.h"
#include "tests/support/random.h"
#include "tests/support/variants.h"

namespace qplan::requantize_test {
namespace {

using testing::Buffer;
using testing::OutputBuffer;
using testing::Random;

// What testing::exact_output and exact_form_output ask for.
struct Channel {
  std::vector<int32_t> multiplier, shift;
  std::vector<float> scale;
  std::vector<float> float_scale = {}, float_offset = {};
};

// The reference passes over float epilogues, and SSE4.1 has no fused multiply-add.
int32_t exact_output_of(const KernelVariant& variant, const RequantizeArgs& args, const Channel& channel,
                        int64_t difference, size_t c) {
  return variant.isa <= QPLAN_ISA_SSE41 ? testing::exact_output(args, channel, difference, c)
                                        : testing::exact_form_output(args, channel, difference, c);
}

class RequantizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // Runs args over values, all at once or in pieces, and compares; true if the variant takes the args.
  template <typename In>
  bool expect_correct(RequantizeArgs args, const std::vector<In>& values, uint64_t seed,
                      bool in_pieces = false) {
    const KernelVariant& variant = *GetParam();
    std::vector<int32_t> expected;
    Channel channel = {{args.multiplier}, {args.shift}, {args.scale}};
    if (args.float_epilogue != FloatEpilogue::kNone) {
      channel.float_scale = {args.float_scale[0]};
      channel.float_offset = {args.float_offset[0]};
    }
    for (const In value : values) {
      const auto difference = static_cast<int64_t>(testing::wrap32(int64_t{value} - args.input_zero_point));
      expected.push_back(exact_output_of(variant, args, channel, difference, 0));
    }
    const Buffer<In> input(values, seed % 5);
    OutputBuffer<uint8_t> output(values.size(), seed % 3);
    args.input = input.data();
    args.output = output.data();
    args.count = values.size();
    if (!variant.accepts(&args)) return false;
    if (in_pieces) {
      testing::run_variant_in_pieces(variant, &args, seed);
    } else {
      testing::run_variant(variant, &args);
    }
    EXPECT_EQ(testing::from_bytes(output.values(), args.output_dtype), expected) << "seed " << seed;
    EXPECT_TRUE(output.guards_intact()) << "seed " << seed;
    return true;
  }

  // A random problem of count elements.
  template <typename In>
  bool expect_random_correct(Dtype input_dtype, size_t count, uint64_t seed, bool in_pieces = false) {
    Random random(seed);
    RequantizeArgs args;
    args.input_dtype = input_dtype;
    args.output_dtype = random.chance(0.5) ? Dtype::kU8 : Dtype::kS8;
    args.output_zero_point = testing::random_zero_point(random, args.output_dtype);
    testing::random_clamp(random, args.output_dtype, &args.clamp_min, &args.clamp_max);
    std::vector<In> values = random.full_range<In>(count);
    double largest = 255;
    if (sizeof(In) == 1) {
      args.input_zero_point = testing::random_zero_point(random, input_dtype);
    } else {
      args.input_zero_point = random.pick(std::vector<int32_t>{0, 0, 128, INT32_MAX, INT32_MIN});
      // Half of the problems keep to accumulators of a usual size.
      if (random.chance(0.5)) {
        values = random.integers<In>(count, -(1 << 20), 1 << 20);
        largest = 1 << 20;
      }
    }
    const testing::ChannelScale scale = testing::random_scale(random, largest);
    args.contract = testing::random_contract(random);
    // 8 bits to 8 bits are a table under F32E.
    if (sizeof(In) == 1 && args.contract == Contract::kF32e) args.contract = Contract::kTfl2;
    args.multiplier = scale.multiplier;
    args.shift = scale.shift;
    args.scale = scale.scale;
    Channel channel = {{args.multiplier}, {args.shift}, {args.scale}};
    testing::draw_float_epilogue(random, &args, &channel, 1, 1);
    args.float_scale = channel.float_scale.data();
    args.float_offset = channel.float_offset.data();
    return expect_correct(args, values, seed, in_pieces);
  }

  bool expect_random_correct(size_t count, uint64_t seed, bool in_pieces = false) {
    switch (seed % 3) {
      case 0:
        return expect_random_correct<uint8_t>(Dtype::kU8, count, seed, in_pieces);
      case 1:
        return expect_random_correct<int8_t>(Dtype::kS8, count, seed, in_pieces);
      default:
        return expect_random_correct<int32_t>(Dtype::kS32, count, seed, in_pieces);
    }
  }
};

// Random channels along an axis: outer * channels * inner elements of int32.
class PerChannel : public RequantizeVariant {
 protected:
  bool expect_correct(uint64_t seed, uint32_t outer, uint32_t channels, uint32_t inner,
                      bool in_pieces = false) {
    Random random(seed);
    RequantizeArgs args;
    args.input_dtype = Dtype::kS32;
    args.output_dtype = random.chance(0.5) ? Dtype::kU8 : Dtype::kS8;
    args.output_zero_point = testing::random_zero_point(random, args.output_dtype);
    testing::random_clamp(random, args.output_dtype, &args.clamp_min, &args.clamp_max);
    args.input_zero_point = random.pick(std::vector<int32_t>{0, 0, 0, -7, INT32_MAX, INT32_MIN});
    args.contract = testing::random_contract(random);
    args.channels = channels;
    args.inner = inner;
    args.count = uint64_t{outer} * channels * inner;
    Channel channel;
    for (uint32_t c = 0; c < channels; ++c) {
      const testing::ChannelScale scale = testing::random_scale(random, 1 << 20);
      channel.multiplier.push_back(scale.multiplier);
      channel.shift.push_back(scale.shift);
      channel.scale.push_back(scale.scale);
    }
    testing::draw_float_epilogue(random, &args, &channel, channels, 16);
    const std::vector<int32_t> values = random.chance(0.5)
                                            ? random.full_range<int32_t>(args.count)
                                            : random.integers<int32_t>(args.count, -(1 << 20), 1 << 20);
    std::vector<int32_t> expected;
    size_t at = 0;
    for (uint32_t n = 0; n < outer; ++n) {
      for (uint32_t c = 0; c < channels; ++c) {
        for (uint32_t i = 0; i < inner; ++i) {
          const auto difference =
              static_cast<int64_t>(testing::wrap32(int64_t{values[at++]} - args.input_zero_point));
          // Only channels along the last axis are computed by vectors.
          expected.push_back(inner == 1 || channels == 1
                                 ? exact_output_of(*GetParam(), args, channel, difference, c)
                                 : testing::exact_output(args, channel, difference, c));
        }
      }
    }
    const Buffer<int32_t> input(values, seed % 5), multiplier(channel.multiplier), shift(channel.shift);
    const Buffer<float> scale(channel.scale), float_scale(channel.float_scale),
        float_offset(channel.float_offset);
    args.float_scale = float_scale.data();
    args.float_offset = float_offset.data();
    OutputBuffer<uint8_t> output(values.size(), seed % 3);
    args.input = input.data();
    args.output = output.data();
    if (args.contract == Contract::kF32e) {
      args.scales = scale.data();
    } else {
      args.multipliers = multiplier.data();
      args.shifts = shift.data();
    }
    const KernelVariant& variant = *GetParam();
    if (!variant.accepts(&args)) return false;
    if (in_pieces) {
      testing::run_variant_in_pieces(variant, &args, seed);
    } else {
      testing::run_variant(variant, &args);
    }
    EXPECT_EQ(testing::from_bytes(output.values(), args.output_dtype), expected) << "seed " << seed;
    EXPECT_TRUE(output.guards_intact()) << "seed " << seed;
    return true;
  }
};

INSTANTIATE_TEST_SUITE_P(All, PerChannel, ::testing::ValuesIn(testing::variants_of(kRequantizeFamily)),
                         testing::variant_test_name);

TEST_P(PerChannel, EqualsTheExactRoundings) {
  uint32_t accepted = 0;
  for (uint64_t seed = 4000; seed < 4300 && !HasFailure(); ++seed) {
    const auto channels = static_cast<uint32_t>(1 + seed % 37);
    accepted += expect_correct(seed, static_cast<uint32_t>(1 + seed % 5), channels,
                               seed % 2 == 0 ? 1 : 1 + seed % 11);
  }
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

TEST_P(PerChannel, ChannelsGoOnWhereAChunkEnds) {
  uint64_t seed = 5000;
  for (const uint32_t channels : {1u, 3u, 8u, 16u, 100u, 4095u, 4097u, 9000u}) {
    expect_correct(++seed, 20000 / channels + 1, channels, 1, true);
    expect_correct(++seed, 2, channels, 5, true);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RequantizeVariant, ::testing::ValuesIn(testing::variants_of(kRequantizeFamily)),
                         testing::variant_test_name);

TEST_P(RequantizeVariant, EqualsTheExactRoundingsForRandomProblems) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed)
    accepted += expect_random_correct(1 + seed % 71, seed);
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

TEST_P(RequantizeVariant, TakesCountsAroundTheChunk) {
  uint64_t seed = 1000;
  for (const size_t count : {4095, 4096, 4097, 8191, 12289}) {
    for (int dtype = 0; dtype < 3; ++dtype) expect_random_correct(count, ++seed);
  }
}

TEST_P(RequantizeVariant, AnyPartitionOfWorkItemsGivesTheSameBytes) {
  for (uint64_t seed = 2000; seed < 2012; ++seed) expect_random_correct(30000, seed, true);
}

TEST_P(RequantizeVariant, MayWriteOverAn8BitInput) {
  Random random(3000);
  const std::vector<uint8_t> values = random.full_range<uint8_t>(10000);
  Buffer<uint8_t> data(values);
  RequantizeArgs args;
  args.input = args.output = data.data();
  args.count = values.size();
  args.input_zero_point = 128;
  args.multiplier = 1 << 30;  // times 1
  args.shift = 1;
  args.clamp_min = -128;
  args.clamp_max = 127;
  args.input_dtype = Dtype::kU8;
  args.output_dtype = Dtype::kS8;
  if (!GetParam()->accepts(&args)) {
    EXPECT_NE(GetParam()->isa, uint32_t{QPLAN_ISA_REFERENCE}) << "the reference takes all there is";
    return;
  }
  testing::run_variant(*GetParam(), &args);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(static_cast<int8_t>(data.data()[i]), values[i] - 128) << i;
  }
}

TEST_P(RequantizeVariant, RoundsTwiceAndSaturates) {
  RequantizeArgs args;
  args.multiplier = 1 << 30;  // times 0.5, then 0.5 again
  args.shift = -1;
  args.output_zero_point = 1;
  args.clamp_min = -128;
  args.clamp_max = 127;
  args.input_dtype = Dtype::kS32;
  args.output_dtype = Dtype::kS8;
  // 1: 0.5 -> 1, 0.5 -> 1; -1: -0.5 -> 0; -3: -1.5 -> -1, -0.5 -> -1; the zero point shifts all by one.
  const std::vector<int32_t> values = {1, -1, -3, INT32_MAX, INT32_MIN};
  EXPECT_TRUE(expect_correct(args, values, 0) || GetParam()->isa != QPLAN_ISA_REFERENCE);
  std::vector<int8_t> out(values.size());
  args.input = values.data();
  args.output = out.data();
  args.count = values.size();
  if (!GetParam()->accepts(&args)) GTEST_SKIP() << GetParam()->name << " does not take int32 to int8";
  testing::run_variant(*GetParam(), &args);
  EXPECT_EQ(out, (std::vector<int8_t>{2, 1, 0, 127, -128}));
}

}  // namespace
}  // namespace qplan::requantize_test
