#include "src/packer/evaluate/evaluate.h"

#include <cstring>
#include <string>

#include "src/packer/error.h"
#include "src/packer/evaluate/make_plan.h"
#include "src/packer/evaluate/reference_session.h"
#include "src/packer/op/op_def.h"
#include "src/packer/target/lower.h"

namespace qplan::evaluate {

std::vector<ir::ConstantRef> run_function(const ir::Function& function,
                                          std::span<const ir::ConstantRef> inputs) {
  if (inputs.size() != function.params().size()) {
    throw PackError(QPLAN_INVALID_ARGUMENT, "evaluate: " + std::to_string(inputs.size()) + " inputs for " +
                                                std::to_string(function.params().size()) + " parameters");
  }
  const target::TargetProfile profile = target::reference_profile();
  const AlignedBytes plan =
      make_plan(target::lower_function(function, profile), profile, {}, {.strip = true});
  ReferenceSession session(plan.span());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const std::span<uint8_t> to = session.io(QPLAN_INPUT, i);
    const std::span<const uint8_t> from = inputs[i]->bytes();
    if (inputs[i]->type() != function.type(function.params()[i]) || from.size() != to.size()) {
      throw PackError(QPLAN_INVALID_ARGUMENT, "evaluate: input " + std::to_string(i) + " is " +
                                                  ir::to_string(inputs[i]->type()) + ", expected " +
                                                  ir::to_string(function.type(function.params()[i])));
    }
    std::memcpy(to.data(), from.data(), from.size());
  }
  session.invoke();
  std::vector<ir::ConstantRef> outputs;
  for (uint32_t i = 0; i < function.outputs().size(); ++i) {
    const std::span<const uint8_t> bytes = session.io(QPLAN_OUTPUT, i);
    outputs.push_back(std::make_shared<const ir::Constant>(function.type(function.outputs()[i]),
                                                           std::vector<uint8_t>(bytes.begin(), bytes.end())));
  }
  return outputs;
}

std::optional<std::vector<ir::ConstantRef>> evaluate_node(const ir::Node& node,
                                                          std::span<const ir::ConstantRef> operands) {
  if (node.op == nullptr) return std::nullopt;
  ir::Function function("main");
  std::vector<ir::ValueId> values;
  for (const ir::ConstantRef& operand : operands) values.push_back(function.add_constant(operand));
  const ir::Node& copy = function.add_node(*node.op, std::move(values), node.attrs, node.name);
  function.set_outputs(copy.results);
  try {
    return run_function(function, {});
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return std::nullopt;
  }
}

}  // namespace qplan::evaluate
