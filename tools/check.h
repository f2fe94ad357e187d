// What `qplan check` is made of: runs (what goes in, what runs it, and what came out), how far their tensors
// are from each other, and the comparisons of runs.
#ifndef QPLAN_TOOLS_CHECK_H_
#define QPLAN_TOOLS_CHECK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "qplan/qplan.h"
#include "tools/files.h"
#include "tools/model_options.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {

// ---- how far two tensors of one type are from each other

struct TensorComparison {
  uint64_t elements = 0;
  uint64_t different = 0;        // elements whose bytes differ
  uint64_t max_steps = 0;        // the largest difference
  uint64_t first_different = 0;  // index of the first element that differs
  // Differences in steps: of integers the difference of the stored numbers, of floats how many floats lie
  // between, plus 1 (a NaN is UINT64_MAX steps from every number). Key: the lowest of 1, 2, 3..4, 5..8,
  // 9..16, ...
  std::map<uint64_t, uint64_t> histogram;
  // Signal to noise in dB: of real values, sums over all elements. Nothing where no element differs, or the
  // expected values are 0 or no numbers.
  std::optional<double> snr_db;
  // The last axis as scores: of how many rows the best score is at the same index. 0 rows: fewer than 2
  // scores.
  uint64_t rows = 0;
  uint64_t same_top1 = 0;

  [[nodiscard]] bool equal() const { return different == 0; }
  // Whether no element differs by more steps.
  [[nodiscard]] bool within(uint64_t steps) const { return max_steps <= steps; }
};

// Both packed, of info's type; quantisation is that of info.
TensorComparison compare_tensors(const qplan_tensor_info& info, const void* expected, const void* found);

// "3 of 10 elements differ, by 1 (2), 3..4 (1) steps; SNR 31.2 dB; top-1 the same"
std::string comparison_text(const TensorComparison& comparison);
nlohmann::ordered_json comparison_json(const TensorComparison& comparison);

// ---- runs

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

// ---- other engines as a reference, where a package or a library of theirs is installed

enum class Engine { kOnnxRuntime, kTflite };

// Runs the model on the inputs of each case, in the order of plan's inputs, and sets their outputs. False
// where that cannot be: reason says why, and what to install. Failure where the engine refuses the model.
bool run_engine(Engine engine, const std::string& model, const PlanFile& plan, std::vector<CheckCase>* cases,
                std::string* reason);

// ---- the comparisons: which there are, and what comes out of them

struct CheckOptions {
  ModelOptions model;
  PlacementOptions placement;
  SessionOptions session;
  std::string fuse = "auto";
  std::vector<std::string> expect, against, inputs;
  std::string mean, std;
  std::string reproduce;  // a directory
  uint64_t tolerance = 0;
  uint32_t seeds = 1;
  bool json = false;
  bool self = false;

  [[nodiscard]] bool compares() const { return !expect.empty() || !against.empty(); }
};

// What --against knows beside files.
const std::vector<std::string>& known_references();
// The words of --against, between commas.
std::vector<std::string> against_words(const CheckOptions& options);
// Whether the word is the file of a model, which is packed with the options of the command.
bool names_model(const std::string& word);

// Two sides that should give the same bytes, or one and the outputs of the cases.
struct Comparison {
  std::string label;    // "isa avx2"
  std::string against;  // "the reference kernels"
  CheckSide found;
  std::optional<CheckSide> expected;  // nothing: the outputs of the case
  std::vector<CheckCase> cases;
};

struct Outcome {
  const Comparison* comparison;
  const CheckCase* inputs;
  std::vector<qplan_tensor_info> infos;
  std::vector<TensorComparison> outputs;
  bool is_within = true;
  std::optional<FirstDifference> first;
  std::string note;
};

// The plan, or the one packed of the model, and its comparisons.
class Check {
 public:
  explicit Check(const CheckOptions& options);
  const PlanFile& plan() const { return *plan_; }

  // Call both in this order; outcomes are there afterwards.
  void plan_comparisons();
  void run();
  [[nodiscard]] bool all_within() const;
  [[nodiscard]] const std::vector<Outcome>& outcomes() const { return outcomes_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& skipped() const { return skipped_; }

 private:
  void read_given();

  // The inputs of comparisons that bring none: those that were given, those of --expect, or random ones.
  std::vector<CheckCase> cases();
  CheckSide side(const PlanFile* plan, std::string label) const;
  CheckSide reference(const PlanFile* plan) const;
  void add(CheckSide found, std::optional<CheckSide> expected, std::vector<CheckCase> inputs);

  // all: what does not apply is left out with a line, else it is an error.
  void skip(const std::string& what, const std::string& reason, bool all);
  void add(const std::string& what, bool all);
  void add_isas();
  void add_threads();
  void add_device(bool all);
  void add_cascades(bool all);
  void add_engine(Engine engine, const char* what, const char* name, bool all);

  // Another plan or model.
  void add_file(const std::string& path);
  void check_same_types(const PlanFile& other, int direction) const;

  // Expected outputs of a side, which several comparisons share.
  const TensorBytes& expected_outputs(const Comparison& comparison, const CheckCase& inputs);
  Outcome compare(const Comparison& comparison, const CheckCase& inputs, const TensorBytes& found);
  const Outcome* different_run_before(const Comparison& comparison, const CheckCase& inputs) const;
  void explain(const Comparison& comparison, const CheckCase& inputs, const TensorBytes& expected,
               Outcome* outcome) const;

  const CheckOptions& options_;
  bool is_plan_ = false;
  std::deque<PlanFile> plans_;
  const PlanFile* plan_ = nullptr;
  TensorBytes given_;
  std::deque<Comparison> comparisons_;
  std::vector<Outcome> outcomes_;
  std::map<std::string, TensorBytes> expected_;
  std::vector<std::pair<std::string, std::string>> skipped_;  // what, reason
};

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_CHECK_H_
