#include "src/packer/write/plan_writer.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "format/container.h"
#include "format/memory_layout.h"
#include "format/names_generated.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::write {
namespace {

constexpr const char* kProducer = "qplan 0.1.0";

flatbuffers::DetachedBuffer build_names(const target::Program& program, const PlanNames& provenance) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<std::string> tensors, steps;
  for (const target::ProgramTensor& tensor : program.tensors) tensors.push_back(tensor.name);
  for (const target::ProgramStep& step : program.steps) steps.push_back(step.name);
  const auto tensor_names = builder.CreateVectorOfStrings(tensors);
  const auto step_names = builder.CreateVectorOfStrings(steps);
  const auto producer = builder.CreateString(kProducer);
  const auto source = builder.CreateString(provenance.source);
  const auto digest = builder.CreateString(provenance.source_digest);
  flatbuffers::Offset<flatbuffers::String> explain = 0;
  if (!provenance.explain.empty()) explain = builder.CreateString(provenance.explain);
  flatbuffers::Offset<flatbuffers::String> metadata = 0;
  if (!provenance.metadata.empty()) metadata = builder.CreateString(provenance.metadata);
  flatbuffers::Offset<flatbuffers::Vector<float>> scales = 0;
  flatbuffers::Offset<flatbuffers::Vector<int32_t>> zero_points = 0;
  if (std::ranges::any_of(program.tensors, [](const auto& tensor) { return tensor.scale != 0; })) {
    std::vector<float> all_scales;
    std::vector<int32_t> all_zero_points;
    for (const target::ProgramTensor& tensor : program.tensors) {
      all_scales.push_back(tensor.scale);
      all_zero_points.push_back(tensor.zero_point);
    }
    scales = builder.CreateVector(all_scales);
    zero_points = builder.CreateVector(all_zero_points);
  }
  format::NamesBuilder names(builder);
  names.add_tensors(tensor_names);
  names.add_steps(step_names);
  names.add_producer(producer);
  names.add_source(source);
  names.add_source_digest(digest);
  if (!provenance.explain.empty()) names.add_explain(explain);
  if (!provenance.metadata.empty()) names.add_metadata(metadata);
  if (!scales.IsNull()) {
    names.add_scales(scales);
    names.add_zero_points(zero_points);
  }
  builder.Finish(names.Finish());
  return builder.Release();
}

uint64_t constants_begin(uint64_t root_size) {
  return round_up(sizeof(format::Header) + root_size, format::kFileAlignment);
}

// The root tells where the constants begin, which follows from its own size.
flatbuffers::DetachedBuffer build_final_root(RootContents contents) {
  contents.constants_offset = format::kFileAlignment;
  const uint64_t size = build_root(contents).size();
  contents.constants_offset = constants_begin(size);
  flatbuffers::DetachedBuffer root = build_root(contents);
  if (root.size() != size || size > UINT32_MAX) {
    throw PackError(QPLAN_INTERNAL, "write: the plan's root has " + std::to_string(root.size()) +
                                        " bytes, not " + std::to_string(size));
  }
  return root;
}

void put(const AlignedBytes& file, uint64_t at, const void* bytes, size_t size) {
  if (size != 0) std::memcpy(file.data() + at, bytes, size);
}

void check_limits(const target::Program& program, const memory::Arena& arena) {
  if (arena.size > format::kMaxArenaBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the activations need " + std::to_string(arena.size) +
                                                 " bytes, a plan has at most " +
                                                 std::to_string(format::kMaxArenaBytes));
  }
  if (kFirstDeviceBank + arena.devices.size() + arena.areas.size() > format::kMaxBanks) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    std::to_string(arena.devices.size()) + " banks of devices, a plan has room for " +
                        std::to_string(format::kMaxBanks - kFirstDeviceBank - arena.areas.size()) +
                        (arena.areas.empty() ? "" : " beside its memory areas"));
  }
  for (size_t d = 0; d < arena.devices.size(); ++d) {
    if (arena.devices[d].size > format::kMaxArenaBytes) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      "the buffers of '" + program.devices[arena.devices[d].key.device].name + "' need " +
                          std::to_string(arena.devices[d].size) + " bytes, a plan has at most " +
                          std::to_string(format::kMaxArenaBytes));
    }
  }
}

// Whether a step has what version 1.8 added: a cascade that begins with a conversion, or has a layer between
// two others that computes in the tile of the one before it; a quantize or dequantize that moves channels.
bool needs_1_8(const target::Program& program, const target::ProgramStep& step) {
  for (size_t i = 0; i < step.layers.size(); ++i) {
    const uint16_t kernel = step.layers[i].kernel;
    const bool converts = kernel == kKernel_quantize || kernel == kKernel_transpose;
    const bool is_elementwise = kernel == kKernel_lut8 || kernel == kKernel_add || kernel == kKernel_sub;
    if (converts || (is_elementwise && i > 0 && i + 1 < step.layers.size())) return true;
  }
  if (!step.layers.empty()) return false;
  return (step.kernel == kKernel_quantize || step.kernel == kKernel_dequantize) &&
         program.tensors[step.inputs[0]].type.shape != program.tensors[step.outputs[0]].type.shape;
}

// Whether a step writes over the beginning of a larger input, which version 1.8 added, too; of cascades 1.13.
bool overwrites_larger(const target::Program& program, const memory::Lifetimes& lifetimes,
                       const target::ProgramStep& step) {
  return std::ranges::any_of(step.outputs, [&](target::TensorId output) {
    const uint32_t replaced = lifetimes.replaces[output];
    return replaced != memory::kNone &&
           program.tensors[output].type.size_bytes() != program.tensors[replaced].type.size_bytes();
  });
}

// Whether a device has channels in blocks.
bool has_blocks(const target::Program& program) {
  return std::ranges::any_of(program.steps, [](const target::ProgramStep& step) {
    const auto is_divided = [](const target::RegionSlot& slot) { return slot.arrangement.block != 0; };
    return step.npu != nullptr && std::ranges::any_of(step.npu->slots, is_divided);
  });
}

// Whether it, or a layer of a cascade, says how many products meet in 16 bits.
bool proves_int16_groups(const target::ProgramStep& step) {
  if (std::ranges::any_of(step.layers, proves_int16_groups)) return true;
  const auto* conv = step.params.get_if<target::Conv2dParams>();
  const auto* dense = step.params.get_if<target::FullyConnectedParams>();
  return (conv != nullptr && conv->int16_groups != 0) || (dense != nullptr && dense->int16_groups != 0);
}

// Whether it, or a layer of a cascade, has rests of weights after the entries of its bias.
bool has_weight_rests(const target::Program& program, const target::ProgramStep& step) {
  const auto has_rests = [&](const target::ProgramStep& layer) { return has_weight_rests(program, layer); };
  if (std::ranges::any_of(step.layers, has_rests)) return true;
  const auto* conv = step.params.get_if<target::Conv2dParams>();
  if (conv == nullptr || step.kernel != kKernel_conv2d || step.inputs.size() < 4) return false;
  const auto entries = [&](size_t input) { return program.tensors[step.inputs[input]].type.num_elements(); };
  return entries(2) > entries(3);  // than there are multipliers
}

// Whether it, or a layer of a cascade, is a convolution whose bias another step computes.
bool has_computed_bias(const target::Program& program, const target::ProgramStep& step) {
  const auto has_bias = [&](const target::ProgramStep& layer) { return has_computed_bias(program, layer); };
  if (std::ranges::any_of(step.layers, has_bias)) return true;
  return step.npu == nullptr && step.kernel == kKernel_conv2d &&
         !program.tensors[step.inputs[2]].is_constant();
}

// Whether it is a cascade with layers that version 1.16 added.
bool has_layers_of_1_16(const target::ProgramStep& step) {
  constexpr uint16_t kAdded[] = {kKernel_avg_pool2d, kKernel_max_pool2d, kKernel_resize_bilinear,
                                 kKernel_arg_max};
  return std::ranges::any_of(step.layers, [&](const target::ProgramStep& layer) {
    return std::ranges::find(kAdded, layer.kernel) != std::end(kAdded);
  });
}

// The version that added what a plan has (format/README.md): other plans keep the bytes that they had before.
uint16_t version_minor(const target::Program& program, const memory::Arena& arena, const SelfChecks& checks) {
  const auto states_classes = [](const target::ProgramStep& step) {
    if (step.npu == nullptr) return false;
    return step.npu->memory_class != format::MemoryClass_ANY ||
           std::ranges::any_of(step.npu->slots, [](const target::RegionSlot& slot) {
             return slot.memory_class != format::MemoryClass_ANY;
           });
  };
  const auto overwrites = [&](const target::ProgramStep& step) {
    return overwrites_larger(program, arena.lifetimes, step);
  };
  const auto computes_bias = [&](const target::ProgramStep& step) {
    return has_computed_bias(program, step);
  };
  if (std::ranges::any_of(program.steps, has_layers_of_1_16)) return 16;
  if (std::ranges::any_of(program.steps, computes_bias)) return 15;
  const auto has_rests = [&](const target::ProgramStep& step) { return has_weight_rests(program, step); };
  if (std::ranges::any_of(program.steps, has_rests)) return 14;
  const auto is_cascade_of_1_13 = [&](const target::ProgramStep& step) {
    const auto* cascade = step.params.get_if<target::CascadeParams>();
    return cascade != nullptr && (cascade->binds_in_scratch || overwrites(step));
  };
  if (std::ranges::any_of(program.steps, is_cascade_of_1_13)) return 13;
  if (std::ranges::any_of(program.steps, proves_int16_groups)) return 12;
  if (std::ranges::any_of(program.steps, states_classes)) return 11;
  const auto has_kept = [](const std::vector<uint32_t>& slots) {
    return std::ranges::any_of(slots, [](uint32_t kept) { return kept != 0; });
  };
  if (has_blocks(program) || std::ranges::any_of(arena.kept, has_kept)) return 10;
  if (!arena.copies.empty()) return 9;
  const auto is_new = [&](const target::ProgramStep& step) { return needs_1_8(program, step); };
  if (std::ranges::any_of(program.steps, is_new) || std::ranges::any_of(program.steps, overwrites)) return 8;
  const bool keeps_arguments = std::ranges::any_of(program.steps, [](const target::ProgramStep& step) {
    const auto* cascade = step.params.get_if<target::CascadeParams>();
    return cascade != nullptr && cascade->keeps_arguments;
  });
  if (!checks.runs.empty()) return 7;
  return program.states.empty() && !keeps_arguments ? 5 : 6;
}

}  // namespace

AlignedBytes write_plan(const target::Program& program, const target::TargetProfile& profile,
                        const memory::Arena& arena, const PlanNames& provenance, const SelfChecks& checks) {
  check_limits(program, arena);
  const ConstantSegment constants = lay_out_constants(program);
  const flatbuffers::DetachedBuffer root = build_final_root(
      {.program = program, .profile = profile, .constants = constants, .arena = arena, .checks = checks});

  format::Header header = {};
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.version_major = format::kVersionMajor;
  header.version_minor = version_minor(program, arena, checks);
  if (!program.devices.empty()) header.required_features |= format::kFeatureNpuRegions;
  if (!program.states.empty()) header.required_features |= format::kFeatureStates;
  if (has_blocks(program)) header.required_features |= format::kFeatureBlocks;
  header.root_size = static_cast<uint32_t>(root.size());
  header.content_size = constants.size == 0 ? sizeof(format::Header) + root.size()
                                            : constants_begin(root.size()) + constants.size;
  header.file_size = header.content_size;
  flatbuffers::DetachedBuffer names;
  const uint64_t names_begin = round_up(header.content_size, format::kFileAlignment);
  if (!provenance.strip) {
    names = build_names(program, provenance);
    header.file_size = names_begin + names.size();
  }

  AlignedBytes file(static_cast<size_t>(header.file_size));
  put(file, sizeof(header), root.data(), root.size());
  for (const target::TensorId t : constants.first_tensor) {
    const std::vector<uint8_t>& bytes = *program.tensors[t].constant;
    put(file, constants_begin(root.size()) + constants.offsets[t], bytes.data(), bytes.size());
  }
  if (!provenance.strip) put(file, names_begin, names.data(), names.size());
  Sha256 digest;
  digest.update(file.data() + sizeof(header), file.size() - sizeof(header));
  digest.finish(header.digest);
  put(file, 0, &header, sizeof(header));
  return file;
}

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

class RootBuilder {
 public:
  explicit RootBuilder(const RootContents& contents) : contents_(contents) {}

  flatbuffers::DetachedBuffer run() {
    const auto target_vector = targets();
    const auto bank_vector = banks();
    const auto tensor_vector = tensors();
    const auto step_vector = steps();
    const auto functions = builder_.CreateVector(std::vector{function()});
    Tables<format::ConstantCopy> copy_vector = 0;
    if (!contents_.arena.copies.empty()) copy_vector = copies();
    format::PlanBuilder plan(builder_);
    plan.add_targets(target_vector);
    plan.add_banks(bank_vector);
    plan.add_tensors(tensor_vector);
    plan.add_steps(step_vector);
    plan.add_functions(functions);
    plan.add_arena_lower_bound(contents_.arena.lower_bound);
    if (!copy_vector.IsNull()) plan.add_copies(copy_vector);
    builder_.Finish(plan.Finish());
    return builder_.Release();
  }

 private:
  template <typename Table>
  using Tables = Offset<flatbuffers::Vector<Offset<Table>>>;

  Tables<format::Target> targets() {
    std::vector<Offset<format::Target>> targets;
    const auto add = [&](const std::string& name, const std::string& options) {
      // One after the other: compilers evaluate arguments in orders of their own, and bytes would follow
      // them.
      const auto options_text = builder_.CreateString(options);
      const auto name_text = builder_.CreateString(name);
      targets.push_back(format::CreateTarget(builder_, name_text, options_text));
    };
    add(contents_.profile.name, contents_.profile.options);
    for (const target::ProgramDevice& device : contents_.program.devices) add(device.name, device.options);
    return builder_.CreateVector(targets);
  }

  Tables<format::Bank> banks() {
    std::vector<Offset<format::Bank>> banks;
    format::BankBuilder arena(builder_);
    arena.add_kind(format::BankKind_ARENA);
    arena.add_alignment(static_cast<uint32_t>(format::kArenaAlignment));
    arena.add_size(contents_.arena.size);
    banks.push_back(arena.Finish());
    if (contents_.constants.size != 0) {
      format::BankBuilder constants(builder_);
      constants.add_kind(format::BankKind_CONSTANT);
      constants.add_alignment(static_cast<uint32_t>(ConstantSegment::kAlignment));
      constants.add_size(contents_.constants.size);
      constants.add_file_offset(contents_.constants_offset);
      banks.push_back(constants.Finish());
    }
    for (uint32_t d = 0; d < contents_.arena.devices.size(); ++d) {
      const memory::DeviceBank& bank = contents_.arena.devices[d];
      format::BankBuilder device(builder_);
      device.add_kind(format::BankKind_DEVICE);
      device.add_alignment(bank.alignment);
      device.add_size(bank.size);
      device.add_target(kFirstDeviceTarget + bank.key.device);
      device.add_memory_class(bank.key.memory_class);
      banks.push_back(device.Finish());
    }
    for (const memory::AreaBank& bank : contents_.arena.areas) {
      format::BankBuilder area(builder_);
      area.add_kind(format::BankKind_ARENA);
      area.add_alignment(static_cast<uint32_t>(format::kArenaAlignment));
      area.add_size(bank.size);
      banks.push_back(area.Finish());
    }
    return builder_.CreateVector(banks);
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
      const auto zero_points = builder_.CreateVector(tensor.quantization.zero_points);
      const auto scales = builder_.CreateVector(tensor.quantization.scales);
      quantization = format::CreateQuantization(builder_, scales, zero_points, tensor.quantization.axis);
    }
    const auto shape = builder_.CreateVector(tensor.type.shape);
    format::TensorBuilder table(builder_);
    // The IR's bool is a bit of its own kind; a plan has a byte for it, as DLPack has.
    const bool is_bool = tensor.type.dtype == ir::kBool;
    table.add_type_code(is_bool ? format::kDLBoolCode : tensor.type.dtype.code);
    table.add_type_bits(is_bool ? 8 : tensor.type.dtype.bits);
    table.add_shape(shape);
    table.add_bank(bank_of(t));
    table.add_offset(offset_of(t));
    table.add_size(static_cast<uint64_t>(tensor.type.size_bytes()));
    table.add_first_use(contents_.arena.lifetimes.first[t]);
    table.add_last_use(contents_.arena.lifetimes.last[t]);
    if (!quantization.IsNull()) table.add_quantization(quantization);
    return table.Finish();
  }

  uint32_t bank_of(target::TensorId t) const {
    if (contents_.program.tensors[t].is_constant()) return kConstantBank;
    if (contents_.arena.device_of[t] == memory::kNone) return bank_of_area(contents_.arena.area(t));
    return kFirstDeviceBank + contents_.arena.device_of[t];
  }

  // Areas but the first come after the banks of constants and of devices.
  uint32_t bank_of_area(uint32_t area) const {
    if (area == 0) return kArenaBank;
    return (contents_.constants.size == 0 ? 1 : 2) + static_cast<uint32_t>(contents_.arena.devices.size()) +
           area - 1;
  }

  Tables<format::ConstantCopy> copies() {
    std::vector<Offset<format::ConstantCopy>> tables;
    for (const memory::ConstantCopy& copy : contents_.arena.copies) {
      tables.push_back(format::CreateConstantCopy(builder_, copy.tensor, bank_of_area(copy.area), copy.offset,
                                                  copy.bytes_read, copy.saved_cost));
    }
    return builder_.CreateVector(tables);
  }

  uint64_t offset_of(target::TensorId t) const {
    if (contents_.program.tensors[t].is_constant()) return contents_.constants.offsets[t];
    return contents_.arena.offsets[t];
  }

  Tables<format::Step> steps() {
    std::vector<Offset<format::Step>> steps;
    for (uint32_t s = 0; s < contents_.program.steps.size(); ++s) {
      if (contents_.program.steps[s].npu != nullptr) {
        steps.push_back(format::CreateStep(builder_, format::StepBody_NpuStep, npu_step(s).Union()));
        continue;
      }
      const Offset<format::KernelStep> body =
          target::pack_kernel_step(contents_.program.steps[s], contents_.program.tensors.size(), builder_);
      steps.push_back(format::CreateStep(builder_, format::StepBody_KernelStep, body.Union()));
    }
    return builder_.CreateVector(steps);
  }

  Offset<format::NpuStep> npu_step(uint32_t s) {
    const target::ProgramStep& step = contents_.program.steps[s];
    const target::NpuRegion& region = *step.npu;
    const auto inputs = builder_.CreateVector(step.inputs);
    const auto outputs = builder_.CreateVector(step.outputs);
    std::vector<Offset<format::NpuBind>> binds;
    for (uint32_t i = 0; i < region.slots.size(); ++i) {
      binds.push_back(
          npu_bind(step, region.slots[i], contents_.arena.slot_offsets[s][i], contents_.arena.kept[s][i]));
    }
    const auto bind_vector = builder_.CreateVector(binds);
    format::NpuStepBuilder table(builder_);
    table.add_target(kFirstDeviceTarget + region.target);
    table.add_format(region.format);
    table.add_blob(region.blob);
    table.add_inputs(inputs);
    table.add_outputs(outputs);
    table.add_binds(bind_vector);
    table.add_num_alternative_steps(region.num_alternative_steps);
    table.add_num_operators(region.num_operators);
    table.add_macs(step.macs);
    table.add_estimated_cycles(region.estimated_cycles);
    table.add_program_bytes(region.program_bytes);
    table.add_memory_class(region.memory_class);
    return table.Finish();
  }

  Offset<format::NpuBind> npu_bind(const target::ProgramStep& step, const target::RegionSlot& slot,
                                   uint64_t offset, uint32_t kept) {
    const uint32_t tensor = memory::slot_tensor(step, slot);
    const bool copied =
        tensor != memory::kNone && contents_.arena.device_of[tensor] != contents_.arena.bank_of(step, slot);
    Offset<flatbuffers::Vector<uint64_t>> strides = 0;
    if (copied) strides = builder_.CreateVector(slot.arrangement.strides);
    format::NpuBindBuilder table(builder_);
    table.add_slot(slot.slot);
    table.add_use(slot.use);
    table.add_index(slot.index);
    table.add_offset(offset);
    table.add_size(slot.arrangement.size);
    table.add_memory_class(slot.memory_class);
    if (!copied) return table.Finish();
    table.add_strides(strides);
    table.add_origin(slot.arrangement.origin);
    table.add_byte_stride(slot.arrangement.byte_stride);
    table.add_fill(slot.arrangement.fill);
    table.add_flip(slot.arrangement.flip);
    table.add_block(slot.arrangement.block);
    table.add_block_stride(slot.arrangement.block_stride);
    table.add_kept(kept);
    return table.Finish();
  }

  Offset<format::Function> function() {
    const auto name = builder_.CreateString(contents_.program.name);
    const auto inputs = builder_.CreateVector(contents_.program.inputs);
    const auto outputs = builder_.CreateVector(contents_.program.outputs);
    Offset<flatbuffers::Vector<uint32_t>> scratch_offsets = 0, scratch_sizes = 0;
    if (!contents_.arena.scratch_offsets.empty()) {
      std::vector<uint32_t> begins, sizes;
      for (uint32_t s = 0; s < contents_.program.steps.size(); ++s) {
        begins.push_back(static_cast<uint32_t>(contents_.arena.scratch_offsets[s]));
        sizes.push_back(static_cast<uint32_t>(contents_.arena.scratch_sizes[s]));
      }
      scratch_offsets = builder_.CreateVector(begins);
      scratch_sizes = builder_.CreateVector(sizes);
    }
    Tables<format::State> states = 0;
    if (!contents_.program.states.empty()) {
      std::vector<Offset<format::State>> tables;
      for (const target::ProgramState& state : contents_.program.states)
        tables.push_back(format::CreateState(builder_, state.input, state.output, state.initial, state.fill));
      states = builder_.CreateVector(tables);
    }
    Tables<format::SelfCheck> self_checks = 0;
    Offset<flatbuffers::Vector<uint32_t>> constant_checksums = 0;
    if (!contents_.checks.runs.empty()) {
      std::vector<Offset<format::SelfCheck>> tables;
      for (const SelfChecks::Run& run : contents_.checks.runs)
        tables.push_back(format::CreateSelfCheckDirect(builder_, run.seed, &run.outputs));
      self_checks = builder_.CreateVector(tables);
      constant_checksums = builder_.CreateVector(contents_.checks.constants);
    }
    format::FunctionBuilder table(builder_);
    table.add_name(name);
    table.add_inputs(inputs);
    table.add_outputs(outputs);
    table.add_num_steps(static_cast<uint32_t>(contents_.program.steps.size()));
    table.add_scratch_per_worker(contents_.program.scratch_per_worker);
    table.add_scratch_offsets(scratch_offsets);
    table.add_scratch_sizes(scratch_sizes);
    table.add_overwrites_inputs(contents_.program.overwrites_inputs);
    if (!states.IsNull()) table.add_states(states);
    if (!self_checks.IsNull()) {
      table.add_self_checks(self_checks);
      table.add_constant_checksums(constant_checksums);
    }
    return table.Finish();
  }

  const RootContents& contents_;
  FlatBufferBuilder builder_;
};

}  // namespace

ConstantSegment lay_out_constants(const target::Program& program) {
  ConstantSegment segment;
  segment.offsets.assign(program.tensors.size(), 0);
  std::unordered_map<std::string_view, uint64_t> offset_of;  // only looked up, so its order does not matter
  for (target::TensorId t = 0; t < program.tensors.size(); ++t) {
    const target::ProgramTensor& tensor = program.tensors[t];
    if (!tensor.is_constant()) continue;
    const std::string_view content(reinterpret_cast<const char*>(tensor.constant->data()),
                                   tensor.constant->size());
    const uint64_t next = round_up(segment.size, ConstantSegment::kAlignment);
    const auto [entry, is_new] = offset_of.emplace(content, next);
    segment.offsets[t] = entry->second;
    if (!is_new) continue;
    segment.first_tensor.push_back(t);
    segment.size = next + content.size();
  }
  return segment;
}

flatbuffers::DetachedBuffer build_root(const RootContents& contents) { return RootBuilder(contents).run(); }

}  // namespace qplan::write
