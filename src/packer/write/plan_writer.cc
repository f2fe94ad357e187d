#include "src/packer/write/plan_writer.h"

#include <algorithm>
#include <cstring>

#include "format/container.h"
#include "format/names_generated.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"
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

}  // namespace qplan::write
