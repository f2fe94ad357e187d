#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "qplan/host.h"

namespace {

namespace fs = std::filesystem;

class HostFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "qplan-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    error_.struct_size = sizeof(error_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  qplan_status write(const std::string& to, const std::string& text) {
    return qplan_file_write(to.c_str(), text.data(), text.size(), &error_);
  }
  static std::string read(const std::string& from) {
    std::ifstream file(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files_in_directory() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) count += entry.exists() ? 1 : 0;
    return count;
  }

  fs::path directory_;
  qplan_error error_ = {};
};

TEST_F(HostFile, WritesAndMaps) {
  ASSERT_EQ(write(path("a"), "hello"), QPLAN_OK) << error_.text;
  qplan_file file;
  ASSERT_EQ(qplan_file_map(path("a").c_str(), &file, &error_), QPLAN_OK) << error_.text;
  EXPECT_EQ(std::string(static_cast<const char*>(file.bytes), file.size), "hello");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.bytes) % 4096, 0u);
  qplan_file_unmap(&file);
  EXPECT_EQ(file.bytes, nullptr);
  qplan_file_unmap(&file);
  EXPECT_EQ(files_in_directory(), 1u);
}

TEST_F(HostFile, EmptyFileMapsToNoBytes) {
  ASSERT_EQ(write(path("empty"), ""), QPLAN_OK);
  qplan_file file;
  ASSERT_EQ(qplan_file_map(path("empty").c_str(), &file, &error_), QPLAN_OK);
  EXPECT_NE(file.bytes, nullptr);
  EXPECT_EQ(file.size, 0u);
  qplan_file_unmap(&file);
}

TEST_F(HostFile, MapTellsWhyNot) {
  qplan_file file;
  EXPECT_EQ(qplan_file_map(path("absent").c_str(), &file, &error_), QPLAN_FILE_ERROR);
  EXPECT_EQ(error_.text, "file '" + path("absent") + "': cannot open: No such file or directory");
  EXPECT_EQ(qplan_file_map(directory_.c_str(), &file, &error_), QPLAN_FILE_ERROR);
  EXPECT_EQ(error_.text, "file '" + directory_.string() + "': is a directory, expected a file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(qplan_file_map(path("pipe").c_str(), &file, &error_), QPLAN_FILE_ERROR);
  EXPECT_EQ(error_.text, "file '" + path("pipe") + "': is not a regular file");
  EXPECT_EQ(qplan_file_map(nullptr, &file, &error_), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_file_map("x", nullptr, nullptr), QPLAN_INVALID_ARGUMENT);
}

TEST_F(HostFile, LongPathsKeepTheirEndAndTheReason) {
  const std::string name = path(std::string(200, 'd') + "/model.qplan");
  qplan_file file;
  EXPECT_EQ(qplan_file_map(name.c_str(), &file, &error_), QPLAN_FILE_ERROR);
  const std::string text = error_.text;
  EXPECT_NE(text.find("d/model.qplan': cannot open: No such file or directory"), std::string::npos) << text;
}

TEST_F(HostFile, WriteReplacesAndKeepsPermissions) {
  ASSERT_EQ(write(path("a"), "old"), QPLAN_OK);
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  ASSERT_EQ(write(path("a"), "new"), QPLAN_OK);
  EXPECT_EQ(read(path("a")), "new");
  struct stat status;
  ASSERT_EQ(stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(HostFile, WriteFollowsLinks) {
  ASSERT_EQ(write(path("target"), "old"), QPLAN_OK);
  fs::create_symlink("target", directory_ / "link");
  ASSERT_EQ(write(path("link"), "new"), QPLAN_OK);
  EXPECT_TRUE(fs::is_symlink(directory_ / "link"));
  EXPECT_EQ(read(path("target")), "new");
}

// As open() with O_CREAT does.
TEST_F(HostFile, WriteFollowsLinksToFilesThatAreNotThereYet) {
  fs::create_directory(directory_ / "sub");
  fs::create_symlink("sub/second", directory_ / "first");
  fs::create_symlink("target", directory_ / "sub" / "second");
  ASSERT_EQ(write(path("first"), "new"), QPLAN_OK);
  EXPECT_TRUE(fs::is_symlink(directory_ / "first"));
  EXPECT_TRUE(fs::is_symlink(directory_ / "sub" / "second"));
  EXPECT_FALSE(fs::is_symlink(directory_ / "sub" / "target"));
  EXPECT_EQ(fs::file_size(directory_ / "sub" / "target"), 3u);
}

TEST_F(HostFile, WriteTellsWhyNot) {
  EXPECT_EQ(write(directory_.string(), "x"), QPLAN_FILE_ERROR);
  EXPECT_EQ(error_.text, "file '" + directory_.string() + "': is a directory, expected a file");
  EXPECT_EQ(write(path("missing/a"), "x"), QPLAN_FILE_ERROR);
  EXPECT_EQ(error_.text, "file '" + path("missing/a") + "': cannot create a file in '" + path("missing") +
                             "': No such file or directory");
  EXPECT_EQ(qplan_file_write(nullptr, "x", 1, &error_), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_file_write(path("a").c_str(), nullptr, 1, &error_), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(files_in_directory(), 0u);
}

TEST_F(HostFile, DevicesAreWrittenNotReplaced) {
  EXPECT_EQ(write("/dev/null", "x"), QPLAN_OK);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  EXPECT_EQ(write("/dev/full", "x"), QPLAN_FILE_ERROR);
  EXPECT_STREQ(error_.text, "file '/dev/full': cannot write: No space left on device");
}

// A limit on the size of files simulates a full disk: write fails half way.
TEST_F(HostFile, FullDiskLeavesWhatWasThereAndNothingElse) {
  ASSERT_EQ(write(path("a"), "old"), QPLAN_OK);
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 65536;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const qplan_status replaced = write(path("a"), std::string(1 << 20, 'x'));
  const std::string text = error_.text;
  const qplan_status made = write(path("b"), std::string(1 << 20, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(replaced, QPLAN_FILE_ERROR);
  EXPECT_EQ(made, QPLAN_FILE_ERROR);
  EXPECT_EQ(text, "file '" + path("a") + "': cannot write 1048576 bytes: File too large");
  EXPECT_EQ(read(path("a")), "old");
  EXPECT_EQ(files_in_directory(), 1u);
}

// The kernel's signal for a file that grows too large comes in the middle of the write, as SIGINT may.
TEST_F(HostFile, AHandlerRemovesTheTemporaryFileOfAnInterruptedWrite) {
  ASSERT_EQ(write(path("a"), "old"), QPLAN_OK);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, [](int) {
      qplan_file_remove_temporaries();
      _exit(42);
    });
    const struct rlimit small = {65536, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) _exit(1);
    write(path("a"), std::string(1 << 20, 'x'));
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42) << "1: no limit could be set; 2: the signal did not come";
  EXPECT_EQ(read(path("a")), "old");
  EXPECT_EQ(files_in_directory(), 1u);
}

TEST_F(HostFile, NothingIsRemovedAfterTheWrite) {
  ASSERT_EQ(write(path("a"), "new"), QPLAN_OK);
  EXPECT_EQ(write(path("missing/a"), "x"), QPLAN_FILE_ERROR);
  qplan_file_remove_temporaries();
  EXPECT_EQ(read(path("a")), "new");
  EXPECT_EQ(files_in_directory(), 1u);
}

}  // namespace
