// The rows of docs/operators.md: operators of each format that are one operator of the IR, and examples of
// it.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_OPERATORS_PAGE_ROWS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_OPERATORS_PAGE_ROWS_H_

#include <vector>

namespace qplan::pipeline::operators_page_test {

// Names are separated by blanks. example: a body of Relay text over %x of dtype T, shape (1, 6, 8, 16); w:
// weights as it needs them, or "". "": computed or dropped when the model is packed.
struct Row {
  const char* title;
  const char* tflite;
  const char* onnx;
  const char* pytorch;
  const char* relay;
  std::vector<const char*> examples;
};

constexpr char kConvolution[] =
    "%w: Tensor[(8, 3, 3, 16), int8]|%0 = qnn.conv2d(%x, %w, 0, 0, 1f, 1f, data_layout=\"NHWC\", "
    "kernel_layout=\"OHWI\");\n%1 = qnn.requantize(%0, 1f, 0, 500f, 0, out_dtype=\"T\");\n%1";
constexpr char kFloatConvolution[] =
    "%w: Tensor[(8, 3, 3, 16), float32]|%0 = nn.conv2d(%x, %w, data_layout=\"NHWC\", "
    "kernel_layout=\"OHWI\");\n%0";
constexpr char kDepthwise[] =
    "%w: Tensor[(16, 3, 3, 1), int8]|%0 = qnn.conv2d(%x, %w, 0, 0, 1f, 1f, groups=16, data_layout=\"NHWC\", "
    "kernel_layout=\"OHWI\");\n%1 = qnn.requantize(%0, 1f, 0, 500f, 0, out_dtype=\"T\");\n%1";
constexpr char kTransposed[] =
    "%w: Tensor[(8, 3, 3, 16), int8]|%0 = qnn.conv2d_transpose(%x, %w, 0, 0, 1f, 1f, strides=[2, 2], "
    "output_size=[13, 17]);\n%1 = qnn.requantize(%0, 1f, 0, 500f, 0, out_dtype=\"T\");\n%1";
constexpr char kDense[] =
    "%w: Tensor[(8, 768), int8]|%0 = reshape(%x, newshape=[1, 768]);\n%1 = qnn.dense(%0, %w, 0, 0, 1f, 1f);\n"
    "%2 = qnn.requantize(%1, 1f, 0, 500f, 0, out_dtype=\"T\");\n%2";
constexpr char kFloatDense[] =
    "%w: Tensor[(8, 768), float32]|%0 = reshape(%x, newshape=[1, 768]);\n%1 = nn.dense(%0, %w);\n%1";

// 48 steps of 16 features, and four cells or filters. States are inputs.
#define QPLAN_CONSTANT(index, type) "meta[relay.Constant][" #index "] /* ty=Tensor[" type "] */"
#define QPLAN_LSTM(weights) \
  "%h: Tensor[(1, 4), float32], %c: Tensor[(1, 4), float32]|%0 = reshape(%x, newshape=[1, 48, 16]);\n" \
  "%1 = nn.lstm(%0, " QPLAN_CONSTANT(0, "(16, 16), " weights) ", " QPLAN_CONSTANT(1, "(16, 4), " weights) ", " \
  QPLAN_CONSTANT(2, "(16), float32") ", " QPLAN_CONSTANT(3, "(8), float32") ", %h, %c);\n%1.0"
constexpr char kLstm[] = QPLAN_LSTM("float32");
constexpr char kHybridLstm[] = QPLAN_LSTM("int8");
constexpr char kIntegerLstm[] =
    "%h: Tensor[(1, 4), int8], %c: Tensor[(1, 4), int16]|%0 = reshape(%x, newshape=[1, 48, 16]);\n"
    "%1 = nn.integer_lstm(%0, " QPLAN_CONSTANT(0, "(16, 16), int8") ", " QPLAN_CONSTANT(1, "(16, 4), int8") ", "
    QPLAN_CONSTANT(2, "(16), int32") ", " QPLAN_CONSTANT(3, "(16), int32") ", %h, %c, "
    "input_multiplier=[9, 9, 9, 9], input_shift=[0, 0, 0, 0], recurrent_multiplier=[9, 9, 9, 9], "
    "recurrent_shift=[0, 0, 0, 0], output_multiplier=9, output_shift=-7, output_zero_point=0, cell_bits=12);\n%1.0";
constexpr char kGru[] =
    "%h: Tensor[(1, 4), float32]|%0 = reshape(%x, newshape=[1, 48, 16]);\n"
    "%1 = nn.gru(%0, " QPLAN_CONSTANT(0, "(12, 16), float32") ", " QPLAN_CONSTANT(1, "(12, 4), float32") ", "
    QPLAN_CONSTANT(2, "(12), float32") ", " QPLAN_CONSTANT(3, "(12), float32") ", %h);\n%1.0";
constexpr char kIntegerSvdf[] =
    "%s: Tensor[(1, 4, 5), int16]|%0 = reshape(%x, newshape=[1, 768]);\n"
    "%1 = nn.integer_svdf(%0, " QPLAN_CONSTANT(0, "(4, 768), int8") ", " QPLAN_CONSTANT(1, "(4, 5), int16") ", "
    QPLAN_CONSTANT(2, "(4), int32") ", " QPLAN_CONSTANT(3, "(2), int32") ", %s, rank=2, feature_multiplier=9, "
    "feature_shift=0, output_multiplier=9, output_shift=-7, output_zero_point=0);\n%1.0";

#define QPLAN_UNARY(name) "|%0 = " name "(%x);\n%0"
#define QPLAN_BINARY(name) "|%0 = " name "(%x, %x);\n%0"
#define QPLAN_QNN_BINARY(name) "|%0 = " name "(%x, %x, 1f, 0, 1f, 0, 2f, 0);\n%0"

inline const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"convolution",
       "CONV_2D",
       "Conv ConvInteger QLinearConv com.microsoft.QLinearConv com.microsoft.FusedConv",
       "aten::conv2d aten::conv1d aten::convolution aten::_convolution aten::_convolution_mode "
       "quantized::conv2d quantized::conv2d_relu quantized::conv2d_prepack quantized::conv1d "
       "quantized::conv1d_relu quantized::conv1d_prepack",
       "qnn.conv2d nn.conv2d nn.bias_add",
       {kConvolution, kFloatConvolution}},
      {"depthwise convolution",
       "DEPTHWISE_CONV_2D",
       "Conv",
       "aten::conv2d aten::convolution quantized::conv2d",
       "qnn.conv2d nn.conv2d",
       {kDepthwise}},
      {"transposed convolution",
       "TRANSPOSE_CONV",
       "ConvTranspose",
       "aten::conv_transpose2d aten::conv_transpose1d",
       "qnn.conv2d_transpose",
       {kTransposed}},
      {"fully connected",
       "FULLY_CONNECTED",
       "Gemm MatMul MatMulInteger QLinearMatMul com.microsoft.QGemm com.microsoft.DynamicQuantizeMatMul "
       "com.microsoft.MatMulIntegerToFloat com.microsoft.MatMulNBits com.microsoft.FusedGemm",
       "aten::linear aten::addmm aten::mm aten::matmul quantized::linear quantized::linear_relu "
       "quantized::linear_prepack",
       "qnn.dense nn.dense",
       {kDense, kFloatDense}},
      {"matrix product of activations",
       "BATCH_MATMUL",
       "MatMul QLinearMatMul Einsum Attention com.microsoft.FusedMatMul com.microsoft.Attention "
       "com.microsoft.QAttention com.microsoft.MultiHeadAttention com.microsoft.GroupQueryAttention",
       "aten::bmm aten::matmul aten::scaled_dot_product_attention",
       "qnn.batch_matmul nn.batch_matmul",
       {"|%0 = nn.batch_matmul(%x, %x, transpose_b=True);\n%0",
        "|%0 = qnn.batch_matmul(%x, %x, 1f, 0, 1f, 0, 500f, 0, transpose_b=True);\n%0"}},
      {"addition",
       "ADD ADD_N",
       "Add Sum com.microsoft.QLinearAdd",
       "aten::add aten::add_ quantized::add quantized::add_relu quantized::add_scalar "
       "quantized::add_scalar_relu",
       "qnn.add add",
       {QPLAN_QNN_BINARY("qnn.add"), QPLAN_BINARY("add")}},
      {"subtraction",
       "SUB",
       "Sub",
       "aten::sub aten::sub_ aten::rsub",
       "qnn.subtract subtract",
       {QPLAN_QNN_BINARY("qnn.subtract"), QPLAN_BINARY("subtract")}},
      {"multiplication",
       "MUL SQUARE",
       "Mul RotaryEmbedding com.microsoft.QLinearMul com.microsoft.RotaryEmbedding",
       "aten::mul aten::mul_ quantized::mul quantized::mul_relu quantized::mul_scalar "
       "quantized::mul_scalar_relu",
       "qnn.mul multiply",
       {QPLAN_QNN_BINARY("qnn.mul"), QPLAN_BINARY("multiply")}},
      {"division",
       "DIV",
       "Div Reciprocal",
       "aten::div aten::div_ aten::reciprocal",
       "qnn.divide divide",
       {QPLAN_QNN_BINARY("qnn.divide"), QPLAN_BINARY("divide")}},
      {"power", "POW", "Pow", "aten::pow aten::square", "power", {QPLAN_BINARY("power")}},
      {"squared difference",
       "SQUARED_DIFFERENCE",
       "",
       "",
       "qnn.squared_difference",
       {QPLAN_QNN_BINARY("qnn.squared_difference")}},
      {"maximum, minimum",
       "MAXIMUM MINIMUM",
       "Max Min",
       "aten::maximum aten::minimum",
       "maximum minimum",
       {QPLAN_BINARY("maximum")}},
      {"average pool",
       "AVERAGE_POOL_2D",
       "AveragePool GlobalAveragePool com.microsoft.QLinearAveragePool "
       "com.microsoft.QLinearGlobalAveragePool",
       "aten::avg_pool2d aten::avg_pool1d aten::adaptive_avg_pool2d aten::_adaptive_avg_pool2d "
       "aten::adaptive_avg_pool1d",
       "qnn.avg_pool2d nn.avg_pool2d nn.global_avg_pool2d",
       {"|%0 = qnn.avg_pool2d(%x, 1f, 0, 1f, 0, pool_size=[2, 2], layout=\"NHWC\");\n%0",
        "|%0 = nn.avg_pool2d(%x, pool_size=[2, 2], layout=\"NHWC\");\n%0"}},
      {"maximum pool",
       "MAX_POOL_2D",
       "MaxPool GlobalMaxPool com.microsoft.NhwcMaxPool",
       "aten::max_pool2d aten::max_pool2d_with_indices aten::max_pool1d",
       "nn.max_pool2d",
       {"|%0 = nn.max_pool2d(%x, pool_size=[2, 2], layout=\"NHWC\");\n%0"}},
      {"mean",
       "MEAN",
       "ReduceMean",
       "aten::mean",
       "qnn.mean mean",
       {"|%0 = qnn.mean(%x, 1f, 0, 1f, 0, axis=[1, 2]);\n%0", "|%0 = mean(%x, axis=[1, 2]);\n%0"}},
      {"sum",
       "SUM",
       "ReduceSum ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp",
       "aten::sum",
       "qnn.sum sum",
       {"|%0 = qnn.sum(%x, 1f, 0, 9f, 0, axis=[1]);\n%0", "|%0 = sum(%x, axis=[1]);\n%0"}},
      {"product",
       "REDUCE_PROD",
       "ReduceProd",
       "aten::prod",
       "qnn.prod prod",
       {"|%0 = qnn.prod(%x, 1f, 0, 9f, 0, axis=[1]);\n%0", "|%0 = prod(%x, axis=[1]);\n%0"}},
      {"running sum", "CUMSUM", "CumSum", "", "cumsum", {"|%0 = cumsum(%x, axis=3);\n%0"}},
      {"largest elements of rows", "TOPK_V2", "TopK", "", "topk", {"|%0 = topk(%x, k=3);\n(%0.0, %0.1)"}},
      {"largest, smallest element",
       "REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL",
       "ReduceMax ReduceMin",
       "aten::amax aten::amin",
       "max min",
       {"|%0 = max(%x, axis=[1]);\n%0"}},
      {"position of the largest, smallest element",
       "ARG_MAX ARG_MIN",
       "ArgMax ArgMin",
       "aten::argmax aten::argmin",
       "argmax argmin",
       {"|%0 = argmax(%x, axis=3);\n%0"}},
      {"softmax",
       "SOFTMAX",
       "Softmax Hardmax com.microsoft.QLinearSoftmax",
       "aten::softmax quantized::softmax aten::_softmax",
       "qnn.softmax nn.softmax nn.integer_softmax",
       {"|%0 = qnn.softmax(%x, 0.1f, 0, 0.00390625f, -128);\n%0", QPLAN_UNARY("nn.softmax")}},
      {"logistic",
       "LOGISTIC",
       "Sigmoid com.microsoft.QLinearSigmoid",
       "aten::sigmoid aten::sigmoid_ quantized::sigmoid",
       "qnn.sigmoid sigmoid",
       {"|%0 = qnn.sigmoid(%x, 0.1f, 0, 0.00390625f, -128);\n%0", QPLAN_UNARY("sigmoid")}},
      {"hyperbolic tangent",
       "TANH",
       "Tanh",
       "aten::tanh aten::tanh_",
       "qnn.tanh tanh",
       {"|%0 = qnn.tanh(%x, 0.0001220703125f, 0, 0.000030517578125f, 0);\n%0", QPLAN_UNARY("tanh")}},
      {"L2 normalisation",
       "L2_NORMALIZATION",
       "",
       "",
       "qnn.l2_normalize",
       {"|%0 = qnn.l2_normalize(%x, 0.1f, 0, 0.0078125f, 0);\n%0"}},
      {"clamps",
       "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1",
       "Relu Clip",
       "aten::relu aten::relu_ aten::relu6 aten::relu6_ aten::hardtanh aten::hardtanh_ aten::clamp "
       "aten::clamp_ quantized::relu6 quantized::clamp aten::clamp_min aten::clamp_max",
       "clip nn.relu",
       {"|%0 = clip(%x, a_min=0f, a_max=6f);\n%0"}},
      {"parametric and leaky ReLU",
       "PRELU LEAKY_RELU",
       "PRelu LeakyRelu com.microsoft.QLinearLeakyRelu",
       "aten::leaky_relu aten::leaky_relu_ quantized::leaky_relu aten::prelu aten::_prelu_kernel",
       "qnn.prelu nn.leaky_relu",
       {QPLAN_QNN_BINARY("qnn.prelu"), "|%0 = nn.leaky_relu(%x, alpha=0.1f);\n%0"}},
      {"hard sigmoid",
       "",
       "HardSigmoid",
       "aten::hardsigmoid aten::hardsigmoid_",
       "hard_sigmoid",
       {QPLAN_UNARY("hard_sigmoid")}},
      {"functions of one element by table",
       "HARD_SWISH ELU GELU LOG SQRT RSQRT FLOOR CEIL ROUND SIN COS",
       "HardSwish Sqrt Floor Ceil Round Erf Gelu Log Elu Selu Celu Sin Cos Softplus Softsign Mish Swish "
       "ThresholdedRelu com.microsoft.Gelu com.microsoft.BiasGelu com.microsoft.FastGelu "
       "com.microsoft.QuickGelu",
       "aten::hardswish aten::hardswish_ quantized::hardswish aten::silu aten::silu_ aten::gelu "
       "aten::elu aten::elu_ aten::selu aten::selu_ aten::log_sigmoid aten::softplus aten::mish aten::mish_ "
       "aten::sqrt aten::rsqrt aten::log "
       "aten::erf",
       "qnn.lookup sqrt floor ceil round rsqrt log erf sin cos nn.elu",
       {"%w: Tensor[(256), T]|%0 = qnn.lookup(%x, %w);\n%0"}},
      {"exponential, negative, absolute value",
       "EXP NEG ABS",
       "Exp Neg Abs",
       "aten::exp aten::neg aten::abs",
       "exp negative abs",
       {QPLAN_UNARY("exp")}},
      {"quantise",
       "QUANTIZE",
       "QuantizeLinear com.microsoft.QuantizeLinear",
       "aten::quantize_per_tensor quantized_decomposed::quantize_per_tensor "
       "quantized_decomposed::quantize_per_channel",
       "qnn.quantize qnn.requantize",
       {"|%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"int8\");\n%0",
        "|%0 = qnn.requantize(%x, 1f, 0, 2f, 0, out_dtype=\"int8\");\n%0"}},
      {"dequantise",
       "DEQUANTIZE",
       "DequantizeLinear com.microsoft.DequantizeLinear",
       "aten::dequantize quantized_decomposed::dequantize_per_tensor "
       "quantized_decomposed::dequantize_per_channel",
       "qnn.dequantize",
       {"|%0 = qnn.dequantize(%x, 0.5f, 3);\n%0"}},
      {"dynamic quantisation",
       "",
       "DynamicQuantizeLinear",
       "quantized_decomposed::choose_qparams quantized_decomposed::choose_qparams_symmetric",
       "nn.dynamic_quantize nn.dynamic_dequantize",
       {}},
      {"LSTM",
       "UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM LSTM",
       "LSTM com.microsoft.DynamicQuantizeLSTM",
       "aten::lstm",
       "nn.lstm nn.integer_lstm",
       {kIntegerLstm, kLstm}},
      {"LSTM with weights of int8",
       "UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM LSTM",
       "",
       "",
       "nn.lstm",
       {kHybridLstm}},
      {"GRU", "", "GRU", "aten::gru", "nn.gru", {kGru}},
      {"SVDF", "SVDF", "", "", "nn.integer_svdf", {kIntegerSvdf}},
      {"logarithm of softmax",
       "LOG_SOFTMAX",
       "LogSoftmax",
       "aten::log_softmax aten::_log_softmax",
       "qnn.log_softmax nn.log_softmax",
       {"|%0 = qnn.log_softmax(%x, 0.1f, 0, 0.0625f, 127);\n%0",
        "|%0 = qnn.log_softmax(%x, 0.1f, 0, 0.0625f, 255);\n%0", QPLAN_UNARY("nn.log_softmax")}},
      {"normalisation of layers, groups and instances",
       "",
       "LayerNormalization RMSNormalization SimplifiedLayerNormalization GroupNormalization "
       "InstanceNormalization MeanVarianceNormalization LpNormalization LRN "
       "com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization "
       "com.microsoft.EmbedLayerNormalization",
       "aten::layer_norm aten::native_layer_norm aten::group_norm "
       "aten::native_group_norm aten::instance_norm",
       "",
       {}},
      {"comparison",
       "LESS LESS_EQUAL GREATER GREATER_EQUAL EQUAL NOT_EQUAL ONE_HOT",
       "Less LessOrEqual Greater GreaterOrEqual Equal OneHot",
       "aten::eq aten::ne aten::lt aten::gt aten::le aten::ge",
       "less less_equal equal",
       {QPLAN_BINARY("less")}},
      {"choice by a condition, logic",
       "SELECT SELECT_V2 LOGICAL_AND LOGICAL_OR LOGICAL_NOT",
       "Where And Or Xor Not Trilu",
       "aten::where aten::masked_fill aten::masked_fill_ aten::logical_not aten::bitwise_not",
       "where",
       {"|%0 = equal(%x, %x);\n%1 = where(%0, %x, %x);\n%1"}},
      {"sign", "SIGN", "Sign", "", "", {}},
      {"division and remainder, rounded down",
       "FLOOR_DIV FLOOR_MOD",
       "Mod",
       "aten::floor_divide",
       "floor_divide floor_mod",
       {QPLAN_BINARY("floor_divide")}},
      {"positions in several axes", "GATHER_ND", "", "", "gather_nd", {}},
      {"operators of the application (custom-operators.md)", "", "", "", "custom", {}},
      {"programs of Arm's compiler (ethosu.md)", "", "", "", "npu.program", {}},
      {"pad",
       "PAD PADV2",
       "Pad",
       "aten::pad aten::constant_pad_nd",
       "nn.pad",
       {"|%0 = nn.pad(%x, 0, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n%0"}},
      {"transpose",
       "TRANSPOSE",
       "Transpose",
       "aten::permute aten::transpose aten::t",
       "transpose",
       {"|%0 = transpose(%x, axes=[0, 3, 1, 2]);\n%0"}},
      {"join",
       "CONCATENATION PACK",
       "Concat com.microsoft.QLinearConcat",
       "aten::cat quantized::cat quantized::cat_relu aten::stack",
       "concatenate",
       {"|%0 = concatenate((%x, %x), axis=3);\n%0"}},
      {"split",
       "SPLIT SPLIT_V UNPACK",
       "Split",
       "aten::chunk aten::unsafe_chunk aten::split aten::split_with_sizes aten::unbind",
       "split",
       {"|%0 = split(%x, indices_or_sections=2, axis=3);\n(%0.0, %0.1)"}},
      {"slices and positions",
       "STRIDED_SLICE SLICE REVERSE_V2 GATHER TILE BROADCAST_TO MIRROR_PAD RESIZE_NEAREST_NEIGHBOR "
       "DYNAMIC_UPDATE_SLICE",
       "Slice Gather GatherElements GatherND ScatterND ScatterElements Scatter Tile Expand "
       "com.microsoft.GatherBlockQuantized",
       "aten::slice aten::narrow aten::select aten::upsample_nearest2d aten::embedding aten::expand "
       "aten::expand_as aten::repeat aten::flip",
       "strided_slice take",
       {"|%0 = strided_slice(%x, begin=[0, 0, 0, 0], end=[1, 6, 8, 16], strides=[1, 2, 2, 1]);\n%0"}},
      {"resize, bilinear or nearest",
       "RESIZE_BILINEAR",
       "Resize Upsample",
       "aten::upsample_bilinear2d",
       "image.resize2d",
       {"|%0 = image.resize2d(%x, size=[9, 12], layout=\"NHWC\");\n%0"}},
      {"reshape",
       "RESHAPE EXPAND_DIMS SQUEEZE",
       "Reshape Flatten Squeeze Unsqueeze",
       "aten::reshape aten::view aten::flatten aten::squeeze aten::unsqueeze aten::_unsafe_view "
       "aten::unflatten",
       "reshape squeeze expand_dims nn.batch_flatten",
       {"|%0 = reshape(%x, newshape=[6, 128]);\n%0"}},
      {"space to depth or batch, and back",
       "SPACE_TO_DEPTH DEPTH_TO_SPACE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND",
       "SpaceToDepth DepthToSpace",
       "aten::pixel_shuffle",
       "reshape transpose",
       {"|%0 = reshape(%x, newshape=[1, 3, 2, 4, 2, 16]);\n%1 = transpose(%0, "
        "axes=[0, 1, 3, 2, 4, 5]);\n%1"}},
      {"spectrum of rows", "RFFT2D REAL IMAG COMPLEX_ABS", "", "", "", {}},
      {"loops of known length, branches", "WHILE IF", "If", "", "", {}},
      {"states", "VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE", "", "", "", {}},
      {"shapes and constants, on import",
       "SHAPE RANK RANGE FILL ZEROS_LIKE CAST DENSIFY",
       "Shape Size Range NonZero Constant ConstantOfShape Cast CastLike Identity Dropout",
       "aten::size aten::sym_size aten::dim aten::len aten::eq aten::ne aten::lt aten::gt aten::le "
       "aten::ge aten::__is__ aten::__isnot__ aten::__not__ aten::floordiv aten::floor_divide "
       "aten::remainder aten::floor aten::ceil prim::max prim::min aten::list aten::append "
       "aten::device prim::device prim::dtype "
       "aten::warn aten::contiguous aten::clone aten::detach aten::dropout aten::dropout_ "
       "aten::feature_dropout prim::int "
       "prim::float prim::bool prim::NumToTensor prim::is_quantized prim::RaiseException "
       "aten::zeros aten::ones aten::full aten::alias aten::lift_fresh_copy aten::to "
       "aten::type_as aten::_to_copy "
       "aten::_set_item aten::__contains__ "
       "aten::_assert_tensor_metadata "
       "aten::_assert_scalar aten::sym_constrain_range_for_size",
       "cast",
       {}},
      {"batch normalisation of quantised tensors",
       "",
       "",
       "quantized::batch_norm quantized::batch_norm_relu quantized::batch_norm1d "
       "quantized::batch_norm1d_relu quantized::batch_norm2d quantized::batch_norm2d_relu",
       "",
       {}},
      {"batch normalisation, folded into a layer",
       "",
       "BatchNormalization",
       "aten::batch_norm aten::_native_batch_norm_legit_no_training",
       "nn.batch_norm",
       {}},
  };
  return kRows;
}

#undef QPLAN_CONSTANT
#undef QPLAN_LSTM
#undef QPLAN_UNARY
#undef QPLAN_BINARY
#undef QPLAN_QNN_BINARY

}  // namespace qplan::pipeline::operators_page_test

#endif  // QPLAN_TESTS_PACKER_PIPELINE_OPERATORS_PAGE_ROWS_H_
