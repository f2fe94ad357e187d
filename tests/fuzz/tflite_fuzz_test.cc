// Damaged .tflite files: the packer refuses them with a reason, or makes a plan that opens and runs to the
// end.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pack_and_run.h"
#include "tests/fuzz/sources.h"

namespace qplan::testing::tflite_fuzz_test {
namespace {

Outcome pack_and_run(const Bytes& model, uint64_t seed) {
  return pack_and_run_model(model, "model.tflite", fuzz_pack_options(), seed);
}

TEST(TfliteFuzz, EmptyAndTinyFilesAreRefused) {
  for (size_t size : {0, 1, 3, 4, 7, 8, 63}) {
    EXPECT_EQ(pack_and_run(Bytes(size, 0), 0), Outcome::kRefused) << size << " zeros";
    EXPECT_EQ(pack_and_run(Bytes(size, 0xff), 0), Outcome::kRefused) << size << " bytes 255";
  }
}

TEST(TfliteFuzz, NullModelIsRefused) {
  qplan_error error = new_error();
  Bytes plan;
  const qplan_pack_options options = fuzz_pack_options();
  EXPECT_LT(qplan_pack_bytes(nullptr, 0, "null.tflite", &options, append, &plan, &error), 0);
  EXPECT_LT(qplan_pack_bytes(nullptr, 64, "null.tflite", &options, append, &plan, &error), 0);
  EXPECT_TRUE(plan.empty());
}

class TfliteFuzzSource : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    model_ = read_file(source_path(GetParam()));
    if (model_.empty()) GTEST_SKIP() << source_path(GetParam()) << " is not there; set QPLAN_SHARED";
    Bytes plan;
    qplan_error error = new_error();
    ASSERT_EQ(pack(model_, &plan, &error), QPLAN_OK) << error.text;
    ASSERT_EQ(run_plan(plan, QPLAN_PLAN_DIGEST, 0), Outcome::kRan);
  }

  void run_damaged(Damage damage) {
    CaseWatch watch;
    Outcomes outcomes;
    const SeedRange seeds = seeds_of(GetParam());
    for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
      watch.run(GetParam() + ".tflite, " + damage_name(damage) + ", seed " + std::to_string(seed),
                [&] { outcomes.add(pack_and_run(damaged(model_, damage, seed), seed)); });
    }
    watch.report(outcomes.text());
  }

  Bytes model_;
};

TEST_P(TfliteFuzzSource, TruncatedAtEvery64thByte) {
  CaseWatch watch;
  Outcomes outcomes;
  for (size_t size = 0; size < model_.size(); size += 64) {
    watch.run(GetParam() + ".tflite, truncated to " + std::to_string(size),
              [&] { outcomes.add(pack_and_run(truncated(model_, size), size)); });
  }
  watch.report(outcomes.text());
}

TEST_P(TfliteFuzzSource, FlippedBits) { run_damaged(Damage::kBits); }
TEST_P(TfliteFuzzSource, OverwrittenWords) { run_damaged(Damage::kWords); }

INSTANTIATE_TEST_SUITE_P(Models, TfliteFuzzSource, ::testing::ValuesIn(source_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace qplan::testing::tflite_fuzz_test
