#include "tests/support/plan_builder.h"

#include <dlpack/dlpack.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "format/names_generated.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"

namespace qplan::testing {
namespace {

const std::vector<uint32_t>* list_or_null(const std::vector<uint32_t>& list) {
  return list.empty() ? nullptr : &list;
}

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<format::NpuStep> npu_step(FlatBufferBuilder& builder, const StepSpec& step) {
  std::vector<Offset<format::NpuBind>> binds;
  for (const BindSpec& bind : step.npu->binds) {
    Offset<flatbuffers::Vector<uint64_t>> strides;
    if (bind.strides) strides = builder.CreateVector(*bind.strides);
    binds.push_back(format::CreateNpuBind(builder, bind.slot, bind.use, bind.index, bind.offset, bind.size,
                                          strides, bind.origin, bind.byte_stride, bind.fill, bind.flip,
                                          bind.block, bind.block_stride, bind.kept, bind.memory_class));
  }
  return format::CreateNpuStepDirect(builder, step.npu->target, step.npu->format, step.npu->blob,
                                     &step.inputs, &step.outputs, &binds, step.npu->num_alternative_steps,
                                     step.npu->num_operators, step.macs, step.npu->estimated_cycles, 0,
                                     step.npu->memory_class);
}

uint32_t features_of(const PlanSpec& spec) {
  uint32_t features = 0;
  for (const StepSpec& step : spec.steps) {
    if (!step.npu) continue;
    features |= format::kFeatureNpuRegions;
    for (const BindSpec& bind : step.npu->binds) features |= bind.block != 0 ? format::kFeatureBlocks : 0;
  }
  for (const BankSpec& bank : spec.banks) {
    features |= bank.kind == format::BankKind_DEVICE ? format::kFeatureNpuRegions : 0;
  }
  for (const FunctionSpec& function : spec.functions)
    features |= function.states.empty() ? 0 : format::kFeatureStates;
  return spec.required_features.value_or(features);
}

// The flatbuffer root; constants begin at the file offsets given per bank.
std::vector<uint8_t> build_root(const PlanSpec& spec, const std::vector<uint64_t>& file_offsets) {
  FlatBufferBuilder builder;
  std::vector<Offset<format::Bank>> banks;
  for (size_t i = 0; i < spec.banks.size(); ++i) {
    const BankSpec& bank = spec.banks[i];
    banks.push_back(format::CreateBank(builder, bank.kind, bank.alignment, bank.size,
                                       bank.file_offset.value_or(file_offsets[i]), bank.target,
                                       bank.memory_class));
  }
  std::vector<Offset<format::Tensor>> tensors;
  for (const TensorSpec& tensor : spec.tensors) {
    Offset<format::Quantization> quantization;
    if (tensor.quantization) {
      quantization =
          format::CreateQuantizationDirect(builder, &tensor.quantization->scales,
                                           &tensor.quantization->zero_points, tensor.quantization->axis);
    }
    tensors.push_back(format::CreateTensorDirect(builder, tensor.code, tensor.bits, &tensor.shape,
                                                 tensor.bank, tensor.offset, tensor.size, tensor.first_use,
                                                 tensor.last_use, quantization));
  }
  std::vector<Offset<format::Step>> steps;
  for (const StepSpec& step : spec.steps) {
    if (step.npu) {
      steps.push_back(format::CreateStep(builder, format::StepBody_NpuStep, npu_step(builder, step).Union()));
      continue;
    }
    std::pair<format::KernelParams, Offset<void>> params = {format::KernelParams_NONE, 0};
    if (step.params) params = step.params(builder);
    Offset<format::AddParams> residual = 0;
    if (step.residual) residual = Offset<format::AddParams>(step.residual(builder).second.o);
    const auto body = format::CreateKernelStepDirect(builder, step.kernel, &step.inputs, &step.outputs,
                                                     params.first, params.second, step.macs,
                                                     step.min_units_per_task, step.schedule, residual);
    steps.push_back(step.has_body ? format::CreateStep(builder, format::StepBody_KernelStep, body.Union())
                                  : format::CreateStep(builder));
  }
  std::vector<Offset<format::Function>> functions;
  for (const FunctionSpec& function : spec.functions) {
    std::vector<Offset<format::State>> states;
    for (const StateSpec& state : function.states)
      states.push_back(format::CreateState(builder, state.input, state.output, state.initial, state.fill));
    std::vector<Offset<format::SelfCheck>> checks;
    for (const SelfCheckSpec& check : function.self_checks)
      checks.push_back(format::CreateSelfCheckDirect(builder, check.seed, &check.outputs));
    functions.push_back(format::CreateFunctionDirect(
        builder, function.name.c_str(), &function.inputs, &function.outputs, function.first_step,
        function.num_steps, function.scratch_per_worker, list_or_null(function.scratch_offsets),
        list_or_null(function.scratch_sizes), function.overwrites_inputs,
        function.states.empty() ? nullptr : &states, checks.empty() ? nullptr : &checks,
        list_or_null(function.constant_checksums)));
  }
  std::vector<Offset<format::Target>> targets;
  for (const TargetSpec& target : spec.targets) {
    targets.push_back(format::CreateTargetDirect(builder, target.name.c_str(), target.options.c_str()));
  }
  std::vector<Offset<format::ConstantCopy>> copies;
  for (const CopySpec& copy : spec.copies)
    copies.push_back(format::CreateConstantCopy(builder, copy.tensor, copy.bank, copy.offset));
  builder.Finish(format::CreatePlanDirect(builder, &targets, &banks, &tensors, &steps, &functions, 0,
                                          copies.empty() ? nullptr : &copies));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::vector<uint8_t> build_names(const PlanSpec& spec) {
  FlatBufferBuilder builder;
  std::vector<Offset<flatbuffers::String>> tensors, steps;
  for (const TensorSpec& tensor : spec.tensors) tensors.push_back(builder.CreateString(tensor.name));
  for (const StepSpec& step : spec.steps) steps.push_back(builder.CreateString(step.name));
  builder.Finish(format::CreateNamesDirect(builder, &tensors, &steps, "test", "test", ""));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

uint64_t bytes_of(const std::vector<int64_t>& shape, uint8_t bits) {
  uint64_t size = bits / 8u;
  for (const int64_t extent : shape) size *= static_cast<uint64_t>(extent);
  return size;
}

}  // namespace

AlignedBytes::AlignedBytes(size_t size, size_t alignment, uint8_t fill) : size_(size) {
  // Not aligned_alloc: it rounds sizes up, and a sanitizer would miss what reaches beyond the last byte.
  void* bytes = nullptr;
  if (posix_memalign(&bytes, alignment, size == 0 ? 1 : size) != 0) std::abort();
  memset(bytes, fill, size);
  bytes_ = {static_cast<uint8_t*>(bytes), free};
}

AlignedBytes::AlignedBytes(const void* bytes, size_t size) : AlignedBytes(size) {
  if (size > 0) memcpy(data(), bytes, size);
}

PlanSpec::PlanSpec() {
  banks.resize(2);
  banks[1].kind = format::BankKind_CONSTANT;
}

uint32_t PlanSpec::add_tensor(std::vector<int64_t> shape, std::string name, uint8_t code, uint8_t bits) {
  TensorSpec tensor;
  tensor.code = code;
  tensor.bits = bits;
  tensor.size = bytes_of(shape, bits);
  tensor.shape = std::move(shape);
  tensor.offset = round_up(banks[0].size, 64);
  tensor.name = std::move(name);
  banks[0].size = tensor.offset + tensor.size;
  tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t PlanSpec::add_constant(std::vector<int64_t> shape, const std::vector<uint8_t>& bytes,
                                std::string name, uint8_t code, uint8_t bits) {
  BankSpec& bank = banks[1];
  TensorSpec tensor;
  tensor.code = code;
  tensor.bits = bits;
  tensor.size = bytes_of(shape, bits);
  tensor.shape = std::move(shape);
  tensor.bank = 1;
  tensor.offset = round_up(bank.size, 64);
  tensor.name = std::move(name);
  bank.bytes.resize(tensor.offset);
  bank.bytes.insert(bank.bytes.end(), bytes.begin(), bytes.end());
  bank.size = bank.bytes.size();
  tensors.push_back(std::move(tensor));
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t PlanSpec::add_step(uint16_t kernel, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                            ParamsWriter params, std::string name) {
  StepSpec step;
  step.kernel = kernel;
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  step.params = std::move(params);
  step.name = std::move(name);
  steps.push_back(std::move(step));
  return static_cast<uint32_t>(steps.size() - 1);
}

uint32_t PlanSpec::add_device(std::string target, uint32_t alignment) {
  targets.push_back({std::move(target), ""});
  BankSpec bank;
  bank.kind = format::BankKind_DEVICE;
  bank.alignment = alignment;
  bank.target = static_cast<uint32_t>(targets.size() - 1);
  banks.push_back(bank);
  return bank.target;
}

uint32_t PlanSpec::add_device_bank(uint32_t target, format::MemoryClass memory_class) {
  BankSpec bank = banks[bank_of(target)];
  bank.size = 0;
  bank.memory_class = memory_class;
  banks.push_back(bank);
  return static_cast<uint32_t>(banks.size() - 1);
}

uint64_t PlanSpec::add_range(uint32_t bank, uint64_t size) {
  const uint64_t offset = round_up(banks[bank].size, 64);
  banks[bank].size = offset + size;
  return offset;
}

uint32_t PlanSpec::bank_of(uint32_t target) const {
  for (uint32_t i = 0; i < banks.size(); ++i) {
    if (banks[i].kind == format::BankKind_DEVICE && banks[i].target == target) return i;
  }
  std::abort();
}

void PlanSpec::move_to_device(uint32_t tensor, uint32_t target) {
  tensors[tensor].bank = bank_of(target);
  tensors[tensor].offset = add_range(tensors[tensor].bank, tensors[tensor].size);
}

uint32_t PlanSpec::add_region(uint32_t target, uint32_t format, const std::vector<uint8_t>& blob,
                              std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                              uint32_t num_alternative_steps, std::string name) {
  StepSpec step;
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  step.name = std::move(name);
  step.npu.emplace();
  step.npu->target = target;
  step.npu->format = format;
  step.npu->blob = add_constant({static_cast<int64_t>(blob.size())}, blob, "blob", kDLUInt);
  step.npu->num_alternative_steps = num_alternative_steps;
  steps.push_back(std::move(step));
  return static_cast<uint32_t>(steps.size() - 1);
}

void PlanSpec::add_main(std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                        uint64_t scratch_per_worker) {
  FunctionSpec function;
  function.inputs = std::move(inputs);
  function.outputs = std::move(outputs);
  function.num_steps = static_cast<uint32_t>(steps.size());
  function.scratch_per_worker = scratch_per_worker;
  functions.push_back(std::move(function));
}

ParamsWriter copy_params(uint8_t reserved) {
  return [=](FlatBufferBuilder& builder) {
    return std::pair(format::KernelParams_NoParams, format::CreateNoParams(builder, reserved).Union());
  };
}
ParamsWriter concat_params(uint32_t axis) {
  return [=](FlatBufferBuilder& builder) {
    return std::pair(format::KernelParams_ConcatParams, format::CreateConcatParams(builder, axis).Union());
  };
}
ParamsWriter split_params(uint32_t axis) {
  return [=](FlatBufferBuilder& builder) {
    return std::pair(format::KernelParams_SplitParams, format::CreateSplitParams(builder, axis).Union());
  };
}

AlignedBytes build_plan(const PlanSpec& spec) {
  // The root's size does not depend on the file offsets as long as none is zero, which would be left out.
  const std::vector<uint64_t> any(spec.banks.size(), 64);
  const uint64_t root_end = sizeof(format::Header) + build_root(spec, any).size();
  std::vector<uint64_t> file_offsets = any;
  uint64_t end = root_end;
  for (size_t i = 0; i < spec.banks.size(); ++i) {
    if (spec.banks[i].kind != format::BankKind_CONSTANT) continue;
    file_offsets[i] = round_up(end, format::kFileAlignment);
    end = file_offsets[i] + spec.banks[i].bytes.size();
  }
  const std::vector<uint8_t> root = build_root(spec, file_offsets);
  format::Header header = {};
  memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.version_major = format::kVersionMajor;
  header.version_minor = format::kVersionMinor;
  header.required_features = features_of(spec);
  header.root_size = static_cast<uint32_t>(root.size());
  header.content_size = round_up(end, format::kFileAlignment);
  std::vector<uint8_t> names;
  if (spec.with_names) names = build_names(spec);
  header.file_size = header.content_size + names.size();

  AlignedBytes plan(static_cast<size_t>(header.file_size));
  memcpy(plan.data(), &header, sizeof(header));
  memcpy(plan.data() + sizeof(header), root.data(), root.size());
  for (size_t i = 0; i < spec.banks.size(); ++i) {
    const std::vector<uint8_t>& bytes = spec.banks[i].bytes;
    if (spec.banks[i].kind != format::BankKind_CONSTANT || bytes.empty()) continue;
    memcpy(plan.data() + file_offsets[i], bytes.data(), bytes.size());
  }
  if (!names.empty()) memcpy(plan.data() + header.content_size, names.data(), names.size());
  update_digest(&plan);
  return plan;
}

void update_digest(AlignedBytes* plan) {
  if (plan->size() < sizeof(format::Header)) return;
  Sha256 sha;
  sha.update(plan->data() + sizeof(format::Header), plan->size() - sizeof(format::Header));
  sha.finish(plan->data() + offsetof(format::Header, digest));
}

}  // namespace qplan::testing
