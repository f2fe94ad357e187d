// Float32 forms of operators beside those of op_float.cc: functions, reductions, resizing, transposed
// convolutions, and spectra of audio. They have the order of operations that TFLite's reference kernels have,
// or one within its rounding (docs/numerics/float32.md).
#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/op/evaluate.h"

namespace qplan::tfl {
namespace {

ir::ValueId number(OpContext& op, float value) { return op.constant(ir::make_scalar(value)); }

ir::ValueId multiplied(OpContext& op, ir::ValueId a, ir::ValueId b) {
  return op.emit("multiply", {a, b}, {});
}

void emit_function(OpContext& op, const char* ir_op) {
  op.expect_counts(1, 1, 1);
  op.define(op.output(), op.emit(ir_op, {op.value(op.input(0))}, {}));
}
void import_sin(OpContext& op) { emit_function(op, "sin"); }
void import_cos(OpContext& op) { emit_function(op, "cos"); }
void import_elu(OpContext& op) { emit_function(op, "nn.elu"); }

void import_square(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const ir::ValueId x = op.value(op.input(0));
  op.define(op.output(), multiplied(op, x, x));
}

void import_pow(OpContext& op) {
  op.expect_counts(2, 2, 1);
  if (op.input(1).dtype != ir::kFloat32) throw Unsupported{type_name(op.input(1).file_type) + " exponents"};
  op.define(op.output(), op.emit("power", {op.value(op.input(0)), op.value(op.input(1))}, {}));
}

// x / 2 * (1 + erf(x / sqrt(2))), or with tanh in the place of erf.
void import_gelu(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto* options = op.optional_options<tflite::GeluOptions>();
  const ir::ValueId x = op.value(op.input(0));
  ir::ValueId gate;
  if (options != nullptr && options->approximate()) {
    const ir::ValueId cube = multiplied(op, x, multiplied(op, x, x));
    const ir::ValueId sum = op.emit("add", {x, multiplied(op, cube, number(op, 0.044715f))}, {});
    gate = op.emit("tanh", {multiplied(op, sum, number(op, 0.7978845608028654f))}, {});
  } else {
    gate = op.emit("erf", {multiplied(op, x, number(op, 0.7071067811865476f))}, {});
  }
  const ir::ValueId factor = op.emit("add", {gate, number(op, 1.0f)}, {});
  op.define(op.output(), multiplied(op, multiplied(op, x, number(op, 0.5f)), factor));
}

void import_add_n(OpContext& op) {
  constexpr size_t kMaxInputs = 4096;
  op.expect_counts(1, kMaxInputs, 1);
  ir::ValueId sum = op.value(op.input(0));
  for (size_t i = 1; i < op.num_inputs(); ++i) sum = op.emit("add", {sum, op.value(op.input(i))}, {});
  op.define(op.output(), sum);
}

// ---- axes ----

void import_sum(OpContext& op) { reduce_numbers(op, "sum"); }
void import_max(OpContext& op) { reduce_numbers(op, "max"); }
void import_min(OpContext& op) { reduce_numbers(op, "min"); }
void import_prod(OpContext& op) { reduce_numbers(op, "prod"); }

// x / max(sqrt(sum of squares), 1e-6) along the last axis.
void import_l2_normalization(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto* options = op.optional_options<tflite::L2NormOptions>();
  if (options != nullptr && options->fused_activation_function() != tflite::ActivationFunctionType_NONE)
    throw Unsupported{"a fused activation"};
  const ir::ValueId x = op.value(op.input(0));
  const ir::ValueId sum =
      op.emit("sum", {multiplied(op, x, x)}, {{"axis", ir::Ints{-1}}, {"keepdims", true}});
  const ir::ValueId norm = op.emit("maximum", {op.emit("sqrt", {sum}, {}), number(op, 1e-6f)}, {});
  op.define(op.output(), op.emit("divide", {x, norm}, {}));
}

// ---- images ----

void import_resize_bilinear(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const auto& options = op.options<tflite::ResizeBilinearOptions>();
  const std::vector<int64_t> size = op.constant_ints(op.input(1), "extents");
  if (size.size() != 2) invalid("there are " + std::to_string(size.size()) + " extents, expected 2");
  if (options.align_corners() && options.half_pixel_centers())
    invalid("align_corners and half_pixel_centers exclude each other");
  const char* mode = options.align_corners()        ? "align_corners"
                     : options.half_pixel_centers() ? "half_pixel"
                                                    : "asymmetric";
  op.define(op.output(), op.emit("image.resize2d", {op.value(op.input(0))},
                                 {{"size", size},
                                  {"layout", std::string("NHWC")},
                                  {"coordinate_transformation_mode", std::string(mode)}}));
}

// Zeros between the elements of height and width, `stride` - 1 of them: [n, h * s, w * s, c], of which the
// last are after the last element.
ir::ValueId spread(OpContext& op, ir::ValueId data, int64_t stride_h, int64_t stride_w) {
  const ir::Shape s = op.shape(data);
  const ir::ValueId apart = op.reshaped(data, {s[0], s[1], 1, s[2], 1, s[3]});
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {0, stride_h - 1}, {0, 0}, {0, stride_w - 1}, {0, 0}};
  const ir::ValueId padded = stride_h == 1 && stride_w == 1
                                 ? apart
                                 : op.emit("nn.pad", {apart, number(op, 0.0f)}, {{"pad_width", width}});
  return op.reshaped(padded, {s[0], s[1] * stride_h, s[2] * stride_w, s[3]});
}

// How many rows of `extent` spread ones an output of `size` reads before its first one and after its last,
// below 0 where it reads none of them.
struct Reach {
  int64_t before, after;
};
Reach reach(int64_t extent, int64_t size, int64_t kernel, int64_t pad) {
  const int64_t before = kernel - 1 - pad;
  return {before, size + kernel - 1 - before - extent};
}

}  // namespace

// The convolution of the spread data with the weights turned around.
void import_float_transpose_conv(OpContext& op) {
  const auto& options = op.options<tflite::TransposeConvOptions>();
  const TensorInfo& weights = op.input(1);
  if (weights.dtype != ir::kFloat32) throw Unsupported{type_name(weights.file_type) + " weights"};
  const ir::ValueId data = op.value(op.input(2)), ohwi = op.value(weights);
  const ir::Shape output = op.constant_ints(op.input(0), "extents");
  const ir::Shape kernel = op.shape(ohwi);
  if (output.size() != 4 || op.shape(data).size() != 4 || kernel.size() != 4)
    invalid("input, weights and output do not have rank 4");
  if (options.stride_h() < 1 || options.stride_w() < 1) invalid("a stride is below 1");
  const ir::Ints pads = padding_2d(options.padding(), output, {kernel[1], options.stride_h(), 1},
                                   {kernel[2], options.stride_w(), 1});
  const ir::ValueId wide = spread(op, data, options.stride_h(), options.stride_w());
  const Reach rows = reach(op.shape(wide)[1], output[1], kernel[1], pads[0]);
  const Reach columns = reach(op.shape(wide)[2], output[2], kernel[2], pads[1]);
  const auto cut = [](int64_t reach) { return std::max<int64_t>(-reach, 0); };
  const auto padded = [](int64_t reach) { return std::max<int64_t>(reach, 0); };
  const ir::Shape& s = op.shape(wide);
  const ir::ValueId part =
      op.emit("strided_slice", {wide},
              {{"begin", ir::Ints{0, cut(rows.before), cut(columns.before), 0}},
               {"end", ir::Ints{s[0], s[1] - cut(rows.after), s[2] - cut(columns.after), s[3]}}});
  const ir::ValueId turned = op.emit("strided_slice", {ohwi},
                                     {{"begin", ir::Ints{kernel[1] - 1, kernel[2] - 1}},
                                      {"end", ir::Ints{-kernel[1] - 1, -kernel[2] - 1}},
                                      {"strides", ir::Ints{-1, -1}},
                                      {"axes", ir::Ints{1, 2}}});
  ir::ValueId sums = op.emit("nn.conv2d", {part, turned},
                             {{"padding", ir::Ints{padded(rows.before), padded(columns.before),
                                                   padded(rows.after), padded(columns.after)}},
                              {"channels", kernel[0]},
                              {"kernel_size", ir::Ints{kernel[1], kernel[2]}},
                              {"data_layout", std::string("NHWC")},
                              {"kernel_layout", std::string("OHWI")}});
  check_transposed_shape(output, op.shape(sums));
  if (const TensorInfo* bias = op.optional_input(3))
    sums = op.emit("nn.bias_add", {sums, op.value(*bias)}, {{"axis", int64_t{3}}});
  if (options.fused_activation_function() != tflite::ActivationFunctionType_NONE) {
    const RealRange range = activation_range(options.fused_activation_function());
    sums = op.emit("clip", {sums},
                   {{"a_min", static_cast<double>(range.min)}, {"a_max", static_cast<double>(range.max)}});
  }
  op.define(op.output(), sums);
}

namespace {

constexpr ImportRow kOtherRows[] = {
    {tflite::BuiltinOperator_L2_NORMALIZATION, "L2_NORMALIZATION", import_l2_normalization},
    {tflite::BuiltinOperator_RESIZE_BILINEAR, "RESIZE_BILINEAR", import_resize_bilinear},
    {tflite::BuiltinOperator_SIN, "SIN", import_sin},
    {tflite::BuiltinOperator_SUM, "SUM", import_sum},
    {tflite::BuiltinOperator_POW, "POW", import_pow},
    {tflite::BuiltinOperator_REDUCE_PROD, "REDUCE_PROD", import_prod},
    {tflite::BuiltinOperator_REDUCE_MAX, "REDUCE_MAX", import_max},
    {tflite::BuiltinOperator_REDUCE_MIN, "REDUCE_MIN", import_min},
    {tflite::BuiltinOperator_SQUARE, "SQUARE", import_square},
    {tflite::BuiltinOperator_ADD_N, "ADD_N", import_add_n},
    {tflite::BuiltinOperator_COS, "COS", import_cos},
    {tflite::BuiltinOperator_ELU, "ELU", import_elu},
    {tflite::BuiltinOperator_GELU, "GELU", import_gelu},
};

}  // namespace

std::span<const ImportRow> other_float_rows() { return kOtherRows; }

// RFFT2D of rows, whose complex result is two tensors, and REAL, IMAG, COMPLEX_ABS of it: the spectrum of
// audio. Converters write SQUEEZE or RESHAPE between the two (op_shape.cc). The transform is the product with
// a constant matrix of cosines and sines. DENSIFY, whose constant the file reader has filled up already.
namespace {

const Graph::Complex& complex_input(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const Graph::Complex* value = op.graph().find_complex(op.input(0));
  if (value == nullptr) throw Unsupported{"complex numbers that RFFT2D did not make"};
  return *value;
}

// cos(2 pi k i / n), or -sin: [n / 2 + 1, n].
ir::ValueId frequencies(OpContext& op, int64_t n, uint32_t quarters, double sign) {
  constexpr double kTwoPi = 6.283185307179586;
  std::vector<float> values;
  for (int64_t k = 0; k <= n / 2; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      const double angle = kTwoPi * static_cast<double>(k * i % n) / static_cast<double>(n);
      values.push_back(static_cast<float>(sign * op::sine_function(angle, quarters)));
    }
  }
  return op.constant(ir::make_constant(ir::kFloat32, {n / 2 + 1, n}, values));
}

}  // namespace

void import_rfft2d(OpContext& op) {
  op.expect_counts(2, 2, 1);
  if (op.input(0).dtype != ir::kFloat32) throw Unsupported{type_name(op.input(0).file_type) + " input"};
  ir::ValueId data = op.value(op.input(0));
  ir::Shape shape = op.shape(data);
  const std::vector<int64_t> length = op.constant_ints(op.input(1), "transform lengths");
  if (length.size() != 2 || shape.size() < 2) invalid("the input and the transform do not have two axes");
  if (length[0] != 1) throw Unsupported{"a transform over two axes"};
  constexpr int64_t kMaxLength = 4096;
  const int64_t n = length[1], extent = shape.back();
  if (n < 1 || n > kMaxLength) throw Unsupported{"a transform of " + std::to_string(n) + " elements"};
  // The first of several rows counts. Longer rows are cut, shorter ones end in zeros.
  ir::Ints end = shape;
  end[end.size() - 2] = 1;
  end.back() = std::min(n, extent);
  if (end != shape) {
    data = op.emit("strided_slice", {data}, {{"begin", ir::Ints(shape.size(), 0)}, {"end", end}});
  }
  if (n > extent) {
    std::vector<ir::Ints> width(shape.size(), ir::Ints{0, 0});
    width.back()[1] = n - extent;
    data = op.emit("nn.pad", {data, op.constant(ir::make_scalar(0.0f))}, {{"pad_width", width}});
  }
  op.charge(2 * static_cast<uint64_t>(n / 2 + 1) * static_cast<uint64_t>(n) * sizeof(float));
  op.graph().define_complex(
      op.output(), {op.emit("nn.dense", {data, frequencies(op, n, 1, 1.0)}, {{"units", n / 2 + 1}}),
                    op.emit("nn.dense", {data, frequencies(op, n, 0, -1.0)}, {{"units", n / 2 + 1}})});
}

void import_real(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  op.define(op.output(), value.real);
}

void import_imag(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  op.define(op.output(), value.imaginary);
}

void import_complex_abs(OpContext& op) {
  const Graph::Complex value = complex_input(op);
  const auto square = [&](ir::ValueId x) { return op.emit("multiply", {x, x}, {}); };
  op.define(op.output(),
            op.emit("sqrt", {op.emit("add", {square(value.real), square(value.imaginary)}, {})}, {}));
}

void import_densify(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& data = op.input(0);
  if (!data.is_constant()) throw Unsupported{"data that is not constant"};
  op.define(op.output(), op.value(data));
}

}  // namespace qplan::tfl
