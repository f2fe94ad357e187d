// The variants over kernels/simd/generic.h, from which the header of a new instruction set begins. No library
// has them; the tests of the families run them beside the others (tests/support/variants.h).
#include <gtest/gtest.h>

#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/float/float.h"
#include "kernels/float/weight_only_dense.h"
#include "kernels/matmul/matmul.h"
#include "kernels/movement/movement.h"
#include "kernels/quantization/quantization.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/reduction/reduction.h"
#include "kernels/softmax/softmax.h"
#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "tests/support/variants.h"

namespace qplan {
namespace testing {
namespace {

struct Row {
  const KernelFamily* family;
  KernelVariant variant;
};

// The references are among them.
std::vector<Row> all_rows() {
  std::vector<Row> rows;
  const KernelFamily* family = nullptr;
#define QPLAN_VARIANT(name, isa) rows.push_back({family, QPLAN_VARIANT_ROW(Args, name, isa)});
  {
    using Args = AddArgs;
    family = &kAddFamily;
    QPLAN_ADD_VARIANTS
    family = &kSubFamily;
    QPLAN_SUB_VARIANTS
  }
  {
    using Args = ArgMaxArgs;
    family = &kArgMaxFamily;
    QPLAN_ARG_MAX_VARIANTS
  }
  {
    using Args = BatchMatmulArgs;
    family = &kBatchMatmulFamily;
    QPLAN_BATCH_MATMUL_VARIANTS
  }
  {
    using Args = Conv2dArgs;
    family = &kConv2dFamily;
    QPLAN_CONV2D_VARIANTS
    family = &kDepthwiseConv2dFamily;
    QPLAN_DEPTHWISE_CONV2D_VARIANTS
    family = &kConv2dTransposeFamily;
    QPLAN_CONV2D_TRANSPOSE_VARIANTS
  }
  {
    using Args = DynamicQuantizeArgs;
    family = &kDynamicQuantizeFamily;
    QPLAN_DYNAMIC_QUANTIZE_VARIANTS
  }
  {
    using Args = DynamicDequantizeArgs;
    family = &kDynamicDequantizeFamily;
    QPLAN_DYNAMIC_DEQUANTIZE_VARIANTS
  }
  {
    using Args = FloatBatchMatmulArgs;
    family = &kFloatBatchMatmulFamily;
    QPLAN_FLOAT_BATCH_MATMUL_VARIANTS
  }
  {
    using Args = FloatConv2dArgs;
    family = &kFloatConv2dFamily;
    QPLAN_FLOAT_CONV2D_VARIANTS
  }
  {
    using Args = FloatBinaryArgs;
    family = &kFloatBinaryFamily;
    QPLAN_FLOAT_BINARY_VARIANTS
  }
  {
    using Args = FloatUnaryArgs;
    family = &kFloatUnaryFamily;
    QPLAN_FLOAT_UNARY_VARIANTS
  }
  {
    using Args = FloatPool2dArgs;
    family = &kFloatPool2dFamily;
    QPLAN_FLOAT_POOL2D_VARIANTS
  }
  {
    using Args = FloatMeanArgs;
    family = &kFloatMeanFamily;
    QPLAN_FLOAT_MEAN_VARIANTS
  }
  {
    using Args = FloatSoftmaxArgs;
    family = &kFloatSoftmaxFamily;
    QPLAN_FLOAT_SOFTMAX_VARIANTS
  }
  {
    using Args = WeightOnlyDenseArgs;
    family = &kWeightOnlyDenseFamily;
    QPLAN_WEIGHT_ONLY_DENSE_VARIANTS
  }
  {
    using Args = FloatGruArgs;
    family = &kFloatGruFamily;
    QPLAN_FLOAT_GRU_VARIANTS
  }
  {
    using Args = FloatLstmArgs;
    family = &kFloatLstmFamily;
    QPLAN_FLOAT_LSTM_VARIANTS
  }
  {
    using Args = FullyConnectedArgs;
    family = &kFullyConnectedFamily;
    QPLAN_FULLY_CONNECTED_VARIANTS
  }
  {
    using Args = LstmArgs;
    family = &kLstmFamily;
    QPLAN_LSTM_VARIANTS
  }
  {
    using Args = Lut8Args;
    family = &kLut8Family;
    QPLAN_LUT8_VARIANTS
  }
  {
    using Args = MeanArgs;
    family = &kMeanFamily;
    QPLAN_MEAN_VARIANTS
  }
  {
    using Args = MinmaxArgs;
    family = &kMaximumFamily;
    QPLAN_MINMAX_VARIANTS
    family = &kMinimumFamily;
    QPLAN_MINMAX_VARIANTS
  }
  {
    using Args = MulArgs;
    family = &kMulFamily;
    QPLAN_MUL_VARIANTS
  }
  {
    using Args = Pool2dArgs;
    family = &kAvgPool2dFamily;
    QPLAN_AVG_POOL2D_VARIANTS
    family = &kMaxPool2dFamily;
    QPLAN_MAX_POOL2D_VARIANTS
  }
  {
    using Args = PreluArgs;
    family = &kPreluFamily;
    QPLAN_PRELU_VARIANTS
  }
  {
    using Args = QuantizeArgs;
    family = &kQuantizeFamily;
    QPLAN_QUANTIZE_VARIANTS
  }
  {
    using Args = RequantizeArgs;
    family = &kRequantizeFamily;
    QPLAN_REQUANTIZE_VARIANTS
  }
  {
    using Args = ResizeBilinearArgs;
    family = &kResizeBilinearFamily;
    QPLAN_RESIZE_BILINEAR_VARIANTS
  }
  {
    using Args = SoftmaxArgs;
    family = &kSoftmaxFamily;
    QPLAN_SOFTMAX_VARIANTS
  }
  {
    using Args = TransposeArgs;
    family = &kTransposeFamily;
    QPLAN_TRANSPOSE_VARIANTS
  }
#undef QPLAN_VARIANT
  return rows;
}

}  // namespace

const KernelVariant* generic_variant_of(const KernelFamily& family) {
  static const std::vector<Row> rows = [] {
    std::vector<Row> generic;
    for (const Row& row : all_rows()) {
      if (row.variant.isa != QPLAN_ISA_GENERIC) continue;
      generic.push_back(row);
      // The knobs are the family's, as those of each of its vector variants are.
      generic.back().variant.knobs = row.family->variants[0].knobs;
      generic.back().variant.num_knobs = row.family->variants[0].num_knobs;
    }
    return generic;
  }();
  for (const Row& row : rows) {
    if (row.family == &family) return &row.variant;
  }
  return nullptr;
}

namespace {

TEST(GenericVariants, ThereIsOneOfEveryFamilyThatHasVectorVariants) {
  const KernelFamily* const families[] = {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) &descriptor,
#include "format/kernels.def"
#undef QPLAN_KERNEL
  };
  for (const KernelFamily* family : families) {
    // dequantize has one written by hand for one instruction set; chain runs the variants of others.
    if (family == &kDequantizeFamily || family == &kCascadeFamily) continue;
    EXPECT_TRUE(family->num_variants == 1 || generic_variant_of(*family) != nullptr)
        << family->name << ": give all_rows() a block with its arguments and its list of variants";
  }
}

}  // namespace
}  // namespace testing
}  // namespace qplan
