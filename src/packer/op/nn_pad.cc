// nn.pad with a constant value.
#include <cmath>

#include "src/base/checked.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

// Relay writes the pad value of integer data as a float literal too: 114f.
void check_pad_value(const InferInput& input) {
  const ir::DType dtype = input.type(0).dtype;
  const ir::TensorType& type = input.type(1);
  const bool integer_as_float = !dtype.is_float() && type.dtype == ir::kFloat32;
  if (!type.shape.empty() || (type.dtype != dtype && type.dtype != ir::kInt32 && !integer_as_float)) {
    invalid(cat("'pad_value' is ", type, ", expected a scalar of dtype ", dtype, " or int32",
                dtype.is_float() ? "" : " or float32"));
  }
  const ir::Constant& constant = constant_operand(input, 1);
  if (dtype.is_float()) return;
  double value = 0;
  if (integer_as_float) {
    value = constant.as<float>()[0];
  } else if (type.dtype == ir::kInt32) {
    value = constant.as<int32_t>()[0];
  } else {
    return;  // of the data's dtype
  }
  if (value != std::nearbyint(value) || value < static_cast<double>(dtype.min()) ||
      value > static_cast<double>(dtype.max())) {
    invalid(cat("'pad_value' is not a value of ", dtype));
  }
}

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kFloat32});
  check_pad_value(input);
  choice_attr(input.node, "pad_mode", {"constant"});
  const std::vector<ir::Ints>& pad_width = attr_int_lists(input.node, "pad_width");
  ir::TensorType out = input.type(0);
  if (pad_width.size() != out.shape.size()) {
    invalid(cat("attribute 'pad_width' has ", pad_width.size(), " pairs, but 'data' is ", out));
  }
  for (size_t i = 0; i < pad_width.size(); ++i) {
    const ir::Ints& pad = pad_width[i];
    if (pad.size() != 2 || pad[0] < 0 || pad[1] < 0) {
      invalid(cat("attribute 'pad_width' has ", to_text(pad), " for axis ", i,
                  ", expected two values of at least 0"));
    }
    if (!checked_add(out.shape[i], pad[0], &out.shape[i]) ||
        !checked_add(out.shape[i], pad[1], &out.shape[i])) {
      invalid(cat("attribute 'pad_width' ", to_text(pad), " is too large for axis ", i));
    }
  }
  return {std::move(out)};
}

}  // namespace

OpDef list::nn_pad() {
  return {.name = "nn.pad",
          .operands = {"data", "pad_value"},
          .attrs = {{"pad_width", AttrKind::kIntLists}, {"pad_mode", AttrKind::kString, "constant"}},
          .infer = infer};
}

}  // namespace qplan::op
