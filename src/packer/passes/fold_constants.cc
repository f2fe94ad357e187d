// Nodes whose operands are all constants become constants: by the operator's host-only evaluation, or on the
// reference kernels that PassContext::evaluate stands for. Not so what says how a constant is quantised:
// qnn.dequantize, since integers under it are what layers are made of, as long as float operators may still
// become integer ones; and qnn.quantize, whose own pass counts what it saturates.
#include <array>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

using Constants = std::vector<ir::ConstantRef>;

// The operands, when all of them are constants.
std::optional<Constants> constant_operands(pattern::Rebuild& r, pattern::PreNode node,
                                           const PassContext& context) {
  if (node.op() == nullptr || node.num_operands() == 0) return std::nullopt;
  const bool is_left = context.floats_stay && node.is("qnn.dequantize");
  if (op::is_float_border(node.op()) && !is_left) return std::nullopt;
  Constants operands;
  for (const pattern::PostValue operand : r.operands(node)) {
    operands.push_back(r.post().constant(operand));
    if (operands.back() == nullptr) return std::nullopt;
  }
  return operands;
}

// Elements that an element of the result is computed from, where it is more than a few: convolutions and
// fully connected layers have no kernel by themselves, without the requantisation after them.
int64_t window_size(const pattern::Pre& pre, pattern::PreNode node) {
  const auto window = op::is_product(node.op()) ? std::nullopt : op::window_of(pre.function(), node.node());
  int64_t size = 0;
  if (!window) return 1;
  return checked_mul(window->kernel_h, window->kernel_w, &size) ? size : INT64_MAX;
}

// Takes from the budget what the node needs; false when it needs too much.
bool spend(const pattern::Pre& pre, pattern::PreNode node, const Constants& operands, FoldBudget* budget) {
  const int64_t window = window_size(pre, node);
  int64_t bytes = 0, work = 0;
  for (const ir::ConstantRef& operand : operands) {
    if (!checked_add(work, operand->type().size_bytes(), &work)) return false;
  }
  for (size_t i = 0; i < node.num_results(); ++i) {
    const int64_t size = pre.type(node.result(i)).size_bytes();
    int64_t covered = 0;
    if (!checked_add(bytes, size, &bytes) || !checked_mul(size, window, &covered) ||
        !checked_add(work, covered, &work)) {
      return false;
    }
  }
  if (bytes > budget->bytes || work > budget->work) return false;
  budget->bytes -= bytes;
  budget->work -= work;
  return true;
}

// qnn.dequantize, with one scale and zero point or one for each index of its axis.
Constants evaluate_dequantize(pattern::PreNode node, const Constants& operands) {
  const ir::Constant& data = *operands[0];
  const ir::Shape& shape = data.type().shape;
  const size_t count = static_cast<size_t>(data.type().num_elements());
  const bool per_axis = operands[1]->as<float>().size() > 1 || operands[2]->as<int32_t>().size() > 1;
  size_t channels = 1, inner = count;
  if (per_axis) {
    const auto axis =
        static_cast<size_t>(op::normalized_axis(op::attr_int(node.node(), "axis"), shape.size()));
    channels = static_cast<size_t>(shape[axis]);
    inner = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
  }
  std::vector<float> reals(count);
  const auto convert = [&](const auto values) {
    for (size_t i = 0; i < count; ++i) {
      const size_t channel = i / inner % channels;
      const int64_t difference = int64_t{values[i]} - entry<int32_t>(*operands[2], channel);
      reals[i] = static_cast<float>(difference) * entry<float>(*operands[1], channel);
    }
  };
  if (data.type().dtype == ir::kInt8) convert(data.as<int8_t>());
  if (data.type().dtype == ir::kUint8) convert(data.as<uint8_t>());
  if (data.type().dtype == ir::kInt32) convert(data.as<int32_t>());
  return {ir::make_constant(ir::kFloat32, shape, reals)};
}

std::optional<Constants> evaluate_node(pattern::PreNode node, const Constants& operands,
                                       const PassContext& context) {
  if (node.is("qnn.dequantize")) return evaluate_dequantize(node, operands);
  if (node.op()->evaluate != nullptr) return node.op()->evaluate(node.node(), operands);
  if (!context.evaluate || op::is_product(node.op())) return std::nullopt;
  return context.evaluate(node.node(), operands);
}

}  // namespace

std::unique_ptr<ir::Function> run_fold_constants(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  return pattern::rebuild(pre, [&](pattern::Rebuild& r, pattern::PreNode node) {
    const std::optional<Constants> operands = constant_operands(r, node, context);
    if (!operands || !spend(r.pre(), node, *operands, &context.fold_budget)) return false;
    const std::optional<Constants> results = evaluate_node(node, *operands, context);
    if (!results) return false;
    if (results->size() != node.num_results()) {
      throw PackError(QPLAN_INTERNAL, "fold_constants: '" + node.name() + "' was evaluated to " +
                                          std::to_string(results->size()) + " results, expected " +
                                          std::to_string(node.num_results()));
    }
    for (size_t i = 0; i < results->size(); ++i) {
      r.replace(node.result(i), r.post().constant_value((*results)[i], r.pre().name(node.result(i))));
    }
    context.fired("fold_constants", node.name(), node.op()->name + " of constants");
    return true;
  });
}

// qnn.quantize of a constant becomes the quantised constant: weights and biases that the source keeps as
// floats. One scale, or one per index of an axis.
namespace {

using pattern::constant;

template <typename T>
ir::ConstantRef quantize_as(const RewriteContext& context, ir::DType dtype, uint64_t* saturated) {
  const ir::ConstantRef data = context.constant("data");
  const ir::ConstantRef scale = context.constant("scale"), zero_point = context.constant("zero_point");
  const ir::Shape& shape = data->type().shape;
  const bool per_axis = scale->as<float>().size() > 1 || zero_point->as<int32_t>().size() > 1;
  AxisExtents extents;
  if (per_axis) {
    const int64_t axis = op::normalized_axis(op::attr_int(context.root.node(), "axis"), shape.size());
    extents = extents_around(shape, static_cast<size_t>(axis));
  }
  Quantizer quantizer{.dtype = dtype, .rounding = quantize_rounding(context.root.node())};
  const auto values = data->as<float>();
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i / extents.inner % extents.axis;
    quantizer.scale = entry<float>(*scale, channel);
    quantizer.zero_point = entry<int32_t>(*zero_point, channel);
    const Quantized quantized = quantizer(values[i]);
    result[i] = static_cast<T>(quantized.value);
    *saturated += quantized.saturated ? 1 : 0;
  }
  return ir::make_constant(dtype, shape, result);
}

Result quantize_constant(const RewriteContext& context, std::string* why) {
  const ir::TensorType& type = context.pre().type(context.root.result());
  uint64_t saturated = 0;
  ir::ConstantRef result;
  if (type.dtype == ir::kInt8) result = quantize_as<int8_t>(context, type.dtype, &saturated);
  if (type.dtype == ir::kUint8) result = quantize_as<uint8_t>(context, type.dtype, &saturated);
  if (type.dtype == ir::kInt32) result = quantize_as<int32_t>(context, type.dtype, &saturated);
  *why = cat(count_text(static_cast<uint64_t>(type.num_elements()), "value"), " to ", type.dtype, ", ",
             saturated, " saturated");
  return context.post().constant_value(std::move(result), context.pre().name(context.matches["data"]));
}

// A constant that is quantised once is not larger afterwards.
int64_t quantized_bytes(const RewriteContext& context) {
  const bool shared = context.pre().num_uses(context.matches["data"]) > 1;
  return shared ? context.pre().type(context.root.result()).size_bytes() : 0;
}

}  // namespace

std::span<const Rewrite> quantize_constants_rewrites() {
  static const std::array<Rewrite, 1> kRewrites = {Rewrite{
      .name = "quantize_constant",
      .pattern = pattern::op("qnn.quantize",
                             {constant().as("data"), constant().as("scale"), constant().as("zero_point")}),
      .build = quantize_constant}};
  return kRewrites;
}

std::unique_ptr<ir::Function> run_quantize_constants(const ir::Module&, const ir::Function& pre,
                                                     PassContext& context) {
  return run_rewrites(quantize_constants_rewrites(), pre, context, quantized_bytes);
}

}  // namespace qplan::passes
