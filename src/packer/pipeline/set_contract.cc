#include <algorithm>
#include <string>

#include "src/packer/error.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/product_of.h"
#include "src/packer/pattern/rebuild.h"
#include "src/packer/pipeline/interface.h"

namespace qplan::pipeline {
namespace {

using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;

bool has_contract(const op::OpDef& op) {
  return std::ranges::any_of(op.attrs, [](const op::AttrDef& attr) { return attr.name == "contract"; });
}

const char* tflite_multiplier_rule(const pattern::Pre& pre, PreNode product) {
  const bool one_scale = pre.type(product.operand(5)).num_elements() == 1;
  const bool product_f32 =
      one_scale && (product.is("qnn.dense") || pre.type(product.operand(0)).dtype == ir::kUint8);
  return product_f32 ? "product_f32" : "product_f64";
}

ir::Attrs with_contract(const pattern::Pre& pre, PreNode node, const std::string& contract) {
  ir::Attrs attrs = node.attrs();
  attrs.set("contract", contract);
  attrs.erase("rule");  // of quantize: the contract's own
  if (!node.is("qnn.requantize")) return attrs;
  attrs.erase("multiplier");
  const auto product = passes::product_of(pre, node.operand(0));
  if (product && contract == "tfl2")
    attrs.set("multiplier", std::string(tflite_multiplier_rule(pre, *product)));
  return attrs;
}

}  // namespace

void set_contract(ir::Module* module, std::string_view contract) {
  if (contract.empty()) return;
  if (contract != "tfl2" && contract != "f32e") {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "contract '" + std::string(contract) + "' is not known, expected 'tfl2' or 'f32e'");
  }
  auto changed = pattern::rebuild(module->main(), [&](Rebuild& r, PreNode node) {
    if (node.op() == nullptr || !has_contract(*node.op())) return false;
    const auto results = r.post().call_all(node.op()->name, r.operands(node),
                                           with_contract(r.pre(), node, std::string(contract)), node.name());
    for (size_t i = 0; i < results.size(); ++i) r.replace(node.result(i), results[i]);
    return true;
  });
  if (changed) module->replace_function(std::move(changed));
}

}  // namespace qplan::pipeline
