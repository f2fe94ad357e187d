// Passes that evaluate operators: those of constants, whose results become constants, quantised ones among
// them, and float functions of one 8-bit value, which become a table.
#include <array>
#include <unordered_map>
#include <vector>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// ---- fold_constants ----
// Nodes whose operands are all constants become constants: by the operator's host-only evaluation, or on the
// reference kernels that PassContext::evaluate stands for. Not so what says how a constant is quantised:
// qnn.dequantize, since integers under it are what layers are made of, as long as float operators may still
// become integer ones; and qnn.quantize, whose own pass counts what it saturates.

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
  with_integers(data, [&](const auto values) {
    for (size_t i = 0; i < count; ++i) {
      const size_t channel = i / inner % channels;
      const int64_t difference = int64_t{values[i]} - entry<int32_t>(*operands[2], channel);
      reals[i] = static_cast<float>(difference) * entry<float>(*operands[1], channel);
    }
  });
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

// ---- quantize_constants ----
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
  if (type.dtype == ir::kInt16) result = quantize_as<int16_t>(context, type.dtype, &saturated);
  if (type.dtype == ir::kInt32) result = quantize_as<int32_t>(context, type.dtype, &saturated);
  if (result == nullptr) throw PackError(QPLAN_INTERNAL, cat("a constant is quantised to ", type.dtype));
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

// ---- fuse_unary_chain ----
// Any function of one 8-bit value is a table of 256: dequantize -> float operators with scalar constants ->
// quantize becomes qnn.lookup, however often the value itself is read on the way (x * hard_sigmoid(x)).
// Lowering, but to the bits that the float operators would give (docs/numerics/float32.md has the functions
// of which the packer evaluates a closer value): each is evaluated as it stands, in the order of the graph.

namespace {

constexpr size_t kMaxOperators = 64;

// The operators between one 8-bit value and the quantize, operands before users.
class ChainWalk {
 public:
  ChainWalk(const Pre& pre, std::string* why) : pre_(pre), why_(why) {}

  // False with the reason.
  bool run(PreValue result) {
    shape_ = pre_.type(result).shape;
    if (!enter(result)) return false;
    while (!open_.empty()) {
      if (!step()) return false;
    }
    return true;
  }

  const std::vector<PreNode>& operators() const { return order_; }
  bool has_input() const { return input_.has_value(); }
  PreNode input() const { return *input_; }

 private:
  struct Open {
    PreNode node;
    size_t next = 0;
  };

  bool fail(std::string reason) {
    *why_ = std::move(reason);
    return false;
  }

  bool enter(PreValue value) {
    if (const ir::ConstantRef constant = pre_.constant(value)) {
      if (constant->type().num_elements() == 1) return true;
      return fail(cat("a constant ", constant->type(), " is no scalar"));
    }
    const auto node = pre_.producer(value);
    if (node && node->is("qnn.dequantize")) return enter_input(*node);
    if (!node || !op::is_real_function(node->op())) {
      return fail(cat(describe(pre_, value), " is no function of one 8-bit value"));
    }
    if (pre_.type(value).shape != shape_) return fail(cat(describe(pre_, value), " broadcasts"));
    if (seen_[value.id.index]) return true;
    seen_[value.id.index] = true;
    if (seen_.size() > kMaxOperators) return fail(cat("there are more than ", kMaxOperators, " operators"));
    open_.push_back({*node});
    return true;
  }

  bool enter_input(PreNode dequantize) {
    const ir::TensorType& type = pre_.type(dequantize.operand(0));
    const bool scalar =
        pre_.type(dequantize.operand(1)).shape.empty() && pre_.type(dequantize.operand(2)).shape.empty();
    if (type.dtype.bits != 8 || !scalar)
      return fail(cat("'", dequantize.name(), "' is not of 8 bits with one scale"));
    if (type.shape != shape_) return fail(cat("'", dequantize.name(), "' is broadcast"));
    if (!input_) input_ = dequantize;
    for (size_t i = 0; i < 3; ++i) {
      if (input_->operand(i) != dequantize.operand(i)) {
        return fail(
            cat("it is a function of two values, '", input_->name(), "' and '", dequantize.name(), "'"));
      }
    }
    return true;
  }

  bool step() {
    Open& top = open_.back();
    if (top.next < top.node.num_operands()) return enter(top.node.operand(top.next++));
    order_.push_back(top.node);
    open_.pop_back();
    return true;
  }

  const Pre& pre_;
  std::string* why_;
  ir::Shape shape_;
  std::vector<Open> open_;
  std::vector<PreNode> order_;
  std::unordered_map<uint32_t, bool> seen_;  // by value
  std::optional<PreNode> input_;
};

// What the 256 bytes stand for.
ir::ConstantRef dequantized_bytes(const Pre& pre, PreNode dequantize) {
  const float scale = scale_of(pre, dequantize.operand(1));
  const int32_t zero_point = zero_point_of(pre, dequantize.operand(2));
  const bool is_signed = pre.type(dequantize.operand(0)).dtype == ir::kInt8;
  std::vector<float> values(256);
  for (int32_t byte = 0; byte < 256; ++byte) {
    const int32_t q = is_signed ? int32_t{static_cast<int8_t>(byte)} : byte;
    values[static_cast<size_t>(byte)] = static_cast<float>(q - zero_point) * scale;
  }
  return ir::make_constant(ir::kFloat32, {256}, values);
}

// The float that each byte leads to.
ir::ConstantRef evaluate_chain(const Pre& pre, const ChainWalk& walk, PreValue result) {
  std::unordered_map<uint32_t, ir::ConstantRef> values;
  const ir::ConstantRef input = dequantized_bytes(pre, walk.input());
  for (const PreNode node : walk.operators()) {
    std::vector<ir::ConstantRef> operands;
    for (size_t i = 0; i < node.num_operands(); ++i) {
      const PreValue operand = node.operand(i);
      if (const ir::ConstantRef constant = pre.constant(operand)) {
        operands.push_back(ir::make_scalar(constant->as<float>()[0]));
      } else {
        const auto known = values.find(operand.id.index);
        operands.push_back(known != values.end() ? known->second
                                                 : input);  // else a dequantise of the one input
      }
    }
    values[node.result().id.index] = node.op()->evaluate(node.node(), operands).at(0);
  }
  return values.at(result.id.index);
}

Result fuse_chain(const RewriteContext& context, std::string* why) {
  const Pre& pre = context.pre();
  const PreValue result = context.matches["data"];
  ChainWalk walk(pre, why);
  if (!walk.run(result)) return std::nullopt;
  if (!walk.has_input()) {
    *why = "it is a function of constants alone";
    return std::nullopt;
  }
  const PreNode quantize = context.root;
  const ir::DType dtype = pre.type(quantize.result()).dtype;
  const Quantizer quantizer{scale_of(pre, quantize.operand(1)), zero_point_of(pre, quantize.operand(2)),
                            dtype, quantize_rounding(quantize.node())};
  std::vector<uint8_t> table;
  const ir::ConstantRef values = evaluate_chain(pre, walk, result);
  for (const float value : values->as<float>()) table.push_back(static_cast<uint8_t>(quantizer(value).value));
  std::string names;
  for (const PreNode node : walk.operators()) names += (names.empty() ? "" : ", ") + node.op()->name;
  *why = cat("a table of ", names, "; contract ", op::attr_string(quantize.node(), "contract"));
  pattern::Post& post = context.post();
  const PostValue constant = post.constant_value(
      std::make_shared<const ir::Constant>(ir::TensorType{dtype, {256}}, std::move(table)),
      quantize.name() + "/table");
  return post.call("qnn.lookup", {context.r[walk.input().operand(0)], constant}, {}, quantize.name());
}

}  // namespace

std::span<const Rewrite> fuse_unary_chain_rewrites() {
  static const std::array<Rewrite, 1> kRewrites = {
      Rewrite{"fuse_unary_chain", 0,
              quantized(pattern::one_of(op::names_where(op::is_real_function)).as("data")), fuse_chain}};
  return kRewrites;
}

std::unique_ptr<ir::Function> run_fuse_unary_chain(const ir::Module&, const ir::Function& pre,
                                                   PassContext& context) {
  return context.keep_float ? nullptr : run_rewrites(fuse_unary_chain_rewrites(), pre, context);
}

}  // namespace qplan::passes
