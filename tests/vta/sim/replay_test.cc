// Records from anybody: what job.txt may say, which files it may name, and how much a job may do.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/vta/sim/sim_device.h"

namespace qplan::sim::replay_test {
namespace {

namespace fs = std::filesystem;

constexpr char kHead[] = "target vta\nbase 0x1000\nsize 0x3000\n";
constexpr char kLoads[] = "load 0x1100 load-0.bin\nload 0x1200 load-1.bin\nload 0x2000 load-2.bin\n";
constexpr char kRun[] = "run instructions.bin\n";
constexpr char kCheck[] = "check 0x3000 0x10 check-3.bin\n";

class SimReplayOfHostileRecords : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() / (std::string("qplan-") + test.name() + "-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    SimDevice d("record=" + folder_.string());
    d.write(d.input, sample_input());
    ASSERT_EQ(d.run(), QPLAN_NPU_OK) << d.report.text;
    job_ = folder_ / "job-0000";
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(job_ / name, std::ios::binary) << bytes;
  }
  // Replays that job.txt. Every failure states why.
  qplan_npu_status replay(const std::string& text, const std::string& options = "") {
    put("job.txt", text);
    return replay_as_it_is(options);
  }
  qplan_npu_status replay_as_it_is(const std::string& options = "") {
    report_ = {};
    report_.struct_size = sizeof(report_);
    const auto begin = std::chrono::steady_clock::now();
    const qplan_npu_status status = qplan_npu_sim_replay(job_.c_str(), options.c_str(), &report_);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(report_.status, status);
    EXPECT_EQ(report_.text[0] == '\0', status == QPLAN_NPU_OK);
    return status;
  }
  void expect_refused(const std::string& job, const std::string& why) {
    EXPECT_EQ(replay(job), QPLAN_NPU_E_ARGUMENT) << job;
    EXPECT_NE(std::string(report_.text).find(why), std::string::npos) << report_.text;
  }
  // The job with one load of that file in place of its second one.
  void expect_no_file(const std::string& name, const std::string& why) {
    expect_refused(kHead + ("load 0x1100 load-0.bin\nload 0x1200 " + name + "\n") + kRun + kCheck, why);
  }

  fs::path folder_, job_;
  qplan_npu_report report_ = {};
};

TEST_F(SimReplayOfHostileRecords, TheRecordItselfIsRight) {
  EXPECT_EQ(replay(std::string(kHead) + kLoads + kRun + kCheck), QPLAN_NPU_OK) << report_.text;
  // Ranges are judged against the arena, wherever its line is.
  EXPECT_EQ(replay(std::string(kCheck) + kRun + kLoads + kHead), QPLAN_NPU_OK) << report_.text;
  EXPECT_EQ(replay(std::string("# a comment\n\n") + kHead + kLoads + kRun + kCheck), QPLAN_NPU_OK);
}

TEST_F(SimReplayOfHostileRecords, NothingIsSaidTwice) {
  // An arena that shrinks after a load at its end; a base that moves after a check.
  expect_refused(std::string("target vta\nbase 0x1000\nsize 0x3000\nload 0x3f00 load-0.bin\nsize 0x1000\n") +
                     kRun + kCheck,
                 "job.txt line 5: a second 'size', expected one");
  expect_refused(
      std::string("target vta\nbase 0x2000\nsize 0x3000\n") + kCheck + "base 0x1000\n" + kLoads + kRun,
      "job.txt line 5: a second 'base', expected one");
  expect_refused(std::string(kHead) + kLoads + kRun + kRun + kCheck, "a second 'run'");
  expect_refused(std::string(kHead) + "target vta\n" + kLoads + kRun + kCheck, "a second 'target'");
}

TEST_F(SimReplayOfHostileRecords, RangesLieInTheArena) {
  const std::string end = std::string(kLoads) + kRun + kCheck;
  expect_refused(kHead + ("load 0x3fff load-0.bin\n" + end),
                 "4 bytes at 0x3fff are outside the arena, which has 12288 at 0x1000");
  expect_refused(kHead + ("load 0xfff load-0.bin\n" + end), "are outside the arena");
  expect_refused(kHead + ("load 0xffffffffffffffff load-0.bin\n" + end), "are outside the arena");
  expect_refused(kHead + ("check 0x3ff8 0x10 check-3.bin\n" + end),
                 "16 bytes at 0x3ff8 are outside the arena");
  expect_refused(kHead + ("check 0x3000 0xffffffffffffffff check-3.bin\n" + end), "are outside the arena");
  // The last bytes of the arena are inside.
  EXPECT_EQ(replay(kHead + ("load 0x3ffc load-0.bin\n" + end)), QPLAN_NPU_OK) << report_.text;
  // Addresses have 32 bits.
  expect_refused("target vta\nbase 0xfffffffffffff000\nsize 0x3000\n" + end, "32 bits of address");
  expect_refused("target vta\nbase 0xffffe000\nsize 0x3000\n" + end, "32 bits of address");
  expect_refused("target vta\nbase 0x1001\nsize 0x3000\n" + end, "base '0x1001' is no device address");
  expect_refused("target vta\nbase 0x1000\n" + end, "no size");
  expect_refused("target vta\nbase 0x1000\nsize 0\n" + end, "size '0' is no number of bytes");
  expect_refused(std::string(kHead) + kLoads + kCheck, "no run");
  expect_refused(std::string(kHead) + kLoads + kRun, "no check");
}

TEST_F(SimReplayOfHostileRecords, OnlyFilesInsideTheDirectoryAreRead) {
  const std::string outside = "is outside the job's directory";
  const std::string absolute = (job_ / "load-1.bin").string();
  expect_no_file(absolute, outside);
  expect_no_file("/dev/zero", outside);
  expect_no_file("../job-0000/load-1.bin", outside);
  expect_no_file("./load-1.bin", outside);
  expect_no_file("..", outside);
  expect_no_file("load-1.bin/", "cannot open 'load-1.bin/': Not a directory");
  expect_no_file(std::string("load-1.bin\0.txt", 15), outside);
  expect_no_file("none.bin", "cannot read 'none.bin': No such file or directory");
  fs::create_directory(job_ / "more");
  fs::copy_file(job_ / "load-1.bin", job_ / "more" / "load-1.bin");
  EXPECT_EQ(
      replay(std::string(kHead) +
             "load 0x1100 load-0.bin\nload 0x1200 more/load-1.bin\nload 0x2000 load-2.bin\n" + kRun + kCheck),
      QPLAN_NPU_OK)
      << report_.text;
  expect_no_file("more/../load-1.bin", outside);
  fs::create_directory_symlink(folder_ / "job-0000", job_ / "linked");
  expect_no_file("linked/load-1.bin", "cannot open 'linked/load-1.bin'");
}

TEST_F(SimReplayOfHostileRecords, OnlyRegularFilesAreReadAndNoneIsWaitedFor) {
  const std::string irregular = "is not a regular file; a job names no links, pipes or devices";
  fs::create_symlink("/dev/zero", job_ / "zeros");
  expect_no_file("zeros", "'zeros' " + irregular);
  fs::create_symlink("load-1.bin", job_ / "link.bin");
  expect_no_file("link.bin", irregular);
  ASSERT_EQ(::mkfifo((job_ / "fifo").c_str(), 0600), 0);
  expect_no_file("fifo", irregular);
  expect_refused(std::string(kHead) + kLoads + "run fifo\n" + kCheck, irregular);
  expect_refused(std::string(kHead) + kLoads + kRun + "check 0x3000 0x10 fifo\n", irregular);
  fs::create_directory(job_ / "folder");
  expect_no_file("folder", irregular);
  // job.txt too.
  fs::remove(job_ / "job.txt");
  ASSERT_EQ(::mkfifo((job_ / "job.txt").c_str(), 0600), 0);
  EXPECT_EQ(replay_as_it_is(), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(report_.text, "replay: 'job.txt' " + irregular);
  fs::remove(job_ / "job.txt");
  fs::create_symlink("/dev/zero", job_ / "job.txt");
  EXPECT_EQ(replay_as_it_is(), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(report_.text, "replay: 'job.txt' " + irregular);
}

TEST_F(SimReplayOfHostileRecords, SizesAreBoundedBeforeAnythingIsRead) {
  // A file with a hole of 2^40 bytes: reading it would take all memory.
  const auto make_huge = [&](const std::string& name) {
    put(name, "");
    std::error_code code;
    fs::resize_file(job_ / name, uint64_t{1} << 40, code);
    return !code;
  };
  if (!make_huge("huge")) GTEST_SKIP() << "no file of 2^40 bytes can be made in " << job_;
  expect_no_file("huge", "1099511627776 bytes at 0x1200 are outside the arena");
  expect_refused(std::string(kHead) + kLoads + "run huge\n" + kCheck,
                 "'huge' has 1099511627776 bytes, expected at most 33554432");
  expect_refused(std::string(kHead) + kLoads + kRun + "check 0x3000 0x10 huge\n",
                 "'huge' has 1099511627776 bytes, expected 16");
  ASSERT_TRUE(make_huge("job.txt"));
  EXPECT_EQ(replay_as_it_is(), QPLAN_NPU_E_ARGUMENT);
  EXPECT_STREQ(report_.text, "replay: 'job.txt' has 1099511627776 bytes, expected at most 4194304");
  // The arena: the device's memory, by option.
  const std::string rest = std::string(kLoads) + kRun + kCheck;
  expect_refused(
      "size 0x10001000\n" + rest,
      "the arena has 268439552 bytes, the device's memory 268435456; option memory=BYTES makes it larger");
  EXPECT_EQ(replay("size 0x3000\n" + rest, "memory=8192"), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(replay("size 0x3000\n" + rest, "memory=12288"), QPLAN_NPU_OK) << report_.text;
  // The compared bytes are no more than the arena has.
  std::string checks;
  for (int i = 0; i < 769; ++i) checks += kCheck;
  expect_refused(kHead + std::string(kLoads) + kRun + checks,
                 "the checks compare 12304 bytes, the arena has 12288");
}

TEST_F(SimReplayOfHostileRecords, WorkIsBounded) {
  // The stream of the record: 3 loads of 1 element, 2 products, 1 store.
  const std::string right = std::string(kHead) + kLoads + kRun + kCheck;
  EXPECT_EQ(replay(right, "work=6"), QPLAN_NPU_OK) << report_.text;
  EXPECT_EQ(replay(right, "work=5"), QPLAN_NPU_E_ILLEGAL);
  EXPECT_STREQ(
      report_.text,
      "replay: instruction 5: the job executes and moves more than 5 micro-ops and elements; option work=N "
      "allows more");
  // An instruction that would take days.
  std::vector<vta::Instruction> stream = {vta::testing::gemm(0, 8192), vta::testing::finish()};
  stream[0].iter_in = stream[0].iter_out = 16383;
  const std::vector<uint8_t> bytes = vta::testing::bytes_of(vta::kDefaultConfig, stream);
  put("instructions.bin", std::string(bytes.begin(), bytes.end()));
  EXPECT_EQ(replay(right), QPLAN_NPU_E_ILLEGAL);
  EXPECT_NE(std::string(report_.text).find("instruction 0: the job executes and moves more than 1073741824"),
            std::string::npos)
      << report_.text;
}

TEST_F(SimReplayOfHostileRecords, TextsAreOneLineOfPrintableCharacters) {
  expect_refused("burn\x1b[31m\r all\n", "job.txt line 1: cannot understand 'burn?[31m?'");
  expect_refused(std::string(1000, 'x') + "\n", std::string(57, 'x') + "...'");
  expect_refused(std::string("\0\xff\n", 3), "cannot understand '?");
  job_ = folder_ / "none";
  EXPECT_EQ(replay_as_it_is(), QPLAN_NPU_E_ARGUMENT);
  EXPECT_NE(std::string(report_.text).find("No such file or directory"), std::string::npos) << report_.text;
}

}  // namespace
}  // namespace qplan::sim::replay_test
