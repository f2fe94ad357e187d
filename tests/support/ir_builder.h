// Short ways of writing nodes of the IR.
#ifndef QPLAN_TESTS_SUPPORT_IR_BUILDER_H_
#define QPLAN_TESTS_SUPPORT_IR_BUILDER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/op/op_def.h"

namespace qplan::ir {

// Scale (float32) and zero point (int32) of one tensor: scalars, or one value per index of an axis.
struct QuantParams {
  ConstantRef scale;
  ConstantRef zero_point;
};

class Builder {
 public:
  explicit Builder(Function* function) : function_(function) {}

  Function& function() { return *function_; }
  ValueId scalar(float value) { return function_->add_constant(make_scalar(value)); }
  ValueId scalar(int32_t value) { return function_->add_constant(make_scalar(value)); }
  template <typename T>
  ValueId constant(DType dtype, Shape shape, const std::vector<T>& values, std::string name = "") {
    return function_->add_constant(make_constant(dtype, std::move(shape), values), std::move(name));
  }

  // The results of a node of the operator.
  std::vector<ValueId> call_all(std::string_view op, std::vector<ValueId> operands, Attrs attrs = {},
                                std::string name = "") {
    return function_->add_node(op::get_op(op), std::move(operands), std::move(attrs), std::move(name))
        .results;
  }
  // The first result.
  ValueId call(std::string_view op, std::vector<ValueId> operands, Attrs attrs = {}, std::string name = "") {
    return function_->add_node(op::get_op(op), std::move(operands), std::move(attrs), std::move(name))
        .results[0];
  }

  // An operator whose operands are some tensors, then scale and zero point of each of `params`: qnn.add,
  // qnn.mean, qnn.requantize, qnn.softmax, ...
  ValueId quantized(std::string_view op, std::vector<ValueId> operands,
                    const std::vector<QuantParams>& params, Attrs attrs = {}, std::string name = "") {
    for (const QuantParams& p : params) {
      operands.push_back(function_->add_constant(p.scale));
      operands.push_back(function_->add_constant(p.zero_point));
    }
    return call(op, std::move(operands), std::move(attrs), std::move(name));
  }
  // qnn.conv2d or qnn.dense, whose zero points come before the scales.
  ValueId weighted(std::string_view op, ValueId data, ValueId weight, const QuantParams& input,
                   const QuantParams& kernel, Attrs attrs = {}, std::string name = "") {
    return call(
        op,
        {data, weight, function_->add_constant(input.zero_point), function_->add_constant(kernel.zero_point),
         function_->add_constant(input.scale), function_->add_constant(kernel.scale)},
        std::move(attrs), std::move(name));
  }

 private:
  Function* function_;
};

}  // namespace qplan::ir

#endif  // QPLAN_TESTS_SUPPORT_IR_BUILDER_H_
