// Operators that move bytes: reshapes, concatenations and splits.
#include "src/ethosu/compiler/unit.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/properties.h"

namespace qplan::ethosu::compiler {
namespace {

// The axis of the image that an axis of the tensor is.
size_t image_axis(int64_t axis, size_t rank) {
  const auto positive = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  return positive + 3 - rank;
}

// Part of a map from `begin` on along an axis, as large as `like`.
FeatureMap part_of(const FeatureMap& whole, size_t axis, uint32_t begin, const FeatureMap& like) {
  FeatureMap part = whole;
  part.h = like.h, part.w = like.w, part.d = like.d;
  part.width0 = part.w, part.height0 = part.height1 = part.h;
  const uint64_t strides[] = {whole.stride_y, whole.stride_x, whole.element_bytes()};
  part.base[0] += begin * strides[axis];
  return part;
}

bool is_same_place(const FeatureMap& a, const FeatureMap& b) {
  return a.region == b.region && a.base[0] == b.base[0] && a.stride_x == b.stride_x &&
         a.stride_y == b.stride_y;
}

uint32_t extent_of(const FeatureMap& map, size_t axis) {
  return axis == 0 ? map.h : axis == 1 ? map.w : map.d;
}

}  // namespace

Unit read_reshape_unit(const Candidate& c) {
  Unit unit;
  unit.name = c.root().name;
  unit.inputs = {c.root().operands[0]};
  return unit;
}

Unit read_concatenate_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit;
  unit.name = node.name;
  unit.inputs = node.operands;
  unit.parts = Unit::Parts::kInputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.results[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    uint32_t begin = 0;
    for (const FeatureMap& input : context.inputs) {
      const FeatureMap part = part_of(context.outputs[0], axis, begin, input);
      begin += extent_of(input, axis);
      if (!is_same_place(input, part)) add_kernel(context, name, copy_kernel(input, part));
    }
  };
  return unit;
}

Unit read_split_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.parts = Unit::Parts::kOutputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.operands[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    uint32_t begin = 0;
    for (const FeatureMap& output : context.outputs) {
      const FeatureMap part = part_of(context.inputs[0], axis, begin, output);
      begin += extent_of(output, axis);
      if (!is_same_place(output, part)) add_kernel(context, name, copy_kernel(part, output));
    }
  };
  return unit;
}

}  // namespace qplan::ethosu::compiler
