// Operators that move bytes: reshapes, concatenations, parts, resizes to the nearest element, pads,
// transposes.
#include <algorithm>

#include "src/ethosu/compiler/unit.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::ethosu::compiler {
namespace {

bool is_same_place(const FeatureMap& a, const FeatureMap& b) {
  return a.region == b.region && a.base[0] == b.base[0] && a.stride_x == b.stride_x &&
         a.stride_y == b.stride_y;
}

uint32_t extent_of(const FeatureMap& map, size_t axis) {
  return axis == 0 ? map.h : axis == 1 ? map.w : map.d;
}
void set_extent(FeatureMap* map, size_t axis, uint32_t extent) {
  (axis == 0 ? map->h : axis == 1 ? map->w : map->d) = extent;
}

Unit unary(const ir::Node& node) {
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  return unit;
}

// A box of the output, from `begin` on and as large as `like`, that has one value: a copy of some part of the
// input that is clamped to it.
void fill(const UnitContext& context, const std::string& name, const View& begin, const FeatureMap& like,
          int32_t value) {
  const FeatureMap& input = context.inputs[0];
  FeatureMap piece = like;
  for (uint32_t y = 0; y < like.h; y += piece.h) {
    piece.h = std::min(like.h - y, input.h);
    for (uint32_t x = 0; x < like.w; x += piece.w) {
      piece.w = std::min(like.w - x, input.w);
      for (uint32_t c = 0; c < like.d; c += piece.d) {
        piece.d = std::min(like.d - c, input.d);
        const View at = {{begin.begin[0] + y, begin.begin[1] + x, begin.begin[2] + c}};
        Kernel k = copy_kernel(view_of(input, {}, piece), view_of(context.outputs[0], at, piece));
        k.min = k.max = value;
        add_kernel(context, name, k);
      }
    }
  }
}

}  // namespace

Unit read_reshape_unit(const Candidate& c) { return unary(c.root()); }

Unit read_concatenate_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit;
  unit.name = node.name;
  unit.inputs = node.operands;
  unit.parts = Unit::Parts::kInputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.results[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    View view;
    for (const FeatureMap& input : context.inputs) {
      const FeatureMap part = view_of(context.outputs[0], view, input);
      view.begin[axis] += extent_of(input, axis);
      if (!is_same_place(input, part)) add_kernel(context, name, copy_kernel(input, part));
    }
  };
  return unit;
}

Unit read_split_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.parts = Unit::Parts::kOutputs;
  unit.axis = image_axis(op::attr_int(node, "axis"), c.function().type(node.operands[0]).shape.size());
  unit.emit = [axis = unit.axis, name = node.name](const UnitContext& context) {
    View view;
    for (const FeatureMap& output : context.outputs) {
      const FeatureMap part = view_of(context.inputs[0], view, output);
      view.begin[axis] += extent_of(output, axis);
      if (!is_same_place(output, part)) add_kernel(context, name, copy_kernel(part, output));
    }
  };
  return unit;
}

Unit read_slice_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.parts = Unit::Parts::kView;
  unit.view = *slice_view(c.function(), node);
  unit.emit = [view = unit.view, name = node.name](const UnitContext& context) {
    const FeatureMap part = view_of(context.inputs[0], view, context.outputs[0]);
    if (!is_same_place(part, context.outputs[0]))
      add_kernel(context, name, copy_kernel(part, context.outputs[0]));
  };
  return unit;
}

Unit read_take_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  const size_t rank = c.function().type(node.operands[0]).shape.size();
  unit.emit = [runs = runs_of(*taken_positions(c.function(), node)), name = node.name,
               axis = image_axis(op::attr_int(node, "axis"), rank)](const UnitContext& context) {
    for (const Run& run : runs) {
      FeatureMap like = context.outputs[0];
      set_extent(&like, axis, run.count);
      View from, to;
      from.begin[axis] = run.from, from.step[axis] = run.from_step;
      to.begin[axis] = run.to, to.step[axis] = run.to_step;
      add_kernel(context, name,
                 copy_kernel(view_of(context.inputs[0], from, like), view_of(context.outputs[0], to, like)));
    }
  };
  return unit;
}

Unit read_resize_nearest_unit(const Candidate& c) {
  Unit unit;
  unit.name = c.root().name;
  unit.inputs = {c.matches["data"].id};
  unit.emit = [name = unit.name](const UnitContext& context) {
    Kernel k = copy_kernel(context.inputs[0], context.outputs[0]);
    k.upscale = Upscale::kNearest;
    add_kernel(context, name, k);
  };
  return unit;
}

Unit read_pad_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  const int32_t value = layer::pad_value(*c.function().value(node.operands[1]).constant);
  unit.emit = [pads = *pads_of(node), value, name = node.name](const UnitContext& context) {
    const FeatureMap &input = context.inputs[0], &output = context.outputs[0];
    const View inside = {{pads[0].before, pads[1].before, pads[2].before}};
    add_kernel(context, name, copy_kernel(input, view_of(output, inside, input)));
    // What is before and after the input along an axis, as long as it is along the axes that are done.
    FeatureMap like = input;
    View begin = inside;
    for (const size_t axis : {size_t{2}, size_t{1}, size_t{0}}) {
      set_extent(&like, axis, pads[axis].before);
      begin.begin[axis] = 0;
      fill(context, name, begin, like, value);
      set_extent(&like, axis, pads[axis].after);
      begin.begin[axis] = pads[axis].before + extent_of(input, axis);
      fill(context, name, begin, like, value);
      set_extent(&like, axis, extent_of(output, axis));
      begin.begin[axis] = 0;
    }
  };
  return unit;
}

// One kernel where the channels stay; else one for each index of the shortest axis, over the other two.
Unit read_transpose_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit = unary(node);
  unit.needs_whole_maps = true;
  unit.emit = [sources = *transposed_axes(c.function(), node), name = node.name](const UnitContext& context) {
    const FeatureMap &input = context.inputs[0], &output = context.outputs[0];
    const uint64_t of_input[] = {input.stride_y, input.stride_x, input.element_bytes()};
    const uint64_t of_output[] = {output.stride_y, output.stride_x, output.element_bytes()};
    const uint64_t from[] = {of_input[sources[0]], of_input[sources[1]], of_input[sources[2]]};
    FeatureMap in = view_of(input, {}, output), out = output;
    if (sources[2] == 2) {
      in.stride_y = from[0], in.stride_x = from[1];
      return add_kernel(context, name, copy_kernel(in, out));
    }
    size_t shortest = 0;
    for (const size_t axis : {size_t{1}, size_t{2}}) {
      if (extent_of(output, axis) < extent_of(output, shortest)) shortest = axis;
    }
    const size_t y = shortest == 0 ? 1 : 0, x = shortest == 2 ? 1 : 2;
    const auto plane = [&](FeatureMap* map, const uint64_t strides[3], uint32_t index) {
      map->h = extent_of(output, y), map->w = extent_of(output, x), map->d = 1;
      map->width0 = map->w, map->height0 = map->height1 = map->h;
      map->stride_y = strides[y], map->stride_x = strides[x];
      map->base[0] += index * strides[shortest];
    };
    for (uint32_t i = 0; i < extent_of(output, shortest); ++i) {
      FeatureMap from_plane = in, to_plane = out;
      plane(&from_plane, from, i);
      plane(&to_plane, of_output, i);
      add_kernel(context, name, copy_kernel(from_plane, to_plane));
    }
  };
  return unit;
}

}  // namespace qplan::ethosu::compiler
