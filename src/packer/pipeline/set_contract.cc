#include <algorithm>
#include <string>

#include "src/packer/error.h"
#include "src/packer/op/properties.h"
#include "src/packer/passes/activation_dtype.h"
#include "src/packer/passes/product_of.h"
#include "src/packer/pattern/rebuild.h"
#include "src/packer/pipeline/interface.h"

namespace qplan::pipeline {
namespace {

using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;

// activations: of the network in canonical form, not what the layer reads: its source may have chosen the
// other signedness.
const char* tflite_multiplier_rule(const pattern::Pre& pre, PreNode product, ir::DType activations) {
  const size_t weight = *op::operand_with(*product.op(), op::OperandRole::kWeight);
  const size_t weight_scale = *op::scale_of(*product.op(), weight);
  const bool one_scale = pre.type(product.operand(weight_scale)).num_elements() == 1;
  const bool product_f32 = one_scale && (product.is("qnn.dense") || activations == ir::kUint8);
  return product_f32 ? "product_f32" : "product_f64";
}

ir::Attrs with_contract(const pattern::Pre& pre, PreNode node, const std::string& contract,
                        ir::DType activations) {
  ir::Attrs attrs = node.attrs();
  attrs.set("contract", contract);
  for (const op::AttrDef& attr : node.op()->attrs) {
    if (attr.role == op::AttrRole::kRounding) attrs.erase(attr.name);  // the contract's own
  }
  if (!node.is("qnn.requantize")) return attrs;
  const auto product = passes::product_of(pre, node.operand(0));
  if (product && contract == "tfl2")
    attrs.set("multiplier", std::string(tflite_multiplier_rule(pre, *product, activations)));
  return attrs;
}

}  // namespace

bool means_other_contracts(const ir::Module& module, std::string_view contract) {
  if (contract.empty()) return false;
  return std::ranges::none_of(module.main().nodes(), [&](const ir::Node& node) {
    return op::has_contract(node.op) && !node.op->contracts_agree &&
           op::attr_string(node, "contract") == contract;
  });
}

void set_contract(ir::Module* module, std::string_view contract) {
  if (contract.empty()) return;
  if (contract != "tfl2" && contract != "f32e") {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "contract '" + std::string(contract) + "' is not known, expected 'tfl2' or 'f32e'");
  }
  const ir::DType activations = passes::activation_dtype(module->main());
  auto changed = pattern::rebuild(module->main(), [&](Rebuild& r, PreNode node) {
    if (!op::has_contract(node.op())) return false;
    const auto results =
        r.post().call_all(node.op()->name, r.operands(node),
                          with_contract(r.pre(), node, std::string(contract), activations), node.name());
    for (size_t i = 0; i < results.size(); ++i) r.replace(node.result(i), results[i]);
    return true;
  });
  if (changed) module->replace_function(std::move(changed));
}

}  // namespace qplan::pipeline
