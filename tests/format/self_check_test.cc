// Checksums and inputs of self-checks, and plans whose self-checks are wrong.
#include "format/self_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "format/container.h"
#include "format/plan_view.h"
#include "tests/support/test_kernels.h"

namespace qplan::testing::self_check_format_test {
namespace {

uint32_t crc_of(const char* text, size_t cut) {
  format::Crc32 crc;
  crc.update(text, cut);
  crc.update(text + cut, std::strlen(text) - cut);
  return crc.value();
}

// The check value that catalogues of CRCs publish for CRC-32, and zlib's of another text.
TEST(SelfCheckChecksum, IsCrc32InAnyPieces) {
  for (const size_t cut : {0, 1, 4, 9}) EXPECT_EQ(crc_of("123456789", cut), 0xcbf43926u);
  EXPECT_EQ(crc_of("The quick brown fox jumps over the lazy dog", 7), 0x414fa339u);
  EXPECT_EQ(format::Crc32().value(), 0u);
}

// The first numbers from the seed of Marsaglia's paper ("Xorshift RNGs", 2003, shifts 13, 17, 5), by the
// paper's formula in Python.
constexpr uint32_t kSeed = 2463534242;
constexpr uint32_t kNumbers[] = {723471715, 2497366906, 2064144800, 2008045182};

template <typename T>
std::vector<T> filled(uint8_t code) {
  format::SelfCheckInputs inputs(kSeed);
  std::vector<T> values(4);
  inputs.fill(code, 8 * sizeof(T), values.data(), values.size() * sizeof(T));
  return values;
}

TEST(SelfCheckInputs, AreTheTopBitsOfXorshift) {
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(filled<uint8_t>(kDLUInt)[i], kNumbers[i] >> 24);
    EXPECT_EQ(static_cast<uint8_t>(filled<int8_t>(kDLInt)[i]), kNumbers[i] >> 24);
    EXPECT_EQ(static_cast<uint16_t>(filled<int16_t>(kDLInt)[i]), kNumbers[i] >> 16);
    EXPECT_EQ(static_cast<uint32_t>(filled<int32_t>(kDLInt)[i]), kNumbers[i] >> 28);
    EXPECT_EQ(static_cast<uint64_t>(filled<int64_t>(kDLInt)[i]), kNumbers[i] >> 28);
    EXPECT_EQ(filled<uint8_t>(format::kDLBoolCode)[i], kNumbers[i] >> 31);
    EXPECT_EQ(filled<float>(kDLFloat)[i], (static_cast<int>(kNumbers[i] >> 24) - 128) / 128.0f);
  }
}

TEST(SelfCheckInputs, OfOneInputFollowThoseOfTheOneBefore) {
  format::SelfCheckInputs inputs(kSeed);
  uint8_t first[3], second[1];
  inputs.fill(kDLInt, 8, first, sizeof(first));
  inputs.fill(kDLInt, 8, second, sizeof(second));
  EXPECT_EQ(first[2], kNumbers[2] >> 24);
  EXPECT_EQ(second[0], kNumbers[3] >> 24);
}

// ---- wrong plans ----

PlanSpec checked_spec() {
  PlanSpec spec = sequence_spec();
  spec.functions[0].self_checks = {{1, {10, 11, 12}}, {2, {20, 21, 22}}};
  spec.functions[0].constant_checksums = {0, 0, 0};
  return spec;
}

std::string opened(const PlanSpec& spec) {
  const AlignedBytes plan = build_plan(spec);
  format::PlanView view;
  Error error;
  return view.open(plan.data(), plan.size(), true, &error) == QPLAN_OK ? "" : error.text();
}

TEST(SelfChecksOfAPlan, AreReadWhereEveryListHasAnEntryForEachStep) { EXPECT_EQ(opened(checked_spec()), ""); }

TEST(SelfChecksOfAPlan, AreRefusedWhereTheyAreWrong) {
  const auto refused = [](void (*change)(FunctionSpec&), const char* text) {
    PlanSpec spec = checked_spec();
    change(spec.functions[0]);
    EXPECT_NE(opened(spec).find(text), std::string::npos) << opened(spec);
  };
  refused([](FunctionSpec& f) { f.self_checks[1].seed = 0; },
          "self-check 1 has seed 0 and 3 checksums, expected a seed other than 0 and 3");
  refused([](FunctionSpec& f) { f.self_checks[0].outputs.pop_back(); }, "self-check 0 has seed 1 and 2");
  refused([](FunctionSpec& f) { f.self_checks[0].outputs.push_back(1); }, "self-check 0 has seed 1 and 4");
  refused([](FunctionSpec& f) { f.self_checks[0].outputs.clear(); }, "self-check 0 has seed 1 and 0");
  refused([](FunctionSpec& f) { f.constant_checksums.clear(); },
          "2 self-checks and 0 checksums of constants, expected at most 64 and 3");
  refused([](FunctionSpec& f) { f.constant_checksums.resize(4); }, "2 self-checks and 4 checksums");
  refused([](FunctionSpec& f) { f.self_checks.clear(); }, "0 self-checks and 3 checksums");
  refused([](FunctionSpec& f) { f.self_checks.resize(65, f.self_checks[0]); }, "65 self-checks");
}

}  // namespace
}  // namespace qplan::testing::self_check_format_test
