// Jobs that a run of a plan leaves with record=DIR, on two simulators that share nothing: ours, and
// replay_vta.py, which was written from the specification alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/npu_path/two_regions.h"

namespace qplan::npu_path::record_test {
namespace {

class Directory {
 public:
  explicit Directory(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("qplan-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Exit statuses of the replayer: 0 the same bytes, 1 other bytes, 2 no NumPy.
int replay_in_python(const std::filesystem::path& job) {
  const std::string command =
      std::string(QPLAN_TEST_PYTHON) + " tests/npu_path/replay_vta.py '" + job.string() + "'";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Record, BothSimulatorsGiveTheBytesOfTheRun) {
  for (const char* target : {"vta, cpu", "vta,sram=quarter, cpu"}) {
    const Directory directory("record");
    const PackResult packed = pack_text(two_regions_text(), {.target = target});
    ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
    const bool quarter = std::string(target).find("quarter") != std::string::npos;
    {
      NpuSession session(packed.plan, {.simulator = std::string(quarter ? "sram=quarter," : "") +
                                                    "record=" + directory.path().string(),
                                       .policy = QPLAN_NPU_FAIL});
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      ASSERT_FALSE(session.run(sample_inputs(session, 3)).empty()) << session.text();
      ASSERT_EQ(session.device().jobs, 2u);
    }
    for (const char* job : {"job-0000", "job-0001"}) {
      qplan_npu_report report{};
      report.struct_size = sizeof(report);
      EXPECT_EQ(qplan_npu_sim_replay((directory.path() / job).c_str(),
                                     quarter ? "sram=quarter,explore=4" : "explore=4", &report),
                QPLAN_NPU_OK)
          << report.text;
      const int python = replay_in_python(directory.path() / job);
      if (python == 2) GTEST_SKIP() << "no NumPy for " << QPLAN_TEST_PYTHON;
      EXPECT_EQ(python, 0) << target << " " << job;
    }
    // The replayer detects changes: with one different byte in the loaded data the checks fail.
    const std::filesystem::path job = directory.path() / "job-0001";
    for (const auto& entry : std::filesystem::directory_iterator(job)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("check-", 0) != 0) continue;
      FILE* file = std::fopen(entry.path().c_str(), "r+b");
      ASSERT_NE(file, nullptr);
      const int first = std::fgetc(file);
      std::rewind(file);
      std::fputc(first ^ 1, file);
      std::fclose(file);
    }
    EXPECT_EQ(replay_in_python(job), 1);
  }
}

}  // namespace
}  // namespace qplan::npu_path::record_test
