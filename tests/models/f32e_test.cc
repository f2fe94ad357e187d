// A small model of every operator that has a rule under contract F32E, from float to float, against NumPy
// (tests/data/f32e/expected.py): the same bytes for every target, instruction set and number of threads.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/model_session.h"

namespace qplan::testing {
namespace {

constexpr int kNumCases = 4;

std::vector<uint8_t> read_data(const std::string& name) {
  std::ifstream file("tests/data/f32e/" + name, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

TEST(F32eModel, EqualsNumPyInEveryBit) {
  for (const char* target : {"cpu", "cpu,isa=avx2", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
    const std::vector<uint8_t> plan = pack_model("tests/data/f32e/model.relay", target);
    for (const uint32_t isa : {QPLAN_ISA_REFERENCE, QPLAN_ISA_AVX2, QPLAN_ISA_AVX512VNNI}) {
      if (qplan_isa_available(isa) == 0) continue;
      for (const uint32_t threads : {1u, 3u}) {
        ModelSession session(plan, isa, threads);
        for (int i = 0; i < kNumCases; ++i) {
          const std::string name = "case" + std::to_string(i);
          const auto outputs = session.run({read_data(name + "_input.bin")});
          ASSERT_EQ(outputs.size(), 1u);
          EXPECT_EQ(outputs[0], read_data(name + "_output.bin"))
              << name << ", " << target << ", isa " << isa << ", " << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace qplan::testing
