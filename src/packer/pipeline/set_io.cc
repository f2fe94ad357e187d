// What a pack was told of the network's border and contract: other dtypes and another order of axes of inputs
// and outputs, and another contract of requantisation.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/pipeline/stages.h"

namespace qplan::pipeline {
namespace {

using pattern::Post;
using pattern::PostValue;
using pattern::PreNode;
using pattern::PreValue;
using pattern::Rebuild;

std::optional<ir::DType> parse_dtype(std::string_view io) {
  if (io == "int8") return ir::kInt8;
  if (io == "uint8") return ir::kUint8;
  if (io == "float") return ir::kFloat32;
  return std::nullopt;
}

bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }

// Scalar scale and zero point at operands 1 and 2 of a qnn.quantize or qnn.dequantize.
std::optional<TensorQuantization> quantization_of(const pattern::Pre& pre, PreNode node) {
  const ir::ConstantRef scale = pre.constant(node.operand(1)), zero_point = pre.constant(node.operand(2));
  if (scale->as<float>().size() != 1 || zero_point->as<int32_t>().size() != 1) return std::nullopt;
  return TensorQuantization{scale->as<float>()[0], zero_point->as<int32_t>()[0]};
}

// The same real values in the other 8-bit dtype.
TensorQuantization re_signed(TensorQuantization quantization, ir::DType from, ir::DType to) {
  if (from == to) return quantization;
  quantization.zero_point += to == ir::kUint8 ? 128 : -128;
  return quantization;
}

PostValue requantize(Post& post, PostValue data, TensorQuantization from, TensorQuantization to,
                     ir::DType dtype, const std::string& contract, const std::string& name) {
  return post.call("qnn.requantize",
                   {data, post.scalar(from.scale), post.scalar(from.zero_point), post.scalar(to.scale),
                    post.scalar(to.zero_point)},
                   {{"out_dtype", ir::to_string(dtype)}, {"contract", contract}}, name);
}

// The contract of the first operator that has one: a new qnn.quantize at the border gets it.
std::string network_contract(const ir::Function& function) {
  for (const ir::Node& node : function.nodes()) {
    if (op::has_contract(node.op)) return op::attr_string(node, "contract");
  }
  return "tfl2";
}

class IoChange {
 public:
  IoChange(const ir::Function& main, ir::DType wanted, bool needs_scales, const LogFunction& log)
      : main_(main),
        wanted_(wanted),
        needs_scales_(needs_scales),
        log_(log),
        contract_(network_contract(main)),
        quantizers_(main.num_values()) {}

  std::unique_ptr<ir::Function> run() {
    find_quantizers();
    Rebuild r(main_, [&](size_t index, const ir::TensorType& type) {
      return changes_input(index) ? ir::TensorType{wanted_, type.shape} : type;
    });
    for (size_t i = 0; i < ir::num_inputs(main_); ++i) {
      const ir::Value& param = main_.value(main_.params()[i]);
      if (changes_input(i)) {
        change_input(r, i);
      } else if (param.type.dtype == ir::kFloat32 && wanted_ != ir::kFloat32) {
        tell("input", param.name, "something other than one qnn.quantize reads it");
      }
    }
    for (size_t i = 0; i < main_.nodes().size(); ++i) {
      const PreNode node(main_, i);
      if (!replaced_[i]) r.copy(node);
    }
    std::vector<PostValue> outputs;
    const size_t num_outputs = ir::num_outputs(main_);
    for (size_t i = 0; i < num_outputs; ++i) outputs.push_back(change_output(r, i));
    for (const ir::ValueId state : main_.outputs().subspan(num_outputs))
      outputs.push_back(r[PreValue{state}]);
    std::unique_ptr<ir::Function> result = r.finish(outputs);
    for (const size_t index : float_inputs_) clear_input_quantization(*result, index);
    for (const size_t index : float_outputs_) clear_output_quantization(*result, index);
    for (const auto& [index, quantization] : input_quantization_) {
      set_input_quantization(*result, index, quantization);
    }
    for (const auto& [index, quantization] : output_quantization_) {
      set_output_quantization(*result, index, quantization);
    }
    return result;
  }

 private:
  struct Quantizers {
    std::vector<size_t> nodes;  // all qnn.quantize that read the value
    bool others = false;        // something else reads it
  };

  void find_quantizers() {
    replaced_.assign(main_.nodes().size(), false);
    for (size_t i = 0; i < main_.nodes().size(); ++i) {
      const ir::Node& node = main_.nodes()[i];
      for (size_t k = 0; k < node.operands.size(); ++k) {
        Quantizers& users = quantizers_[node.operands[k].index];
        if (node.op != nullptr && node.op->name == "qnn.quantize" && k == 0) {
          users.nodes.push_back(i);
        } else {
          users.others = true;
        }
      }
    }
    for (const ir::ValueId output : main_.outputs()) quantizers_[output.index].others = true;
  }

  bool changes_input(size_t index) const {
    if (index >= ir::num_inputs(main_)) return false;
    const ir::ValueId param = main_.params()[index];
    const ir::DType dtype = main_.type(param).dtype;
    if (dtype == wanted_) return false;
    if (wanted_ == ir::kFloat32) {
      if (!is_8_bit(dtype)) return false;
      if (!input_quantization(main_, index)) {
        refuse("input", main_.value(param).name, "the model does not say its scale");
      }
      return true;
    }
    if (is_8_bit(dtype)) return true;
    if (dtype != ir::kFloat32) return false;
    const Quantizers& users = quantizers_[param.index];
    return !users.others && !users.nodes.empty() && integer_source(index).has_value();
  }

  // A float input that is nothing but quantised, always in the same way: the qnn.quantize.
  std::optional<PreNode> integer_source(size_t index) const {
    const Quantizers& users = quantizers_[main_.params()[index].index];
    const PreNode first(main_, users.nodes[0]);
    for (const size_t node : users.nodes) {
      const ir::Node& other = main_.nodes()[node];
      if (other.operands != first.node().operands ||
          main_.type(other.results[0]).dtype != main_.type(first.node().results[0]).dtype) {
        return std::nullopt;
      }
    }
    if (!is_8_bit(main_.type(first.node().results[0]).dtype)) return std::nullopt;
    return first;
  }

  void change_input(Rebuild& r, size_t index) {
    const PreValue param{main_.params()[index]};
    const std::string& name = main_.value(param.id).name;
    const ir::DType old = main_.type(param.id).dtype;
    if (wanted_ == ir::kFloat32) {
      const TensorQuantization quantization = *input_quantization(main_, index);
      r.replace(param, r.post().call("qnn.quantize",
                                     {r.param(index), r.post().scalar(quantization.scale),
                                      r.post().scalar(quantization.zero_point)},
                                     {{"out_dtype", ir::to_string(old)}, {"contract", contract_}}, name));
      float_inputs_.push_back(index);
      return;
    }
    if (is_8_bit(old)) {
      const TensorQuantization from = input_quantization(main_, index).value_or(unknown_quantization(old));
      const TensorQuantization outside = re_signed(from, old, wanted_);
      r.replace(param, requantize(r.post(), r.param(index), outside, from, old, contract_, name));
      if (input_quantization(main_, index)) input_quantization_.emplace_back(index, outside);
      return;
    }
    const PreNode quantize = *integer_source(index);
    const std::optional<TensorQuantization> known = quantization_of(r.pre(), quantize);
    if (!known && needs_scales_) refuse("input", name, "its scale is per axis");
    const ir::DType dtype = main_.type(quantize.node().results[0]).dtype;
    const TensorQuantization inside = known.value_or(unknown_quantization(dtype));
    const TensorQuantization outside = re_signed(inside, dtype, wanted_);
    const PostValue value =
        dtype == wanted_ ? r.param(index)
                         : requantize(r.post(), r.param(index), outside, inside, dtype, contract_, name);
    for (const size_t node : quantizers_[param.id.index].nodes) {
      r.replace(PreNode(main_, node).result(), value);
      replaced_[node] = true;
    }
    if (known) input_quantization_.emplace_back(index, outside);
  }

  PostValue change_output(Rebuild& r, size_t index) {
    const PreValue output{main_.outputs()[index]};
    const std::string& name =
        index < main_.output_names().size() ? main_.output_names()[index] : r.pre().name(output);
    const ir::DType old = main_.type(output.id).dtype;
    if (old == wanted_) return r[output];
    if (wanted_ == ir::kFloat32) {
      const std::optional<TensorQuantization> inside = output_quantization(main_, index);
      if (!is_8_bit(old) || !inside) {
        if (is_8_bit(old)) refuse("output", name, "the model does not say its scale");
        return r[output];
      }
      float_outputs_.push_back(index);
      return r.post().call("qnn.dequantize",
                           {r[output], r.post().scalar(inside->scale), r.post().scalar(inside->zero_point)},
                           {{"contract", contract_}}, name);
    }
    PreValue value = output;
    std::optional<TensorQuantization> inside = output_quantization(main_, index);
    if (old == ir::kFloat32) {
      const auto dequantize = r.pre().producer(output, "qnn.dequantize");
      if (!dequantize) {
        tell("output", name, "it is computed in float");
        return r[output];
      }
      value = dequantize->operand(0);
      inside = quantization_of(r.pre(), *dequantize);
    }
    const ir::DType dtype = main_.type(value.id).dtype;
    if (!is_8_bit(dtype)) {
      tell("output", name, "its integers are wider than 8 bits");
      return r[output];
    }
    if (inside) output_quantization_.emplace_back(index, re_signed(*inside, dtype, wanted_));
    if (dtype == wanted_) return r[value];
    const TensorQuantization from = inside.value_or(unknown_quantization(dtype));
    return requantize(r.post(), r[value], from, re_signed(from, dtype, wanted_), wanted_, contract_, name);
  }

  // Re-signing is the same for every scale.
  static TensorQuantization unknown_quantization(ir::DType dtype) {
    return {1.0f, static_cast<int32_t>(dtype.min())};
  }

  [[noreturn]] void refuse(const char* what, const std::string& name, const char* reason) const {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "io: " + std::string(what) + " '" + name + "' cannot be " +
                                                 ir::to_string(wanted_) + ": " + reason);
  }

  void tell(const char* what, const std::string& name, const char* reason) const {
    if (log_)
      log_(QPLAN_LOG_WARNING, "io: " + std::string(what) + " '" + name + "' is not changed: " + reason);
  }

  const ir::Function& main_;
  ir::DType wanted_;
  bool needs_scales_;
  const LogFunction& log_;
  std::string contract_;
  std::vector<Quantizers> quantizers_;  // by value
  std::vector<bool> replaced_;          // by node
  std::vector<std::pair<size_t, TensorQuantization>> input_quantization_, output_quantization_;
  std::vector<size_t> float_inputs_, float_outputs_;
};

}  // namespace

void set_io_dtype(ir::Module* module, std::string_view io, const LogFunction& log, bool needs_scales) {
  if (io.empty()) return;
  const std::optional<ir::DType> wanted = parse_dtype(io);
  if (!wanted) {
    throw PackError(QPLAN_INVALID_ARGUMENT,
                    "io '" + std::string(io) + "' is not known, expected 'int8', 'uint8' or 'float'");
  }
  module->replace_function(IoChange(module->main(), *wanted, needs_scales, log).run());
}

namespace {

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

// activations: of the network in canonical form, not what the layer reads: its source may have chosen the
// other signedness.
const char* tflite_multiplier_rule(const pattern::Pre& pre, PreNode product, ir::DType activations) {
  const size_t weight = *op::operand_with(*product.op(), op::OperandRole::kWeight);
  const size_t weight_scale = *op::scale_of(*product.op(), weight);
  const bool one_scale = pre.type(product.operand(weight_scale)).num_elements() == 1;
  const bool product_f32 = one_scale && (product.is("qnn.dense") || activations == ir::kUint8);
  return product_f32 ? "product_f32" : "product_f64";
}

// What a TFLite model says of floats, which TFLite computes as floats, under the contract that it has anyway.
bool means_tflites_floats(PreNode node, const std::string& attr, const std::string& contract) {
  if (contract != "tfl2" || op::attr_string(node.node(), "contract") != contract) return false;
  const std::string& value = op::attr_string(node.node(), attr);
  return value == "div_away" || value == "none";
}

ir::Attrs with_contract(const pattern::Pre& pre, PreNode node, const std::string& contract,
                        ir::DType activations) {
  ir::Attrs attrs = node.attrs();
  attrs.set("contract", contract);
  for (const op::AttrDef& attr : node.op()->attrs) {
    if (attr.role == op::AttrRole::kRounding && !means_tflites_floats(node, attr.name, contract))
      attrs.erase(attr.name);  // the contract's own
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
