// Operators of the caller's (qplan/custom_operator.h). ONNX does not say what such an operator's outputs are,
// so it must infer them.
#include "src/packer/import/custom_operator.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The attribute as numbers or a text.
op::CustomOption option_of(const Attribute& attribute) {
  op::CustomOption option = {.name = clean_name(attribute.name)};
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      option.numbers = {static_cast<double>(attribute.f)};
      break;
    case AttributeKind::kInt:
      option.numbers = {static_cast<double>(attribute.i)};
      break;
    case AttributeKind::kFloats:
      option.numbers.assign(attribute.floats.begin(), attribute.floats.end());
      break;
    case AttributeKind::kInts:
      for (const int64_t value : attribute.ints) option.numbers.push_back(static_cast<double>(value));
      break;
    case AttributeKind::kString:
      option.text = clean_name(attribute.s);
      break;
    default:
      throw Unsupported{
          cat("attribute ", in_quotes(attribute.name), ", which is neither numbers nor a text")};
  }
  return option;
}

}  // namespace

void import_custom(const OpContext& op, const qplan_custom_operator& custom_operator) {
  if (custom_operator.infer == nullptr) throw Unsupported{"outputs that the operator does not infer"};
  op::CustomAttributes custom;
  custom.name = custom_operator.name;
  const std::vector<Attribute>& attributes = op.all_attributes();
  if (attributes.size() > op::kMaxCustomOptions) throw Unsupported{cat(attributes.size(), " attributes")};
  for (const Attribute& attribute : attributes) custom.options.push_back(option_of(attribute));
  std::vector<Value> operands;
  std::vector<ir::ValueId> ids;
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    if (!op.has_input(i)) continue;
    operands.push_back(op.input(i));
    ids.push_back(op.graph().id(operands.back()));
  }
  if (ids.empty()) throw Unsupported{"no inputs"};
  if (op.num_outputs() == 0) throw Unsupported{"no outputs"};
  custom.outputs.resize(op.num_outputs());
  // Tensors of ONNX have no scale: operators beside them do.
  custom.scales.resize(ids.size() + op.num_outputs());
  custom.zero_points.resize(custom.scales.size());
  importer::ask_custom(custom_operator, op.graph().function(), ids, &custom);
  if (custom.state_bytes > 0) throw Unsupported{"a state between runs"};
  const std::vector<Value> results = op.emit_many("custom", operands, op::attrs_of(custom));
  for (size_t i = 0; i < results.size(); ++i) {
    if (op.has_output(i)) op.define(i, results[i]);
  }
}

}  // namespace qplan::onnx
