// The runs that `qplan check` compares: what goes in, what runs it, and what came out.
#ifndef QPLAN_TOOLS_CHECK_RUNS_H_
#define QPLAN_TOOLS_CHECK_RUNS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/compare.h"
#include "tools/files.h"
#include "tools/session.h"
#include "tools/step_tensors.h"

namespace qplan::tools {

using TensorBytes = std::vector<std::vector<uint8_t>>;  // per input or output

// Inputs, and the outputs that are expected of them where somebody knows.
struct CheckCase {
  std::string name;
  TensorBytes inputs;
  std::optional<TensorBytes> outputs;
  // If the network keeps states, the run of the session before this one, which has a previous run of its own.
  // Null for the first.
  std::shared_ptr<const CheckCase> previous = nullptr;
};

// The runs of the session before this one, the first of them first.
std::vector<const CheckCase*> runs_before(const CheckCase& run);

// A directory with output0.bin (or .npy), ..., and input0.bin, ... beside them is one case. In another one,
// each directory that has an output0 is a case; if the plan keeps states, these are runs of one session, in
// the order of their names. given: the inputs of --input, for a case without files. Throws Failure if there
// is no case, or a file does not fit.
std::vector<CheckCase> expected_cases(const std::string& directory, const PlanFile& plan,
                                      const TensorBytes& given);

// A plan and how it runs.
struct CheckSide {
  std::string label;  // "isa avx2"
  const PlanFile* plan = nullptr;
  SessionOptions options;
};

struct CheckRun {
  TensorBytes outputs;
  std::vector<StepTensor> tensors;  // where asked for
};
// Opens a session, repeats the runs before this one in it, and returns what this one makes. Throws Failure.
CheckRun run_check_side(const CheckSide& side, const CheckCase& inputs, bool with_tensors);
// The outputs of all cases. A case with a previous one, which is then before it in the list, goes on in its
// session, so that nothing is repeated; each other case has a session of its own. Throws Failure.
std::vector<TensorBytes> run_check_cases(const CheckSide& side, std::span<const CheckCase> cases,
                                         const std::function<void()>& before_each);
// The cases that share a session with cases[at]: from one without a previous case to before the next such
// one.
std::span<const CheckCase> cases_of_session(std::span<const CheckCase> cases, size_t at);

// The first step of a run that writes something else than the other run.
struct FirstDifference {
  bool found = false;
  std::string why_not;  // where nothing was found
  uint32_t step = 0;    // of the plan of the side that was found
  std::string op, kernel, step_name, tensor_name;
  TensorComparison comparison;
  uint64_t compared = 0;     // tensors that both runs have, before that one
  uint64_t uncompared = 0;   // that the other one lacks
  std::string written;       // the directory with the small plan; "" where none was asked for
  std::string plan;          // its file in there
  std::string command;       // that shows the difference again
  bool shows_alone = false;  // the plan is of that step alone, and shows the difference
};

// The two sides should give the same bytes, and do not for these inputs. directory: where a plan of the step
// alone is written, with its inputs and expected outputs; "": nowhere.
FirstDifference find_first_difference(const CheckSide& expected, const CheckSide& found,
                                      const CheckCase& inputs, const std::string& directory);

std::string first_difference_text(const FirstDifference& difference);
nlohmann::ordered_json first_difference_json(const FirstDifference& difference);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_CHECK_RUNS_H_
