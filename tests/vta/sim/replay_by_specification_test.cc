// Recorded jobs on a simulator that shares nothing with ours: npu_path/replay_vta.py, written from the
// specification.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/vta/sim/sim_device.h"

namespace qplan::sim::replay_by_specification_test {
namespace {

// Exit statuses of the replayer: 0 the same bytes, 1 other bytes, 2 no NumPy.
int replay_in_python(const std::filesystem::path& job) {
  const std::string command =
      std::string(QPLAN_TEST_PYTHON) + " tests/npu_path/replay_vta.py '" + job.string() + "'";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void flip_first_bit(const std::filesystem::path& path) {
  FILE* file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr) << path;
  const int first = std::fgetc(file);
  std::rewind(file);
  std::fputc(first ^ 1, file);
  std::fclose(file);
}

TEST(SimReplay, AnIndependentReaderOfTheSpecificationGivesTheSameBytes) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("qplan-replay-" + std::to_string(::getpid()));
  std::filesystem::remove_all(directory);
  {
    SimDevice d("record=" + directory.string());
    for (const uint8_t start : {uint8_t{1}, uint8_t{200}}) {
      d.write(d.input, sample_input(start));
      ASSERT_EQ(d.run(), QPLAN_NPU_OK) << d.report.text;
    }
  }
  int status = 0;
  for (const char* job : {"job-0000", "job-0001"}) {
    status = replay_in_python(directory / job);
    if (status != 0) break;
  }
  if (status == 2) {
    std::filesystem::remove_all(directory);
    GTEST_SKIP() << "no NumPy for " << QPLAN_TEST_PYTHON;
  }
  EXPECT_EQ(status, 0);
  // It detects changes: one bit of what is checked, and of what is loaded.
  flip_first_bit(directory / "job-0000" / "check-3.bin");
  EXPECT_EQ(replay_in_python(directory / "job-0000"), 1);
  flip_first_bit(directory / "job-0001" / "load-2.bin");
  EXPECT_EQ(replay_in_python(directory / "job-0001"), 1);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace qplan::sim::replay_by_specification_test
