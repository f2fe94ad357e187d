// image.resize2d: family resize_bilinear.
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {

Chain match_resize_bilinear(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "image.resize2d") ? Chain{node} : Chain{};
}

void lower_resize_bilinear(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  contract_of(node, {format::Contract_TFL2});
  const ir::DType dtype = lowering.type(node.operands[0]).dtype;
  if (!is_8_bit(dtype)) refuse("its dtype is " + ir::to_string(dtype) + ", expected int8 or uint8");
  const std::string& layout = op::attr_string(node, "layout");
  if (layout != "NHWC") refuse("layout " + layout + ", the kernel takes NHWC");
  const std::string& mode = op::attr_string(node, "coordinate_transformation_mode");
  const bool align_corners = mode == "align_corners", half_pixel = mode == "half_pixel";
  // TFLite interpolates uint8 in float32 and int8 in integers.
  const format::ResizeRule rule =
      dtype == ir::kUint8 ? format::ResizeRule_TFL_FLOAT : format::ResizeRule_TFL_INTEGER;

  ProgramStep step = make_step(kKernel_resize_bilinear, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = ResizeBilinearParams{
      .rule = rule,
      .align_corners = align_corners,
      .half_pixel_centers = half_pixel,
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
