// Verification of steps, of cascades, whose layers are steps themselves, and of functions.
#include "format/container.h"
#include "format/verify.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace qplan::format {
namespace {

enum KernelId : uint16_t {
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) kKernel_##family = id,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};

constexpr uint8_t kKernelParams[] = {
    KernelParams_NONE,
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) KernelParams_##params,
#include "format/kernels.def"
#undef QPLAN_KERNEL
};
#define QPLAN_KERNEL(id, family, descriptor, params, args_bytes) \
  static_assert(kKernelParams[id] == KernelParams_##params, "the numbers have no gap");
#include "format/kernels.def"
#undef QPLAN_KERNEL

// The table a kernel's parameters are; NONE for a kernel this build has never heard of.
KernelParams params_of_kernel(uint16_t kernel) {
  return kernel < sizeof(kKernelParams) ? static_cast<KernelParams>(kKernelParams[kernel])
                                        : KernelParams_NONE;
}

using Indices = flatbuffers::Vector<uint32_t>;

// Whether the tensor is among the others: looks from *next on, then at those before, and leaves *next after
// it. The layers of most cascades name its inputs in its order.
bool find(const Indices* tensors, uint32_t tensor, uint32_t* next) {
  const uint32_t count = count_of(tensors);
  uint32_t at = *next;
  for (uint32_t left = count; left > 0; --left, ++at) {
    if (at >= count) at = 0;
    if (tensors->Get(at) != tensor) continue;
    *next = at + 1;
    return true;
  }
  return false;
}

}  // namespace

Error& PlanVerifier::corrupt_step(uint32_t index) {
  error_.set(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(index)) << "plan: step " << index;
  if (names_ != nullptr && index < count_of(names_->steps())) {
    error_ << Named{names_->steps()->Get(index)->c_str()};
  }
  return error_ << ": ";
}

bool PlanVerifier::steps() {
  const auto* steps = plan_.steps();
  for (uint32_t i = 0; i < num_steps_; ++i) {
    if (!step(i, *steps->Get(i))) return false;
  }
  return true;
}

bool PlanVerifier::step(uint32_t index, const Step& step) {
  const TableFields fields(&step);
  const void* body = fields.table(Step::VT_BODY);
  const auto type = fields.scalar<uint8_t>(Step::VT_BODY_TYPE);
  if (body != nullptr) {
    if (type == StepBody_KernelStep) return kernel_step(index, *static_cast<const KernelStep*>(body));
    if (type == StepBody_NpuStep) {
      if (npu_step_ != nullptr) return (this->*npu_step_)(index, *static_cast<const NpuStep*>(body));
      corrupt_step(index) << "is for a device, which this program runs no steps of";
      return false;
    }
  }
  corrupt_step(index) << "unknown kind " << uint32_t{type};
  return false;
}

bool PlanVerifier::kernel_params(uint32_t index, const TableFields& body) {
  const auto kernel = body.scalar<uint16_t>(KernelStep::VT_KERNEL);
  if (kernel == 0) {
    corrupt_step(index) << "names no kernel";
    return false;
  }
  // A kernel that only a newer build knows is refused by the session, by number; nobody reads its parameters.
  const KernelParams expected = params_of_kernel(kernel);
  const auto found = body.scalar<uint8_t>(KernelStep::VT_PARAMS_TYPE);
  if (!body.has(KernelStep::VT_PARAMS) || (expected != KernelParams_NONE && found != expected)) {
    corrupt_step(index) << "kernel " << uint32_t{kernel} << " with parameters of type " << uint32_t{found}
                        << ", expected " << static_cast<uint32_t>(expected);
    return false;
  }
  if (body.has(KernelStep::VT_RESIDUAL) && expected != KernelParams_NONE && kernel != kKernel_conv2d) {
    corrupt_step(index) << "kernel " << uint32_t{kernel} << " has a residual, which only kernel "
                        << uint32_t{kKernel_conv2d} << " adds";
    return false;
  }
  return true;
}

bool PlanVerifier::kernel_step(uint32_t index, const KernelStep& body) {
  const TableFields fields(&body);
  if (!kernel_params(index, fields)) return false;
  const auto* inputs = fields.vector<uint32_t>(KernelStep::VT_INPUTS);
  const auto* outputs = fields.vector<uint32_t>(KernelStep::VT_OUTPUTS);
  const uint32_t num_inputs = count_of(inputs), num_outputs = count_of(outputs);
  if (num_inputs > kMaxStepInputs || num_outputs > kMaxStepOutputs) {
    corrupt_step(index) << num_inputs << " inputs and " << num_outputs << " outputs, expected at most "
                        << kMaxStepInputs << " and " << kMaxStepOutputs;
    return false;
  }
  if (num_outputs == 0) {
    corrupt_step(index) << "has no output";
    return false;
  }
  return step_tensors(index, inputs, "input", true) && step_tensors(index, outputs, "output", false) &&
         (fields.scalar<uint8_t>(KernelStep::VT_PARAMS_TYPE) != KernelParams_CascadeParams ||
          cascade(index, fields));
}

bool PlanVerifier::step_tensors(uint32_t index, const flatbuffers::Vector<uint32_t>* tensors,
                                const char* what, bool may_be_constant) {
  const uint32_t count = count_of(tensors);
  if (!spend(count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t tensor = tensors->Get(i);
    if (tensor >= num_tensors_) {
      corrupt_step(index) << what << " " << i << " is tensor " << tensor << " of " << num_tensors_;
      return false;
    }
    if (!may_be_constant && is_constant(tensor)) {
      corrupt_step(index) << what << " " << i << " (tensor " << tensor << ") is a constant";
      return false;
    }
  }
  return true;
}

bool PlanVerifier::is_constant(uint32_t tensor) const {
  const TableFields fields(tensors_->Get(tensor));
  return banks_->Get(fields.scalar<uint32_t>(Tensor::VT_BANK))->kind() == BankKind_CONSTANT;
}

// The tensors of a cascade's layers are the cascade's own or the tile before and after them.
bool PlanVerifier::cascade(uint32_t index, const TableFields& body) {
  const TableFields params(body.table(KernelStep::VT_PARAMS));
  const auto* layers = params.vector<flatbuffers::Offset<KernelStep>>(CascadeParams::VT_LAYERS);
  const auto* tiles = params.vector<flatbuffers::Offset<Tensor>>(CascadeParams::VT_TILES);
  const uint32_t num_layers = count_of(layers), num_tiles = count_of(tiles);
  if (num_layers < 2 || num_layers > kMaxCascadeLayers || num_tiles != num_layers - 1) {
    corrupt_step(index) << num_layers << " layers with " << num_tiles << " tiles, expected 2 to "
                        << kMaxCascadeLayers << " and a tile between any two";
    return false;
  }
  CascadeTensors tensors = {body.vector<uint32_t>(KernelStep::VT_INPUTS), 0, 0};
  const auto* outputs = body.vector<uint32_t>(KernelStep::VT_OUTPUTS);
  const uint32_t num_inputs = count_of(tensors.inputs), num_outputs = count_of(outputs);
  if (num_inputs > kMaxCascadeInputs || num_outputs != 1) {
    corrupt_step(index) << num_inputs << " inputs and " << num_outputs << " outputs, expected at most "
                        << kMaxCascadeInputs << " and 1";
    return false;
  }
  for (uint32_t t = 0; t < num_tiles; ++t) {
    if (!cascade_tile(index, *tiles->Get(t), t)) return false;
  }
  for (uint32_t s = 0; s < num_layers; ++s) {
    tensors.output = s + 1 == num_layers ? outputs->Get(0) : num_tensors_ + s;
    if (!cascade_layer(index, TableFields(layers->Get(s)), s, &tensors)) return false;
  }
  return true;
}

bool PlanVerifier::cascade_tile(uint32_t index, const Tensor& tensor, uint32_t tile_index) {
  const TensorRecord tile((TableFields(&tensor)));
  if (dtype_name(tile.type_code, tile.type_bits) == nullptr) {
    corrupt_step(index) << "tile " << tile_index << " has an unknown dtype";
    return false;
  }
  return spend(tile.rank) && tensor_shape(num_tensors_ + tile_index, tile);
}

bool PlanVerifier::cascade_layer(uint32_t index, const TableFields& layer, uint32_t layer_index,
                                 CascadeTensors* tensors) {
  if (!kernel_params(index, layer)) return false;
  if (layer.scalar<uint8_t>(KernelStep::VT_PARAMS_TYPE) == KernelParams_CascadeParams) {
    corrupt_step(index) << "layer " << layer_index << " is a cascade itself";
    return false;
  }
  const auto* inputs = layer.vector<uint32_t>(KernelStep::VT_INPUTS);
  const auto* outputs = layer.vector<uint32_t>(KernelStep::VT_OUTPUTS);
  const uint32_t num_tensors = num_tensors_, num_inputs = count_of(inputs);
  const bool is_first = layer_index == 0;
  if (!spend(num_inputs)) return false;
  if (num_inputs > kMaxCascadeInputs) {
    corrupt_step(index) << "layer " << layer_index << " has " << num_inputs << " inputs, expected at most "
                        << kMaxCascadeInputs;
    return false;
  }
  uint32_t num_tiles = 0;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    const uint32_t tensor = inputs->Get(i);
    if (!is_first && tensor == num_tensors + layer_index - 1) {
      ++num_tiles;
    } else if (!find(tensors->inputs, tensor, &tensors->next_input)) {
      corrupt_step(index) << "layer " << layer_index << ": input " << i << " (tensor " << tensor
                          << ") is neither the tile before it nor an input of the cascade";
      return false;
    }
  }
  if (num_tiles != (is_first ? 0u : 1u)) {
    corrupt_step(index) << "layer " << layer_index << " reads the tile before it " << num_tiles
                        << " times, expected once";
    return false;
  }
  if (count_of(outputs) != 1 || outputs->Get(0) != tensors->output) {
    corrupt_step(index) << "layer " << layer_index << " does not write tensor " << tensors->output
                        << " alone";
    return false;
  }
  return true;
}

bool PlanVerifier::functions() {
  const uint32_t count = count_of(plan_.functions());
  if (count == 0 || count > kMaxFunctions) {
    corrupt() << count << " functions, expected 1 to " << kMaxFunctions;
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!function(i, *plan_.functions()->Get(i))) return false;
  }
  return true;
}

bool PlanVerifier::function(uint32_t index, const Function& function) {
  if (!function_name(index, function) ||
      !function_io(index, function.inputs(), kMaxFunctionInputs, "input") ||
      !function_io(index, function.outputs(), kMaxFunctionOutputs, "output")) {
    return false;
  }
  const uint32_t num_steps = num_steps_;
  const char* name = function.name()->c_str();
  if (function.first_step() > num_steps || function.num_steps() > num_steps - function.first_step()) {
    corrupt() << "function " << Quoted{name} << ": " << function.num_steps() << " steps from step "
              << function.first_step() << " on reach beyond the plan's " << num_steps_;
    return false;
  }
  // The last region before the end is the only one that the end could cut.
  const uint32_t end = function.first_step() + function.num_steps();
  for (uint32_t i = has_npu_steps_ ? end : 0; i > function.first_step(); --i) {
    const NpuStep* npu = plan_.steps()->Get(i - 1)->body_as_NpuStep();
    if (npu == nullptr) continue;
    if (npu->num_alternative_steps() <= end - i) break;
    corrupt() << "function " << Quoted{name} << ": ends before step " << i - 1 + npu->num_alternative_steps()
              << ", the last fallback step of step " << i - 1;
    return false;
  }
  if (!function_scratch(function) || !function_states(function) || !function_self_checks(function))
    return false;
  const uint64_t scratch = function.scratch_per_worker();
  if (scratch % kFileAlignment != 0 || scratch > kMaxScratchBytes) {
    corrupt() << "function " << Quoted{name} << ": " << scratch
              << " bytes of scratch per worker, expected a multiple of 64 up to " << kMaxScratchBytes;
    return false;
  }
  return true;
}

bool PlanVerifier::function_scratch(const Function& function) {
  const auto *offsets = function.scratch_offsets(), *sizes = function.scratch_sizes();
  const uint32_t count = count_of(offsets);
  const char* name = function.name()->c_str();
  if (count != count_of(sizes) || (count != 0 && count != function.num_steps())) {
    corrupt() << "function " << Quoted{name} << ": " << count << " offsets and " << count_of(sizes)
              << " sizes of scratch for " << function.num_steps() << " steps";
    return false;
  }
  if (!spend(2 * count)) return false;
  const uint64_t arena = banks_->Get(main_bank_)->size();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = offsets->Get(i), size = sizes->Get(i);
    if (offset % kSmallAlignment == 0 && offset + size <= arena) continue;
    corrupt() << "function " << Quoted{name} << ": scratch of step " << i << " is bytes " << offset << " to "
              << offset + size << " of an arena of " << arena << ", expected a multiple of "
              << uint32_t{kSmallAlignment} << " within it";
    return false;
  }
  return true;
}

bool PlanVerifier::function_self_checks(const Function& function) {
  const uint32_t count = count_of(function.self_checks()), num_steps = function.num_steps();
  const uint32_t expected = count == 0 ? 0 : num_steps;
  const char* name = function.name()->c_str();
  if (count > kMaxSelfChecks || count_of(function.constant_checksums()) != expected) {
    corrupt() << "function " << Quoted{name} << ": " << count << " self-checks and "
              << count_of(function.constant_checksums()) << " checksums of constants, expected at most "
              << kMaxSelfChecks << " and " << expected;
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const SelfCheck& check = *function.self_checks()->Get(i);
    if (!spend(1 + num_steps)) return false;
    if (check.seed() != 0 && count_of(check.outputs()) == num_steps) continue;
    corrupt() << "function " << Quoted{name} << ": self-check " << i << " has seed " << check.seed()
              << " and " << count_of(check.outputs()) << " checksums, expected a seed other than 0 and "
              << num_steps;
    return false;
  }
  return true;
}

bool PlanVerifier::function_states(const Function& function) {
  const uint32_t count = count_of(function.states());
  const char* name = function.name()->c_str();
  if (count > kMaxFunctionStates || !spend(count)) {
    corrupt() << "function " << Quoted{name} << ": " << count << " states, expected at most "
              << kMaxFunctionStates;
    return false;
  }
  if (count > 0 && (header_.required_features & kFeatureStates) == 0) {
    corrupt() << "function " << Quoted{name} << ": has states, but the header lacks feature bit 1";
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const State& state = *function.states()->Get(i);
    const auto fail = [&]() -> Error& {
      return corrupt() << "function " << Quoted{name} << ": state " << i << ": ";
    };
    if (state.input() >= num_tensors_ || state.output() >= num_tensors_ ||
        (state.initial() != kNoTensorIndex && state.initial() >= num_tensors_)) {
      fail() << "tensors " << state.input() << ", " << state.output() << " and " << state.initial() << " of "
             << num_tensors_;
      return false;
    }
    const Tensor& input = *tensors_->Get(state.input());
    const auto same_type = [&](const Tensor& other) {
      bool same = input.type_code() == other.type_code() && input.type_bits() == other.type_bits() &&
                  rank_of(input) == rank_of(other);
      for (uint32_t axis = 0; same && axis < rank_of(input); ++axis) {
        same = input.shape()->Get(axis) == other.shape()->Get(axis);
      }
      return same;
    };
    const auto kind_of = [&](const Tensor& tensor) { return banks_->Get(tensor.bank())->kind(); };
    const Tensor& output = *tensors_->Get(state.output());
    if (kind_of(input) != BankKind_ARENA || kind_of(output) != BankKind_ARENA) {
      fail() << "tensors " << state.input() << " and " << state.output() << " are not both in an arena";
      return false;
    }
    if (state.input() == state.output() || !same_type(output)) {
      fail() << "tensors " << state.input() << " and " << state.output()
             << ", expected two of the same dtype and shape";
      return false;
    }
    if (state.initial() == kNoTensorIndex) continue;
    const Tensor& initial = *tensors_->Get(state.initial());
    if (kind_of(initial) == BankKind_CONSTANT && same_type(initial)) continue;
    fail() << "its initial value, tensor " << state.initial()
           << ", is no constant of the dtype and shape of tensor " << state.input();
    return false;
  }
  return true;
}

bool PlanVerifier::function_name(uint32_t index, const Function& function) {
  const flatbuffers::String* name = function.name();
  const uint32_t size = count_of(name);
  bool valid = size >= 1 && size <= kMaxFunctionNameBytes;
  for (uint32_t i = 0; valid && i < size; ++i) valid = name->c_str()[i] != '\0';
  if (!valid) {
    corrupt() << "function " << index << ": expected a name of 1 to " << kMaxFunctionNameBytes << " bytes";
    return false;
  }
  if (index == 0 && !same_text(name->c_str(), kMainFunction)) {
    corrupt() << "the first function is " << Quoted{name->c_str()} << ", expected '" << kMainFunction << "'";
    return false;
  }
  for (uint32_t i = 0; i < index; ++i) {
    if (same_text(plan_.functions()->Get(i)->name()->c_str(), name->c_str())) {
      corrupt() << "functions " << i << " and " << index << " are both called " << Quoted{name->c_str()};
      return false;
    }
  }
  return true;
}

bool PlanVerifier::function_io(uint32_t index, const flatbuffers::Vector<uint32_t>* tensors, uint32_t limit,
                               const char* what) {
  const uint32_t count = count_of(tensors);
  const char* name = plan_.functions()->Get(index)->name()->c_str();
  if (count > limit) {
    corrupt() << "function " << Quoted{name} << ": " << count << " " << what << "s, expected at most "
              << limit;
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t tensor = tensors->Get(i);
    if (tensor >= num_tensors_) {
      corrupt() << "function " << Quoted{name} << ": " << what << " " << i << " is tensor " << tensor
                << " of " << num_tensors_;
      return false;
    }
    if (is_constant(tensor)) {
      corrupt() << "function " << Quoted{name} << ": " << what << " " << i << " (tensor " << tensor
                << ") is a constant";
      return false;
    }
  }
  return true;
}

}  // namespace qplan::format
