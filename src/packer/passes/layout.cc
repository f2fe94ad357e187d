#include "src/packer/passes/layout.h"

#include <algorithm>

#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"

namespace qplan::passes {
namespace {

// One axis or several, fallbacks too; an axis that the operator does not have is left.
void move_axis(const ir::Node& node, const std::string& name, ir::Attrs* attrs) {
  const auto moved = [](int64_t axis) { return kAxisInNhwc[static_cast<size_t>(axis)]; };
  const ir::AttrValue& value = op::attr(node, name);
  if (const auto* one = std::get_if<int64_t>(&value)) {
    if (*one >= -4 && *one < 4) attrs->set(name, moved(op::normalized_axis(*one, 4)));
  } else if (const auto* several = std::get_if<ir::Ints>(&value)) {
    ir::Ints axes;
    for (const int64_t axis : op::normalized_axes(*several, 4)) axes.push_back(moved(axis));
    std::ranges::sort(axes);
    attrs->set(name, axes);
  }
}

}  // namespace

std::vector<size_t> layout_operands(const ir::Node& node) {
  return node.op != nullptr && node.op->follows_layout ? op::data_operands(node) : std::vector<size_t>();
}

ir::Attrs attrs_in_nhwc(const ir::Node& node) {
  ir::Attrs attrs = node.attrs;
  for (const op::AttrDef& def : node.op->attrs) {
    if (def.role == op::AttrRole::kAxis || def.role == op::AttrRole::kScaleAxis) {
      move_axis(node, def.name, &attrs);
    } else if (def.role == op::AttrRole::kPerAxis) {
      const std::vector<ir::Ints>& entries = op::attr_int_lists(node, def.name);
      std::vector<ir::Ints> moved;
      for (const int64_t axis : kToNhwc) moved.push_back(entries[static_cast<size_t>(axis)]);
      attrs.set(def.name, moved);
    }
  }
  return attrs;
}

}  // namespace qplan::passes
