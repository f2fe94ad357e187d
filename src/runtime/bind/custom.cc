// Operators of the application's (qplan/custom_operator.h), which the kernel set has by name.
#include <dlpack/dlpack.h>
#include <string.h>

#include <new>

#include "format/plan_view.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

using format::CustomParams;

// What an option lookup goes over.
constexpr uint32_t kMaxOptions = 256;

struct CustomArgs {
  StepView step;
  const qplan_custom_operator* op = nullptr;  // null: a step that is asked about, and never run
};

const CustomParams& params_of(const StepView& step) { return *step.step->params_as_CustomParams(); }
uint32_t num_states(const StepView& step) { return params_of(step).state_bytes() > 0 ? 1 : 0; }

// ---- options ----

const format::CustomOption* find_option(const qplan_custom_call* call, const char* name) {
  const auto* options = static_cast<const CustomParams*>(call->options)->options();
  for (uint32_t i = 0; i < format::count_of(options); ++i) {
    const char* found = options->Get(i)->name()->c_str();
    size_t k = 0;
    while (found[k] != '\0' && found[k] == name[k]) ++k;
    if (found[k] == name[k]) return options->Get(i);
  }
  return nullptr;
}
uint32_t num_numbers(const qplan_custom_call* call, const char* name) {
  const format::CustomOption* option = find_option(call, name);
  return option == nullptr ? 0 : format::count_of(option->numbers());
}
// Entries of a plan's vectors need not be aligned.
double number_of(const format::CustomOption& option, uint32_t index) {
  double value = 0;
  memcpy(&value, option.numbers()->Data() + index * sizeof(value), sizeof(value));
  return value;
}
double number(const qplan_custom_call* call, const char* name, uint32_t index) {
  const format::CustomOption* option = find_option(call, name);
  return option == nullptr || index >= format::count_of(option->numbers()) ? 0 : number_of(*option, index);
}
const char* text(const qplan_custom_call* call, const char* name) {
  const format::CustomOption* option = find_option(call, name);
  return option == nullptr || option->text() == nullptr ? nullptr : option->text()->c_str();
}

// ---- calls ----

DLDataType dl_type(Dtype dtype) {
  const auto bits = static_cast<uint8_t>(8 * dtype_bytes(dtype));
  const uint8_t code = dtype == Dtype::kF32 ? kDLFloat : dtype == Dtype::kU8 ? kDLUInt : kDLInt;
  return {code, bits, 1};
}

// A call on the stack.
struct Call {
  qplan_custom_call call = {};
  qplan_custom_tensor tensors[QPLAN_CUSTOM_MAX_OPERANDS] = {};

  // has_data: what run() gets; else constants alone have an address.
  Call(const StepView& step, bool has_data, void* scratch) {
    const CustomParams& params = params_of(step);
    const uint32_t states = num_states(step);
    call.struct_size = sizeof(call);
    call.num_inputs = step.num_inputs() - states;
    call.num_outputs = step.num_outputs() - states;
    call.name = params.name()->c_str();
    call.inputs = tensors;
    call.outputs = tensors + call.num_inputs;
    call.scratch_bytes = params.scratch_bytes();
    call.state_bytes = params.state_bytes();
    call.options = &params;
    call.num_numbers = num_numbers;
    call.number = number;
    call.text = text;
    for (uint32_t i = 0; i < call.num_inputs + call.num_outputs; ++i) {
      const bool is_input = i < call.num_inputs;
      const StepTensor from = is_input ? step.input(i) : step.output(i - call.num_inputs);
      qplan_custom_tensor& to = tensors[i];
      to.shape = from.extents;
      to.ndim = static_cast<int32_t>(from.rank);
      to.dtype = dl_type(from.dtype);
      to.size_bytes = from.size_bytes;
      to.is_constant = from.is_constant ? 1 : 0;
      to.data = has_data || from.is_constant ? from.data : nullptr;
      to.scale = params.scales()->Get(i);
      to.zero_point = params.zero_points()->Get(i);
    }
    if (!has_data) return;
    call.scratch = scratch;
    if (states == 0) return;
    call.state = step.input_data(call.num_inputs);
    call.next_state = step.output_data(call.num_outputs);
  }
};

qplan_status prepare(const StepView& step, const qplan_custom_operator& op, qplan_custom_needs* needs) {
  const Call call(step, false, nullptr);
  *needs = {};
  needs->struct_size = sizeof(*needs);
  const qplan_status status = op.prepare(&op, &call.call, needs);
  needs->error[sizeof(needs->error) - 1] = '\0';
  return status;
}

const qplan_custom_operator* find_operator(const StepView& step) {
  if (step.kernels == nullptr) return nullptr;
  const char* name = params_of(step).name()->c_str();
  for (uint32_t i = 0; i < step.kernels->num_operators; ++i) {
    const char* found = step.kernels->operators[i]->name;
    size_t k = 0;
    while (found[k] != '\0' && found[k] == name[k]) ++k;
    if (found[k] == name[k]) return step.kernels->operators[i];
  }
  return nullptr;
}

// ---- checks ----

bool check_options(const StepCheck& check, const CustomParams& params) {
  const uint32_t count = format::count_of(params.options());
  if (count > kMaxOptions) return check.range("number of options", count, 0, kMaxOptions);
  for (uint32_t i = 0; i < count; ++i) {
    const format::CustomOption& option = *params.options()->Get(i);
    if (option.name() == nullptr) return check.fail() << "option " << i << " has no name";
    for (uint32_t k = 0; k < format::count_of(option.numbers()); ++k) {
      const double value = number_of(option, k);
      if (value - value != 0) return check.fail() << "option " << i << ": number " << k << " is not finite";
    }
  }
  return true;
}

bool check_quantization(const StepCheck& check, const CustomParams& params, uint32_t num_operands) {
  const uint32_t scales = format::count_of(params.scales()),
                 zero_points = format::count_of(params.zero_points());
  if (scales != num_operands || zero_points != num_operands) {
    return check.fail() << scales << " scales and " << zero_points
                        << " zero points, expected one for each of " << num_operands << " inputs and outputs";
  }
  for (uint32_t i = 0; i < num_operands; ++i) {
    const float scale = params.scales()->Get(i);
    if (!(scale >= 0 && scale <= kMaxScale))
      return check.fail() << "scale " << i << " is not a number from 0 to 2^100";
  }
  return true;
}

bool check_states(const StepCheck& check, const StepView& step) {
  const uint64_t bytes = params_of(step).state_bytes();
  if (bytes == 0) return true;
  if (step.num_inputs() == 0 || step.num_outputs() < 2)
    return check.fail() << "it has a state, but no input and output for it";
  Shape before, after;
  const uint32_t u8 = dtype_bit(Dtype::kU8);
  if (!check.input(step.num_inputs() - 1, "state", u8, 1, &before) ||
      !check.output(step.num_outputs() - 1, "next state", u8, 1, &after))
    return false;
  if (before[0] == bytes && after[0] == bytes) return true;
  return check.fail() << "its state has " << before[0] << " and " << after[0] << " bytes, expected " << bytes;
}

bool check_operator(const StepCheck& check, const StepView& step) {
  const CustomParams& params = params_of(step);
  const qplan_custom_operator* op = find_operator(step);
  if (op == nullptr) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "operator '" << params.name()->c_str()
           << "' is not in the kernel set; give it: qplan_kernels_with_custom() in C, custom_operators= in "
              "Python, --custom-operators LIB with the command";
  }
  qplan_custom_needs needs;
  const qplan_status status = prepare(step, *op, &needs);
  if (status != QPLAN_OK) {
    return check.fail(status < 0 ? status : qplan_status{QPLAN_INVALID_ARGUMENT})
           << "operator '" << params.name()->c_str()
           << "' refuses: " << (needs.error[0] == '\0' ? "it does not say why" : needs.error);
  }
  if (needs.scratch_bytes > params.scratch_bytes() || needs.state_bytes != params.state_bytes()) {
    return check.fail() << "operator '" << params.name()->c_str() << "' needs " << needs.scratch_bytes
                        << " bytes of scratch and " << needs.state_bytes << " of state, the plan has "
                        << params.scratch_bytes() << " and " << params.state_bytes()
                        << "; pack the model with this version of the operator";
  }
  return true;
}

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.params(format::KernelParams_CustomParams)) return false;
  const CustomParams& params = params_of(step);
  if (params.name() == nullptr || params.name()->size() == 0) return check.fail() << "it names no operator";
  if (params.scratch_bytes() > format::kMaxScratchBytes)
    return check.fail() << params.scratch_bytes() << " bytes of scratch";
  if (!check_states(check, step)) return false;
  const uint32_t states = num_states(step), num_inputs = step.num_inputs() - states,
                 num_outputs = step.num_outputs() - states;
  if (!check.range("number of inputs and outputs", int64_t{num_inputs} + num_outputs, 1,
                   QPLAN_CUSTOM_MAX_OPERANDS) ||
      !check_quantization(check, params, num_inputs + num_outputs) || !check_options(check, params)) {
    return false;
  }
  for (uint32_t i = 0; i < num_inputs; ++i) {
    if (!check.input(i, "input", kDtypesAny8To64, kAnyRank, nullptr)) return false;
  }
  for (uint32_t i = 0; i < num_outputs; ++i) {
    if (!check.output(i, "output", kDtypesAny8To64, kAnyRank, nullptr)) return false;
  }
  // A step of no plan is asked how it is scheduled: the operator is for those that run it.
  return step.plan == nullptr || check_operator(check, step);
}

qplan_status bind(const StepView& step, bool checked, CustomArgs& args, Error* error) {
  const StepCheck check(step, "custom", error);
  if (checked && !check_step(check, step)) return check.status();
  args.step = step;
  args.op = find_operator(step);
  return QPLAN_OK;
}

// What the operator says of itself; the bytes of its tensors where it cannot be asked.
uint64_t work(const CustomArgs& args) {
  uint64_t bytes = 1;
  for (uint32_t i = 0; i < args.step.num_inputs(); ++i) bytes += args.step.input(i).size_bytes;
  for (uint32_t i = 0; i < args.step.num_outputs(); ++i) bytes += args.step.output(i).size_bytes;
  qplan_custom_needs needs;
  if (args.op == nullptr || prepare(args.step, *args.op, &needs) != QPLAN_OK) return bytes;
  return needs.work > 0 ? needs.work : 1;
}

// The operator as the family's only variant: one work item, on one thread.
struct Operator {
  static Refusal accepts(const CustomArgs&) { return Refusal::kNone; }
  static size_t scratch_bytes(const CustomArgs& args) {
    return static_cast<size_t>(round_up(params_of(args.step).scratch_bytes(), uint64_t{64}));
  }
  static uint32_t work_items(const CustomArgs&) { return 1; }
  static void run(const CustomArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    if (begin == end) return;
    const Call call(args.step, true, scratch);
    args.op->run(args.op, &call.call);
  }
};

constexpr KernelVariant kVariants[] = {
    make_variant<CustomArgs, Operator::accepts, Operator::scratch_bytes, Operator::work_items, Operator::run>(
        "custom", QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kCustomFamily =
    make_family<CustomArgs, bind, never_in_place, work>(kKernel_custom, "custom", kVariants);
constexpr KernelFamily kCustomFamilyReference =
    make_family<CustomArgs, bind, never_in_place, work>(kKernel_custom, "custom", kVariants);

}  // namespace qplan

const qplan_kernel_set* qplan_kernels_with_custom(qplan_kernel_set_storage* storage,
                                                  const qplan_kernel_set* base,
                                                  const qplan_custom_operator* const* operators,
                                                  uint32_t num_operators) {
  static_assert(sizeof(qplan_kernel_set) <= sizeof(qplan_kernel_set_storage),
                "qplan_kernel_set_storage is ABI");
  if (storage == nullptr || base == nullptr || (operators == nullptr && num_operators > 0)) return nullptr;
  for (uint32_t i = 0; i < num_operators; ++i) {
    const qplan_custom_operator* op = operators[i];
    if (op == nullptr || op->struct_size < sizeof(*op) || op->name == nullptr || op->prepare == nullptr ||
        op->run == nullptr) {
      return nullptr;
    }
  }
  return new (storage) qplan_kernel_set{base->families, base->num_families, num_operators, operators};
}
