// The comparisons of qplan check: which there are, and what comes out of them.
#ifndef QPLAN_TOOLS_CHECK_COMPARISONS_H_
#define QPLAN_TOOLS_CHECK_COMPARISONS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/check_runs.h"
#include "tools/compare.h"
#include "tools/model_options.h"
#include "tools/session.h"

namespace qplan::tools {

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
  void add_onnx_runtime(bool all);

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

#endif  // QPLAN_TOOLS_CHECK_COMPARISONS_H_
