// image.resize2d: bilinear.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_rank(input, 0, 4);
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kFloat32});
  choice_attr(input.node, "method", {"linear"});
  choice_attr(input.node, "coordinate_transformation_mode", {"half_pixel", "align_corners", "asymmetric"});
  check_contract(input.node);
  const ir::Ints& size = attr_ints(input.node, "size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) {
    invalid(cat("attribute 'size' is ", to_text(size), ", expected height and width of at least 1"));
  }
  const DataLayout d = data_layout(attr_string(input.node, "layout"));
  ir::TensorType out = input.type(0);
  out.shape[d.h] = size[0];
  out.shape[d.w] = size[1];
  return {std::move(out)};
}

}  // namespace

OpDef list::image_resize2d() {
  return {.name = "image.resize2d",
          .operands = {"data"},
          .attrs = {{"size", AttrKind::kInts},
                    {"layout", AttrKind::kString, "NCHW"},
                    {"method", AttrKind::kString, "linear"},
                    {"coordinate_transformation_mode", AttrKind::kString, "half_pixel"},
                    {"contract", AttrKind::kString, "tfl2"}},
          .infer = infer};
}

}  // namespace qplan::op
