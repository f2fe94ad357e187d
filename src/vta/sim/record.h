// The files of a recorded job. A record may come from anybody, and its job.txt names the files: only regular
// files inside the record's directory are opened, no symbolic link is followed, and their sizes are known
// before a byte is read.
#ifndef QPLAN_SRC_VTA_SIM_RECORD_H_
#define QPLAN_SRC_VTA_SIM_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/vta/sim/memory.h"
#include "src/vta/sim/program.h"

namespace qplan::sim {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

class JobFile {
 public:
  uint64_t bytes() const { return bytes_; }
  // Writes bytes() bytes to `to`. False with *error set: "cannot read 'x.bin': Input/output error".
  [[nodiscard]] bool read(uint8_t* to, std::string* error) const;

 private:
  friend class JobFiles;
  Descriptor file_;
  std::string name_;
  uint64_t bytes_ = 0;
};

class JobFiles {
 public:
  // False with *error set, as for all of these.
  [[nodiscard]] bool open(const std::string& directory, std::string* error);
  // name: relative to the directory, without "." and ".."; never waits, whatever the name leads to.
  [[nodiscard]] bool find(std::string_view name, JobFile* file, std::string* error) const;

 private:
  Descriptor directory_;
};

// DIR/job-NNNN.
std::filesystem::path job_path(const std::string& directory, uint64_t job);
// Makes that directory where it is not there, and calls write(path). False with *error set; a directory that
// this call made is gone then, because a part of a job is of no use, and the disk may be full.
bool write_job(const std::string& directory, uint64_t job,
               const std::function<bool(const std::filesystem::path& path)>& write, std::string* error);
bool write_file(const std::filesystem::path& path, const void* bytes, size_t size, std::string* error);

// In quotes, cut where it is long, control characters replaced: for one-line texts.
std::string in_quotes(std::string_view text);

// Jobs as directories that a simulator knowing nothing of this project can replay. DIR/job-NNNN/job.txt, a
// directive a line:
//   target vta
//   base 0x1000              device address of the arena
//   size 0xBYTES
//   load 0xADDRESS FILE      bytes put there before the run
//   run FILE                 16-byte instructions
//   check 0xADDRESS 0xBYTES FILE
// An output's bytes that the job stores are 0xa5 before the run, so that a check is never met by what lay
// there; what the job leaves alone, or reads before it stores it, is loaded.

class Recording {
 public:
  // Keeps what lies in writable segments now, before the run.
  explicit Recording(const Dram& dram);
  // After a run without fault. As write_job. is_all: checks of what the job stored in scratch, too.
  bool write(const std::string& directory, bool is_all, uint64_t job, const vta::Config& config,
             const std::vector<vta::Instruction>& stream, const Dram& dram, std::string* error) const;

 private:
  bool write_files(const std::filesystem::path& path, bool is_all, const vta::Config& config,
                   const std::vector<vta::Instruction>& stream, const Dram& dram, std::string* error) const;

  std::vector<std::vector<uint8_t>> before_;  // of writable segments
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_RECORD_H_
