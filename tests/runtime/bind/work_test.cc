// KernelFamily::work: the formula of docs/work.md for each family, worked out by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/float/float.h"
#include "kernels/float/weight_only_dense.h"
#include "kernels/matmul/matmul.h"
#include "kernels/movement/movement.h"
#include "kernels/numbers/numbers.h"
#include "kernels/quantization/quantization.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/reduction/reduction.h"
#include "kernels/softmax/softmax.h"
#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/cascade/random_cascade.h"

namespace qplan::work_test {
namespace {

Conv2dArgs conv2d_args() {
  Conv2dArgs args;
  args.batch = 2, args.input_h = args.input_w = 9, args.input_c = 12;
  args.output_h = 5, args.output_w = 7, args.output_c = 8;
  args.kernel_h = 3, args.kernel_w = 2, args.groups = 4;
  return args;
}

TEST(Work, OfConvolutionsCountsProductsAndOutputs) {
  Conv2dArgs args = conv2d_args();
  // 2 * 5 * 7 * 8 = 560 outputs of 3 * 2 * (12 / 4) = 18 products.
  EXPECT_EQ(kConv2dFamily.work(&args), 560u * 19);
  args.has_residual = true;
  EXPECT_EQ(kConv2dFamily.work(&args), 560u * 20);
  args.has_residual = false;
  args.groups = args.input_c, args.output_c = 12;
  EXPECT_EQ(kDepthwiseConv2dFamily.work(&args), 2u * 5 * 7 * 12 * 7);
  args.groups = 1;
  EXPECT_EQ(kConv2dTransposeFamily.work(&args), 2u * 5 * 7 * 12 * 73);
}

TEST(Work, OfFullyConnectedCountsProductsAndOutputs) {
  FullyConnectedArgs args;
  args.rows = 3, args.input_c = 100, args.output_c = 10;
  EXPECT_EQ(kFullyConnectedFamily.work(&args), 3u * 10 * 101);
}

TEST(Work, OfFloatFamiliesCountsAsThatOfIntegers) {
  FloatConv2dArgs conv;
  conv.batch = 2, conv.input_c = 12, conv.output_h = 5, conv.output_w = 7, conv.output_c = 8;
  conv.kernel_h = 3, conv.kernel_w = 2, conv.groups = 4;
  EXPECT_EQ(kFloatConv2dFamily.work(&conv), 560u * 19);
  FloatPool2dArgs pool;
  pool.batch = 2, pool.input_h = 10, pool.input_w = 20, pool.channels = 3;
  pool.output_h = 4, pool.output_w = 5, pool.pool_h = 1000, pool.pool_w = 2;
  EXPECT_EQ(kFloatPool2dFamily.work(&pool), 2u * 4 * 5 * 3 * 20);
  FloatBinaryArgs binary;
  binary.broadcast.elements = 77;
  EXPECT_EQ(kFloatBinaryFamily.work(&binary), 77u);
  FloatUnaryArgs unary;
  unary.elements = 78;
  EXPECT_EQ(kFloatUnaryFamily.work(&unary), 78u);
  FloatMeanArgs mean;
  mean.num_outputs = 6, mean.num_reduced = 49;
  EXPECT_EQ(kFloatMeanFamily.work(&mean), 294u);
  DynamicQuantizeArgs quantize;
  quantize.rows = 3, quantize.output_h = 4, quantize.output_w = 5, quantize.channels = 6;
  EXPECT_EQ(kDynamicQuantizeFamily.work(&quantize), 720u);
  DynamicDequantizeArgs dequantize;
  dequantize.rows = 3, dequantize.pixels = 4, dequantize.channels = 5;
  EXPECT_EQ(kDynamicDequantizeFamily.work(&dequantize), 60u);
  FloatSoftmaxArgs softmax;
  softmax.outer = 4, softmax.depth = 10, softmax.inner = 3;
  EXPECT_EQ(kFloatSoftmaxFamily.work(&softmax), 360u);
}

TEST(Work, OfPoolsCountsTheElementsOfWindowsThatExist) {
  Pool2dArgs args;
  args.batch = 2, args.input_h = 10, args.input_w = 20, args.channels = 3;
  args.output_h = 4, args.output_w = 5, args.pool_h = 3, args.pool_w = 2;
  EXPECT_EQ(kMaxPool2dFamily.work(&args), 2u * 4 * 5 * 3 * 6);
  EXPECT_EQ(kAvgPool2dFamily.work(&args), 2u * 4 * 5 * 3 * 6);
  args.pool_h = args.pool_w = 1000;  // of which 10 x 20 exist
  EXPECT_EQ(kMaxPool2dFamily.work(&args), 2u * 4 * 5 * 3 * 200);
}

TEST(Work, OfElementwiseFamiliesCountsOutputs) {
  AddArgs add;
  add.broadcast.elements = 77;
  EXPECT_EQ(kAddFamily.work(&add), 77u);
  EXPECT_EQ(kSubFamily.work(&add), 77u);
  MulArgs mul;
  mul.broadcast.elements = 78;
  EXPECT_EQ(kMulFamily.work(&mul), 78u);
  MinmaxArgs minmax;
  minmax.broadcast.elements = 76;
  EXPECT_EQ(kMaximumFamily.work(&minmax), 76u);
  EXPECT_EQ(kMinimumFamily.work(&minmax), 76u);
  EXPECT_EQ(kSquaredDifferenceFamily.work(&add), 77u);
  DivArgs div;
  div.broadcast.elements = 73;
  EXPECT_EQ(kDivFamily.work(&div), 73u);
  PreluArgs prelu;
  prelu.broadcast.elements = 74;
  EXPECT_EQ(kPreluFamily.work(&prelu), 74u);
  Lut16Args lut16;
  lut16.elements = 75;
  EXPECT_EQ(kLut16Family.work(&lut16), 75u);
  Lut8Args lut;
  lut.elements = 79;
  EXPECT_EQ(kLut8Family.work(&lut), 79u);
  QuantizeArgs quantize;
  quantize.elements = 80;
  EXPECT_EQ(kQuantizeFamily.work(&quantize), 80u);
  DequantizeArgs dequantize;
  dequantize.elements = 81;
  EXPECT_EQ(kDequantizeFamily.work(&dequantize), 81u);
  RequantizeArgs requantize;
  requantize.count = 82;
  EXPECT_EQ(kRequantizeFamily.work(&requantize), 82u);
}

TEST(Work, OfReductionsCountsInputs) {
  MeanArgs mean;
  mean.num_outputs = 6, mean.num_reduced = 49;
  EXPECT_EQ(kMeanFamily.work(&mean), 294u);
  EXPECT_EQ(kReduceMaxFamily.work(&mean), 294u);
  EXPECT_EQ(kReduceMinFamily.work(&mean), 294u);
  EXPECT_EQ(kReduceProdFamily.work(&mean), 294u);
  L2NormalizationArgs l2;
  l2.rows = 4, l2.depth = 10;
  EXPECT_EQ(kL2NormalizationFamily.work(&l2), 80u);
  BatchMatmulArgs matmul;
  matmul.batches.elements = 2, matmul.m = 3, matmul.n = 4, matmul.k = 5;
  EXPECT_EQ(kBatchMatmulFamily.work(&matmul), 144u);
  LstmArgs lstm;
  lstm.shape.batch = 2, lstm.shape.steps = 3, lstm.shape.cells = 5, lstm.shape.input_c = 7;
  EXPECT_EQ(kLstmFamily.work(&lstm), 2u * 3 * 20 * (7 + 5 + 1));
  FloatLstmArgs float_lstm;
  float_lstm.shape = lstm.shape;
  float_lstm.shape.num_gates = 3;
  EXPECT_EQ(kFloatLstmFamily.work(&float_lstm), 2u * 3 * 15 * (7 + 5 + 1));
  WeightOnlyDenseArgs dense;
  dense.rows = 3, dense.output_c = 5, dense.input_c = 7;
  EXPECT_EQ(kWeightOnlyDenseFamily.work(&dense), 3u * 5 * (7 + 1));
  FloatGruArgs float_gru;
  float_gru.batch = 2, float_gru.steps = 3, float_gru.cells = 5, float_gru.input_c = 7;
  EXPECT_EQ(kFloatGruFamily.work(&float_gru), 2u * 3 * 15 * (7 + 5 + 1));
  SvdfArgs svdf;
  svdf.batch = 2, svdf.filters = 6, svdf.rank = 3, svdf.input_c = 5, svdf.memory = 4;
  EXPECT_EQ(kSvdfFamily.work(&svdf), 2u * 6 * (5 + 4 + 1));
  LogSoftmaxArgs log_softmax;
  log_softmax.rows = 4, log_softmax.depth = 10;
  EXPECT_EQ(kLogSoftmaxFamily.work(&log_softmax), 120u);
  Softmax16Args softmax16;
  softmax16.rows = 4, softmax16.depth = 10;
  EXPECT_EQ(kSoftmax16Family.work(&softmax16), 120u);
  IntBinaryArgs int_binary;
  int_binary.broadcast.elements = 83;
  EXPECT_EQ(kIntBinaryFamily.work(&int_binary), 83u);
  IntReduceArgs int_reduce;
  int_reduce.num_outputs = 6, int_reduce.num_reduced = 14;
  EXPECT_EQ(kIntReduceFamily.work(&int_reduce), 84u);
  CastArgs cast;
  cast.elements = 84;
  EXPECT_EQ(kCastFamily.work(&cast), 84u);
  GatherNdArgs gather_nd;
  gather_nd.outer = 2, gather_nd.rows = 5, gather_nd.block_bytes = 12;
  EXPECT_EQ(kGatherNdFamily.work(&gather_nd), 120u);
  ArgMaxArgs arg_max;
  arg_max.outer = 3, arg_max.extent = 10, arg_max.inner = 2;
  EXPECT_EQ(kArgMaxFamily.work(&arg_max), 60u);
  EXPECT_EQ(kArgMinFamily.work(&arg_max), 60u);
  SoftmaxArgs softmax;
  softmax.rows = 4, softmax.depth = 10;
  EXPECT_EQ(kSoftmaxFamily.work(&softmax), 120u);
}

TEST(Work, OfMovesCountsBytes) {
  PadArgs pad;
  pad.rank = 2, pad.rows = 5, pad.output_extents[0] = 5, pad.output_extents[1] = 9, pad.element_bytes = 4;
  EXPECT_EQ(kPadFamily.work(&pad), 180u);
  TransposeArgs transpose;
  transpose.elements = 30, transpose.element_bytes = 2;
  EXPECT_EQ(kTransposeFamily.work(&transpose), 60u);
  ConcatArgs concat;
  concat.rows = 7, concat.output_row_bytes = 11;
  EXPECT_EQ(kConcatFamily.work(&concat), 77u);
  SplitArgs split;
  split.rows = 7, split.input_row_bytes = 12;
  EXPECT_EQ(kSplitFamily.work(&split), 84u);
  GatherArgs gather;
  gather.rank = 2, gather.rows = 5, gather.extents[0] = 5, gather.extents[1] = 3, gather.block_bytes = 6;
  EXPECT_EQ(kGatherFamily.work(&gather), 90u);
  CopyArgs copy;
  copy.bytes = 99;
  EXPECT_EQ(kCopyFamily.work(&copy), 99u);
  ResizeBilinearArgs resize;
  resize.batch = 2, resize.output_h = 3, resize.output_w = 4, resize.channels = 5;
  EXPECT_EQ(kResizeBilinearFamily.work(&resize), 4u * 120);
}

// A sum of stages, and what moves in tiles. 4 channels, 8 x 8: 1x1 to 12 channels, then 3x3 depthwise. For a
// row of the output the tile holds 3 rows of 8 * 12 bytes, 8 times.
TEST(Work, OfCascadesIsThatOfTheLayersAndOfTheTiles) {
  testing::CascadeBuilder cascade(1, {1, 8, 8, 4});
  cascade.add_convolution({1, 1, 1, 0, 8}, {1, 1, 1, 0, 8}, 12, false);
  cascade.add_convolution({3, 1, 1, 1, 8}, {3, 1, 1, 1, 8}, 12, true);
  for (const uint64_t block_rows : {0, 1, 3, 5}) {  // settings of the knob, which must not matter
    const StepView step = cascade.cascade(block_rows);
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text();
    EXPECT_EQ(kCascadeFamily.work(args), 768u * 5 + 768u * 10 + 8u * 3 * 96);
  }
}

TEST(Work, SaturatesInPlaceOfOverflowing) {
  Conv2dArgs args = conv2d_args();
  args.batch = args.output_h = args.output_w = args.output_c = args.kernel_h = args.kernel_w = INT32_MAX;
  EXPECT_EQ(kConv2dFamily.work(&args), UINT64_MAX);
  Pool2dArgs pool;
  pool.output_h = pool.output_w = pool.pool_h = pool.pool_w = pool.input_h = pool.input_w = INT32_MAX;
  EXPECT_EQ(kAvgPool2dFamily.work(&pool), UINT64_MAX);
  FullyConnectedArgs layer;
  layer.rows = INT32_MAX, layer.input_c = UINT32_MAX, layer.output_c = INT32_MAX;
  EXPECT_EQ(kFullyConnectedFamily.work(&layer), UINT64_MAX);
}

TEST(Work, OfConditionsMatricesAndRows) {
  CompareArgs compare;
  compare.broadcast.elements = 70;
  EXPECT_EQ(kCompareFamily.work(&compare), 70u);
  SelectArgs select;
  select.elements = 71;
  EXPECT_EQ(kSelectFamily.work(&select), 71u);
  FloatBatchMatmulArgs matmul;
  matmul.batches.elements = 2, matmul.m = 3, matmul.k = 4, matmul.n = 5;
  EXPECT_EQ(kFloatBatchMatmulFamily.work(&matmul), 150u);
  CumulativeSumArgs sum;
  sum.outer = 2, sum.depth = 3, sum.inner = 4;
  EXPECT_EQ(kCumulativeSumFamily.work(&sum), 24u);
  TopKArgs top;
  top.rows = 2, top.depth = 10, top.k = 3;
  EXPECT_EQ(kTopKFamily.work(&top), 60u);
}

// make_family does not compile without one; and this list of tests is of all families.
TEST(Work, EveryFamilyCountsIt) {
  std::set<std::string> tested = {"conv2d",
                                  "depthwise_conv2d",
                                  "fully_connected",
                                  "avg_pool2d",
                                  "max_pool2d",
                                  "add",
                                  "sub",
                                  "mul",
                                  "maximum",
                                  "minimum",
                                  "mean",
                                  "softmax",
                                  "lut8",
                                  "quantize",
                                  "pad",
                                  "transpose",
                                  "dequantize",
                                  "requantize",
                                  "concat",
                                  "split",
                                  "gather",
                                  "arg_max",
                                  "resize_bilinear",
                                  "copy",
                                  "conv2d_transpose",
                                  "prelu",
                                  "lut16",
                                  "reduce_max",
                                  "reduce_min",
                                  "reduce_prod",
                                  "arg_min",
                                  "squared_difference",
                                  "l2_normalization",
                                  "batch_matmul",
                                  "lstm",
                                  "float_lstm",
                                  "float_gru",
                                  "svdf",
                                  "softmax16",
                                  "log_softmax",
                                  "div",
                                  "int_binary",
                                  "int_reduce",
                                  "cast",
                                  "gather_nd",
                                  "custom",  // tests/runtime/custom_operator_test.cc
                                  "chain",
                                  "float_conv2d",
                                  "weight_only_dense",
                                  "float_pool2d",
                                  "float_binary",
                                  "float_unary",
                                  "float_mean",
                                  "float_softmax",
                                  "dynamic_quantize",
                                  "dynamic_dequantize",
                                  "compare",
                                  "select",
                                  "float_batch_matmul",
                                  "cumulative_sum",
                                  "top_k"};
  for (const qplan_kernel_set* set : {qplan_kernels_all(), qplan_kernels_reference()}) {
    for (uint32_t id = 1; id < set->num_families; ++id) {
      EXPECT_NE(set->families[id]->work, nullptr) << set->families[id]->name;
      EXPECT_EQ(tested.count(set->families[id]->name), 1u) << set->families[id]->name;
    }
  }
}

}  // namespace
}  // namespace qplan::work_test
