// Runs a plan on the reference inputs of its model, and wants the reference's bytes.
#ifndef QPLAN_TESTS_MODELS_EXPECT_GOLDEN_H_
#define QPLAN_TESTS_MODELS_EXPECT_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "qplan/pack.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing {

struct Fusing {
  const char* name;
  uint32_t fuse;
};
inline void PrintTo(const Fusing& fusing, std::ostream* out) { *out << fusing.name; }

// Layers alone, cascades where they pay, and all the cascades that there can be.
inline constexpr Fusing kFusings[] = {
    {"fuse_off", QPLAN_FUSE_OFF}, {"fuse_auto", QPLAN_FUSE_AUTO}, {"fuse_all", QPLAN_FUSE_ALL}};

inline void expect_same(const std::vector<uint8_t>& found, const std::vector<uint8_t>& expected,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  size_t differences = 0, first = 0;
  for (size_t i = expected.size(); i-- > 0;) {
    if (found[i] == expected[i]) continue;
    ++differences;
    first = i;
  }
  EXPECT_EQ(differences, 0u) << what << ": of " << expected.size() << " bytes, the first at " << first
                             << ": found " << int{found[first]} << ", expected " << int{expected[first]};
}

// With 1 to most_threads threads, all cases.
inline void expect_golden(const std::vector<uint8_t>& plan, const std::vector<GoldenCase>& cases,
                          uint32_t isa, uint32_t most_threads = 2) {
  for (uint32_t num_threads = 1; num_threads <= most_threads; ++num_threads) {
    ModelSession session(plan, isa, num_threads);
    for (const GoldenCase& golden : cases) {
      std::vector<std::vector<uint8_t>> inputs;
      for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
      const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
      ASSERT_EQ(outputs.size(), golden.outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        expect_same(
            outputs[i], read_bytes(golden.outputs[i]),
            golden.name + ", output " + std::to_string(i) + ", " + std::to_string(num_threads) + " threads");
      }
    }
  }
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_MODELS_EXPECT_GOLDEN_H_
