// Damaged .qplan files: open or init refuses them with a reason, or invoke runs to the end inside its
// memories.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "format/container.h"
#include "src/base/sha256.h"
#include "src/packer/inspect/inspect.h"
#include "tests/fuzz/all_kernels_plan.h"
#include "tests/fuzz/case_watch.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run_plan.h"
#include "tests/fuzz/sources.h"

namespace qplan::testing::plan_fuzz_test {
namespace {

format::Header header_of(const Bytes& plan) {
  format::Header header{};
  std::memcpy(&header, plan.data(), sizeof(header));
  return header;
}

// Makes the header's digest that of the bytes, as an attacker would. False when the header is too damaged for
// that.
bool renew_digest(Bytes* plan) {
  const format::Header header = header_of(*plan);
  if (header.file_size < sizeof(header) || header.file_size > plan->size()) return false;
  Sha256 sha;
  sha.update(plan->data() + sizeof(header), header.file_size - sizeof(header));
  sha.finish(plan->data() + offsetof(format::Header, digest));
  return true;
}

TEST(PlanFuzz, EmptyAndTinyFilesAreRefused) {
  for (size_t size : {0, 1, 4, 63, 64, 65, 128}) {
    for (uint32_t flags : {0u, static_cast<uint32_t>(QPLAN_PLAN_DIGEST)}) {
      EXPECT_EQ(run_plan(Bytes(size, 0), flags, 0), Outcome::kRefused) << size << " zeros";
      Bytes magic(size, 0);
      std::copy_n(format::kMagic, std::min(size, sizeof(format::kMagic)), magic.begin());
      EXPECT_EQ(run_plan(magic, flags, 0), Outcome::kRefused) << "'QPLN' and zeros, " << size << " bytes";
    }
  }
}

TEST(PlanFuzz, NullPlanIsRefused) {
  qplan_plan plan;
  qplan_error error = new_error();
  EXPECT_LT(qplan_plan_open(&plan, nullptr, 0, 0, &error), 0);
  EXPECT_LT(qplan_plan_open(&plan, nullptr, 4096, 0, nullptr), 0);
  EXPECT_LT(qplan_inspect_json(nullptr, 0, ignore_text, nullptr, &error), 0);
  EXPECT_LT(qplan_disassemble(nullptr, 0, ignore_text, nullptr, &error), 0);
}

// The bytes after a tap in memory are multiplied too.
TEST(PlanFuzz, WeightsBehindTapsAreRefused) {
  Bytes plan = AllKernelsPlan::make();
  const inspect::PlanReader reader(plan);
  uint32_t num_layers = 0;
  for (uint32_t i = 0; i < reader.view().num_steps(); ++i) {
    const format::KernelStep& step = reader.view().step(i);
    const auto* params = step.params_as_Conv2dParams();
    if (params == nullptr || params->weights_layout() < kLayout_o16r4) continue;
    ++num_layers;
    const format::Tensor& weights = reader.view().tensor(step.inputs()->Get(1));
    const uint64_t last =
        reader.view().bank(weights.bank()).file_offset() + weights.offset() + weights.size() - 1;
    Bytes bytes = plan;
    EXPECT_EQ(bytes[last], 0);
    bytes[last] = 1;
    EXPECT_EQ(run_plan(plan, 0, 0), Outcome::kRan);
    EXPECT_EQ(run_plan(bytes, 0, 0), Outcome::kRefused) << layout_name(params->weights_layout());
  }
  EXPECT_EQ(num_layers, 4u);
}

constexpr char kAllKernels[] = "all_kernels";
constexpr char kF32e[] = "f32e";                   // every operator under the contract of floats
constexpr char kRests[] = "rests";                 // of weights
constexpr char kComputedBias[] = "computed_bias";  // of a convolution
constexpr char kLabels[] = "labels";               // of pixels that are resized
constexpr char kPools[] = "pools";                 // as layers of cascades
constexpr char kRegionsModel[] = "samples/models/digits.tflite";
constexpr char kRegions[] = "regions";           // on a device, with their fallback steps
constexpr char kSelfChecked[] = "self_checked";  // the digits model with self-checks
constexpr char kCopied[] = "copied";             // the digits model with copies of constants in two areas
constexpr char kCopiedTarget[] = "tests/fuzz/corpus/target/copies";
constexpr char kF32ePlan[] = "tests/data/plans/f32e_v1.1_x86_64.qplan";
constexpr char kRestsPlan[] = "tests/data/plans/rests_v1.14_x86_64.qplan";
constexpr char kComputedBiasPlan[] = "tests/data/plans/computed_bias_v1.15_x86_64.qplan";
constexpr char kLabelsPlan[] = "tests/data/plans/labels_v1.16_x86_64.qplan";
constexpr char kPoolsPlan[] = "tests/data/plans/pools_v1.16_x86_64.qplan";

// The kept plan of that name; null: none.
const char* kept_plan(std::string_view name) {
  if (name == kF32e) return kF32ePlan;
  if (name == kRests) return kRestsPlan;
  if (name == kComputedBias) return kComputedBiasPlan;
  if (name == kPools) return kPoolsPlan;
  return name == kLabels ? kLabelsPlan : nullptr;
}

std::vector<std::string> plan_sources() {
  std::vector<std::string> names = source_names();
  names.push_back(kAllKernels);
  names.push_back(kF32e);
  names.push_back(kRests);
  names.push_back(kComputedBias);
  names.push_back(kLabels);
  names.push_back(kPools);
  names.push_back(kRegions);
  names.push_back(kSelfChecked);
  names.push_back(kCopied);
  return names;
}

class PlanFuzzSource : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == kAllKernels) {
      plan_ = AllKernelsPlan::make();
    } else if (const char* kept = kept_plan(GetParam())) {
      plan_ = read_file(kept);
      ASSERT_FALSE(plan_.empty());
    } else if (GetParam() == kRegions || GetParam() == kSelfChecked || GetParam() == kCopied) {
      const Bytes model = read_file(kRegionsModel);
      ASSERT_FALSE(model.empty()) << kRegionsModel;
      qplan_pack_options options = fuzz_pack_options();
      if (GetParam() == kRegions) {
        options.target = "vta, cpu";
        options.no_cost_gate = 1;
      } else if (GetParam() == kSelfChecked) {
        options.self_checks = 2;
      } else {
        options.target_file = kCopiedTarget;
      }
      qplan_error error = new_error();
      ASSERT_EQ(
          qplan_pack_bytes(model.data(), model.size(), "digits.tflite", &options, append, &plan_, &error),
          QPLAN_OK)
          << error.text;
    } else {
      const Bytes model = read_file(source_path(GetParam()));
      if (model.empty()) GTEST_SKIP() << source_path(GetParam()) << " is not there; set QPLAN_SHARED";
      qplan_error error = new_error();
      ASSERT_EQ(pack(model, &plan_, &error), QPLAN_OK) << error.text;
    }
    ASSERT_EQ(run_plan(plan_, QPLAN_PLAN_DIGEST, 0), Outcome::kRan);
  }

  // Even seeds keep the digest of the sound plan, odd seeds renew it; of both, every other checks it.
  void run_damaged(Damage damage) {
    const size_t structure = sizeof(format::Header) + header_of(plan_).root_size;
    CaseWatch watch;
    Outcomes outcomes;
    const SeedRange seeds = seeds_of(GetParam());
    for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
      watch.run(GetParam() + ".qplan, " + damage_name(damage) + ", seed " + std::to_string(seed), [&] {
        Bytes bytes = damaged(plan_, damage, seed, structure);
        const bool renewed = seed % 2 == 1 && renew_digest(&bytes);
        const uint32_t flags = seed / 2 % 2 == 1 ? QPLAN_PLAN_DIGEST : 0;
        const Outcome outcome = run_plan(bytes, flags, seed);
        outcomes.add(outcome);
        const bool body_damaged =
            std::memcmp(bytes.data() + sizeof(format::Header), plan_.data() + sizeof(format::Header),
                        plan_.size() - sizeof(format::Header)) != 0;
        if (flags != 0 && !renewed && body_damaged) {
          EXPECT_EQ(outcome, Outcome::kRefused) << "the digest is wrong and nobody noticed";
        }
      });
    }
    watch.report(outcomes.text());
  }

  Bytes plan_;
};

TEST_P(PlanFuzzSource, TruncatedAtEvery64thByte) {
  CaseWatch watch;
  for (size_t size = 0; size < plan_.size(); size += 64) {
    watch.run(GetParam() + ".qplan, truncated to " + std::to_string(size), [&] {
      EXPECT_EQ(run_plan(truncated(plan_, size), 0, size), Outcome::kRefused);
      Bytes shortened = truncated(plan_, size);  // and the same with a header that agrees
      if (size < sizeof(format::Header)) return;
      format::Header header = header_of(shortened);
      header.file_size = size;
      header.content_size = std::min<uint64_t>(header.content_size, size);
      std::memcpy(shortened.data(), &header, sizeof(header));
      ASSERT_TRUE(renew_digest(&shortened));
      run_plan(shortened, QPLAN_PLAN_DIGEST, size);
    });
  }
  watch.report("all refused");
}

TEST_P(PlanFuzzSource, FlippedBits) { run_damaged(Damage::kBits); }
TEST_P(PlanFuzzSource, OverwrittenWords) { run_damaged(Damage::kWords); }

INSTANTIATE_TEST_SUITE_P(Models, PlanFuzzSource, ::testing::ValuesIn(plan_sources()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace qplan::testing::plan_fuzz_test
