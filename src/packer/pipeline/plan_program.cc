// From a lowered program to what a plan will hold of it: cascades, schedules and the plan of memory, within
// the memory that there is.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "src/base/checked.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/arena.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/write/plan_writer.h"

namespace qplan::pipeline {

std::optional<schedule::TuningLog> read_tuning(const PackOptions& options) {
  if (!options.tuning) return std::nullopt;
  return schedule::TuningLog(options.tuning->name, options.tuning->text, options.tuning->num_threads,
                             options.log);
}

schedule::FuseOptions fuse_options(const PackOptions& options, schedule::TuningLog* tuning) {
  return {.how = options.fuse,
          .tuning = tuning,
          .planner_iterations = options.planner_iterations,
          .log = options.log};
}

memory::Arena plan_memory(const target::Program& program, const PackOptions& options) {
  const schedule::StepQueries queries(program);
  return memory::plan_arena(program, queries.sharing(), options.planner_iterations);
}

Planned plan_program(const target::Program& lowered, const target::TargetProfile& profile,
                     const PackOptions& options, schedule::TuningLog* tuning, uint64_t spare_bytes) {
  schedule::FuseOptions fuse = fuse_options(options, tuning);
  fuse.log = {};
  fuse.spare_bytes = spare_bytes;
  Planned planned;
  planned.program = schedule::fuse_steps(lowered, profile, fuse);
  schedule::schedule_steps(&planned.program, profile, tuning);
  planned.arena = plan_memory(planned.program, options);
  return planned;
}

PlannedSizes sizes_of(const Planned& planned) {
  return {write::lay_out_constants(planned.program).size, memory::total_bytes(planned.arena)};
}

void report_copies(const Planned& planned, const target::Target& cpu, partition::Explain* explain) {
  for (uint32_t s = 0; s < planned.program.steps.size(); ++s) {
    const target::ProgramStep& step = planned.program.steps[s];
    if (step.npu == nullptr) continue;
    const auto region = std::ranges::find(explain->regions, step.name, &partition::RegionReport::function);
    if (region == explain->regions.end()) continue;
    const memory::BoundaryCopies copies =
        memory::boundary_copies(planned.program, planned.arena.device_of, planned.arena.kept, s);
    region->num_copies = copies.count;
    region->copy_bytes = copies.bytes;
    region->copy_ns = target::copy_ns(cpu.cpu_costs, copies.bytes);
  }
}

void report_savings(const PlannedSizes& with_fallback, const PlannedSizes& without,
                    partition::Explain* explain) {
  explain->fallback = false;
  explain->saved_constant_bytes = static_cast<int64_t>(with_fallback.constants - without.constants);
  explain->saved_memory_bytes = static_cast<int64_t>(with_fallback.memory - without.memory);
}

// The limit of memory, and several memories.

namespace {

// Bytes of the session's memory of a plan, of one thread on the target's processor. num_copies: constants
// that are copied besides, whose addresses small devices keep.
uint64_t session_bytes(const format::PlanView& view, const target::TargetProfile& profile,
                       uint64_t num_copies = 0) {
  format::MemoryLayout layout;
  const format::Function& main = *view.find_function(nullptr);
  format::MemoryCounts counts = view.memory_counts(main, profile.pointer_size);
  if (profile.pointer_size == 4) counts.num_leading_tensors += num_copies;
  return format::memory_layout(counts, profile.pointer_size, 1, &layout) ? layout.total : UINT64_MAX;
}

// Bytes of activations that are in use while a step runs: bytes that tensors share count once.
uint64_t bytes_at_step(const format::PlanView& view, uint32_t step) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint32_t t = 0; t < view.num_tensors(); ++t) {
    const format::Tensor& tensor = view.tensor(t);
    if (tensor.bank() != view.main_bank() || tensor.first_use() > step || tensor.last_use() < step) continue;
    ranges.emplace_back(tensor.offset(), tensor.offset() + tensor.size());
  }
  const format::Function& main = *view.find_function(nullptr);
  if (format::count_of(main.scratch_sizes()) > 0 && step >= main.first_step() &&
      step - main.first_step() < main.num_steps()) {
    const uint64_t offset = main.scratch_offsets()->Get(step - main.first_step());
    ranges.emplace_back(offset, offset + main.scratch_sizes()->Get(step - main.first_step()));
  }
  std::ranges::sort(ranges);
  uint64_t bytes = 0, end = 0;
  for (const auto& [first, last] : ranges) {
    if (last > std::max(first, end)) bytes += last - std::max(first, end);
    end = std::max(end, last);
  }
  return bytes;
}

// The step of main with the most bytes in use; false where there are no steps.
bool find_largest_step(const format::PlanView& view, uint32_t* largest, uint64_t* bytes) {
  const format::Function& main = *view.find_function(nullptr);
  *bytes = 0;
  for (uint32_t i = 0; i < main.num_steps(); ++i) {
    const uint64_t here = bytes_at_step(view, main.first_step() + i);
    if (i > 0 && here <= *bytes) continue;
    *largest = main.first_step() + i;
    *bytes = here;
  }
  return main.num_steps() > 0;
}

// PackError that says which step takes most, and of what.
[[noreturn]] void refuse_memory(const format::PlanView& view, const target::TargetProfile& profile,
                                uint64_t max_ram) {
  const uint64_t needed = session_bytes(view, profile);
  std::string text = cat("max_ram: the plan that takes the least memory takes ", needed,
                         " bytes, expected at most ", max_ram);
  uint32_t step = 0;
  uint64_t bytes = 0;
  if (find_largest_step(view, &step, &bytes)) {
    text += cat(": step ", step, " '", view.step_name(step), "' has ", bytes,
                " bytes of inputs, outputs and scratch in use, and what is not in that memory takes ",
                needed - view.bank(view.main_bank()).size(),
                "; a model with a smaller input or fewer channels there, or without residuals that wait "
                "while it runs, takes less");
  }
  throw PackError(QPLAN_MEMORY_TOO_SMALL, text);
}

// What the planned program takes as a plan, with the names of its steps.
class Measured {
 public:
  Measured(const Planned& planned, const target::TargetProfile& profile)
      : plan_(write::write_plan(planned.program, profile, planned.arena, {})) {
    Error error;
    if (view_.open(plan_.span().data(), plan_.span().size(), false, &error) != QPLAN_OK) {
      throw PackError(error.status(), error.text());
    }
    bytes_ = session_bytes(view_, profile);
  }
  const format::PlanView& view() const { return view_; }
  uint64_t bytes() const { return bytes_; }

 private:
  AlignedBytes plan_;
  format::PlanView view_;
  uint64_t bytes_ = 0;
};

}  // namespace

void fit_memory(Planned* planned, const target::Program& lowered, const target::TargetProfile& profile,
                const Observer& observer, schedule::TuningLog* tuning) {
  const uint64_t max_ram = observer.options().max_ram;
  const uint64_t bytes = Measured(*planned, profile).bytes();
  if (bytes <= max_ram) return;
  PackOptions least = observer.options();
  const char* name = nullptr;
  uint64_t taken = UINT64_MAX;
  // --fuse memory compares activations and scratch; what else a session takes may be less with other
  // cascades.
  for (const auto& [fuse, fuse_name] :
       {std::pair(schedule::Fuse::kMemory, "memory"), std::pair(schedule::Fuse::kAuto, "auto"),
        std::pair(schedule::Fuse::kAll, "all")}) {
    least.fuse = fuse;
    Planned other = plan_program(lowered, profile, least, tuning);
    const uint64_t needed = Measured(other, profile).bytes();
    if (needed >= taken) continue;
    *planned = std::move(other);
    taken = needed;
    name = fuse_name;
    if (taken <= max_ram) break;
  }
  if (taken > max_ram) refuse_memory(Measured(*planned, profile).view(), profile, max_ram);
  least.fuse = schedule::Fuse::kMemory;
  if (planned->program.is_small && taken < max_ram) {
    Planned faster = plan_program(lowered, profile, least, tuning, max_ram - taken);
    const uint64_t needed = Measured(faster, profile).bytes();
    if (needed <= max_ram) {
      *planned = std::move(faster);
      taken = needed;
      name = "memory";
    }
  }
  observer.log(QPLAN_LOG_INFO, cat("max_ram: the plan takes ", bytes, " bytes, beyond ", max_ram,
                                   "; the one of --fuse ", name, ", ", taken, ", stands in"));
}

void place_in_areas(Planned* planned, const target::TargetProfile& profile, const PackOptions& options) {
  if (profile.areas.empty()) return;
  const Measured measured(*planned, profile);
  std::vector<target::MemoryArea> areas = profile.areas;
  const uint64_t session = measured.bytes() - measured.view().bank(measured.view().main_bank()).size();
  if (areas[0].bytes <= session) {
    throw PackError(QPLAN_MEMORY_TOO_SMALL, cat("memory areas: '", areas[0].name, "' has ", areas[0].bytes,
                                                " bytes; the session, which is in "
                                                "the first area, takes ",
                                                session, " beside activations; list a larger area first"));
  }
  areas[0].bytes -= session;
  const schedule::StepQueries queries(planned->program);
  planned->arena = memory::plan_arena(planned->program, queries.sharing(), options.planner_iterations, areas);
  if (options.max_ram == 0) return;
  uint64_t bytes = Measured(*planned, profile).bytes();
  std::string text = cat(bytes, " in '", areas[0].name, "'");
  for (const memory::AreaBank& area : planned->arena.areas) {
    bytes += area.size;
    text += cat(", ", area.size, " in '", area.name, "'");
  }
  if (bytes <= options.max_ram) return;
  throw PackError(QPLAN_MEMORY_TOO_SMALL,
                  cat("max_ram: the plan takes ", bytes, " bytes in all memory areas, expected at most ",
                      options.max_ram, ": ", text,
                      "; pack with --fuse memory, state a larger first area, or leave one of the two limits "
                      "out"));
}

namespace {

// Areas as copies find them: what activations and scratch have of each, up to where the first copy may begin.
class CopyPlan {
 public:
  CopyPlan(Planned* planned, const target::TargetProfile& profile, uint64_t max_ram)
      : planned_(*planned),
        profile_(profile),
        max_ram_(max_ram),
        alignment_(memory::arena_alignment(planned->program)) {
    for (uint32_t a = 0; a < profile.areas.size(); ++a) size_of(a) = round_up(size_of(a), alignment_);
  }

  void run() {
    find_candidates();
    choose();
    if (planned_.program.is_small) number_anew();
    place();
  }

 private:
  uint64_t& size_of(uint32_t area) {
    return area == 0 ? planned_.arena.size : planned_.arena.areas[area - 1].size;
  }

  void find_candidates() {
    const std::vector<uint64_t> reads = schedule::constant_reads(planned_.program, profile_);
    for (uint32_t t = 0; t < reads.size(); ++t) {
      if (reads[t] == 0) continue;
      tensors_.push_back(t);
      candidates_.push_back({static_cast<uint64_t>(planned_.program.tensors[t].type.size_bytes()), reads[t]});
    }
  }

  // On small devices each copy takes an address in the session, which is in the first area: room is made for
  // those of as many copies as were chosen before, until that is enough.
  void choose() {
    const Measured measured(planned_, profile_);
    for (uint64_t num_copies = 0;;) {
      const uint64_t session = session_bytes(measured.view(), profile_, num_copies);
      std::vector<memory::CopyRoom> rooms;
      uint64_t taken = 0;
      for (uint32_t a = 0; a < profile_.areas.size(); ++a) {
        const uint64_t used = a == 0 ? session : size_of(a), bytes = profile_.areas[a].bytes;
        rooms.push_back({bytes > used ? bytes - used : 0, profile_.areas[a].cost});
        taken += used;
      }
      const uint64_t most = max_ram_ == 0 ? UINT64_MAX : max_ram_ > taken ? max_ram_ - taken : 0;
      area_of_ = memory::choose_copies(candidates_, rooms, profile_.copies_from_cost, most, alignment_);
      const auto chosen = static_cast<uint64_t>(
          std::ranges::count_if(area_of_, [](uint32_t area) { return area != memory::kNone; }));
      if (chosen <= num_copies) return;
      num_copies = chosen;
    }
  }

  // Copied constants come first among constants, so that a session keeps no addresses of the others. What the
  // arena has of each tensor moves with it; activations keep their numbers.
  void number_anew() {
    std::vector<bool> is_copied(planned_.program.tensors.size(), false);
    for (size_t c = 0; c < tensors_.size(); ++c) is_copied[tensors_[c]] = area_of_[c] != memory::kNone;
    const std::vector<target::TensorId> number = schedule::place_constants_last(&planned_.program, is_copied);
    for (target::TensorId& tensor : tensors_) tensor = number[tensor];
    memory::Arena& arena = planned_.arena;
    const auto move = [&](auto* per_tensor) {
      const auto before = *per_tensor;
      for (size_t t = 0; t < before.size(); ++t) (*per_tensor)[number[t]] = before[t];
    };
    for (auto* list : {&arena.lifetimes.first, &arena.lifetimes.last, &arena.lifetimes.replaces,
                       &arena.lifetimes.inside, &arena.lifetimes.buffer, &arena.device_of, &arena.area_of})
      move(list);
    for (auto* list : {&arena.lifetimes.offset, &arena.offsets}) move(list);
  }

  void place() {
    for (size_t c = 0; c < tensors_.size(); ++c) {
      if (area_of_[c] == memory::kNone) continue;
      const memory::CopyCandidate& copied = candidates_[c];
      const uint64_t gain = profile_.copies_from_cost - profile_.areas[area_of_[c]].cost;
      planned_.arena.copies.push_back(
          {tensors_[c], area_of_[c], 0, copied.bytes_read, target::mul_div(copied.bytes_read, gain, 1)});
    }
    std::ranges::sort(planned_.arena.copies, {}, &memory::ConstantCopy::tensor);
    for (memory::ConstantCopy& copy : planned_.arena.copies) {
      const auto size = static_cast<uint64_t>(planned_.program.tensors[copy.tensor].type.size_bytes());
      copy.offset = size_of(copy.area);
      size_of(copy.area) += round_up(size, alignment_);
    }
  }

  Planned& planned_;
  const target::TargetProfile& profile_;
  const uint64_t max_ram_, alignment_;
  std::vector<target::TensorId> tensors_;          // that may be copied
  std::vector<memory::CopyCandidate> candidates_;  // the same
  std::vector<uint32_t> area_of_;                  // of each, kNone where it stays
};

}  // namespace

void copy_constants(Planned* planned, const target::TargetProfile& profile, const PackOptions& options) {
  if (profile.copies_from_cost != 0) CopyPlan(planned, profile, options.max_ram).run();
}

}  // namespace qplan::pipeline
