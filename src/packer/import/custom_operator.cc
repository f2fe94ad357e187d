#include "src/packer/import/custom_operator.h"

#include <algorithm>
#include <iterator>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/ir/cat.h"

namespace qplan::importer {
namespace {

using op::CustomAttributes;
using op::CustomOption;

const CustomOption* find_option(const qplan_custom_call* call, const char* name) {
  for (const CustomOption& option : static_cast<const CustomAttributes*>(call->options)->options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}
uint32_t num_numbers(const qplan_custom_call* call, const char* name) {
  const CustomOption* option = find_option(call, name);
  return option == nullptr ? 0 : static_cast<uint32_t>(option->numbers.size());
}
double number(const qplan_custom_call* call, const char* name, uint32_t index) {
  const CustomOption* option = find_option(call, name);
  return option == nullptr || index >= option->numbers.size() ? 0 : option->numbers[index];
}
const char* text(const qplan_custom_call* call, const char* name) {
  const CustomOption* option = find_option(call, name);
  return option == nullptr || !option->text ? nullptr : option->text->c_str();
}

qplan_custom_tensor tensor_of(const ir::TensorType& type, const ir::ConstantRef& constant) {
  qplan_custom_tensor tensor = {};
  tensor.shape = type.shape.empty() ? nullptr : type.shape.data();
  tensor.ndim = static_cast<int32_t>(type.shape.size());
  tensor.dtype = {type.dtype.code, type.dtype.bits, type.dtype.lanes};
  tensor.size_bytes = static_cast<uint64_t>(type.size_bytes());
  tensor.is_constant = constant != nullptr ? 1 : 0;
  if (constant != nullptr) tensor.data = const_cast<uint8_t*>(constant->bytes().data());  // NOLINT: read only
  return tensor;
}

// What the operator answers; throws its refusal.
template <typename Ask>
qplan_custom_needs ask(const qplan_custom_operator& op, const Ask& ask) {
  qplan_custom_needs needs = {};
  needs.struct_size = sizeof(needs);
  const qplan_status status = ask(&needs);
  needs.error[sizeof(needs.error) - 1] = '\0';
  if (status == QPLAN_OK) return needs;
  throw PackError(QPLAN_MODEL_INVALID,
                  cat("custom operator ", in_quotes(op.name), " refuses: ",
                      needs.error[0] == '\0' ? "it does not say why" : clean_name(needs.error)));
}

}  // namespace

const qplan_custom_operator* find_custom(std::span<const qplan_custom_operator* const> operators,
                                         std::string_view name) {
  for (const qplan_custom_operator* op : operators) {
    if (op->name == name) return op;
  }
  return nullptr;
}

void ask_custom(const qplan_custom_operator& op, const ir::Function& function,
                const std::vector<ir::ValueId>& operands, CustomAttributes* custom) {
  const size_t count = operands.size() + custom->outputs.size();
  if (count > QPLAN_CUSTOM_MAX_OPERANDS)
    throw Unsupported{cat(count, " inputs and outputs, more than ", uint32_t{QPLAN_CUSTOM_MAX_OPERANDS})};
  std::vector<qplan_custom_tensor> tensors;
  for (const ir::ValueId operand : operands) {
    const ir::TensorType& type = function.type(operand);
    if (type.shape.size() > std::size(qplan_custom_type{}.shape) ||
        std::ranges::find(op::kDeclaredDTypes, type.dtype) == op::kDeclaredDTypes.end())
      throw Unsupported{cat("an input that is ", type)};
    tensors.push_back(tensor_of(type, function.value(operand).constant));
  }
  qplan_custom_call call = {};
  call.struct_size = sizeof(call);
  call.num_inputs = static_cast<uint32_t>(operands.size());
  call.num_outputs = static_cast<uint32_t>(custom->outputs.size());
  call.name = custom->name.c_str();
  call.options = custom;
  call.num_numbers = num_numbers;
  call.number = number;
  call.text = text;
  const auto place = [&] {
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].scale = custom->scales[i];
      tensors[i].zero_point = custom->zero_points[i];
    }
    call.inputs = tensors.data();
    call.outputs = tensors.data() + operands.size();
  };
  if (op.infer != nullptr) {
    std::vector<qplan_custom_type> types(custom->outputs.size());
    place();
    (void)ask(op, [&](qplan_custom_needs* needs) { return op.infer(&op, &call, types.data(), needs); });
    for (size_t i = 0; i < types.size(); ++i) {
      const qplan_custom_type& type = types[i];
      if (type.ndim < 0 || type.ndim > static_cast<int32_t>(std::size(type.shape)))
        throw PackError(QPLAN_MODEL_INVALID,
                        cat("custom operator ", in_quotes(op.name), " infers rank ", type.ndim));
      custom->outputs[i] = {{type.dtype.code, type.dtype.bits, type.dtype.lanes},
                            {type.shape, type.shape + type.ndim}};
    }
  }
  for (const ir::TensorType& type : custom->outputs) {
    const std::string error = ir::type_error(type);
    if (!error.empty()) throw PackError(QPLAN_MODEL_INVALID, error);
    tensors.push_back(tensor_of(type, nullptr));
  }
  place();
  const qplan_custom_needs needs =
      ask(op, [&](qplan_custom_needs* to) { return op.prepare(&op, &call, to); });
  if (needs.scratch_bytes > INT32_MAX || needs.state_bytes > INT32_MAX)
    throw Unsupported{"2^31 bytes or more of scratch or state"};
  custom->scratch_bytes = needs.scratch_bytes;
  custom->state_bytes = needs.state_bytes;
}

}  // namespace qplan::importer
