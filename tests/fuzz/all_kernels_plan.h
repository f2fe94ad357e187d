// A plan by hand with a step of every kernel family, several layouts and dtypes: what no single model brings
// together.
#ifndef QPLAN_TESTS_FUZZ_ALL_KERNELS_PLAN_H_
#define QPLAN_TESTS_FUZZ_ALL_KERNELS_PLAN_H_

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "kernels/layout.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/steps_plan.h"
#include "tests/support/plan_builder.h"

namespace qplan::testing {

class AllKernelsPlan : private StepsPlan {
 public:
  static Bytes make() {
    AllKernelsPlan plan;
    plan.add_steps();
    const AlignedBytes bytes = build_plan(plan.spec_);
    return Bytes(bytes.data(), bytes.data() + bytes.size());
  }

 private:
  void add_steps() {
    const uint32_t real = spec_.add_tensor({1, 6, 6, 8}, "real", kFloat, 32);
    const uint32_t x = step(k_quantize, {real}, {1, 6, 6, 8}, quantize_params(format::QuantizeRule_DIV_AWAY));
    const uint32_t u =
        step(k_quantize, {real}, {1, 6, 6, 8}, quantize_params(format::QuantizeRule_MUL_EVEN), kUint);
    const uint32_t packed = convolution(k_conv2d, x, {1, 6, 6, 16}, 8, 3, kLayout_o16k4, {1, 1, 1, 1});
    const uint32_t grouped = convolution(k_conv2d, packed, {1, 6, 6, 24}, 8, 3, kLayout_ohwi, {1, 2, 2, 2});
    const uint32_t depthwise =
        convolution(k_depthwise_conv2d, grouped, {1, 3, 3, 24}, 1, 3, kLayout_hwo16, {2, 1, 0, 24});
    const uint32_t chained = cascade(x, {1, 6, 6, 8});
    const uint32_t added =
        convolution(k_conv2d, packed, {1, 6, 6, 8}, 16, 1, kLayout_o16k4, {1, 1, 0, 1, -128});
    spec_.steps.back().inputs.push_back(chained);
    spec_.steps.back().residual = add_params();
    const uint32_t few = few_channels(x);
    const uint32_t padded = step(k_pad, {depthwise}, {1, 5, 5, 24}, [](Builder& b) {
      const std::vector<uint32_t> before = {0, 1, 1, 0};
      return done(format::KernelParams_PadParams, format::CreatePadParamsDirect(b, &before, -128));
    });
    const uint32_t average = step(k_avg_pool2d, {padded}, {1, 3, 3, 24}, pool_params());
    const uint32_t maximum = step(k_max_pool2d, {padded}, {1, 3, 3, 24}, pool_params());
    add_parts(average, maximum);
    const uint32_t sum = step(k_add, {average, maximum}, {1, 3, 3, 24}, add_params());
    const uint32_t row = spec_.add_constant({24}, random_bytes(24));
    const uint32_t difference = step(k_sub, {sum, row}, {1, 3, 3, 24}, add_params());
    const uint32_t product = step(k_mul, {difference, row}, {1, 3, 3, 24}, [](Builder& b) {
      return done(format::KernelParams_MulParams,
                  format::CreateMulParams(b, format::Contract_TFL2, 3, -4, 5, kMultiplier, -6, -128, 127));
    });
    const uint32_t larger = step(k_maximum, {product, row}, {1, 3, 3, 24}, copy_params(0));
    const uint32_t smaller = step(k_minimum, {larger, sum}, {1, 3, 3, 24}, copy_params(0));
    const uint32_t square = step(k_squared_difference, {sum, row}, {1, 3, 3, 24}, [](Builder& b) {
      return done(format::KernelParams_AddParams,
                  format::CreateAddParams(b, format::Contract_TFL2, 7, -3, kMultiplier, 0, 9, kMultiplier, -1,
                                          4, kMultiplier, -9, -128, 127));
    });
    const uint32_t integers = add_integers(x, square, row);
    const uint32_t joined = step(k_concat, {sum, smaller, difference}, {1, 3, 3, 72}, concat_params(3));
    const uint32_t left = spec_.add_tensor({1, 3, 3, 40}, "left");
    const uint32_t right = spec_.add_tensor({1, 3, 3, 32}, "right");
    spec_.add_step(k_split, {joined}, {left, right}, split_params(3), "split");
    const uint32_t table = spec_.add_constant({256}, random_bytes(256));
    const uint32_t looked_up = step(k_lut8, {right, table}, {1, 3, 3, 32}, [](Builder& b) {
      return done(format::KernelParams_Lut8Params, format::CreateLut8Params(b));
    });
    const uint32_t rescaled = step(
        k_requantize, {looked_up}, {1, 3, 3, 32},
        [](Builder& b) {
          return done(
              format::KernelParams_RequantizeParams,
              format::CreateRequantizeParams(b, format::Contract_TFL2, 7, 10, kMultiplier, 1, 0, 255));
        },
        kUint);
    const uint32_t turned = step(
        k_transpose, {rescaled}, {1, 32, 3, 3},
        [](Builder& b) {
          const std::vector<uint32_t> permutation = {0, 3, 1, 2};
          return done(format::KernelParams_TransposeParams,
                      format::CreateTransposeParamsDirect(b, &permutation));
        },
        kUint);
    const uint32_t resized = step(k_resize_bilinear, {left}, {1, 7, 4, 40},
                                  resize_params(format::ResizeRule_TFL_INTEGER, false, true));
    const uint32_t classes = step(
        k_arg_max, {resized}, {1, 7, 4},
        [](Builder& b) { return done(format::KernelParams_ArgMaxParams, format::CreateArgMaxParams(b, 3)); },
        0, 32);
    const uint32_t resized_float = step(k_resize_bilinear, {u}, {1, 4, 9, 8},
                                        resize_params(format::ResizeRule_TFL_FLOAT, true, false), kUint);
    const uint32_t mean = step(k_mean, {left}, {1, 40}, [](Builder& b) {
      return done(format::KernelParams_MeanParams,
                  format::CreateMeanParams(b, format::Contract_TFL2, 6, 1, 2, kMultiplier, -3));
    });
    const uint32_t dense = fully_connected(mean, 40, 18);
    const uint32_t probabilities = step(k_softmax, {dense}, {1, 18}, [](Builder& b) {
      return done(format::KernelParams_SoftmaxParams,
                  format::CreateSoftmaxParams(b, format::Contract_TFL2, kMultiplier, 22, -248));
    });
    const uint32_t positions = int32_constant({6, 0, 0, 5, 2, 1});
    const uint32_t gathered = step(k_gather, {resized, positions}, {1, 6, 2, 40}, [](Builder& b) {
      const std::vector<uint32_t> begin = {0, 0, 3, 0};
      const std::vector<int32_t> steps = {1, 1, -2, 1};
      return done(format::KernelParams_GatherParams,
                  format::CreateGatherParamsDirect(b, &begin, &steps, 1 << 1));
    });
    converting_cascades(real, turned);
    const uint32_t shaped = step(k_copy, {probabilities}, {3, 6}, copy_params(0));
    const uint32_t result = step(
        k_dequantize, {shaped}, {3, 6},
        [](Builder& b) {
          return done(format::KernelParams_DequantizeParams,
                      format::CreateDequantizeParams(b, 0.00390625f, -128));
        },
        kFloat, 32);

    const uint32_t of_floats = floats(real);
    set_lifetimes();
    spec_.add_main({real},
                   {result, classes, turned, resized_float, added, few, of_floats, gathered, integers},
                   kScratchBytes);
  }

  // All families on float32, one after another.
  uint32_t floats(uint32_t real) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto window = [](uint32_t size, uint32_t pad, uint32_t groups, format::FloatPool pool) {
      return [=](Builder& b) {
        return done(format::KernelParams_FloatWindowParams,
                    format::CreateFloatWindowParams(b, size, size, 1, 1, 1, 1, pad, pad, groups, 0.0f,
                                                    kInfinity, pool));
      };
    };
    const auto unary = [](format::FloatUnary function) {
      return [=](Builder& b) {
        return done(format::KernelParams_FloatUnaryParams,
                    format::CreateFloatUnaryParams(b, function, 0.25f, 0.5f));
      };
    };
    const uint32_t layer = step(k_float_conv2d, {real, float_constant(2 * 9 * 8 * 16), float_constant(32)},
                                {1, 6, 6, 24}, window(3, 1, 1, format::FloatPool_NONE), kFloat, 32);
    const uint32_t depthwise = step(k_float_conv2d, {layer, float_constant(2 * 9 * 16), float_constant(32)},
                                    {1, 6, 6, 24}, window(3, 1, 24, format::FloatPool_NONE), kFloat, 32);
    for (const uint8_t bits : {uint8_t{4}, uint8_t{8}}) {
      const int64_t num_weights = 2 * 24 * 16 * bits / 8, num_scales = 2 * 3 * 16;
      step(
          k_weight_only_dense,
          {depthwise,
           spec_.add_constant({num_weights}, random_bytes(static_cast<size_t>(num_weights)), "", kUint),
           float_constant(static_cast<size_t>(num_scales)),
           spec_.add_constant({num_scales}, random_bytes(static_cast<size_t>(num_scales)), "", kUint),
           float_constant(32)},
          {1, 6, 6, 20},
          [=](Builder& b) {
            return done(format::KernelParams_WeightOnlyDenseParams,
                        format::CreateWeightOnlyDenseParams(b, bits, 10, 0.0f, kInfinity));
          },
          kFloat, 32);
    }
    const uint32_t pooled = step(k_float_pool2d, {depthwise}, {1, 5, 5, 24},
                                 window(2, 0, 1, format::FloatPool_AVERAGE_WITH_PADDING), kFloat, 32);
    const uint32_t larger =
        step(k_float_pool2d, {pooled}, {1, 4, 4, 24}, window(2, 0, 1, format::FloatPool_MAXIMUM), kFloat, 32);
    const uint32_t logistic =
        step(k_float_unary, {larger}, {1, 4, 4, 24}, unary(format::FloatUnary_LOGISTIC), kFloat, 32);
    const uint32_t clamped =
        step(k_float_unary, {logistic}, {1, 4, 4, 24}, unary(format::FloatUnary_CLAMP), kFloat, 32);
    const uint32_t product = step(
        k_float_binary, {clamped, float_constant(24)}, {1, 4, 4, 24},
        [](Builder& b) {
          return done(format::KernelParams_FloatBinaryParams,
                      format::CreateFloatBinaryParams(b, format::FloatBinary_MUL, -kInfinity, kInfinity));
        },
        kFloat, 32);
    const uint32_t quantized = spec_.add_tensor({1, 6, 6, 24}, "q");
    const uint32_t scale = spec_.add_tensor({1}, "scale", kFloat, 32);
    const uint32_t zero_point = spec_.add_tensor({1}, "zero_point", 0, 32);
    spec_.add_step(
        k_dynamic_quantize, {product}, {quantized, scale, zero_point},
        [](Builder& b) {
          return done(format::KernelParams_DynamicQuantizeParams,
                      format::CreateDynamicQuantizeParams(b, 1, false, 1, 1));
        },
        "dynamic");
    const std::vector<uint32_t> constants = weights(8, {3, 3, 24}, kLayout_ohwi);
    const uint32_t sums = step(
        k_conv2d, {quantized, constants[0], constants[1]}, {1, 4, 4, 8},
        [](Builder& b) {
          return done(
              format::KernelParams_Conv2dParams,
              format::CreateConv2dParams(b, format::Contract_ACC32, kLayout_ohwi, 3, 3, 1, 1, 1, 1, 0, 0, 1));
        },
        0, 32);
    const uint32_t back = step(
        k_dynamic_dequantize,
        {sums, scale, zero_point, float_constant(8), int32_constant(std::vector<int32_t>(8, 77)),
         float_constant(8)},
        {1, 4, 4, 8},
        [](Builder& b) {
          return done(format::KernelParams_DynamicDequantizeParams,
                      format::CreateDynamicDequantizeParams(b, 1, true, -kInfinity, kInfinity));
        },
        kFloat, 32);
    const auto reduce = [](uint32_t axes) {
      return [=](Builder& b) {
        return done(format::KernelParams_FloatReduceParams, format::CreateFloatReduceParams(b, axes, 1.0f));
      };
    };
    const uint32_t sequence = step(k_copy, {larger}, {4, 4, 24}, copy_params(0), kFloat, 32);
    add_lstm(sequence, k_float_lstm);
    add_hybrid_lstm(sequence);
    add_gru(sequence, false);
    add_gru(sequence, true);
    const uint32_t mean = step(k_float_mean, {back}, {1, 8}, reduce(6), kFloat, 32);
    step(
        k_float_batch_matmul, {back, back}, {1, 4, 4, 4},
        [](Builder& b) {
          return done(format::KernelParams_FloatBatchMatmulParams,
                      format::CreateFloatBatchMatmulParams(b, true));
        },
        kFloat, 32);
    return step(k_float_softmax, {mean}, {1, 8}, reduce(2), kFloat, 32);
  }

  // Families on integers without vectors, and int16.
  uint32_t add_integers(uint32_t x, uint32_t square, uint32_t row) {
    const uint32_t bent = step(k_prelu, {square, row}, {1, 3, 3, 24}, prelu_params(-3));
    const uint32_t largest = step(k_reduce_max, {bent}, {1, 3, 24}, mean_params(2));
    const uint32_t least = step(k_reduce_min, {largest}, {1, 24}, mean_params(2));
    const uint32_t product = step(k_reduce_prod, {largest}, {3, 24}, mean_params(1));
    const uint32_t matrix = step(k_batch_matmul, {product, largest}, {1, 3, 3}, [](Builder& b) {
      return done(format::KernelParams_BatchMatmulParams,
                  format::CreateBatchMatmulParams(b, 3, -4, 5, kMultiplier, -9, -128, 127, true));
    });
    add_lstm(largest, k_lstm);
    const uint32_t unit = step(k_l2_normalization, {matrix}, {1, 3, 3}, [](Builder& b) {
      return done(format::KernelParams_L2NormalizationParams, format::CreateL2NormalizationParams(b, 7));
    });
    const uint32_t where = step(
        k_arg_min, {least}, {1},
        [](Builder& b) { return done(format::KernelParams_ArgMaxParams, format::CreateArgMaxParams(b, 1)); },
        0, 32);
    const uint32_t transposed = [&] {
      const std::vector<uint32_t> c = weights(3, {2, 2, 8}, kLayout_ohwi);
      return step(k_conv2d_transpose, {x, c[0], c[1], c[2], c[3]}, {1, 12, 11, 3},
                  layer_params(2, 2, 0, 1, -3, 4));
    }();
    const std::vector<uint32_t> t = weights(5, {3, 2, 3, 2, 2}, kLayout_o16p4);
    spec_.add_step(
        k_conv2d_transpose, {transposed, t[0], t[1], t[2], t[3]},
        {spec_.add_tensor({1, 25, 22, 5}, "phases")},
        [](Builder& b) {
          return done(format::KernelParams_Conv2dParams,
                      format::CreateConv2dParams(b, format::Contract_TFL2, kLayout_o16p4, 3, 2, 2, 2, 1, 1, 0,
                                                 0, 1, -3, 0, -3, 4, -128, 127));
        },
        "phases");
    const uint32_t wide = step(
        k_requantize, {transposed}, {1, 12, 11, 3},
        [](Builder& b) {
          return done(
              format::KernelParams_RequantizeParams,
              format::CreateRequantizeParams(b, format::Contract_TFL2, 7, 0, kMultiplier, 6, -32768, 32767));
        },
        0, 16);
    const std::vector<uint32_t> c = weights(4, {3, 3, 3}, kLayout_ohwi);
    const uint32_t bias = spec_.add_constant({4}, std::vector<uint8_t>(4 * sizeof(int64_t), 1), "", 0, 64);
    const uint32_t convolved = step(k_conv2d, {wide, c[0], bias, c[2], c[3]}, {1, 6, 6, 4},
                                    layer_params(3, 2, 1, 1, 0, 0, -32768, 32767), 0, 16);
    const uint32_t bent16 = step(k_prelu, {convolved, convolved}, {1, 6, 6, 4}, prelu_params(0), 0, 16);
    std::vector<int32_t> entries(256);
    for (int32_t i = 0; i < 256; ++i) entries[static_cast<size_t>(i)] = 32768 + i * 128;
    const uint32_t curve = step(
        k_lut16, {bent16, int32_constant(entries)}, {1, 6, 6, 4},
        [](Builder& b) {
          return done(format::KernelParams_Lut16Params, format::CreateLut16Params(b, true, 20000, 3));
        },
        0, 16);
    add_numbers(least, where);
    spec_.add_step(k_copy, {unit}, {spec_.add_tensor({9}, "unit")}, copy_params(0), "keep");
    spec_.add_step(k_copy, {where}, {spec_.add_tensor({1, 1}, "where", 0, 32)}, copy_params(0), "keep");
    return curve;
  }

  // A sequence [b, steps, 24], of int8 or float32. What it makes is nobody's input.
  void add_lstm(uint32_t sequence, uint16_t kernel) {
    const bool is_float = kernel == k_float_lstm;
    const uint8_t code = is_float ? kFloat : 0, bits = is_float ? 32 : 8;
    const std::vector<int64_t> shape = spec_.tensors[sequence].shape;
    constexpr size_t kCells = 5, kRows = 4 * kCells, kPadded = 32;
    const auto outputs = [&](uint8_t cell_bits) {
      return std::vector<uint32_t>{
          spec_.add_tensor({shape[0], shape[1], static_cast<int64_t>(kCells)}, "lstm", code, bits),
          spec_.add_tensor({shape[0], static_cast<int64_t>(kCells)}, "output", code, bits),
          spec_.add_tensor({shape[0], static_cast<int64_t>(kCells)}, "cell", code, cell_bits)};
    };
    const auto states = static_cast<size_t>(shape[0]) * kCells;
    if (is_float) {
      spec_.add_step(
          kernel,
          {sequence, float_constant(kPadded * 24), float_constant(kPadded * kCells), float_constant(kPadded),
           float_constant(8), float_state(shape[0], kCells), float_state(shape[0], kCells)},
          outputs(32),
          [](Builder& b) {
            return done(format::KernelParams_FloatLstmParams,
                        format::CreateFloatLstmParams(b, false, false, false, true, 3.0f));
          },
          "lstm");
      return;
    }
    const std::vector<int64_t> state = {shape[0], static_cast<int64_t>(kCells)};
    spec_.add_step(
        kernel,
        {sequence, spec_.add_constant({kRows * 24}, random_bytes(kRows * 24)),
         spec_.add_constant({kRows * kCells}, random_bytes(kRows * kCells)),
         int32_constant(std::vector<int32_t>(kRows, 100)), int32_constant(std::vector<int32_t>(kRows, -100)),
         spec_.add_constant(state, random_bytes(states)),
         spec_.add_constant(state, random_bytes(states * 2), "", 0, 16)},
        outputs(16),
        [](Builder& b) {
          const std::vector<int32_t> multipliers(4, kMultiplier), shifts(4, -2);
          return done(format::KernelParams_LstmParams,
                      format::CreateLstmParamsDirect(b, false, false, kLayout_ohwi, &multipliers, &shifts,
                                                     &multipliers, &shifts, kMultiplier, -20, 3, 12, 30000));
        },
        "lstm");
  }
  // A sequence [b, steps, 24] of float32, and weights of int8. What it makes is nobody's input.
  void add_hybrid_lstm(uint32_t sequence) {
    const std::vector<int64_t> shape = spec_.tensors[sequence].shape;
    constexpr size_t kCells = 5, kPadded = 32, kPaddedCells = 8;
    const auto output = [&](const std::vector<int64_t>& extents, const char* name) {
      return spec_.add_tensor(extents, name, kFloat, 32);
    };
    const std::vector<int64_t> state = {shape[0], static_cast<int64_t>(kCells)};
    spec_.add_step(
        k_float_lstm,
        {sequence, spec_.add_constant({kPadded * 24}, random_bytes(kPadded * 24)),
         spec_.add_constant({kPadded * kPaddedCells}, random_bytes(kPadded * kPaddedCells)),
         float_constant(kPadded), float_constant(8), float_state(shape[0], kCells),
         float_state(shape[0], kCells)},
        {output({shape[0], shape[1], static_cast<int64_t>(kCells)}, "hybrid lstm"), output(state, "output"),
         output(state, "cell")},
        [](Builder& b) {
          return done(format::KernelParams_FloatLstmParams,
                      format::CreateFloatLstmParams(b, false, false, true, false, 0.0f, kLayout_o16k4));
        },
        "hybrid_lstm");
  }
  // A sequence [steps, 4, 24] of float32. What it makes is nobody's input.
  void add_gru(uint32_t sequence, bool reset_after) {
    constexpr size_t kCells = 5, kPadded = 16;
    constexpr int64_t kSamples = 4;
    const int64_t steps = spec_.tensors[sequence].shape[0], cells = kCells;
    spec_.add_step(
        k_float_gru,
        {sequence, float_constant(kPadded * 24), float_constant(kPadded * kCells), float_constant(kPadded),
         float_constant(kPadded), float_state(kSamples, kCells)},
        {spec_.add_tensor({steps, kSamples, cells}, "gru", kFloat, 32),
         spec_.add_tensor({kSamples, cells}, "state", kFloat, 32)},
        [=](Builder& b) {
          return done(format::KernelParams_FloatGruParams,
                      format::CreateFloatGruParams(b, true, reset_after));
        },
        "gru");
  }
  // int8 [1, 24] and an index in [0, 24). What they make is nobody's input.
  void add_numbers(uint32_t row, uint32_t index) {
    spec_.add_step(
        k_svdf,
        {row, spec_.add_constant({4 * 24}, random_bytes(4 * 24)),
         spec_.add_constant({4 * 5}, random_bytes(4 * 5 * 2), "", 0, 16), int32_constant({1, -2, 3, -4}),
         int32_constant({5, -6}), spec_.add_constant({1, 4, 5}, random_bytes(4 * 5 * 2), "", 0, 16)},
        {spec_.add_tensor({1, 2}, "svdf"), spec_.add_tensor({1, 4, 5}, "state", 0, 16)},
        [](Builder& b) {
          return done(format::KernelParams_SvdfParams,
                      format::CreateSvdfParams(b, 2, kMultiplier, -2, kMultiplier, -9, 3));
        },
        "svdf");
    const uint32_t probabilities = step(
        k_softmax16, {row}, {1, 24},
        [](Builder& b) {
          return done(format::KernelParams_Softmax16Params,
                      format::CreateSoftmax16Params(b, kMultiplier, 22, -248));
        },
        0, 16);
    std::vector<uint8_t> table(513 * 2, 0x11);
    const uint32_t entries = spec_.add_constant({513}, table, "", 0, 16);
    step(
        k_softmax16, {probabilities, entries, entries}, {1, 24},
        [](Builder& b) {
          return done(format::KernelParams_Softmax16Params,
                      format::CreateSoftmax16Params(b, kMultiplier, 1, 0));
        },
        0, 16);
    const uint32_t logarithms = step(k_log_softmax, {row}, {1, 24}, [](Builder& b) {
      return done(format::KernelParams_LogSoftmaxParams,
                  format::CreateLogSoftmaxParams(b, kMultiplier, 22, -248, kMultiplier, -22));
    });
    step(k_div, {logarithms, row}, {1, 24}, [](Builder& b) {
      return done(format::KernelParams_DivParams,
                  format::CreateDivParams(b, 127, 3, -5, kMultiplier, 4, -128, 127));
    });
    const uint32_t quotient = step(
        k_int_binary, {index, int32_constant({7})}, {1},
        [](Builder& b) {
          return done(format::KernelParams_IntBinaryParams,
                      format::CreateIntBinaryParams(b, format::IntBinary_FLOOR_DIV));
        },
        0, 32);
    step(k_cast, {quotient}, {1}, copy_params(0), kFloat, 32);
    step(
        k_int_reduce, {quotient}, {},
        [](Builder& b) {
          return done(format::KernelParams_FloatReduceParams,
                      format::CreateFloatReduceParams(b, 1, 0, false, format::FloatReduction_MEAN));
        },
        0, 32);
    const uint32_t is_less = step(
        k_compare, {row, spec_.add_constant({24}, random_bytes(24))}, {1, 24},
        [](Builder& b) {
          return done(format::KernelParams_CompareParams,
                      format::CreateCompareParams(b, format::Comparison_LESS));
        },
        1);
    step(k_select, {is_less, row, spec_.add_constant({1}, random_bytes(1))}, {1, 24}, copy_params(0));
    step(
        k_cumulative_sum, {quotient}, {1},
        [](Builder& b) {
          return done(format::KernelParams_CumulativeSumParams,
                      format::CreateCumulativeSumParams(b, 0, true, true));
        },
        0, 32);
    spec_.add_step(k_top_k, {row}, {spec_.add_tensor({1, 5}, "top"), spec_.add_tensor({1, 5}, "at", 0, 32)},
                   copy_params(0), "top");
    step(k_gather_nd, {row, quotient}, {1, 1}, [](Builder& b) {
      return done(format::KernelParams_GatherNdParams, format::CreateGatherNdParams(b, 1, 1));
    });
  }

  // Two tensors of 216 bytes inside the one that they make, and what it is cut into, too.
  void add_parts(uint32_t first, uint32_t second) {
    const uint32_t whole = step(k_concat, {first, second}, {1, 6, 3, 24}, concat_params(1));
    const uint32_t top = spec_.add_tensor({1, 2, 3, 24}, "top");
    const uint32_t rest = spec_.add_tensor({1, 4, 3, 24}, "rest");
    spec_.add_step(k_split, {whole}, {top, rest}, split_params(1), "cut");
    const uint64_t at = spec_.tensors[whole].offset;
    spec_.tensors[first].offset = spec_.tensors[top].offset = at;
    spec_.tensors[second].offset = at + 216;
    spec_.tensors[rest].offset = at + 144;
  }

  // Windows whose taps are no whole groups of four: rows, pixels, columns.
  uint32_t few_channels(uint32_t input) {
    const uint32_t three =
        convolution(k_conv2d, input, {1, 6, 6, 3}, 8, 3, kLayout_o16k4, {1, 1, 1, 1, -128});
    const uint32_t wide = step(k_resize_bilinear, {three}, {1, 5, 40, 3},
                               resize_params(format::ResizeRule_TFL_INTEGER, false, true));
    const uint32_t columns =
        convolution(k_conv2d, wide, {1, 3, 20, 7}, 3, 3, kLayout_o16z4, {2, 1, 1, 1, -128});
    const uint32_t rows =
        convolution(k_conv2d, columns, {1, 3, 20, 5}, 7, 3, kLayout_o16r4, {1, 1, 1, 1, -128});
    return convolution(k_conv2d, rows, {1, 3, 20, 4}, 5, 3, kLayout_o16i4, {1, 2, 2, 1, -128});
  }

  // An inverted bottleneck of 8 and 24 channels with its residual, in four layers.
  uint32_t cascade(uint32_t input, const std::vector<int64_t>& shape) {
    struct Layer {
      uint16_t kernel, layout;
      uint32_t size, channels, group_channels;
      std::vector<uint32_t> constants;
    };
    std::vector<Layer> layers = {{k_conv2d, kLayout_o16k4, 1, 24, 8, {}},
                                 {k_depthwise_conv2d, kLayout_hwo16, 3, 24, 1, {}},
                                 {k_conv2d, kLayout_o16k4, 1, 8, 24, {}}};
    std::vector<uint32_t> inputs = {input};
    for (Layer& layer : layers) {
      layer.constants = weights(layer.channels, {layer.size, layer.size, layer.group_channels}, layer.layout);
      inputs.insert(inputs.end(), layer.constants.begin(), layer.constants.end());
    }
    const uint32_t output = spec_.add_tensor(shape, "chained");
    spec_.add_step(
        k_chain, inputs, {output},
        [=, this](Builder& b) {
          const auto num_tensors = static_cast<uint32_t>(spec_.tensors.size());
          std::vector<flatbuffers::Offset<format::KernelStep>> steps;
          std::vector<flatbuffers::Offset<format::Tensor>> tiles;
          uint32_t before = input;
          for (uint32_t i = 0; i < layers.size(); ++i) {
            const Layer& layer = layers[i];
            std::vector<uint32_t> from = {before};
            from.insert(from.end(), layer.constants.begin(), layer.constants.end());
            const std::vector<uint32_t> to = {num_tensors + i};
            const uint32_t groups = layer.group_channels == 1 ? layer.channels : 1, pad = layer.size / 2;
            const auto params =
                format::CreateConv2dParams(b, format::Contract_TFL2, layer.layout, layer.size, layer.size, 1,
                                           1, 1, 1, pad, pad, groups, -128, 0, -128, 4, -128, 127);
            steps.push_back(format::CreateKernelStepDirect(
                b, layer.kernel, &from, &to, format::KernelParams_Conv2dParams, params.Union()));
            const std::vector<int64_t> tile = {shape[0], shape[1], shape[2], layer.channels};
            tiles.push_back(format::CreateTensorDirect(b, 0, 8, &tile, 0, 0,
                                                       static_cast<uint64_t>(tile[1] * tile[2] * tile[3])));
            before = to[0];
          }
          const std::vector<uint32_t> operands = {before, input}, last = {output};
          const auto [type, sum] = add_params()(b);
          steps.push_back(format::CreateKernelStepDirect(b, k_add, &operands, &last, type, sum));
          return done(format::KernelParams_CascadeParams,
                      format::CreateCascadeParamsDirect(b, &steps, &tiles));
        },
        "chain");
    return output;
  }

  // Cascades that begin with planes, of reals and of bytes: the conversion, a table in its tile, a table.
  void converting_cascades(uint32_t real, uint32_t bytes) {
    const uint32_t reals = step(k_copy, {real}, {1, 8, 6, 6}, copy_params(0), kFloat, 32);
    converting_cascade(k_quantize, reals, quantize_params(format::QuantizeRule_DIV_EVEN), {1, 6, 6, 8});
    converting_cascade(
        k_transpose, bytes,
        [](Builder& b) {
          const std::vector<uint32_t> permutation = {0, 2, 3, 1};
          return done(format::KernelParams_TransposeParams,
                      format::CreateTransposeParamsDirect(b, &permutation));
        },
        {1, 3, 3, 32}, kUint);
  }

  void converting_cascade(uint16_t kernel, uint32_t input, const ParamsWriter& conversion,
                          const std::vector<int64_t>& shape, uint8_t code = 0) {
    const uint32_t table = spec_.add_constant({256}, random_bytes(256), "", code);
    const uint32_t output = spec_.add_tensor(shape, "converted", code);
    spec_.add_step(
        k_chain, {input, table}, {output},
        [=, this](Builder& b) {
          const auto tile = static_cast<uint32_t>(spec_.tensors.size());
          std::vector<flatbuffers::Offset<format::KernelStep>> steps;
          std::vector<flatbuffers::Offset<format::Tensor>> tiles;
          const auto add = [&](uint16_t of, std::vector<uint32_t> from, uint32_t to,
                               const ParamsWriter& writer) {
            const std::vector<uint32_t> result = {to};
            const auto [type, params] = writer(b);
            steps.push_back(format::CreateKernelStepDirect(b, of, &from, &result, type, params));
          };
          const ParamsWriter look_up = [](Builder& of) {
            return done(format::KernelParams_Lut8Params, format::CreateLut8Params(of));
          };
          add(kernel, {input}, tile, conversion);
          add(k_lut8, {tile, table}, tile + 1, look_up);
          add(k_lut8, {tile + 1, table}, output, look_up);
          for (int i = 0; i < 2; ++i) {
            const auto bytes = static_cast<uint64_t>(shape[1] * shape[2] * shape[3]);
            tiles.push_back(format::CreateTensorDirect(b, code, 8, &shape, 0, 0, bytes));
          }
          return done(format::KernelParams_CascadeParams,
                      format::CreateCascadeParamsDirect(b, &steps, &tiles));
        },
        "converting");
  }

  // All tensors live to the last step, so that a mutated step may read any of them.
  void set_lifetimes() {
    for (TensorSpec& tensor : spec_.tensors) tensor.last_use = static_cast<uint32_t>(spec_.steps.size() - 1);
  }
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_ALL_KERNELS_PLAN_H_
