// Packs a damaged model and runs what comes of it: a refusal must explain itself and write nothing, a plan
// must run.
#ifndef QPLAN_TESTS_FUZZ_PACK_AND_RUN_H_
#define QPLAN_TESTS_FUZZ_PACK_AND_RUN_H_

#include <functional>
#include <string>

#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/run_plan.h"
#include "tests/fuzz/sources.h"

namespace qplan::testing {

// name: the model's, in errors. seed: of the inputs.
inline Outcome pack_and_run_model(const Bytes& model, const char* name, const qplan_pack_options& options,
                                  uint64_t seed) {
  const Bytes exact(model);  // its capacity is its size: reading past the end is seen
  qplan_error error = new_error();
  Bytes plan;
  const qplan_status status =
      qplan_pack_bytes(exact.data(), exact.size(), name, &options, append, &plan, &error);
  if (status != QPLAN_OK) {
    expect_explained(status, error);
    EXPECT_NE(status, QPLAN_INTERNAL) << error.text;
    EXPECT_TRUE(plan.empty()) << "an error, but " << plan.size() << " bytes were written";
    return Outcome::kRefused;
  }
  const Outcome outcome = run_plan(plan, QPLAN_PLAN_DIGEST, seed);
  EXPECT_NE(outcome, Outcome::kRefused) << "the packer made a plan that the runtime refuses";
  return outcome;
}

// run_case for each of all seeds, watched; one line about all of them.
inline void run_seeds(const std::string& what, const std::function<Outcome(uint64_t seed)>& run_case) {
  CaseWatch watch;
  Outcomes outcomes;
  const SeedRange range = all_seeds();
  for (uint64_t seed = range.begin; seed < range.end; ++seed)
    watch.run(what + ", seed " + std::to_string(seed), [&] { outcomes.add(run_case(seed)); });
  watch.report(outcomes.text());
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_PACK_AND_RUN_H_
