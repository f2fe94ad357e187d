// strided_slice and take: parts of a tensor, by position.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_strided_slice(const InferInput& input) {
  ir::TensorType out = input.type(0);
  const std::vector<SliceRange> ranges = slice_ranges(input.node, out.shape);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].count == 0) {
      invalid(cat("nothing is left of axis ", i, " of ", input.type(0), ": 'begin' ",
                  to_text(attr_ints(input.node, "begin")), ", 'end' ",
                  to_text(attr_ints(input.node, "end"))));
    }
    out.shape[i] = ranges[i].count;
  }
  return {std::move(out)};
}

// The indices' shape takes the place of the axis.
std::vector<ir::TensorType> infer_take(const InferInput& input) {
  const ir::TensorType& data = input.type(0);
  check_dtype(input, 1, {ir::kInt32, ir::kInt64});
  const auto axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  ir::TensorType out{data.dtype, {data.shape.begin(), data.shape.begin() + axis}};
  const ir::Shape& indices = input.type(1).shape;
  out.shape.insert(out.shape.end(), indices.begin(), indices.end());
  out.shape.insert(out.shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  return {std::move(out)};
}

}  // namespace

OpDef list::strided_slice() {
  return {.name = "strided_slice",
          .operands = {"data"},
          .attrs = {{"begin", AttrKind::kInts},
                    {"end", AttrKind::kInts},
                    {"strides", AttrKind::kInts, ir::Ints{}},
                    {"axes", AttrKind::kInts, ir::Ints{}}},
          .infer = infer_strided_slice,
          .evaluate = evaluate_strided_slice};
}

OpDef list::take() {
  return {.name = "take",
          .operands = {"data", "indices"},
          .attrs = {{"axis", AttrKind::kInt, 0}},
          .infer = infer_take,
          .evaluate = evaluate_take};
}

}  // namespace qplan::op
