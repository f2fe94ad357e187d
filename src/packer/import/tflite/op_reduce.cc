// MEAN and ARG_MAX.
#include <algorithm>

#include "src/packer/import/tflite/ops.h"

namespace qplan::tfl {

void import_mean(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  const ir::ValueId data = op.value(input);
  ir::Ints axes = op.constant_ints(op.input(1), "axes");
  if (axes.empty()) throw Unsupported{"an empty list of axes"};
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(data).size());
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());  // TFLite takes one that is named twice once
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
