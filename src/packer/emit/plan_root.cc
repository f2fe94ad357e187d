#include "src/packer/emit/plan_root.h"

#include <algorithm>

#include "format/container.h"
#include "format/memory_layout.h"

namespace qplan::emit {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

class RootBuilder {
 public:
  explicit RootBuilder(const RootContents& contents) : contents_(contents) {}

  flatbuffers::DetachedBuffer run() {
    const auto targets = builder_.CreateVector(
        std::vector{format::CreateTarget(builder_, builder_.CreateString(contents_.profile.name),
                                         builder_.CreateString(contents_.profile.options))});
    const auto bank_vector = banks();
    const auto tensor_vector = tensors();
    const auto step_vector = steps();
    const auto functions = builder_.CreateVector(std::vector{function()});
    format::PlanBuilder plan(builder_);
    plan.add_targets(targets);
    plan.add_banks(bank_vector);
    plan.add_tensors(tensor_vector);
    plan.add_steps(step_vector);
    plan.add_functions(functions);
    if (contents_.arena != nullptr) plan.add_arena_lower_bound(contents_.arena->lower_bound);
    builder_.Finish(plan.Finish());
    return builder_.Release();
  }

 private:
  template <typename Table>
  using Tables = Offset<flatbuffers::Vector<Offset<Table>>>;

  Tables<format::Bank> banks() {
    std::vector<Offset<format::Bank>> banks;
    format::BankBuilder arena(builder_);
    arena.add_kind(format::BankKind_ARENA);
    arena.add_alignment(static_cast<uint32_t>(format::kArenaAlignment));
    arena.add_size(arena_bytes());
    banks.push_back(arena.Finish());
    if (contents_.constants.size != 0) {
      format::BankBuilder constants(builder_);
      constants.add_kind(format::BankKind_CONSTANT);
      constants.add_alignment(static_cast<uint32_t>(ConstantSegment::kAlignment));
      constants.add_size(contents_.constants.size);
      constants.add_file_offset(contents_.constants_offset);
      banks.push_back(constants.Finish());
    }
    return builder_.CreateVector(banks);
  }

  // A draft's arena holds any one tensor.
  uint64_t arena_bytes() const {
    if (contents_.arena != nullptr) return contents_.arena->size;
    uint64_t size = 0;
    for (const target::ProgramTensor& tensor : contents_.program.tensors) {
      size = std::max(size, static_cast<uint64_t>(tensor.type.size_bytes()));
    }
    return size;
  }

  Tables<format::Tensor> tensors() {
    std::vector<Offset<format::Tensor>> tensors;
    for (target::TensorId t = 0; t < contents_.program.tensors.size(); ++t) tensors.push_back(tensor(t));
    return builder_.CreateVector(tensors);
  }

  Offset<format::Tensor> tensor(target::TensorId t) {
    const target::ProgramTensor& tensor = contents_.program.tensors[t];
    Offset<format::Quantization> quantization = 0;
    if (!tensor.quantization.scales.empty()) {
      quantization = format::CreateQuantization(builder_, builder_.CreateVector(tensor.quantization.scales),
                                                builder_.CreateVector(tensor.quantization.zero_points),
                                                tensor.quantization.axis);
    }
    const auto shape = builder_.CreateVector(tensor.type.shape);
    format::TensorBuilder table(builder_);
    table.add_type_code(tensor.type.dtype.code);
    table.add_type_bits(tensor.type.dtype.bits);
    table.add_shape(shape);
    table.add_bank(tensor.is_constant() ? kConstantBank : kArenaBank);
    table.add_offset(offset_of(t));
    table.add_size(static_cast<uint64_t>(tensor.type.size_bytes()));
    if (contents_.arena != nullptr) {
      table.add_first_use(contents_.arena->lifetimes.first[t]);
      table.add_last_use(contents_.arena->lifetimes.last[t]);
    }
    if (!quantization.IsNull()) table.add_quantization(quantization);
    return table.Finish();
  }

  uint64_t offset_of(target::TensorId t) const {
    if (contents_.program.tensors[t].is_constant()) return contents_.constants.offsets[t];
    return contents_.arena == nullptr ? 0 : contents_.arena->offsets[t];
  }

  Tables<format::Step> steps() {
    std::vector<Offset<format::Step>> steps;
    for (uint32_t s = 0; s < contents_.program.steps.size(); ++s) {
      const Offset<format::KernelStep> body = kernel_step(s);
      steps.push_back(format::CreateStep(builder_, format::StepBody_KernelStep, body.Union()));
    }
    return builder_.CreateVector(steps);
  }

  Offset<format::KernelStep> kernel_step(uint32_t s) {
    const target::ProgramStep& step = contents_.program.steps[s];
    const auto inputs = builder_.CreateVector(step.inputs);
    const auto outputs = builder_.CreateVector(step.outputs);
    const Offset<void> params = step.write_params(builder_);
    format::KernelStepBuilder table(builder_);
    table.add_kernel(step.kernel);
    table.add_inputs(inputs);
    table.add_outputs(outputs);
    table.add_params_type(step.params_type);
    table.add_params(params);
    table.add_macs(step.macs);
    if (contents_.facts != nullptr) table.add_min_units_per_task(contents_.facts->min_units_per_task[s]);
    return table.Finish();
  }

  Offset<format::Function> function() {
    const auto name = builder_.CreateString(contents_.program.name);
    const auto inputs = builder_.CreateVector(contents_.program.inputs);
    const auto outputs = builder_.CreateVector(contents_.program.outputs);
    format::FunctionBuilder table(builder_);
    table.add_name(name);
    table.add_inputs(inputs);
    table.add_outputs(outputs);
    table.add_num_steps(static_cast<uint32_t>(contents_.program.steps.size()));
    if (contents_.facts != nullptr) table.add_scratch_per_worker(contents_.facts->scratch_per_worker);
    return table.Finish();
  }

  const RootContents& contents_;
  FlatBufferBuilder builder_;
};

}  // namespace

flatbuffers::DetachedBuffer build_root(const RootContents& contents) { return RootBuilder(contents).run(); }

}  // namespace qplan::emit
