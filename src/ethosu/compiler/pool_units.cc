// Pools, means, clamps and rescales: kernels of the pooling unit.
#include <cmath>

#include "src/ethosu/compiler/unit.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"

namespace qplan::ethosu::compiler {
namespace {

// The mean of n numbers, halves away from zero: exact for every sum of up to 256 8-bit numbers.
Scale average_scale(uint64_t n) {
  int exponent = 0;
  (void)std::frexp(static_cast<double>(n - 1), &exponent);
  const auto k = static_cast<uint32_t>(exponent);
  return {static_cast<uint32_t>(((uint64_t{1} << (31 + k)) + (uint64_t{1} << k)) / n), 31 + k};
}

uint32_t pad_after(uint32_t out, uint32_t stride, uint32_t window, uint32_t before, uint32_t in) {
  const int64_t after = (int64_t{out} - 1) * stride + window - before - in;
  return after > 0 ? static_cast<uint32_t>(after) : 0;
}

Kernel pool_kernel(const layer::Geometry& g, PoolMode mode, const layer::Clamp& clamp) {
  const op::Window2d& w = g.window;
  Kernel k;
  k.kind = KernelKind::kPool;
  k.pool = mode;
  k.window_h = static_cast<uint32_t>(w.kernel_h), k.window_w = static_cast<uint32_t>(w.kernel_w);
  k.stride_y = g.out_h == 1 ? 1 : static_cast<uint32_t>(w.stride_h);
  k.stride_x = g.out_w == 1 ? 1 : static_cast<uint32_t>(w.stride_w);
  k.pad_top = static_cast<uint32_t>(w.pad_top), k.pad_left = static_cast<uint32_t>(w.pad_left);
  k.pad_bottom = pad_after(static_cast<uint32_t>(g.out_h), k.stride_y, k.window_h, k.pad_top,
                           static_cast<uint32_t>(g.in_h));
  k.pad_right = pad_after(static_cast<uint32_t>(g.out_w), k.stride_x, k.window_w, k.pad_left,
                          static_cast<uint32_t>(g.in_w));
  k.min = clamp.min, k.max = clamp.max;
  return k;
}

// `kernel` is everything but maps; the zero points of its maps are kept.
Unit pool_unit(const Candidate& c, const ir::Node& node, const Kernel& kernel) {
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.takes_bricks = true;
  (void)c;
  unit.emit = [kernel, name = node.name](const UnitContext& context) {
    Kernel k = kernel;
    k.ifm = context.inputs[0], k.ofm = context.outputs[0];
    k.ifm.zero_point = kernel.ifm.zero_point, k.ofm.zero_point = kernel.ofm.zero_point;
    k.ifm.h = (k.ofm.h - 1) * k.stride_y + k.window_h - k.pad_top - k.pad_bottom;
    k.ifm.w = (k.ofm.w - 1) * k.stride_x + k.window_w - k.pad_left - k.pad_right;
    add_kernel(context, name, k);
  };
  return unit;
}

}  // namespace

Unit read_max_pool_unit(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  return pool_unit(c, node,
                   pool_kernel(layer::pool_geometry(c.function(), node), PoolMode::kMax, clamp_of(c)));
}

Unit read_average_pool_unit(const Candidate& c) {
  const ir::Node& node = *c.node("pool");
  Kernel k = pool_kernel(layer::pool_geometry(c.function(), node), PoolMode::kAverage, clamp_of(c));
  // With padding the device divides by the cells inside.
  if ((k.pad_top | k.pad_left | k.pad_bottom | k.pad_right) == 0) {
    k.has_scale = true;
    k.ofm_scale = average_scale(uint64_t{k.window_h} * k.window_w);
  }
  return pool_unit(c, node, k);
}

// One window over the whole image, scaled as the mean is.
Unit read_mean_unit(const Candidate& c) {
  const ir::Node& node = *c.node("mean");
  const layer::Geometry g = layer::mean_geometry(c.function(), node);
  const ir::TensorType& data = c.function().type(node.operands[0]);
  Kernel k = pool_kernel(g, PoolMode::kAverage, layer::full_clamp(data.dtype));
  k.window_h = static_cast<uint32_t>(data.shape[1]), k.window_w = static_cast<uint32_t>(data.shape[2]);
  k.pad_top = k.pad_left = k.pad_bottom = k.pad_right = 0;
  k.stride_x = k.stride_y = 1;
  k.ifm.zero_point = zero_point_operand(c, node, 2);
  k.ofm.zero_point = zero_point_operand(c, node, 4);
  k.has_scale = true;
  k.ofm_scale = scale_of(layer::mean_multiplier(scale_operand(c, node, 1), scale_operand(c, node, 3),
                                                uint64_t{k.window_h} * k.window_w));
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.takes_bricks = true;
  unit.emit = [k, name = node.name](const UnitContext& context) {
    Kernel kernel = k;
    kernel.ifm = context.inputs[0], kernel.ofm = context.outputs[0];
    kernel.ifm.zero_point = k.ifm.zero_point, kernel.ofm.zero_point = k.ofm.zero_point;
    // However the model writes the result, it is one position.
    kernel.ofm.h = kernel.ofm.w = 1;
    kernel.ofm.d = kernel.ifm.d;
    add_kernel(context, name, kernel);
  };
  return unit;
}

Unit read_clip_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.takes_bricks = true;
  unit.emit = [clamp = clamp_of(c), name = node.name](const UnitContext& context) {
    Kernel k = copy_kernel(context.inputs[0], context.outputs[0]);
    k.min = clamp.min, k.max = clamp.max;
    add_kernel(context, name, k);
  };
  return unit;
}

Unit read_requantize_unit(const Candidate& c) {
  const ir::Node& node = *c.node("requantize");
  const double real =
      static_cast<double>(scale_operand(c, node, 1)) / static_cast<double>(scale_operand(c, node, 3));
  const Scale scale = scale_of(layer::checked_multiplier(real));
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.takes_bricks = true;
  unit.emit = [=, in = zero_point_operand(c, node, 2), out = zero_point_operand(c, node, 4),
               clamp = clamp_of(c), name = node.name](const UnitContext& context) {
    Kernel k = copy_kernel(context.inputs[0], context.outputs[0]);
    k.ifm.zero_point = in, k.ofm.zero_point = out;
    k.ofm_scale = scale;
    k.min = clamp.min, k.max = clamp.max;
    add_kernel(context, name, k);
  };
  return unit;
}

}  // namespace qplan::ethosu::compiler
