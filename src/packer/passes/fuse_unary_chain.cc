// Any function of one 8-bit value is a table of 256: dequantize -> float operators with scalar constants ->
// quantize becomes qnn.lookup, however often the value itself is read on the way (x * hard_sigmoid(x)).
// Lowering, but to the bits that the float operators would give: each is evaluated as it stands, in the order
// of the graph.
#include <array>
#include <unordered_map>
#include <vector>

#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
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
