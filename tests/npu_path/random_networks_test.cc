// Random networks with regions on the simulator: the bytes of the independent interpreter and of the CPU's
// plan. QPLAN_TEST_SEEDS=<first>:<count> runs other seeds than the default ones, and more of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/packer/text/text.h"
#include "tests/npu_path/npu_session.h"
#include "tests/packer/pipeline/naive_interpreter.h"
#include "tests/packer/pipeline/random_network.h"

namespace qplan::npu_path::random_networks_test {
namespace {

struct Tally {
  uint64_t packed = 0, regions = 0, jobs = 0, with_device = 0;
};

Bytes bytes_of(const ir::Constant& constant) { return {constant.bytes().begin(), constant.bytes().end()}; }

void run_seed(uint64_t seed, const std::string& contract, Tally* tally) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + contract);
  naive::RandomNetwork network(seed, contract);
  const std::vector<ir::ConstantRef> constants = network.inputs();
  std::vector<Bytes> inputs, expected;
  for (const ir::ConstantRef& input : constants) inputs.push_back(bytes_of(*input));
  for (const naive::Tensor& tensor : naive::Interpreter(network.meaning()).run(constants)) {
    expected.push_back(bytes_of(*naive::to_constant(tensor)));
  }
  const std::string text = text::print(network.main_module());
  const bool quarter = seed % 2 == 0;
  const PackResult packed = pack_text(text, {.target = std::string(quarter ? "vta,sram=quarter, " : "vta, ") +
                                                       (seed % 3 == 0 ? "cpu,isa=reference" : "cpu")});
  ASSERT_EQ(packed.status, QPLAN_OK) << packed.text << "\n" << text;
  ++tally->packed;
  std::string simulator = "explore=4,seed=" + std::to_string(seed);
  if (quarter) simulator += ",sram=quarter";
  if (seed % 5 == 0) simulator += ",coherent=0";
  NpuSession session(packed.plan, {.simulator = simulator, .policy = QPLAN_NPU_FAIL, .timeout_us = 60000000});
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text() << "\n" << packed.summary;
  // Twice: the second time in memory that holds the first one's bytes.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.run(inputs), expected) << session.text() << "\n" << packed.summary << "\n" << text;
  }
  const uint32_t regions = session.num_regions();
  tally->regions += regions;
  tally->with_device += regions > 0 ? 1 : 0;
  for (uint32_t r = 0; r < regions; ++r) {
    EXPECT_EQ(session.region(r).device_runs, 2u) << session.region(r).text;
    EXPECT_EQ(session.region(r).cpu_runs, 0u);
    tally->jobs += session.region(r).device_runs;
  }
  // The same plan on the CPU.
  NpuSession cpu(packed.plan, {.flags = QPLAN_NPU_OFF});
  ASSERT_EQ(cpu.status(), QPLAN_OK) << cpu.text();
  EXPECT_EQ(cpu.run(inputs), expected) << cpu.text() << "\n" << packed.summary << "\n" << text;
  session.close();
  EXPECT_EQ(session.memory().live(), 0u);
}

void run_seeds(const std::string& contract) {
  uint64_t first = 1, count = 150;
  const char* const asked = std::getenv("QPLAN_TEST_SEEDS");
  if (asked != nullptr) {
    char* end = nullptr;
    first = std::strtoull(asked, &end, 10);
    count = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : 1;
  }
  Tally tally;
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    run_seed(seed, contract, &tally);
  }
  std::printf("%llu packed, %llu with regions, %llu regions, %llu jobs\n",
              static_cast<unsigned long long>(tally.packed),
              static_cast<unsigned long long>(tally.with_device),
              static_cast<unsigned long long>(tally.regions), static_cast<unsigned long long>(tally.jobs));
  EXPECT_TRUE(asked != nullptr || tally.with_device > count / 4) << "hardly anything runs on the device";
}

TEST(RandomNpuNetworks, GiveTheInterpretersBytesUnderTFL2) { run_seeds("tfl2"); }
// int32 leaves the device, the CPU finishes.
TEST(RandomNpuNetworks, GiveTheInterpretersBytesUnderF32E) { run_seeds("f32e"); }

}  // namespace
}  // namespace qplan::npu_path::random_networks_test
