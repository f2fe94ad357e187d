// What a program's steps are told of how to run: their schedules, maybe from logs of measurements, the grain
// of their tasks, and the scratch memory that all of them need.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/error.h"
#include "src/packer/ir/json.h"
#include "src/packer/memory/arena.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {

// ---- measurements ----
// What two steps have in common that take the same time with the same schedule: the key of measurements.

// "conv2d {contract=TFL2, kernel_h=3, ...} uint8[1x56x56x24], ... -> uint8[1x56x56x144] on
// cpu,arch=x86_64,...": family, parameters but for those that are only numbers to compute with, dtypes and
// shapes, and the CPU target. Names and contents of constants are no part of it, so that one
// measurement serves all like steps.
// target: target_text.
std::string step_key(const StepView& step, const std::string& target);

// The CPU target of a program's profile or of a plan, as keys have it: "cpu,arch=x86_64,...".
std::string target_text(const target::TargetProfile& profile);
std::string target_text(const format::Plan& plan);

// Logs of measurements (`qplan tune`), and what follows from them for a program. docs/schedules.md has the
// format.

class TuningLog {
 public:
  // text: one measurement a line, as JSON; those of other numbers of threads are not kept. name: the file's,
  // for messages. A line that is not JSON, as an interrupted `qplan tune` leaves one, is skipped with a
  // warning where other lines can be read. PackError (QPLAN_INVALID_ARGUMENT) with the number of a line that
  // is malformed otherwise.
  TuningLog(std::string name, std::string_view text, uint32_t num_threads, const LogFunction& log = {});

  // The schedule with the shortest time among the lines with the key, the first of equal ones; lines of heats
  // count only if the key has no other lines. The default schedule if the key has no line. A line that sets a
  // knob or value this build does not have is skipped, with a warning.
  target::StepSchedule fastest(const std::string& key, uint16_t kernel, const LogFunction& log);
  // The shortest time among the lines with the key, in ns; nullopt if no line has it.
  std::optional<uint64_t> shortest_ns(const std::string& key) const;
  // Whether there are lines with keys that begin so.
  bool has_keys_of(std::string_view prefix) const;
  // PackError (QPLAN_INVALID_ARGUMENT) where no line was of use: fastest() found none for any key it was
  // asked for. Where the log has choices, a key of a family without knobs (a copy: every model has one) is
  // of no use unless it has some.
  void check_used() const;

 private:
  struct Line {
    size_t number;
    ir::Json schedule;
    uint64_t ns;
    bool is_heat;  // measured once, to choose what is measured well
  };
  void add(std::string_view text, size_t number, uint32_t num_threads);
  [[nodiscard]] std::string passed_over(size_t number, const std::string& reason) const;
  [[noreturn]] void fail(size_t number, const std::string& text) const;

  std::string name_;
  std::vector<std::pair<size_t, std::string>> torn_;  // numbers of lines that are not JSON, and why
  std::map<std::string, std::vector<Line>, std::less<>> lines_;  // by key, the fastest first
  std::set<size_t> warned_;
  uint32_t num_threads_;
  size_t num_lines_ = 0, num_of_other_threads_ = 0;
  std::set<std::string, std::less<>> keys_with_choice_;  // of lines that set something
  bool used_ = false;
  bool fits_without_choice_ = false;
};

// ---- schedules ----

// Fills ProgramStep::schedule, min_units_per_task and Program::scratch_per_worker. tuning: null, or the log
// that schedules come from; what fuse_steps has set stays. PackError (QPLAN_MODEL_UNSUPPORTED) with the
// family's text when a kernel refuses its step: extents beyond what it computes with, and the like.
void schedule_steps(target::Program* program, const target::TargetProfile& profile,
                    TuningLog* tuning = nullptr, const LogFunction& log = {});

// Per tensor: bytes that kernels read of it in one run where it is a constant, 0 of activations
// (docs/firmware.md, "Copies of constants"). program: with its schedules.
std::vector<uint64_t> constant_reads(const target::Program& program, const target::TargetProfile& profile);

// What tuning needs of a plan: what could be set, and the plan with something set.

// The same plan, but for the schedules and what follows from them: grains, scratch memory, digest. schedules:
// JSON, a list with an object of names and values for each step; null where it stays as it is, as it must for
// regions. PackError.
AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules);

// Which schedules may be faster than the plan's own, as JSON, its own first; docs/schedules.md, "What is
// tried". isa: QPLAN_ISA_* of the machine that would run them, num_threads at a time. PackError.
std::string tuning_space(const format::PlanView& view, uint32_t isa, uint32_t num_threads);

// A plan of one step of a plan: what somebody needs who looks for an error in that step.

// The step alone, with its constants, kernel, parameters and schedule, as the plan's function "main". Its
// activations, in the order in which the step reads them, are the inputs; what it writes are the outputs. A
// region brings its program, its device's memory and its fallback steps. Activations lie side by side, so
// that nothing is computed in place. PackError (QPLAN_NOT_FOUND) where there is no such step.
AlignedBytes extract_step(const format::PlanView& view, uint32_t step);

// A plan whose schedules can be changed, without its model.
class SchedulablePlan {
 public:
  // view must outlive it. PackError (QPLAN_MODEL_UNSUPPORTED) where this packer does not know the plan's
  // processor.
  explicit SchedulablePlan(const format::PlanView& view);

  const format::PlanView& view() const { return view_; }
  const target::TargetProfile& profile() const { return profile_; }
  bool is_kernel(uint32_t step) const { return view_.npu_step(step) == nullptr; }

  // Sets the schedule of a kernel's step.
  void set_schedule(uint32_t step, uint64_t schedule);
  void set_min_units_per_task(uint32_t step, uint32_t units);
  // Bytes of the arena that a step may use as scratch; UINT64_MAX where its function has its scratch
  // elsewhere.
  uint64_t scratch_in_arena(uint32_t step) const;
  // Raises the scratch of all functions that have less.
  void raise_scratch_per_worker(uint64_t bytes);

  // A kernel's step as it is now, its family and the args that its schedule is part of.
  struct Bound {
    StepView step;
    const KernelFamily* family;
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  };
  // PackError with the kernel's reason where it refuses the step.
  void bind(uint32_t step, Bound* bound) const;

  // The plan as it is now. It is a little longer than it was: tables that can be changed stand before the old
  // ones.
  AlignedBytes file() const;

 private:
  const format::Plan& plan() const { return *flatbuffers::GetRoot<format::Plan>(root_.data()); }
  void place_what_is_in_place();

  const format::PlanView& view_;
  const target::TargetProfile profile_;
  flatbuffers::DetachedBuffer root_;
  uint64_t shift_ = 0;  // bytes by which the constants are further back than in view
  // By bank and offset, of steps in place: what is at one place has one address, which nobody reads.
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> places_;
  std::vector<void*> data_;  // per tensor: the constant's bytes, or its place; else null
};

// A build lacks the kernels of other architectures than its own. A packer for one of those asks kernels of
// its own build, the substitutes, for scratch memory and work items (TargetProfile::asked_isas). Substitutes
// may need other zero points, and weights in groups of four bytes where the step has groups of eight; the
// answers depend on neither. If a kernel finds less scratch memory than it needs, the plan still runs, with
// another variant.

struct SubstituteStep {
  // With the zero points and layouts that substitutes accept, in its layers too. Tensors of the program have
  // numbers of the step's own: the positions in `tensors`.
  target::ProgramStep step;
  std::vector<target::TensorId> tensors;
  std::vector<std::pair<target::TensorId, uint64_t>>
      weights;  // own numbers of those in another layout; bytes
};

SubstituteStep substitute_step(const target::Program& program, const target::ProgramStep& step);

// Asks the kernel families about a program's steps, through the same binding code that the runtime uses.

// PackError (QPLAN_INTERNAL) when this build lacks it.
const KernelFamily& family_of(uint16_t kernel);

// What the variants of a family say of bound arguments.
struct VariantNeeds {
  uint64_t scratch_bytes = 0;  // per worker: the most of all variants that the profile has and that accept
  uint32_t work_items = 1;     // of the variant that the profile's best machine takes
};
VariantNeeds variant_needs(const KernelFamily& family, const void* args, const target::TargetProfile& profile,
                           uint64_t schedule);

// KernelStep::min_units_per_task of a step of so many units: such that a task takes about the profile's
// task_work, times the factor; 0 where two tasks of that size would be too many.
uint32_t task_grain(const StepView& step, uint32_t work_items, const target::TargetProfile& profile,
                    double factor);

// The steps of a program, without addresses but those of constants. A step's own table is packed when
// something about the step is first asked. The program must outlive it; steps may be changed that were not
// yet asked about, tensors may not.
class StepQueries {
 public:
  explicit StepQueries(const target::Program& program);

  // Only for steps that a kernel computes.
  // The step as the plan will have it: what keys of measurements are made of.
  StepView planned(uint32_t step) const;
  // The step that this build's kernels are asked about: its substitute where the program asks substitutes.
  StepView view(uint32_t step) const;
  // As memory::InPlaceQuery.
  bool may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const;
  bool may_overwrite(uint32_t step, uint32_t output, uint32_t input) const;
  // As memory::PartOffsetQuery.
  std::optional<uint64_t> part_offset(uint32_t step, uint32_t output, uint32_t input) const;
  // All; they refer to this object.
  memory::SharingQueries sharing() const;

 private:
  struct Table {
    flatbuffers::DetachedBuffer bytes;  // empty: not packed yet
    // Empty for most steps, which use the program's tensors. A step with tiles, and a substitute, has tensors
    // of its own, then its tiles.
    std::vector<StepTensor> tensors;
    std::deque<std::array<int64_t, 1>> shapes;  // of weights that are replaced by zeros
  };
  void pack_substitute(const target::ProgramStep& step, Table* table) const;
  StepView view_of(const Table& table) const;
  uint8_t* zeros(size_t bytes) const;

  const target::Program& program_;
  std::vector<StepTensor> tensors_;                 // per tensor of the program
  mutable std::vector<Table> tables_;               // per step
  mutable std::vector<Table> substitutes_;          // per step, where the program asks them; else empty
  mutable std::deque<std::vector<uint8_t>> zeros_;  // the last has most; views refer to the others, too
};

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
