#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/memory_layout.h"
#include "format/plan_view.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/arena.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/write/plan_writer.h"

namespace qplan::pipeline {
namespace {

// Bytes of the session's memory of a plan, of one thread on the target's processor.
uint64_t session_bytes(const format::PlanView& view, const target::TargetProfile& profile) {
  format::MemoryLayout layout;
  const format::Function& main = *view.find_function(nullptr);
  return format::memory_layout(view.memory_counts(main, profile.pointer_size), profile.pointer_size, 1,
                               &layout)
             ? layout.total
             : UINT64_MAX;
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
  least.fuse = schedule::Fuse::kMemory;
  *planned = plan_program(lowered, profile, least, tuning);
  const Measured smallest(*planned, profile);
  if (smallest.bytes() > max_ram) refuse_memory(smallest.view(), profile, max_ram);
  observer.log(QPLAN_LOG_INFO, cat("max_ram: the plan takes ", bytes, " bytes, beyond ", max_ram,
                                   "; the one of --fuse memory, ", smallest.bytes(), ", stands in"));
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

}  // namespace qplan::pipeline
