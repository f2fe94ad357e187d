// Layers that run as one step: additions as residuals, and cascades, which keep a few rows of what lies
// between layers (src/runtime/cascade.h).
#ifndef QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

class StepQueries;  // schedule.h
class TuningLog;

// Which cascades are made. kAuto: those that save much memory for little time, or time by a log of
// measurements. kAll: every cascade that is possible. kMemory: those that take the least memory, whatever
// time they take, with one row of output at a time (compared with what the other choices take).
enum class Fuse : uint8_t { kOff, kAuto, kAll, kMemory };

struct FuseOptions {
  Fuse how = Fuse::kOff;
  TuningLog* tuning = nullptr;      // null, or where times are known from
  uint32_t planner_iterations = 0;  // of the memory plans that kMemory compares; 0: the planner's default
  LogFunction log = {};
  // For kMemory on small devices: bytes beyond the least memory that cascades may take to be faster.
  uint64_t spare_bytes = 0;
};

// The program with residuals and cascades in the place of steps. What lies between steps
// that are fused has no other reader and is no output of the function. Regions on devices, and the steps that
// stand in for them, stay as they are. With measured times a cascade that is faster than its layers is made,
// and one that saves memory is not where it is slower by more than a tenth.
target::Program fuse_steps(const target::Program& program, const target::TargetProfile& profile,
                           const FuseOptions& options);

// Sums that a convolution's own step adds to its outputs, instead of a step that reads them again.

// The program with each add that can be as the residual of the convolution whose output it alone reads. Where
// both operands are such outputs, it is that of the later one. Regions on devices, and the steps that stand
// in for them, stay as they are.
target::Program fold_residuals(const target::Program& program);

// A step with a residual as the two that it was, the only steps of a program without inputs and outputs of a
// function.
target::Program residual_apart(const target::Program& program, uint32_t step);

// The search for cascades of a program.

// fuse_steps of one kind, kMemory by an estimate of the memory alone.
target::Program fuse_cascades(const target::Program& program, const target::TargetProfile& profile, Fuse fuse,
                              const TuningLog* tuning, const LogFunction& log);

// The tensors of a program by other numbers.

// number: per tensor its new one; those of tiles stay.
void renumber_step(const std::vector<target::TensorId>& number, target::ProgramStep* step);

// Without the tensors that no step and no function names any more.
void drop_tensors(const std::vector<bool>& is_dropped, target::Program* program);

// Activations first, so that sessions on small devices keep no addresses of constants, but of those that
// `is_first` says, which come next: per tensor; empty: of none. Returns per tensor its new number.
std::vector<target::TensorId> place_constants_last(target::Program* program,
                                                   const std::vector<bool>& is_first = {});

// Which steps of a program may follow each other in a cascade, and the program with cascades in their place.

inline constexpr uint32_t kNoStep = UINT32_MAX;

// Per step: the step that alone reads its output and can have it row by row; kNoStep for most.
std::vector<uint32_t> cascade_links(const target::Program& program, const StepQueries& queries);

// Steps of a program, each linked to the next, 2 to format::kMaxCascadeLayers.
using CascadeSteps = std::vector<uint32_t>;

// A step and those linked to it, at most `length`.
CascadeSteps steps_from(const std::vector<uint32_t>& links, uint32_t step, size_t length);
// Per step: whether another one is linked to it.
std::vector<bool> linked_steps(const std::vector<uint32_t>& links);

// The program with each list of steps as one, in the place of its last; no step is in two lists. Tensors
// between layers are no longer among the program's. step_of: per step of the result, the step that it was, of
// a cascade its last; may be null.
target::Program with_cascades(const target::Program& program, const std::vector<CascadeSteps>& cascades,
                              std::vector<uint32_t>* step_of);

// The cascade as the only step of a program, without inputs and outputs of a function.
target::Program cascade_alone(const target::Program& program, const CascadeSteps& cascade);

// Cascades by measured times.

// Times of a cascade, and of its layers as steps of their own, in ns.
struct CascadeTimes {
  uint64_t cascade = 0;
  uint64_t layers = 0;
};
// nullopt where they are not known.
using TimesQuery = std::function<std::optional<CascadeTimes>(const CascadeSteps&)>;

// `cascades` without those that are slower than their layers by more than a tenth, and of the other steps
// those cascades that save the most time together.
std::vector<CascadeSteps> with_times(const std::vector<uint32_t>& links, std::vector<CascadeSteps> cascades,
                                     const TimesQuery& times_of);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_FUSE_H_
