#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/rebuild.h"
#include "src/packer/pipeline/stages.h"

namespace qplan::pipeline {
namespace {

using pattern::PostValue;
using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;

enum class Layout : uint8_t { kUnknown, kNchw, kNhwc };

Layout other(Layout layout) {
  if (layout == Layout::kUnknown) return layout;
  return layout == Layout::kNchw ? Layout::kNhwc : Layout::kNchw;
}

// What the operator itself says of its data and its result.
Layout declared(const ir::Node& node) {
  const op::AttrDef* attr = op::attr_with(node.op, op::AttrRole::kLayout);
  if (attr == nullptr) return Layout::kUnknown;
  return op::attr_string(node, attr->name) == "NCHW" ? Layout::kNchw : Layout::kNhwc;
}

// The order of axes of each value of four axes, as far as operators that name one can be reached through
// operators that keep it.
class Layouts {
 public:
  explicit Layouts(const ir::Function& function) : function_(function), of_(function.num_values()) {
    const auto nodes = function.nodes();
    // From users to what they read, then from what is read to results.
    for (size_t i = nodes.size(); i-- > 0;) visit(nodes[i], /*to_operands=*/true);
    for (const ir::Node& node : nodes) visit(node, /*to_operands=*/false);
  }
  Layout operator[](ir::ValueId value) const { return of_[value.index]; }

 private:
  void learn(ir::ValueId value, Layout layout) {
    if (of_[value.index] == Layout::kUnknown && function_.type(value).shape.size() == 4)
      of_[value.index] = layout;
  }

  void visit(const ir::Node& node, bool to_operands) {
    if (node.op == nullptr) return;
    const Layout own = declared(node);
    if (own != Layout::kUnknown) {
      learn(node.operands[0], own);
      learn(node.results[0], own);
      return;
    }
    const bool turns = node.op->name == "transpose" && (op::attr_ints(node, "axes") == passes::kToNhwc ||
                                                        op::attr_ints(node, "axes") == passes::kToNchw);
    const std::vector<size_t> data = turns ? std::vector<size_t>{0} : passes::layout_operands(node);
    for (const size_t i : data) {
      for (const ir::ValueId result : node.results) {
        if (to_operands) {
          learn(node.operands[i], turns ? other((*this)[result]) : (*this)[result]);
        } else {
          learn(result, turns ? other((*this)[node.operands[i]]) : (*this)[node.operands[i]]);
        }
      }
    }
  }

  const ir::Function& function_;
  std::vector<Layout> of_;
};

ir::Shape permuted(const ir::Shape& shape, const ir::Ints& axes) {
  ir::Shape result;
  for (const int64_t axis : axes) result.push_back(shape[static_cast<size_t>(axis)]);
  return result;
}

}  // namespace

void set_io_layout(ir::Module* module, std::string_view layout, const LogFunction& log) {
  if (layout.empty()) return;
  if (layout != "nhwc" && layout != "nchw") {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "io layout '" + std::string(layout) + "' is not known, expected 'nhwc' or 'nchw'");
  }
  const ir::Function& main = module->main();
  const Layouts layouts(main);
  const Layout wanted = layout == "nhwc" ? Layout::kNhwc : Layout::kNchw;
  const ir::Ints& outwards = wanted == Layout::kNhwc ? passes::kToNhwc : passes::kToNchw;
  const ir::Ints& inwards = wanted == Layout::kNhwc ? passes::kToNchw : passes::kToNhwc;
  const auto changes = [&](ir::ValueId value) {
    return layouts[value] != Layout::kUnknown && layouts[value] != wanted;
  };
  const auto tell_unknown = [&](const char* what, ir::ValueId value, const std::string& name) {
    if (!log || main.type(value).shape.size() != 4 || layouts[value] != Layout::kUnknown) return;
    log(QPLAN_LOG_WARNING, "io layout: nothing states the order of axes of " + std::string(what) + " '" +
                               name + "' (" + ir::to_string(main.type(value)) + "), it is not changed");
  };

  Rebuild r(main, [&](size_t index, const ir::TensorType& type) {
    const ir::ValueId param = main.params()[index];
    if (index >= ir::num_inputs(main)) return type;
    tell_unknown("input", param, main.value(param).name);
    return changes(param) ? ir::TensorType{type.dtype, permuted(type.shape, outwards)} : type;
  });
  for (size_t i = 0; i < ir::num_inputs(main); ++i) {
    const PreValue param{main.params()[i]};
    if (!changes(param.id)) continue;
    r.replace(param,
              r.post().call("transpose", {r.param(i)}, {{"axes", inwards}}, main.value(param.id).name));
  }
  for (size_t i = 0; i < main.nodes().size(); ++i) r.copy(PreNode(main, i));
  std::vector<PostValue> outputs;
  for (size_t i = 0; i < main.outputs().size(); ++i) {
    const PreValue output{main.outputs()[i]};
    if (i >= ir::num_outputs(main)) {
      outputs.push_back(r[output]);
      continue;
    }
    const std::string& name = i < main.output_names().size() ? main.output_names()[i] : r.pre().name(output);
    tell_unknown("output", output.id, name);
    outputs.push_back(changes(output.id) ? r.post().call("transpose", {r[output]}, {{"axes", outwards}}, name)
                                         : r[output]);
  }
  module->replace_function(r.finish(outputs));
}

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
