// dequantize -> float operators -> quantize becomes operators on integers (pass.h lists the rows).
// Lowering: the contract in which a float operator is meant is that of the quantize after it.
#include "src/packer/ir/cat.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/shape.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

std::vector<Rewrite> all_rows() {
  std::vector<Rewrite> rows;
  for (auto make : {movement_rewrites, layer_rewrites, elementwise_rewrites}) {
    for (Rewrite& row : make()) rows.push_back(std::move(row));
  }
  return rows;
}

// As sink_dequantize, for the one movement with several results, which no row can replace.
std::unique_ptr<ir::Function> sink_below_split(const ir::Function& pre, PassContext& context) {
  constexpr const char* kName = "sink_dequantize";
  if (context.skipped(kName)) return nullptr;
  return pattern::rebuild(pre, [&](Rebuild& r, PreNode node) {
    if (!node.is("split")) return false;
    const auto dequantize = r.post().producer(r[node.operand(0)], "qnn.dequantize");
    if (!dequantize || !r.post().type(dequantize->operand(1)).shape.empty() ||
        !r.post().type(dequantize->operand(2)).shape.empty()) {
      return false;
    }
    const auto parts = r.post().call_all("split", {dequantize->operand(0)}, node.attrs(), node.name());
    for (size_t i = 0; i < parts.size(); ++i) {
      r.replace(node.result(i),
                r.post().call("qnn.dequantize", {parts[i], dequantize->operand(1), dequantize->operand(2)},
                              dequantize->attrs(), dequantize->name()));
    }
    context.fired(kName, node.name(), "exact: the dequantisation comes after it");
    return true;
  });
}

}  // namespace

std::span<const Rewrite> qdq_to_integer_rewrites() {
  static const std::vector<Rewrite> kRewrites = all_rows();
  return kRewrites;
}

std::unique_ptr<ir::Function> run_qdq_to_integer(const ir::Module&, const ir::Function& pre,
                                                 PassContext& context) {
  if (context.keep_float) return nullptr;
  std::unique_ptr<ir::Function> split = sink_below_split(pre, context);
  std::unique_ptr<ir::Function> rest = run_rewrites(qdq_to_integer_rewrites(), split ? *split : pre, context);
  return rest != nullptr ? std::move(rest) : std::move(split);
}

// quantize(f(dequantize(x), ...)) becomes qnn.f, for the operators with an OpDef::quantized_form: sums,
// differences and products, pools and means, softmax and sigmoid; without f it is a requantisation, or
// nothing. The contract is the quantize's.
namespace {

const std::string& contract_of(const RewriteContext& context) {
  return op::attr_string(context.root.node(), "contract");
}

// 8-bit data with its scale and zero point, as operands of a quantised operator.
struct QuantizedOperand {
  PostValue data, scale, zero_point;
};

// The dequantised operand in the dtype of the result: the operators want one dtype. int8 and uint8 stand for
// the same reals when the zero point moves along, so that this changes no value.
QuantizedOperand operand_of(const RewriteContext& context, PreNode dequantize) {
  pattern::Post& post = context.post();
  const ir::DType from = context.pre().type(dequantize.operand(0)).dtype;
  const ir::DType to = context.pre().type(context.root.result()).dtype;
  QuantizedOperand operand{context.r[dequantize.operand(0)], context.r[dequantize.operand(1)],
                           context.r[dequantize.operand(2)]};
  if (from == to) return operand;
  const int32_t zero_point = zero_point_of(context.pre(), dequantize.operand(2));
  const PostValue moved = post.scalar(zero_point + static_cast<int32_t>(to.min() - from.min()));
  operand.data =
      post.call("qnn.requantize", {operand.data, operand.scale, operand.zero_point, operand.scale, moved},
                {{"out_dtype", ir::to_string(to)}, {"contract", contract_of(context)}}, dequantize.name());
  operand.zero_point = moved;
  return operand;
}

QuantizedOperand result_of(const RewriteContext& context) {
  return {{}, context.r[context.root.operand(1)], context.r[context.root.operand(2)]};
}

// The 8-bit operator takes the data, then scale and zero point of each input and of the output; its
// attributes are the float operator's and the contract.
Rewrite unary_row(const std::string& name, const op::OpDef& op) {
  const auto build = [quantized_op = op.quantized_form](const RewriteContext& context,
                                                        std::string* why) -> Result {
    const PreNode node = context.node("node");
    const QuantizedOperand x = operand_of(context, context.node("dq_x")), y = result_of(context);
    ir::Attrs attrs = node.attrs();
    attrs.set("contract", contract_of(context));
    *why = cat("contract ", contract_of(context));
    return context.post().call(quantized_op, {x.data, x.scale, x.zero_point, y.scale, y.zero_point},
                               std::move(attrs), node.name());
  };
  return {name, 0, quantized(pattern::op(op.name, {dequantized("x")}).one_use().as("node")), build};
}

Rewrite binary_row(const std::string& name, const op::OpDef& op) {
  const auto build = [quantized_op = op.quantized_form](const RewriteContext& context,
                                                        std::string* why) -> Result {
    const PreNode node = context.node("node");
    const QuantizedOperand a = operand_of(context, context.node("dq_a")),
                           b = operand_of(context, context.node("dq_b"));
    const QuantizedOperand y = result_of(context);
    *why = cat("contract ", contract_of(context));
    ir::Attrs attrs = node.attrs();
    attrs.set("contract", contract_of(context));
    return context.post().call(
        quantized_op, {a.data, b.data, a.scale, a.zero_point, b.scale, b.zero_point, y.scale, y.zero_point},
        std::move(attrs), node.name());
  };
  return {name, 0, quantized(pattern::op(op.name, {dequantized("a"), dequantized("b")}).one_use().as("node")),
          build};
}

// TFLite's sigmoid has one output scale, whatever the real one; with another it is a table
// (fuse_unary_chain).
Rewrite sigmoid_row(const std::string& name, const op::OpDef& op) {
  Rewrite row = unary_row(name, op);
  const auto build = [any_scale = row.build](const RewriteContext& context, std::string* why) -> Result {
    const float scale = scale_of(context.pre(), context.root.operand(1));
    const int32_t zero_point = zero_point_of(context.pre(), context.root.operand(2));
    const ir::DType dtype = context.pre().type(context.root.result()).dtype;
    if (contract_of(context) != "f32e" && (scale != 1.0f / 256.0f || zero_point != dtype.min())) {
      *why = cat("contract ", contract_of(context), " has a sigmoid with output scale 1/256 and zero point ",
                 dtype.min(), " only");
      return std::nullopt;
    }
    return any_scale(context, why);
  };
  row.build = build;
  return row;
}

Result lower_requantize(const RewriteContext& context, std::string* why) {
  const PreNode input = context.node("dq_x");
  const ir::TensorType& from = context.pre().type(input.operand(0));
  const ir::TensorType& to = context.pre().type(context.root.result());
  const QuantizedOperand y = result_of(context);
  const PostValue x = context["x"], scale = context.r[input.operand(1)],
                  zero_point = context.r[input.operand(2)];
  if (from == to && scale == y.scale && zero_point == y.zero_point) {
    *why = "exact: quantised as it was before, both dropped";
    return x;
  }
  *why = cat("contract ", contract_of(context));
  return context.post().call("qnn.requantize", {x, scale, zero_point, y.scale, y.zero_point},
                             {{"out_dtype", ir::to_string(to.dtype)}, {"contract", contract_of(context)}},
                             context.root.name());
}

}  // namespace

std::vector<Rewrite> elementwise_rewrites() {
  std::vector<Rewrite> rows = {{"lower_requantize", 0, quantized(dequantized("x")), lower_requantize}};
  for (const op::OpDef* op : op::all_ops()) {
    if (op->quantized_form.empty() || op::is_product(op)) continue;
    const std::string name = "lower_" + std::string(op::plain_name(*op));
    const bool binary = op::num_data_operands(*op) == 2;
    rows.push_back(op->name == "sigmoid" ? sigmoid_row(name, *op)
                   : binary              ? binary_row(name, *op)
                                         : unary_row(name, *op));
  }
  return rows;
}

}  // namespace qplan::passes
