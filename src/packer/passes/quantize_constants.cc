// qnn.quantize of a constant becomes the quantised constant: weights and biases that the source keeps as
// floats. One scale, or one per index of an axis.
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/passes/rounding.h"

namespace qplan::passes {
namespace {

using pattern::constant;
using pattern::PostValue;
using pattern::Rewrite;
using pattern::RewriteContext;

// Elements of a tensor around one axis: [outer][axis][inner].
struct AxisExtents {
  size_t axis = 1, inner = 1;
};

AxisExtents extents_around(const ir::Shape& shape, size_t axis) {
  AxisExtents extents{static_cast<size_t>(shape[axis]), 1};
  for (size_t i = axis + 1; i < shape.size(); ++i) extents.inner *= static_cast<size_t>(shape[i]);
  return extents;
}

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

std::optional<PostValue> quantize_constant(const RewriteContext& context, std::string* why) {
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
