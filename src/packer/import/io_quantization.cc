#include "src/packer/import/io_quantization.h"

#include <optional>
#include <vector>

#include "src/packer/import/quantization_attrs.h"
#include "src/packer/op/properties.h"

namespace qplan {
namespace {

using Known = std::vector<std::optional<TensorQuantization>>;  // by value

std::optional<TensorQuantization> read(const ir::Function& function, ir::ValueId scale,
                                       ir::ValueId zero_point) {
  if (!function.is_constant(scale) || !function.is_constant(zero_point)) return std::nullopt;
  const ir::Constant& s = *function.value(scale).constant;
  const ir::Constant& z = *function.value(zero_point).constant;
  if (!s.type().shape.empty() || !z.type().shape.empty()) return std::nullopt;  // per channel
  return TensorQuantization{s.as<float>()[0], z.as<int32_t>()[0]};
}

void read_tensor(const ir::Function& function, const ir::Node& node, size_t tensor, Known* known) {
  const std::optional<size_t> scale = op::scale_of(*node.op, tensor);
  const std::optional<size_t> zero_point = op::zero_point_of(*node.op, tensor);
  if (!scale || !zero_point) return;
  const ir::ValueId value = tensor == op::kResult ? node.results[0] : node.operands[tensor];
  auto& entry = (*known)[value.index];
  if (!entry) entry = read(function, node.operands[*scale], node.operands[*zero_point]);
}

void read_node(const ir::Function& function, const ir::Node& node, bool canonical, Known* known) {
  // In canonical form the zero point of a product's data is any: the bias makes up for it.
  if (node.op == nullptr || (canonical && op::is_product(node.op))) return;
  for (const size_t tensor : op::data_operands(node)) read_tensor(function, node, tensor, known);
  read_tensor(function, node, op::kResult, known);
}

}  // namespace

void set_io_quantization(ir::Function& function, bool canonical) {
  Known known(function.num_values());
  const auto nodes = function.nodes();
  for (const ir::Node& node : nodes) read_node(function, node, canonical, &known);
  // Forwards to outputs, backwards to inputs.
  const auto pass_on = [&](const ir::Node& node, bool forwards) {
    if (!op::passes_quantization(node.op)) return;
    for (const size_t i : op::data_operands(node)) {
      for (const ir::ValueId id : node.results) {
        auto &operand = known[node.operands[i].index], &result = known[id.index];
        if (forwards && !result) result = operand;
        if (!forwards && !operand) operand = result;
      }
    }
  };
  for (const ir::Node& node : nodes) pass_on(node, true);
  for (size_t i = nodes.size(); i-- > 0;) pass_on(nodes[i], false);

  const auto found = [&](ir::ValueId id) -> const std::optional<TensorQuantization>& {
    static const std::optional<TensorQuantization> kNone;
    const ir::DType dtype = function.type(id).dtype;
    return dtype == ir::kInt8 || dtype == ir::kUint8 ? known[id.index] : kNone;
  };
  for (size_t i = 0; i < function.params().size(); ++i) {
    const auto& q = found(function.params()[i]);
    if (q && !input_quantization(function, i)) set_input_quantization(function, i, *q);
  }
  for (size_t i = 0; i < function.outputs().size(); ++i) {
    const auto& q = found(function.outputs()[i]);
    if (q && !output_quantization(function, i)) set_output_quantization(function, i, *q);
  }
}

}  // namespace qplan
