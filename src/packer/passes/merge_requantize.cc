// Chains of requantisations where merging them is exact. A requantisation between int8 and uint8 with one
// scale and with zero points that are 128 apart moves every integer by 128 (requantize_sign): the operator
// before or after it can move its zero point instead. Other chains round twice, and stay.
#include <algorithm>
#include <array>

#include "src/packer/ir/cat.h"
#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

using pattern::any;
using pattern::one_of;
using pattern::op;

enum RequantizeOperand : size_t { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };

// By how much the requantisation moves integers.
int32_t offset_of(const pattern::Pre& pre, PreNode requantize_sign) {
  return static_cast<int32_t>(pre.type(requantize_sign.result()).dtype.min() -
                              pre.type(requantize_sign.operand(kData)).dtype.min());
}

bool is_sign_requantization(const ir::Function& function, ir::ValueId value) {
  const ir::Node& node = *function.producer(value);
  const ir::DType from = function.type(node.operands[kData]).dtype, to = function.type(value).dtype;
  if (from.bits != 8 || to.bits != 8 || from == to) return false;
  const auto scalar = [&](RequantizeOperand operand) {
    return function.type(node.operands[operand]).shape.empty();
  };
  if (!scalar(kInputScale) || !scalar(kOutputScale) || !scalar(kInputZeroPoint) ||
      !scalar(kOutputZeroPoint)) {
    return false;
  }
  const auto scale = [&](RequantizeOperand operand) {
    return function.value(node.operands[operand]).constant->as<float>()[0];
  };
  const auto zero_point = [&](RequantizeOperand operand) {
    return function.value(node.operands[operand]).constant->as<int32_t>()[0];
  };
  return scale(kInputScale) == scale(kOutputScale) &&
         zero_point(kOutputZeroPoint) - zero_point(kInputZeroPoint) == to.min() - from.min();
}

// It reads data of either dtype, with a zero point, whatever the results are: conversions and layers.
bool reads_any_dtype(const op::OpDef* op) {
  return op != nullptr && !op->keeps_dtype && op::zero_point_of(*op, 0).has_value();
}

Pattern of_other_sign(Pattern data) {
  return op("qnn.requantize", {std::move(data)})
      .where("that a requantisation between int8 and uint8 made, with one scale and zero points 128 apart",
             is_sign_requantization);
}

PostValue moved_constant(const RewriteContext& context, pattern::PreValue value, int32_t offset) {
  const ir::Constant& old = *context.pre().constant(value);
  return context.post().constant_value(moved_zero_points(old, offset));
}

// requantize sign(first(x)): first makes the other dtype itself.
Result into_producer(const RewriteContext& context, std::string* why) {
  const PreNode first = context.node("first");
  const size_t zero_point = *op::zero_point_of(*first.op(), op::kResult);
  std::vector<PostValue> operands = context.r.operands(first);
  operands[zero_point] =
      moved_constant(context, first.operand(zero_point), offset_of(context.pre(), context.root));
  ir::Attrs attrs = first.attrs();
  const ir::DType dtype = context.pre().type(context.root.result()).dtype;
  attrs.set(op::attr_with(first.op(), op::AttrRole::kDtype)->name, ir::to_string(dtype));
  *why = cat("exact: '", first.name(), "' makes ", dtype, " itself");
  return context.post().call(first.op()->name, operands, std::move(attrs), first.name());
}

// requantize_sign(clip(x)): the clip, in the other dtype, comes after it.
Result below_clip(const RewriteContext& context, std::string* why) {
  const PreNode clip = context.node("clip");
  const ir::DType from = context.pre().type(clip.result()).dtype;
  const int32_t offset = offset_of(context.pre(), context.root);
  const auto bound = [&](const char* name) {
    const auto least = static_cast<double>(from.min()), most = static_cast<double>(from.max());
    return std::clamp(op::attr_float(clip.node(), name), least, most) + offset;
  };
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[kData] = context.r[clip.operand(0)];
  *why = "exact: the clip comes after it";
  const PostValue value =
      context.post().call("qnn.requantize", operands, context.root.attrs(), context.root.name());
  return context.post().call("clip", {value}, {{"a_min", bound("a_min")}, {"a_max", bound("a_max")}},
                             clip.name());
}

// reader(requantize sign(x)): reads x itself, with its zero point in x's dtype.
Result into_reader(const RewriteContext& context, std::string* why) {
  const PreNode requantize_sign = context.node("resign");
  const pattern::Pre& pre = context.pre();
  const auto before = pre.producer(requantize_sign.operand(kData));
  // Both would make a second copy of what stands before: of an accumulator's requantisation, for instance.
  if (pre.num_uses(requantize_sign.result()) > 1 && pre.num_uses(requantize_sign.operand(kData)) == 1 &&
      before && (op::chooses_dtype(before->op()) || before->is("clip"))) {
    *why =
        cat("others read '", requantize_sign.name(), "' too: it goes into '", before->name(), "' before it");
    return std::nullopt;
  }
  const int32_t offset = offset_of(context.pre(), requantize_sign);
  std::vector<PostValue> operands = context.r.operands(context.root);
  operands[0] = context.r[requantize_sign.operand(kData)];
  const size_t zero_point = *op::zero_point_of(*context.root.op(), 0);
  operands[zero_point] = moved_constant(context, context.root.operand(zero_point), -offset);
  ir::Attrs attrs = context.root.attrs();
  const op::AttrDef* value = op::attr_with(context.root.op(), op::AttrRole::kDataValue);
  if (value != nullptr && attrs.has(value->name)) {
    attrs.set(value->name, op::attr_int(context.root.node(), value->name) - offset);
  }
  *why = cat("exact: reads what '", requantize_sign.name(), "' reads");
  return context.post().call(context.root.op()->name, operands, std::move(attrs), context.root.name());
}

}  // namespace

std::span<const Rewrite> merge_requantize_rewrites() {
  static const std::array<Rewrite, 3> kRewrites = [] {
    const Pattern first =
        one_of(op::names_where(op::chooses_dtype)).dtypes({ir::kInt8, ir::kUint8}).one_use().as("first");
    return std::array<Rewrite, 3>{
        Rewrite{"merge_resign_into_producer", 0, of_other_sign(first), into_producer},
        Rewrite{"move_resign_above_clip", 0, of_other_sign(op("clip").one_use().as("clip")), below_clip},
        Rewrite{"merge_resign_into_reader", 0,
                one_of(op::names_where(reads_any_dtype), {of_other_sign(any()).as("resign")}), into_reader},
    };
  }();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_merge_requantize(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return run_rewrites(merge_requantize_rewrites(), pre, context);
}

}  // namespace qplan::passes
