// AVERAGE_POOL_2D and MAX_POOL_2D. Neither changes the quantisation: TFLite demands equal scales and zero
// points.
#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/import/tflite/weights.h"

namespace qplan::tfl {
namespace {

constexpr float kScaleTolerance = 1e-6f;  // absolute, TFLite's

struct Pool {
  ir::ValueId data;
  QuantParams quantization;
  ir::Attrs attrs;
};

Pool read_pool(OpContext& op, const tflite::Pool2DOptions& options) {
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  if (in.zero_point != out.zero_point || std::fabs(in.scale - out.scale) > kScaleTolerance) {
    throw Unsupported{"different quantisation of input and output"};
  }
  Pool pool;
  pool.data = op.value(input);
  pool.quantization = out;
  pool.attrs = {{"pool_size", ir::Ints{options.filter_height(), options.filter_width()}},
                {"strides", ir::Ints{options.stride_h(), options.stride_w()}},
                {"padding", padding_2d(options.padding(), op.shape(pool.data),
                                       {options.filter_height(), options.stride_h(), 1},
                                       {options.filter_width(), options.stride_w(), 1})},
                {"layout", std::string("NHWC")}};
  return pool;
}

}  // namespace

void import_average_pool_2d(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto& options = op.options<tflite::Pool2DOptions>();
  Pool pool = read_pool(op, options);
  const ir::ValueId scale = op.scale(pool.quantization.scale);
  const ir::ValueId zero_point = op.zero_point(pool.quantization.zero_point);
  const ir::ValueId value =
      op.emit("qnn.avg_pool2d", {pool.data, scale, zero_point, scale, zero_point}, std::move(pool.attrs));
  op.define(op.output(), emit_activation(op, value, options.fused_activation_function(), pool.quantization));
}

void import_max_pool_2d(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto& options = op.options<tflite::Pool2DOptions>();
  Pool pool = read_pool(op, options);
  const ir::ValueId value = op.emit("nn.max_pool2d", {pool.data}, std::move(pool.attrs));
  op.define(op.output(), emit_activation(op, value, options.fused_activation_function(), pool.quantization));
}

// MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN; ARG_MAX, ARG_MIN.

ir::Ints reduced_axes(const OpContext& op, ir::ValueId data) {
  ir::Ints axes = op.constant_ints(op.input(1), "axes");
  if (axes.empty()) throw Unsupported{"an empty list of axes"};
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(data).size());
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());  // TFLite takes one that is named twice once
  return axes;
}

namespace {

struct Reduction {
  ir::ValueId data;
  QuantParams in, out;
  ir::Attrs attrs;
};

Reduction read_reduction(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  Reduction result = {op.value(input), op.quantization(input), op.quantization(op.output()), {}};
  const ir::Ints axes = reduced_axes(op, result.data);
  const auto* options = op.optional_options<tflite::ReducerOptions>();
  result.attrs = {{"axis", axes}, {"keepdims", options != nullptr && options->keep_dims()}};
  return result;
}

void import_quantized_reduction(OpContext& op, const char* ir_op) {
  Reduction r = read_reduction(op);
  op.define(op.output(), op.emit(ir_op,
                                 {r.data, op.scale(r.in.scale), op.zero_point(r.in.zero_point),
                                  op.scale(r.out.scale), op.zero_point(r.out.zero_point)},
                                 std::move(r.attrs)));
}

// TFLite demands one quantisation.
void reduce_to_extremum(OpContext& op, const char* ir_op) {
  Reduction r = read_reduction(op);
  if (r.in != r.out) throw Unsupported{"input and output of different quantisation"};
  op.define(op.output(), op.emit(ir_op, {r.data}, std::move(r.attrs)));
}

}  // namespace

void import_mean(OpContext& op) { import_quantized_reduction(op, "qnn.mean"); }

void import_sum(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_same_8bit({&op.input(0), &op.output()});
  // TFLite then adds the integers as they are and lets the sum wrap.
  if (op.quantization(op.input(0)) == op.quantization(op.output()))
    throw Unsupported{"input and output of one quantisation, whose sums TFLite lets wrap"};
  import_quantized_reduction(op, "qnn.sum");
}

void import_reduce_prod(OpContext& op) {
  if (op.num_inputs() > 0 && op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  import_quantized_reduction(op, "qnn.prod");
}

void import_reduce_max(OpContext& op) { reduce_to_extremum(op, "max"); }
void import_reduce_min(OpContext& op) { reduce_to_extremum(op, "min"); }

namespace {

void import_position(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_8bit(input, "input");
  const ir::ValueId data = op.value(input);
  const std::vector<int64_t> axis = op.constant_ints(op.input(1), "axis");
  if (axis.size() != 1) invalid("there are " + std::to_string(axis.size()) + " axes, expected 1");
  const TensorInfo& output = op.output();
  if (output.dtype != ir::kInt32 && output.dtype != ir::kInt64) {
    throw Unsupported{type_name(output.file_type) + " output"};
  }
  op.define(output, op.emit(ir_op, {data},
                            {{"axis", OpContext::axis_of(axis[0], op.shape(data).size())},
                             {"dtype", ir::to_string(*output.dtype)}}));
}

}  // namespace

void import_arg_max(OpContext& op) { import_position(op, "argmax"); }
void import_arg_min(OpContext& op) { import_position(op, "argmin"); }

}  // namespace qplan::tfl
