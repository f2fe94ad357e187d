// Operators that compute without weights as kernels: sums, products, extrema and tables of one or two feature
// maps, and on the pooling unit pools, means, clamps and rescales.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "src/ethosu/compiler/target.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/requantize_bytes.h"

namespace qplan::ethosu::compiler {
namespace {

constexpr uint32_t kSumBits = static_cast<uint32_t>(layer::kAddLeftShift);

FeatureMap quantized_map(const Candidate& c, ir::ValueId value, int32_t zero_point) {
  FeatureMap map;
  map.is_signed = c.function().type(value).dtype != ir::kUint8;
  map.zero_point = zero_point;
  return map;
}

// Maps of a binary kernel from the context, with the zero points of `from`. The second map is the one that is
// broadcast; true: they are exchanged.
bool set_operands(const UnitContext& context, const Kernel& from, Kernel* k) {
  k->ofm = context.outputs[0];
  k->ofm.zero_point = from.ofm.zero_point;
  FeatureMap first = context.inputs[0], second = context.inputs[1];
  first.zero_point = from.ifm.zero_point, second.zero_point = from.ifm2.zero_point;
  const bool is_smaller = first.h < k->ofm.h || first.w < k->ofm.w || first.d < k->ofm.d;
  k->ifm = is_smaller ? second : first;
  k->ifm2 = is_smaller ? first : second;
  k->has_ifm2 = true;
  k->broadcast_h = k->ifm2.h < k->ofm.h;
  k->broadcast_w = k->ifm2.w < k->ofm.w;
  k->broadcast_c = k->ifm2.d < k->ofm.d;
  k->ifm2_is_first = is_smaller;
  return is_smaller;
}

Kernel elementwise_kernel(ElementwiseMode mode, const layer::Clamp& clamp) {
  Kernel k;
  k.kind = KernelKind::kElementwise;
  k.elementwise = mode;
  k.min = clamp.min, k.max = clamp.max;
  return k;
}

// ---- sums

enum class OperandRounding { kDouble, kOnce, kDown, kToZero };

// The scaled operand: value * multiplier / 2^(31 - shift), under one of the ways to round it.
int64_t scaled(int64_t value, const QuantizedMultiplier& m, OperandRounding rounding) {
  const int64_t product = (value << kSumBits) * m.multiplier;  // below 2^60
  const auto shift = static_cast<uint32_t>(31 - m.shift);
  switch (rounding) {
    case OperandRounding::kDouble: {
      const int64_t q = (product + (int64_t{1} << 30)) >> 31;
      const uint32_t rest = shift - 31;
      const int64_t mask = (int64_t{1} << rest) - 1;
      return (q >> rest) + ((q & mask) > (mask >> 1) + (q < 0 ? 1 : 0) ? 1 : 0);
    }
    case OperandRounding::kOnce:
      return shift > 62 ? 0 : (product + (int64_t{1} << (shift - 1))) >> shift;
    case OperandRounding::kDown:
      return shift > 62 ? (product < 0 ? -1 : 0) : product >> shift;
    case OperandRounding::kToZero:
      return shift > 62 ? 0 : product / (int64_t{1} << shift);
  }
  return 0;
}

int64_t rounded(int64_t sum, const QuantizedMultiplier& m) {
  const int64_t q = (sum * m.multiplier + (int64_t{1} << 30)) >> 31;
  const auto rest = static_cast<uint32_t>(-m.shift);
  const int64_t mask = (int64_t{1} << rest) - 1;
  return (q >> rest) + ((q & mask) > (mask >> 1) + (q < 0 ? 1 : 0) ? 1 : 0);
}

// k: with the operands' zero points, which set_operands exchanges together with the maps.
Unit commutative_unit(const ir::Node& node, const Kernel& k) {
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0], node.operands[1]};
  unit.takes_bricks = true;
  unit.emit = [k, name = node.name](const UnitContext& context) {
    Kernel kernel = k;
    (void)set_operands(context, k, &kernel);
    kernel.ifm2_is_first = false;
    add_kernel(context, name, kernel);
  };
  return unit;
}

bool is_half(const QuantizedMultiplier& m) { return m.multiplier == 1 << 30 && m.shift == 0; }

}  // namespace

AddNode read_add(const Candidate& c) {
  const ir::Node& sum = *c.node("sum");
  AddNode add;
  add.is_difference = sum.op->name == "qnn.subtract";
  add.lhs = quantized_map(c, sum.operands[0], zero_point_operand(c, sum, 3));
  add.rhs = quantized_map(c, sum.operands[1], zero_point_operand(c, sum, 5));
  add.out = quantized_map(c, sum.results[0], zero_point_operand(c, sum, 7));
  add.multipliers =
      layer::add_multipliers(scale_operand(c, sum, 2), scale_operand(c, sum, 4), scale_operand(c, sum, 6));
  add.clamp = clamp_of(c);
  return add;
}

// How the device rounds the scaled operand is not public: all pairs of operands must give one result, however
// it does.
bool is_add_exact(const AddNode& add) {
  const bool scales_rhs = is_half(add.multipliers.lhs);
  const QuantizedMultiplier& m = scales_rhs ? add.multipliers.rhs : add.multipliers.lhs;
  const FeatureMap& small = scales_rhs ? add.rhs : add.lhs;
  const FeatureMap& large = scales_rhs ? add.lhs : add.rhs;
  const auto range = [](const FeatureMap& map) {
    return layer::Clamp{(map.is_signed ? -128 : 0) - map.zero_point,
                        (map.is_signed ? 127 : 255) - map.zero_point};
  };
  const layer::Clamp s = range(small), l = range(large);
  const int64_t sign = add.is_difference ? -1 : 1;  // of the right operand
  const int64_t sign_of_scaled = scales_rhs ? sign : 1, sign_of_other = scales_rhs ? 1 : sign;
  const auto result = [&](int64_t a, int64_t b) {
    const int64_t sum = sign_of_scaled * a + sign_of_other * (b << (kSumBits - 1));
    return std::clamp<int64_t>(rounded(sum, add.multipliers.output) + add.out.zero_point, add.clamp.min,
                               add.clamp.max);
  };
  for (int32_t value = s.min; value <= s.max; ++value) {
    const int64_t exact = scaled(value, m, OperandRounding::kDouble);
    for (const OperandRounding rounding :
         {OperandRounding::kOnce, OperandRounding::kDown, OperandRounding::kToZero}) {
      const int64_t other = scaled(value, m, rounding);
      if (other == exact) continue;
      for (int32_t b = l.min; b <= l.max; ++b) {
        if (result(exact, b) != result(other, b)) return false;
      }
    }
  }
  return true;
}

Unit read_add_unit(const Candidate& c) {
  const ir::Node& sum = *c.node("sum");
  Unit unit;
  unit.name = sum.name;
  unit.inputs = {sum.operands[0], sum.operands[1]};
  unit.takes_bricks = true;
  unit.emit = [add = read_add(c), name = sum.name](const UnitContext& context) {
    Kernel k =
        elementwise_kernel(add.is_difference ? ElementwiseMode::kSub : ElementwiseMode::kAdd, add.clamp);
    Kernel maps;
    maps.ifm = add.lhs, maps.ifm2 = add.rhs, maps.ofm = add.out;
    const bool is_exchanged = set_operands(context, maps, &k);
    // The order of a sum does not matter: the first operand is IFM.
    if (!add.is_difference) k.ifm2_is_first = false;
    const bool scales_rhs = is_half(add.multipliers.lhs);
    const QuantizedMultiplier& m = scales_rhs ? add.multipliers.rhs : add.multipliers.lhs;
    k.scale_mode = scales_rhs != (is_exchanged && !add.is_difference) ? 2 : 1;
    const Scale operand = scale_of(m);
    k.opa = {operand.multiplier, operand.shift - kSumBits};
    if (m.multiplier == 0) k.opa = {0, 0};
    k.opb = {1, 0};
    k.has_scale = true;
    k.ofm_scale = scale_of(add.multipliers.output);
    add_kernel(context, name, k);
  };
  return unit;
}

Unit read_mul_unit(const Candidate& c) {
  const ir::Node& node = *c.node("product");
  Kernel k = elementwise_kernel(ElementwiseMode::kMul, clamp_of(c));
  k.ifm.zero_point = zero_point_operand(c, node, 3);
  k.ifm2.zero_point = zero_point_operand(c, node, 5);
  k.ofm.zero_point = zero_point_operand(c, node, 7);
  k.has_scale = true;
  const auto scale = [&](size_t operand) { return scale_operand(c, node, operand); };
  k.ofm_scale = scale_of(layer::product_multiplier(scale(2), scale(4), scale(6)));
  return commutative_unit(node, k);
}

Unit read_extremum_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  const bool is_max = node.op->name == "maximum";
  return commutative_unit(
      node, elementwise_kernel(is_max ? ElementwiseMode::kMax : ElementwiseMode::kMin, clamp_of(c)));
}

// ---- tables

namespace {

// bytes: of the results, by the byte of the data.
Unit table_unit(const Candidate& c, const ir::Node& node, std::span<const uint8_t> bytes) {
  const bool is_signed = c.function().type(node.operands[0]).dtype == ir::kInt8;
  // The device's table is indexed by the value less the least.
  std::vector<uint8_t> table(256);
  for (size_t i = 0; i < table.size(); ++i) table[i] = bytes[is_signed ? i ^ 0x80 : i];
  Unit unit;
  unit.name = node.name;
  unit.inputs = {node.operands[0]};
  unit.takes_bricks = true;
  unit.emit = [table, name = node.name](const UnitContext& context) {
    const uint32_t address = table_address(context.config);
    Transfer transfer;
    transfer.from = context.constants.add(table);
    transfer.to_shram = true;
    transfer.to = {0, address, table.size()};
    context.stream.add(transfer);
    // The value itself, as a sum with 0.
    Kernel k = elementwise_kernel(ElementwiseMode::kAdd, {});
    k.ifm = context.inputs[0], k.ofm = context.outputs[0];
    k.ifm.zero_point = k.ofm.zero_point = 0;
    k.has_scalar = true;
    k.ifm2.is_signed = k.ifm.is_signed;
    constexpr uint32_t kOne = 1 << 15;
    k.opa = k.opb = {kOne, 0};
    k.has_scale = true;
    k.ofm_scale = {1u << 30, 45};
    k.activation = 16;
    k.clip = k.ifm.is_signed ? 3 : 2;
    k.min = k.ifm.is_signed ? -128 : 0;
    k.max = k.ifm.is_signed ? 127 : 255;
    add_kernel(context, name, k);
  };
  return unit;
}

}  // namespace

Unit read_lookup_unit(const Candidate& c) {
  const ir::Node& node = c.root();
  return table_unit(c, node, c.function().value(node.operands[1]).constant->bytes());
}

// ---- the pooling unit: pools, means, clamps and rescales

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
  if (op::requantizes_in_float(node)) {
    const op::ByteQuantization from{c.function().type(node.operands[0]).dtype, scale_operand(c, node, 1),
                                    zero_point_operand(c, node, 2)},
        to{c.function().type(node.results[0]).dtype, scale_operand(c, node, 3),
           zero_point_operand(c, node, 4)};
    const op::ByteTable entries = op::requantized_in_float(from, to);
    return table_unit(c, node, std::vector<uint8_t>(entries.begin(), entries.end()));
  }
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
