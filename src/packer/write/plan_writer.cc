#include "src/packer/write/plan_writer.h"

#include <algorithm>
#include <cstring>

#include "format/container.h"
#include "format/names_generated.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/error.h"
#include "src/packer/evaluate/reference_session.h"
#include "src/packer/inspect/plan_reader.h"
#include "src/packer/schedule/schedule_names.h"
#include "src/packer/schedule/step_facts.h"
#include "src/packer/write/plan_root.h"
#include "src/runtime/bind/families.h"

namespace qplan::emit {
namespace {

constexpr const char* kProducer = "qplan 0.1.0";

flatbuffers::DetachedBuffer build_names(const target::Program& program, const EmitOptions& options) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<std::string> tensors, steps;
  for (const target::ProgramTensor& tensor : program.tensors) tensors.push_back(tensor.name);
  for (const target::ProgramStep& step : program.steps) steps.push_back(step.name);
  const auto tensor_names = builder.CreateVectorOfStrings(tensors);
  const auto step_names = builder.CreateVectorOfStrings(steps);
  const auto producer = builder.CreateString(kProducer);
  const auto source = builder.CreateString(options.source);
  const auto digest = builder.CreateString(options.source_digest);
  flatbuffers::Offset<flatbuffers::String> explain = 0;
  if (!options.explain.empty()) explain = builder.CreateString(options.explain);
  format::NamesBuilder names(builder);
  names.add_tensors(tensor_names);
  names.add_steps(step_names);
  names.add_producer(producer);
  names.add_source(source);
  names.add_source_digest(digest);
  if (!options.explain.empty()) names.add_explain(explain);
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
    throw PackError(QPLAN_INTERNAL, "emit: the plan's root has " + std::to_string(root.size()) +
                                        " bytes, not " + std::to_string(size));
  }
  return root;
}

// Whether the plan runs without its devices.
bool runs_on_cpu(const target::Program& program) {
  return std::ranges::none_of(program.steps, [](const target::ProgramStep& step) {
    return step.npu != nullptr && step.npu->num_alternative_steps == 0;
  });
}

uint64_t bytes_in_memory(const memory::Arena& arena) {
  uint64_t bytes = arena.size;
  for (const memory::DeviceBank& bank : arena.devices) bytes += bank.size;
  return bytes;
}

// What the runtime refuses is our own defect. A session of a large arena is not tried: the overlap checker
// and the kernels' own checks have been over all that it would look at. Nor is one that needs a device.
void check_accepted(std::span<const uint8_t> plan, const target::Program& program,
                    const memory::Arena& arena) {
  constexpr uint64_t kMaxTriedArena = uint64_t{256} << 20;
  if (bytes_in_memory(arena) <= kMaxTriedArena && runs_on_cpu(program)) {
    ReferenceSession session(plan);
  } else {
    PlanReader reader(plan);
  }
}

void put(const AlignedBytes& file, uint64_t at, const void* bytes, size_t size) {
  if (size != 0) std::memcpy(file.data() + at, bytes, size);
}

memory::Arena plan_memory(const target::Program& program, const DraftPlan& draft, uint32_t iterations) {
  const memory::InPlaceQuery may_be_in_place = [&](uint32_t step, uint32_t output, uint32_t input) {
    return draft.may_be_in_place(step, output, input);
  };
  const memory::PartOffsetQuery part_offset = [&](uint32_t step, uint32_t output, uint32_t input) {
    return draft.part_offset(step, output, input);
  };
  return memory::plan_arena(program, {may_be_in_place, part_offset}, iterations);
}

std::vector<StepSchedule> schedules_for(const target::Program& program, const target::TargetProfile& profile,
                                        const EmitOptions& options) {
  if (options.tuning == nullptr) return {};
  const ConstantSegment constants = lay_out_constants(program);
  return DraftPlan(program, profile, constants).fastest_schedules(options.tuning, options.log);
}

// A program and how its steps go about their work.
struct Fused {
  target::Program program;
  std::vector<StepSchedule> schedules;  // empty: all are the default
};

// Bytes of activations, and of the scratch of one worker.
uint64_t bytes_of(const Fused& fused, const target::TargetProfile& profile, uint32_t planner_iterations) {
  const ConstantSegment constants = lay_out_constants(fused.program);
  const DraftPlan draft(fused.program, profile, constants, fused.schedules);
  return bytes_in_memory(plan_memory(fused.program, draft, planner_iterations)) +
         draft.step_facts().scratch_per_worker;
}

// Chains that make one row of output at a time, whose tiles are the smallest.
void make_single_rows(Fused* fused) {
  const StepSchedule single = parse_schedule(kKernel_chain, {{"block_rows", 1}});
  fused->schedules.resize(fused->program.steps.size());
  for (size_t s = 0; s < fused->schedules.size(); ++s) {
    if (fused->program.steps[s].kernel == kKernel_chain) fused->schedules[s].bytes = single.bytes;
  }
}

// What takes the least memory of all that can be made of the program, as it is measured: the search for
// chains knows neither gaps in the arena nor what scratch kernels take besides tiles. Of equal ones that with
// the least to do.
Fused fuse_for_memory(const target::Program& program, const target::TargetProfile& profile,
                      const EmitOptions& options) {
  Fused best;
  uint64_t least = UINT64_MAX;
  EmitOptions quiet = options;
  quiet.log = {};
  const auto consider = [&](Fused candidate) {
    const uint64_t bytes = bytes_of(candidate, profile, options.planner_iterations);
    if (bytes >= least) return;
    least = bytes;
    best = std::move(candidate);
  };
  for (const Fuse how : {Fuse::kOff, Fuse::kAuto, Fuse::kMemory, Fuse::kAll}) {
    Fused fused = {fuse_steps(program, profile, how, options.tuning, {}), {}};
    fused.schedules = schedules_for(fused.program, profile, quiet);
    consider(fused);
    const auto is_chain = [](const target::ProgramStep& step) { return step.kernel == kKernel_chain; };
    if (std::ranges::none_of(fused.program.steps, is_chain)) continue;
    make_single_rows(&fused);
    consider(std::move(fused));
  }
  return best;
}

Fused fuse(const target::Program& program, const target::TargetProfile& profile, const EmitOptions& options) {
  if (options.fuse == Fuse::kMemory) return fuse_for_memory(program, profile, options);
  Fused fused = {fuse_steps(program, profile, options.fuse, options.tuning, options.log), {}};
  fused.schedules = schedules_for(fused.program, profile, options);
  return fused;
}

void check_limits(const target::Program& program, const memory::Arena& arena) {
  if (arena.size > format::kMaxArenaBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the activations need " + std::to_string(arena.size) +
                                                 " bytes, a plan has at most " +
                                                 std::to_string(format::kMaxArenaBytes));
  }
  if (kFirstDeviceBank + arena.devices.size() > format::kMaxBanks) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, std::to_string(arena.devices.size()) +
                                                 " devices have regions, a plan has room for " +
                                                 std::to_string(format::kMaxBanks - kFirstDeviceBank));
  }
  for (size_t d = 0; d < arena.devices.size(); ++d) {
    if (arena.devices[d].size > format::kMaxArenaBytes) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, "the buffers of '" + program.devices[d].name + "' need " +
                                                   std::to_string(arena.devices[d].size) +
                                                   " bytes, a plan has at most " +
                                                   std::to_string(format::kMaxArenaBytes));
    }
  }
}

}  // namespace

ProgramSizes measure_program(const target::Program& program, const target::TargetProfile& profile,
                             uint32_t planner_iterations) {
  const ConstantSegment constants = lay_out_constants(program);
  const DraftPlan draft(program, profile, constants);
  memory::Arena arena = plan_memory(program, draft, planner_iterations);
  return {constants.size, bytes_in_memory(arena), std::move(arena.device_of)};
}

AlignedBytes write_plan(const target::Program& unfused, const target::TargetProfile& profile,
                        const EmitOptions& options) {
  const auto [program, schedules] = fuse(unfused, profile, options);
  const ConstantSegment constants = lay_out_constants(program);
  const DraftPlan draft(program, profile, constants, schedules);
  const StepFacts facts = draft.step_facts();
  const memory::Arena arena = plan_memory(program, draft, options.planner_iterations);
  check_limits(program, arena);
  const flatbuffers::DetachedBuffer root =
      build_final_root({.program = program,
                        .profile = profile,
                        .constants = constants,
                        .arena = &arena,
                        .facts = &facts,
                        .schedules = schedules.empty() ? nullptr : &schedules});

  format::Header header = {};
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.version_major = format::kVersionMajor;
  header.version_minor = format::kVersionMinor;
  if (!program.devices.empty()) header.required_features |= format::kFeatureNpuRegions;
  header.root_size = static_cast<uint32_t>(root.size());
  header.content_size = constants.size == 0 ? sizeof(format::Header) + root.size()
                                            : constants_begin(root.size()) + constants.size;
  header.file_size = header.content_size;
  flatbuffers::DetachedBuffer names;
  const uint64_t names_begin = round_up(header.content_size, format::kFileAlignment);
  if (!options.strip_names) {
    names = build_names(program, options);
    header.file_size = names_begin + names.size();
  }

  AlignedBytes file(static_cast<size_t>(header.file_size));
  put(file, sizeof(header), root.data(), root.size());
  for (const target::TensorId t : constants.first_tensor) {
    const std::vector<uint8_t>& bytes = *program.tensors[t].constant;
    put(file, constants_begin(root.size()) + constants.offsets[t], bytes.data(), bytes.size());
  }
  if (!options.strip_names) put(file, names_begin, names.data(), names.size());
  Sha256 digest;
  digest.update(file.data() + sizeof(header), file.size() - sizeof(header));
  digest.finish(header.digest);
  put(file, 0, &header, sizeof(header));
  check_accepted(file.span(), program, arena);
  return file;
}

}  // namespace qplan::emit
