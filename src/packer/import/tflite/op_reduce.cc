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
  op.require_same_8bit({&input, &op.output()});
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

// MEAN and ARG_MAX.

ir::Ints reduced_axes(const OpContext& op, ir::ValueId data) {
  ir::Ints axes = op.constant_ints(op.input(1), "axes");
  if (axes.empty()) throw Unsupported{"an empty list of axes"};
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(data).size());
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());  // TFLite takes one that is named twice once
  return axes;
}

void import_mean(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  const ir::ValueId data = op.value(input);
  const ir::Ints axes = reduced_axes(op, data);
  const auto* options = op.optional_options<tflite::ReducerOptions>();
  op.define(op.output(), op.emit("qnn.mean",
                                 {data, op.scale(in.scale), op.zero_point(in.zero_point), op.scale(out.scale),
                                  op.zero_point(out.zero_point)},
                                 {{"axis", axes}, {"keepdims", options != nullptr && options->keep_dims()}}));
}

void import_arg_max(OpContext& op) {
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
  op.define(output, op.emit("argmax", {data},
                            {{"axis", OpContext::axis_of(axis[0], op.shape(data).size())},
                             {"dtype", ir::to_string(*output.dtype)}}));
}

}  // namespace qplan::tfl
