#include "src/packer/emit/plan_writer.h"

#include <cstring>

#include "format/container.h"
#include "format/names_generated.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/base/sha256.h"
#include "src/packer/emit/plan_reader.h"
#include "src/packer/emit/plan_root.h"
#include "src/packer/emit/reference_session.h"
#include "src/packer/emit/step_facts.h"
#include "src/packer/error.h"

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
  format::NamesBuilder names(builder);
  names.add_tensors(tensor_names);
  names.add_steps(step_names);
  names.add_producer(producer);
  names.add_source(source);
  names.add_source_digest(digest);
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

// What the runtime refuses is our own defect. A session of a large arena is not tried: the overlap checker
// and the kernels' own checks have been over all that it would look at.
void check_accepted(std::span<const uint8_t> plan, uint64_t arena_size) {
  constexpr uint64_t kMaxTriedArena = uint64_t{256} << 20;
  if (arena_size <= kMaxTriedArena) {
    ReferenceSession session(plan);
  } else {
    PlanReader reader(plan);
  }
}

void put(const AlignedBytes& file, uint64_t at, const void* bytes, size_t size) {
  if (size != 0) std::memcpy(file.data() + at, bytes, size);
}

}  // namespace

AlignedBytes write_plan(const target::Program& program, const target::TargetProfile& profile,
                        const EmitOptions& options) {
  const ConstantSegment constants = lay_out_constants(program);
  const DraftPlan draft(program, profile, constants);
  const StepFacts facts = draft.step_facts();
  const memory::Arena arena = memory::plan_arena(
      program,
      [&](uint32_t step, uint32_t output, uint32_t input) {
        return draft.may_be_in_place(step, output, input);
      },
      options.planner_iterations);
  if (arena.size > format::kMaxArenaBytes) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "the activations need " + std::to_string(arena.size) +
                                                 " bytes, a plan has at most " +
                                                 std::to_string(format::kMaxArenaBytes));
  }
  const flatbuffers::DetachedBuffer root = build_final_root({program, profile, constants, &arena, &facts});

  format::Header header = {};
  std::memcpy(header.magic, format::kMagic, sizeof(header.magic));
  header.version_major = format::kVersionMajor;
  header.version_minor = format::kVersionMinor;
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
  check_accepted(file.span(), arena.size);
  return file;
}

}  // namespace qplan::emit
