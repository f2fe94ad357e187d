// Hostile steps of the families on integers: what binding refuses, and that what it accepts computes without
// overflow at the ends of every range (under sanitizers that is what these runs are for).
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"
#include "tests/support/test_step.h"

namespace qplan::testing::integer_step_test {
namespace {

using Edit = std::function<void(TestStep&)>;

// ---- int16 layers ----

// conv2d, depthwise_conv2d and conv2d_transpose of one element, or fully_connected.
struct WideLayer {
  KernelId kernel = kKernel_conv2d;
  std::vector<int16_t> input = {-32768, 32767};
  std::vector<int64_t> bias = {INT64_MAX, INT64_MIN};
  std::vector<int32_t> multiplier = {INT32_MAX, INT32_MAX}, shift = {7, -31};
  format::Contract contract = format::Contract_TFL2;
  uint16_t layout = kLayout_ohwi;
  int32_t input_zero_point = 32767, weights_zero_point = 127;
  uint32_t groups = 1, stride = 1, dilation = 1, kernel_h = 1;
  Edit edit = [](TestStep&) {};

  void make(TestStep& step) const {
    step.input<int16_t>({1, 1, 1, 2}, input);
    step.constant<int8_t>({4}, {-128, -128, 127, -128});
    step.constant<int64_t>({2}, bias);
    step.constant<int32_t>({2}, multiplier);
    step.constant<int32_t>({2}, shift);
    step.output<int16_t>({1, 1, 1, 2});
    edit(step);
    flatbuffers::FlatBufferBuilder& b = step.builder();
    if (kernel == kKernel_fully_connected) {
      step.finish(format::KernelParams_FullyConnectedParams,
                  format::CreateFullyConnectedParams(b, contract, layout, input_zero_point,
                                                     weights_zero_point, -32768, -32768, 32767)
                      .Union());
      return;
    }
    step.finish(
        format::KernelParams_Conv2dParams,
        format::CreateConv2dParams(b, contract, layout, kernel_h, 1, stride, stride, dilation, dilation, 0, 0,
                                   groups, input_zero_point, weights_zero_point, 0, -32768, -32768, 32767)
            .Union());
  }
};

const KernelFamily& family_of(KernelId kernel) { return *qplan_kernels_all()->families[kernel]; }

TEST(IntegerStep, WideAccumulatorsWrapAndNothingElseHappens) {
  for (const KernelId kernel : {kKernel_conv2d, kKernel_conv2d_transpose, kKernel_fully_connected}) {
    WideLayer layer;
    layer.kernel = kernel;
    TestStep step(kernel);
    layer.make(step);
    EXPECT_EQ(run_reference<int16_t>(step, family_of(kernel)).size(), 2u);
  }
}

TEST(IntegerStep, WideLayersAreRefusedWhereTheyAreWrong) {
  for (const KernelId kernel : {kKernel_conv2d, kKernel_conv2d_transpose, kKernel_fully_connected}) {
    std::vector<Refusal<WideLayer>> refusals = {
        {[](WideLayer& l) {
           l.shift = {8, 0};
         },
         "shift 8 of channel 0"},
        {[](WideLayer& l) {
           l.multiplier = {-1, 0};
         },
         "multiplier -1 of channel 0"},
        {[](WideLayer& l) { l.edit = [](TestStep& s) { s.tensor(2).size = 8; }; }, "bias"},
        {[](WideLayer& l) { l.edit = [](TestStep& s) { s.tensor(2).offset = 4; }; }, "bias"},
        {[](WideLayer& l) { l.edit = [](TestStep& s) { s.tensor(5).type_bits = 32; }; }, "output has int32"},
        {[](WideLayer& l) { l.edit = [](TestStep& s) { s.tensor(0).type_code = 1; }; }, "input"},
        {[](WideLayer& l) { l.contract = format::Contract_TFL1; }, "only TFL2", QPLAN_KERNEL_MISSING},
        {[](WideLayer& l) { l.layout = kLayout_o16k4; }, "weights layout"},
        {[](WideLayer& l) { l.weights_zero_point = 128; }, "weights zero point"},
    };
    for (Refusal<WideLayer>& refusal : refusals) {
      refusal.change = [change = refusal.change, kernel](WideLayer& l) {
        l.kernel = kernel;
        change(l);
      };
    }
    expect_refusals(family_of(kernel), refusals);
  }
}

TEST(IntegerStep, ResidualsOfSixteenBitsAreRefused) {
  const WideLayer layer;
  TestStep step(kKernel_conv2d);
  flatbuffers::FlatBufferBuilder& b = step.builder();
  step.input<int16_t>({1, 1, 1, 2}, layer.input);
  step.constant<int8_t>({4}, {1, 2, 3, 4});
  step.constant<int64_t>({2}, layer.bias);
  step.constant<int32_t>({2}, layer.multiplier);
  step.constant<int32_t>({2}, layer.shift);
  step.inputs().push_back(0);
  step.output<int16_t>({1, 1, 1, 2});
  const auto sum = format::CreateAddParams(b, format::Contract_TFL2);
  step.finish(format::KernelParams_Conv2dParams,
              format::CreateConv2dParams(b, format::Contract_TFL2, kLayout_ohwi, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0,
                                         0, 0, 0, -32768, 32767)
                  .Union(),
              sum);
  ArgsStorage args;
  Error error;
  EXPECT_LT(step.bind(kConv2dFamily, &args, &error), 0);
  EXPECT_NE(std::string(error.text()).find("not to int16"), std::string::npos) << error.text();
}

TEST(IntegerStep, TransposedConvolutionsAreRefusedWhereTheyAreWrong) {
  const auto with = [](std::function<void(WideLayer&)> change) {
    return [change = std::move(change)](WideLayer& l) {
      l.kernel = kKernel_conv2d_transpose;
      change(l);
    };
  };
  const std::vector<Refusal<WideLayer>> refusals = {
      {with([](WideLayer& l) { l.stride = 0; }), "stride"},
      {with([](WideLayer& l) { l.kernel_h = 0; }), "kernel"},
      {with([](WideLayer& l) { l.dilation = 2; }), "dilation"},
      {with([](WideLayer& l) { l.groups = 2; }), "groups"},
  };
  expect_refusals(kConv2dTransposeFamily, refusals);
}

// ---- two operands ----

struct Binary {
  KernelId kernel = kKernel_prelu;
  std::vector<int16_t> a = {-32768, 32767}, b = {32767, -32768};
  int32_t zero_point = 0, shift = 30;
  Edit edit = [](TestStep&) {};

  void make(TestStep& step) const {
    step.input<int16_t>({2}, a);
    step.input<int16_t>({2}, b);
    step.output<int16_t>({2});
    edit(step);
    flatbuffers::FlatBufferBuilder& f = step.builder();
    if (kernel == kKernel_prelu) {
      step.finish(format::KernelParams_PreluParams,
                  format::CreatePreluParams(f, zero_point, zero_point, 0, INT32_MAX, shift, INT32_MAX, shift)
                      .Union());
    } else if (kernel == kKernel_mul) {
      step.finish(format::KernelParams_MulParams,
                  format::CreateMulParams(f, format::Contract_TFL2, zero_point, zero_point, 0, INT32_MAX,
                                          shift, -32768, 32767)
                      .Union());
    } else {
      // Multipliers of 1 and the longest left shift.
      const int32_t left = shift > 15 ? 15 : shift;
      step.finish(format::KernelParams_AddParams,
                  format::CreateAddParams(f, format::Contract_TFL2, left, 32767, INT32_MAX, 0, -32768,
                                          INT32_MAX, 0, -32768, INT32_MAX, 0, -32768, 32767)
                      .Union());
    }
  }
};

TEST(IntegerStep, ElementsOfSixteenBitsDoNotOverflow) {
  for (const KernelId kernel : {kKernel_prelu, kKernel_mul, kKernel_add, kKernel_sub}) {
    Binary binary;
    binary.kernel = kernel;
    TestStep step(kernel);
    binary.make(step);
    EXPECT_EQ(run_reference<int16_t>(step, family_of(kernel)).size(), 2u);
  }
}

TEST(IntegerStep, SixteenBitElementsWithZeroPointsAreNotMultiplied) {
  for (const KernelId kernel : {kKernel_prelu, kKernel_mul}) {
    const auto with = [kernel](std::function<void(Binary&)> change) {
      return [change = std::move(change), kernel](Binary& b) {
        b.kernel = kernel;
        change(b);
      };
    };
    expect_refusals(family_of(kernel),
                    std::vector<Refusal<Binary>>{
                        {with([](Binary& b) { b.zero_point = 1; }), "zero_point of int16"},
                        {with([](Binary& b) { b.shift = 31; }), "shift 31"},
                        {with([](Binary& b) {
                           b.edit = [](TestStep& s) { s.tensor(1).type_bits = 8, s.tensor(1).size = 2; };
                         }),
                         "has int8"},
                        {with([](Binary& b) { b.edit = [](TestStep& s) {
                                                s.tensor(2).shape = {1, 2};
                                              }; }),
                         "broadcast to"},
                    });
  }
}

TEST(IntegerStep, SquaresOfDifferencesWrap) {
  const auto make = [](TestStep& step, int32_t left_shift, format::Contract contract) {
    step.input<int8_t>({2}, {-128, 127});
    step.input<int8_t>({2}, {127, -128});
    step.output<int8_t>({2});
    step.finish(format::KernelParams_AddParams,
                format::CreateAddParams(step.builder(), contract, left_shift, 127, INT32_MAX, 0, -128,
                                        INT32_MAX, 0, 0, INT32_MAX, 30, -128, 127)
                    .Union());
  };
  TestStep step(kKernel_squared_difference);
  make(step, 22, format::Contract_TFL2);
  EXPECT_EQ(run_reference<int8_t>(step, kSquaredDifferenceFamily).size(), 2u);
  for (const auto& [left_shift, contract] :
       {std::pair(23, format::Contract_TFL2), std::pair(7, format::Contract_F32E)}) {
    TestStep wrong(kKernel_squared_difference);
    make(wrong, left_shift, contract);
    ArgsStorage args;
    Error error;
    EXPECT_LT(wrong.bind(kSquaredDifferenceFamily, &args, &error), 0);
  }
}

// ---- tables of int16 ----

struct Table16 {
  std::vector<int32_t> table = std::vector<int32_t>(256, INT32_MIN);
  int32_t multiplier = 32767;
  uint32_t shift = 30;
  bool is_tanh = false;
  Edit edit = [](TestStep&) {};

  void make(TestStep& step) const {
    step.input<int16_t>({4}, {-32768, -1, 0, 32767});
    step.constant<int32_t>({static_cast<int64_t>(table.size())}, table);
    step.output<int16_t>({4});
    edit(step);
    step.finish(format::KernelParams_Lut16Params,
                format::CreateLut16Params(step.builder(), is_tanh, multiplier, shift).Union());
  }
};

TEST(IntegerStep, TablesOfSixteenBitsHoldAnything) {
  for (const bool is_tanh : {false, true}) {
    for (const uint32_t shift : {0u, 1u, 30u}) {
      Table16 spec;
      spec.is_tanh = is_tanh, spec.shift = shift;
      spec.table[1] = INT32_MAX;
      TestStep step(kKernel_lut16);
      spec.make(step);
      EXPECT_EQ(run_reference<int16_t>(step, kLut16Family).size(), 4u);
    }
  }
}

TEST(IntegerStep, TablesOfSixteenBitsAreRefusedWhereTheyAreWrong) {
  expect_refusals(kLut16Family,
                  std::vector<Refusal<Table16>>{
                      {[](Table16& t) { t.table.resize(255); }, "table"},
                      {[](Table16& t) { t.multiplier = 32768; }, "multiplier 32768"},
                      {[](Table16& t) { t.multiplier = -1; }, "multiplier -1"},
                      {[](Table16& t) { t.shift = 31; }, "shift 31"},
                      {[](Table16& t) { t.edit = [](TestStep& s) {
                                          s.tensor(2).shape = {2, 2};
                                        }; }, "shape"},
                      {[](Table16& t) { t.edit = [](TestStep& s) { s.tensor(0).type_code = 1; }; }, "input"},
                  });
}

// ---- reductions ----

struct Reduce {
  uint32_t axes = 2;
  int32_t multiplier = INT32_MAX, shift = 7;
  int32_t zero_point = -32768;
  format::Contract contract = format::Contract_TFL2;
  Edit edit = [](TestStep&) {};

  void make(TestStep& step) const {
    step.input<int16_t>({1, 4}, {32767, -32768, 32767, 32767});
    step.output<int16_t>({1});
    edit(step);
    step.finish(
        format::KernelParams_MeanParams,
        format::CreateMeanParams(step.builder(), contract, axes, zero_point, 0, multiplier, shift).Union());
  }
};

TEST(IntegerStep, ReductionsGiveTheirElements) {
  for (const auto& [kernel, expected] :
       {std::pair(kKernel_reduce_max, 32767), std::pair(kKernel_reduce_min, -32768)}) {
    TestStep step(kernel);
    Reduce().make(step);
    EXPECT_EQ(run_reference<int16_t>(step, family_of(kernel)),
              std::vector<int16_t>{static_cast<int16_t>(expected)});
  }
  TestStep step(kKernel_reduce_prod);  // whose products leave 32 bits again and again
  Reduce().make(step);
  EXPECT_EQ(run_reference<int16_t>(step, kReduceProdFamily).size(), 1u);
}

TEST(IntegerStep, ReductionsAreRefusedWhereTheyAreWrong) {
  for (const KernelId kernel : {kKernel_reduce_max, kKernel_reduce_min, kKernel_reduce_prod}) {
    expect_refusals(
        family_of(kernel),
        std::vector<Refusal<Reduce>>{
            {[](Reduce& r) { r.axes = 0; }, "axes 0"},
            {[](Reduce& r) { r.axes = 4; }, "axes 4"},
            {[](Reduce& r) { r.edit = [](TestStep& s) {
                               s.tensor(1).shape = {1, 1, 1};
                             }; }, "shape"},
            {[](Reduce& r) { r.edit = [](TestStep& s) { s.tensor(1).type_code = 1; }; }, "output"},
        });
  }
  expect_refusals(kReduceProdFamily,
                  std::vector<Refusal<Reduce>>{
                      {[](Reduce& r) { r.shift = 8; }, "shift 8"},
                      {[](Reduce& r) { r.zero_point = 40000; }, "zero_point"},
                      {[](Reduce& r) { r.contract = format::Contract_F32E; }, "F32E", QPLAN_KERNEL_MISSING},
                  });
}

// ---- positions, lengths, matrices ----

TEST(IntegerStep, ArgMinTakesNoFloats) {
  TestStep step(kKernel_arg_min);
  step.input<float>({1, 2}, {1.0f, 2.0f});
  step.output<int32_t>({1});
  step.finish(format::KernelParams_ArgMaxParams, format::CreateArgMaxParams(step.builder(), 1).Union());
  ArgsStorage args;
  Error error;
  EXPECT_LT(step.bind(kArgMinFamily, &args, &error), 0);
}

TEST(IntegerStep, LengthsOfLongRowsAreRefused) {
  for (const int64_t depth : {int64_t{1} << 15, (int64_t{1} << 15) + 1}) {
    TestStep step(kKernel_l2_normalization);
    step.input<int8_t>({depth}, std::vector<int8_t>(static_cast<size_t>(depth), -128));
    step.output<int8_t>({depth});
    step.finish(format::KernelParams_L2NormalizationParams,
                format::CreateL2NormalizationParams(step.builder(), 127).Union());
    ArgsStorage args;
    Error error;
    if (depth > int64_t{1} << 15) {
      EXPECT_LT(step.bind(kL2NormalizationFamily, &args, &error), 0);
      continue;
    }
    // -255 / sqrt(2^15 * 255^2) is -1 / 181, in 128ths.
    EXPECT_EQ(run_reference<int8_t>(step, kL2NormalizationFamily),
              std::vector<int8_t>(static_cast<size_t>(depth), -1));
  }
}

struct Matmul {
  std::vector<int64_t> a = {2, 3, 4}, b = {4, 5}, output = {2, 3, 5};
  int32_t a_zero_point = 0, shift = -6;
  bool transpose = false;

  void make(TestStep& step) const {
    step.input<int8_t>(a, std::vector<int8_t>(elements_of(a), 1));
    step.input<int8_t>(b, std::vector<int8_t>(elements_of(b), 1));
    step.output<int8_t>(output);
    step.finish(format::KernelParams_BatchMatmulParams,
                format::CreateBatchMatmulParams(step.builder(), a_zero_point, 0, 0, 1 << 30, shift, -128, 127,
                                                transpose)
                    .Union());
  }
};

TEST(IntegerStep, MatricesAreRefusedWhereTheyDoNotFit) {
  expect_refusals(kBatchMatmulFamily, std::vector<Refusal<Matmul>>{
                                          {[](Matmul& m) { m.transpose = true; }, "do not make"},
                                          {[](Matmul& m) {
                                             m.b = {5, 5};
                                           },
                                           "do not make"},
                                          {[](Matmul& m) {
                                             m.output = {2, 5, 3};
                                           },
                                           "do not make"},
                                          {[](Matmul& m) {
                                             m.output = {3, 3, 5};
                                           },
                                           "leading axes"},
                                          {[](Matmul& m) { m.b = {4}; }, "rank 2"},
                                          {[](Matmul& m) { m.a_zero_point = 128; }, "a_zero_point"},
                                          {[](Matmul& m) { m.shift = 31; }, "shift 31"},
                                      });
}

struct GatherNd {
  std::vector<int64_t> input = {2, 3, 4}, indices = {5, 2}, output = {5, 4};
  std::vector<int32_t> values = {0, 0, 1, 2, -1, -1, INT32_MAX, INT32_MIN, 2, -4};
  uint32_t axis = 0, rank = 2;

  void make(TestStep& step) const {
    std::vector<int16_t> data(elements_of(input));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int16_t>(i);
    step.input<int16_t>(input, data);
    step.input<int32_t>(indices, values);
    step.output<int16_t>(output);
    step.finish(format::KernelParams_GatherNdParams,
                format::CreateGatherNdParams(step.builder(), axis, rank).Union());
  }
};

TEST(IntegerStep, IndicesOutsideAnAxisAreHeldWithinIt) {
  expect_refusals(kGatherNdFamily, std::vector<Refusal<GatherNd>>{
                                       {[](GatherNd& g) { g.rank = 0; }, "axes 0 and 0"},
                                       {[](GatherNd& g) { g.rank = 4; }, "axes 0 and 4"},
                                       {[](GatherNd& g) { g.axis = UINT32_MAX; }, "axes 4294967295"},
                                       {[](GatherNd& g) { g.axis = 2; }, "axes 2 and 2"},
                                       {[](GatherNd& g) { g.rank = 3; }, "no rows of 3"},
                                       {[](GatherNd& g) {
                                          g.output = {4, 5, 2};
                                        },
                                        "expected 20"},
                                   });
  TestStep step(kKernel_gather_nd);
  GatherNd().make(step);
  // Rows (0, 0), (1, 2), (-1, -1) = (1, 2), (1, 0), (1, 0) of 4 elements.
  EXPECT_EQ(
      run_reference<int16_t>(step, kGatherNdFamily),
      (std::vector<int16_t>{0, 1, 2, 3, 20, 21, 22, 23, 20, 21, 22, 23, 12, 13, 14, 15, 12, 13, 14, 15}));
}

TEST(IntegerStep, GathersAlongAnAxisAmongOthers) {
  GatherNd gather;
  gather.indices = {2}, gather.values = {2, 0}, gather.axis = 1, gather.rank = 1, gather.output = {2, 2, 4};
  TestStep step(kKernel_gather_nd);
  gather.make(step);
  EXPECT_EQ(run_reference<int16_t>(step, kGatherNdFamily),
            (std::vector<int16_t>{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15}));
}

TEST(IntegerStep, ArithmeticOnInt32WrapsAndDivides) {
  const std::vector<int32_t> a = {7, -7, 7, -7, INT32_MIN, INT32_MAX, 5};
  const std::vector<int32_t> b = {2, 2, -2, -2, -1, 1, 0};
  const auto expect = [&](format::IntBinary op, const std::vector<int32_t>& expected) {
    TestStep step(kKernel_int_binary);
    step.input<int32_t>({7}, a);
    step.input<int32_t>({7}, b);
    step.output<int32_t>({7});
    step.finish(format::KernelParams_IntBinaryParams,
                format::CreateIntBinaryParams(step.builder(), op).Union());
    EXPECT_EQ(run_reference<int32_t>(step, kIntBinaryFamily), expected) << format::EnumNameIntBinary(op);
  };
  expect(format::IntBinary_ADD, {9, -5, 5, -9, INT32_MAX, INT32_MIN, 5});
  expect(format::IntBinary_SUB, {5, -9, 9, -5, INT32_MIN + 1, INT32_MAX - 1, 5});
  expect(format::IntBinary_MUL, {14, -14, -14, 14, INT32_MIN, INT32_MAX, 0});
  expect(format::IntBinary_MAXIMUM, {7, 2, 7, -2, -1, INT32_MAX, 5});
  expect(format::IntBinary_MINIMUM, {2, -7, -2, -7, INT32_MIN, 1, 0});
  expect(format::IntBinary_FLOOR_DIV, {3, -4, -4, 3, INT32_MIN, INT32_MAX, 0});
  expect(format::IntBinary_FLOOR_MOD, {1, 1, -1, -1, 0, 0, 0});
  expect(format::IntBinary_DIV, {3, -3, -3, 3, INT32_MIN, INT32_MAX, 0});
}

TEST(IntegerStep, ArithmeticOnInt64WrapsAndDivides) {
  const std::vector<int64_t> a = {7, -7, 7, -7, INT64_MIN, INT64_MAX, 5, int64_t{1} << 40};
  const std::vector<int64_t> b = {2, 2, -2, -2, -1, 1, 0, 3};
  const auto expect = [&](format::IntBinary op, const std::vector<int64_t>& expected) {
    TestStep step(kKernel_int_binary);
    step.input<int64_t>({8}, a);
    step.input<int64_t>({8}, b);
    step.output<int64_t>({8});
    step.finish(format::KernelParams_IntBinaryParams,
                format::CreateIntBinaryParams(step.builder(), op).Union());
    EXPECT_EQ(run_reference<int64_t>(step, kIntBinaryFamily), expected) << format::EnumNameIntBinary(op);
  };
  expect(format::IntBinary_ADD, {9, -5, 5, -9, INT64_MAX, INT64_MIN, 5, 1099511627779});
  expect(format::IntBinary_SUB, {5, -9, 9, -5, INT64_MIN + 1, INT64_MAX - 1, 5, 1099511627773});
  expect(format::IntBinary_MUL, {14, -14, -14, 14, INT64_MIN, INT64_MAX, 0, 3298534883328});
  expect(format::IntBinary_MAXIMUM, {7, 2, 7, -2, -1, INT64_MAX, 5, 1099511627776});
  expect(format::IntBinary_MINIMUM, {2, -7, -2, -7, INT64_MIN, 1, 0, 3});
  expect(format::IntBinary_FLOOR_DIV, {3, -4, -4, 3, INT64_MIN, INT64_MAX, 0, 366503875925});
  expect(format::IntBinary_FLOOR_MOD, {1, 1, -1, -1, 0, 0, 0, 1});
  expect(format::IntBinary_DIV, {3, -3, -3, 3, INT64_MIN, INT64_MAX, 0, 366503875925});
}

TEST(IntegerStep, ArithmeticIsOfOneDtype) {
  TestStep step(kKernel_int_binary);
  step.input<int64_t>({1}, {1});
  step.input<int32_t>({1}, {1});
  step.output<int64_t>({1});
  step.finish(format::KernelParams_IntBinaryParams,
              format::CreateIntBinaryParams(step.builder(), format::IntBinary_ADD).Union());
  ArgsStorage args;
  Error error;
  EXPECT_NE(step.bind(kIntBinaryFamily, &args, &error), QPLAN_OK);
  EXPECT_NE(std::string(error.text()).find("input 2"), std::string::npos) << error.text();
}

TEST(IntegerStep, OperationsThatTheRuntimeDoesNotKnowAreRefused) {
  TestStep step(kKernel_int_binary);
  step.input<int32_t>({1}, {1});
  step.input<int32_t>({1}, {1});
  step.output<int32_t>({1});
  step.finish(format::KernelParams_IntBinaryParams,
              format::CreateIntBinaryParams(step.builder(), static_cast<format::IntBinary>(99)).Union());
  ArgsStorage args;
  Error error;
  EXPECT_EQ(step.bind(kIntBinaryFamily, &args, &error), QPLAN_KERNEL_MISSING);
  EXPECT_NE(std::string(error.text()).find("operation 99, expected at most 7"), std::string::npos)
      << error.text();
}

template <typename From, typename To>
void expect_cast(const std::vector<From>& from, const std::vector<To>& to) {
  TestStep step(kKernel_cast);
  step.input<From>({static_cast<int64_t>(from.size())}, from);
  step.output<To>({static_cast<int64_t>(from.size())});
  step.finish(format::KernelParams_NoParams, format::CreateNoParams(step.builder()).Union());
  EXPECT_EQ((run_reference<To>(step, kCastFamily)), to);
}

TEST(IntegerStep, CastsTruncateHoldAndRound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  expect_cast<float, int8_t>({-1.9f, 1.9f, 127.5f, 128.0f, -128.9f, -1e9f, kInfinity, kNan},
                             {-1, 1, 127, 127, -128, -128, 127, 0});
  expect_cast<float, uint8_t>({-1.0f, 255.9f, 256.0f, kNan}, {0, 255, 255, 0});
  expect_cast<float, int32_t>({2147483520.0f, 2147483648.0f, -kInfinity}, {2147483520, INT32_MAX, INT32_MIN});
  expect_cast<float, int64_t>({kInfinity, -kInfinity, 1e10f}, {INT64_MAX, INT64_MIN, 10000000000});
  expect_cast<int32_t, float>({16777217, -3}, {16777216.0f, -3.0f});
  expect_cast<int32_t, uint8_t>({257, -1}, {1, 255});
  expect_cast<uint8_t, float>({0, 255}, {0.0f, 255.0f});
  expect_cast<int8_t, int64_t>({-128, 5}, {-128, 5});
}

}  // namespace
}  // namespace qplan::testing::integer_step_test
