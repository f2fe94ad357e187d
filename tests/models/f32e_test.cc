// A small model of every operator that has a rule under contract F32E, from float to float, against NumPy
// (tests/data/f32e/expected.py): the same bytes for every target, instruction set and number of threads.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing::f32e_test {
namespace {

constexpr int kNumCases = 4;

std::vector<uint8_t> read_data(const std::string& name) {
  std::ifstream file("tests/data/f32e/" + name, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

class F32eModel : public ::testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(All, F32eModel, ::testing::ValuesIn(kIsas), isa_test_name);

TEST_P(F32eModel, EqualsNumPyInEveryBit) {
  QPLAN_SKIP_UNLESS_ISA(GetParam());
  for (const char* target : {"cpu", "cpu,isa=avx2", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
    const std::vector<uint8_t> plan = pack_model("tests/data/f32e/model.relay", target);
    for (const uint32_t threads : {1u, 3u}) {
      ModelSession session(plan, GetParam(), threads);
      for (int i = 0; i < kNumCases; ++i) {
        const std::string name = "case" + std::to_string(i);
        const auto outputs = session.run({read_data(name + "_input.bin")});
        ASSERT_EQ(outputs.size(), 1u);
        EXPECT_EQ(outputs[0], read_data(name + "_output.bin"))
            << name << ", " << target << ", " << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace qplan::testing::f32e_test
