#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/op/op_def.h"
#include "src/packer/pattern/rebuild.h"
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

}  // namespace qplan::pipeline
