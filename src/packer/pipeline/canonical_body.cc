#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/op/op_def.h"
#include "src/packer/pipeline/stages.h"

namespace qplan::pipeline {
namespace {

bool is(const ir::Node& node, const char* op) { return node.op != nullptr && node.op->name == op; }

ir::Attrs without_contract(const ir::Attrs& attrs) {
  ir::Attrs result;
  for (const auto& [name, value] : attrs) {
    if (name != "contract" && name != "rule" && name != "multiplier") result.set(name, value);
  }
  return result;
}

class BodyBuilder {
 public:
  explicit BodyBuilder(const ir::Function& function)
      : main_(function), body_(is_main() ? "body" : function.name()), map_(function.num_values()) {}

  ir::Function build() {
    if (!is_main()) return copy_all();
    for (const ir::ValueId param : main_.params()) {
      if (!is_float(param)) map_[param.index] = body_.add_param(next_param(), main_.type(param));
    }
    std::vector<bool> is_border(main_.num_values(), false);
    for (const ir::ValueId output : main_.outputs()) {
      const ir::Node* producer = main_.producer(output);
      if (producer != nullptr && is(*producer, "qnn.dequantize")) is_border[output.index] = true;
    }
    // A dequantised output that something else reads too is no border.
    for (const ir::Node& node : main_.nodes()) {
      for (const ir::ValueId operand : node.operands) is_border[operand.index] = false;
    }
    for (const ir::Node& node : main_.nodes()) {
      if (is(node, "qnn.quantize") && main_.value(node.operands[0]).kind == ir::ValueKind::kParam) {
        map_[node.results[0].index] = body_.add_param(next_param(), main_.type(node.results[0]));
      } else if (!is_border[node.results[0].index]) {
        copy(node);
      }
    }
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : main_.outputs()) {
      outputs.push_back(mapped(is_border[output.index] ? main_.producer(output)->operands[0] : output));
    }
    body_.set_outputs(std::move(outputs));
    return std::move(body_);
  }

 private:
  bool is_main() const { return main_.name() == "main"; }

  // A function that main calls has no border.
  ir::Function copy_all() {
    for (const ir::ValueId param : main_.params())
      map_[param.index] = body_.add_param(next_param(), main_.type(param));
    for (const ir::Node& node : main_.nodes()) copy(node);
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : main_.outputs()) outputs.push_back(mapped(output));
    body_.set_outputs(std::move(outputs));
    return std::move(body_);
  }

  bool is_float(ir::ValueId value) const { return main_.type(value).dtype.is_float(); }
  std::string next_param() { return "in" + std::to_string(body_.params().size()); }

  ir::ValueId mapped(ir::ValueId value) {
    ir::ValueId& to = map_[value.index];
    if (!to.valid()) {
      const ir::Value& known = main_.value(value);
      // A float input that something other than qnn.quantize reads.
      to = known.kind == ir::ValueKind::kParam ? body_.add_param(next_param(), known.type)
                                               : body_.add_constant(known.constant);
    }
    return to;
  }

  void copy(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId operand : node.operands) operands.push_back(mapped(operand));
    std::vector<ir::ValueId> results;
    if (node.op != nullptr) {
      results =
          body_.add_node(*node.op, std::move(operands), without_contract(node.attrs), node.name).results;
    } else {
      std::vector<ir::TensorType> types;
      for (const ir::ValueId result : node.results) types.push_back(main_.type(result));
      results = body_.add_call(node.callee, std::move(operands), std::move(types), node.name).results;
    }
    for (size_t i = 0; i < results.size(); ++i) map_[node.results[i].index] = results[i];
  }

  const ir::Function& main_;
  ir::Function body_;
  std::vector<ir::ValueId> map_;
};

}  // namespace

ir::Function canonical_body(const ir::Function& main) { return BodyBuilder(main).build(); }

std::vector<ir::Function> canonical_bodies(const ir::Module& module) {
  std::vector<ir::Function> bodies;
  bodies.push_back(canonical_body(module.main()));
  for (const auto& function : module.functions()) {
    if (function->name() != "main") bodies.push_back(canonical_body(*function));
  }
  std::sort(bodies.begin() + 1, bodies.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return bodies;
}

}  // namespace qplan::pipeline
