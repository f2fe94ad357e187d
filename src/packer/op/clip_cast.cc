// clip and cast: one element in, one element out, without quantisation.
#include <cmath>

#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_clip(const InferInput& input) {
  check_dtype(input, 0,
              {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kInt64, ir::kFloat32, ir::kFloat64});
  const double min = attr_float(input.node, "a_min"), max = attr_float(input.node, "a_max");
  if (!(min <= max)) invalid("attribute 'a_min' must not be larger than 'a_max', and neither may be NaN");
  // Bounds outside of an integer dtype, infinite ones too, limit nothing; fractions have no agreed rounding.
  const auto fraction = [](double value) { return std::isfinite(value) && std::nearbyint(value) != value; };
  if (!input.type(0).dtype.is_float() && (fraction(min) || fraction(max))) {
    invalid(cat("attributes 'a_min' and 'a_max' must be integers for ", input.type(0).dtype));
  }
  return {input.type(0)};
}

std::vector<ir::TensorType> infer_cast(const InferInput& input) {
  check_dtype(input, 0, kArithmetic);
  return {{dtype_attr(input.node, "dtype", kArithmetic), input.type(0).shape}};
}

}  // namespace

OpDef list::clip() {
  return {.name = "clip",
          .operands = {"data"},
          .attrs = {{"a_min", AttrKind::kFloat}, {"a_max", AttrKind::kFloat}},
          .infer = infer_clip,
          .evaluate = evaluate_clip};
}

OpDef list::cast() {
  return {.name = "cast",
          .operands = {"data"},
          .attrs = {{"dtype", AttrKind::kString}},
          .infer = infer_cast,
          .evaluate = evaluate_cast};
}

}  // namespace qplan::op
