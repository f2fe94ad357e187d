// The tensors of a program by other numbers.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_CASCADE_LINKS_H_
#define QPLAN_SRC_PACKER_SCHEDULE_CASCADE_LINKS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/packer/schedule/schedule.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

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

#endif  // QPLAN_SRC_PACKER_SCHEDULE_CASCADE_LINKS_H_
