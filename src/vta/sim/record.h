// Recorded jobs: their files, what writes them, and what reads them again. A record may come from anybody,
// and its job.txt names the files: only regular files inside the record's directory are opened, no symbolic
// link is followed, and their sizes are known before a byte is read.
#ifndef QPLAN_SRC_VTA_SIM_RECORD_H_
#define QPLAN_SRC_VTA_SIM_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

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

// ---- what reading a job takes, whatever its target: job.txt line by line, the files that it names, and the
// bytes that a check compares. Sizes are bounded, and each refusal is one line.

// All loads of a job together: inputs may overlap each other, so that the size of the memory is no limit.
constexpr uint64_t kMaxLoadedBytes = uint64_t{1} << 30;

// The name after "target" in DIR/job.txt; "" if the file names no target or does not exist.
std::string job_target(const std::string& directory);

class JobReader {
 protected:
  JobReader(std::string directory, const Options& options)
      : directory_(std::move(directory)), options_(options) {}
  ~JobReader() = default;

  // Each sets fault_ and returns false.
  bool fail(qplan_npu_status status, const std::string& text);
  bool malformed(const std::string& text) { return fail(QPLAN_NPU_E_ARGUMENT, text); }
  bool malformed_line(const std::string& text);
  bool unknown_line(std::string_view word) { return malformed_line("cannot understand " + in_quotes(word)); }

  // Opens the directory and reads job.txt: directive() for the words of each line.
  bool read_lines();
  virtual bool directive(const std::vector<std::string_view>& words) = 0;
  // A directive that a job has once: what an earlier line was judged by does not change.
  bool once(std::string_view word, bool* has);
  bool is_target(const char* expected, std::string_view found, bool* has);

  bool find_file(const std::string& name, JobFile* file);
  bool read_found(const JobFile& file, uint8_t* to);
  bool read_file(const std::string& name, uint64_t most, std::vector<uint8_t>* bytes);
  // The file of a check, which has exactly so many bytes.
  bool read_expected(const std::string& name, uint64_t bytes, std::vector<uint8_t>* expected);
  // Takes note of the bytes of one more load.
  bool count_loaded(uint64_t bytes);
  // address: of actual[0], for the report.
  bool compare(const std::string& name, const std::vector<uint8_t>& expected, const uint8_t* actual,
               uint64_t address);

  std::string directory_;
  const Options& options_;
  Fault fault_;

 private:
  JobFiles files_;
  size_t line_ = 0;  // of job.txt, from 1
  uint64_t loaded_ = 0;
};

// Runs the job of VTA in that directory and compares its checks. The fault has no status where all bytes are
// equal; report takes what the run took.
Fault replay_vta(const std::string& directory, const Options& options, qplan_npu_report* report);

// ---- jobs as directories whose memory is numbered regions: the base pointers of Ethos-U, or the slots of a
// program of any driver. DIR/job-NNNN/job.txt, a directive a line, regions first:
//   target NAME
//   region N BYTES
//   readonly N
//   load N OFFSET FILE        bytes put there before the run
//   run FILE                  the program, as the device or its driver gets it
//   check N OFFSET BYTES FILE
// Where the regions are slots ("target slots"), also:
//   format NUMBER             the FourCC that the driver's load gets
//   device NAME               what the capabilities called the device; for people

constexpr uint32_t kMostSlots = 4096;  // that a job may have

struct RecordedRegion {
  uint64_t bytes = 0;
  bool is_constant = false;
  bool is_listed = true;  // false: the program has it
};
struct RecordedBytes {
  uint32_t region = 0;
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
};
struct RecordedJob {
  std::string head;          // the lines before the regions
  std::string program_file;  // its name in the directory
  std::vector<RecordedRegion> regions;
  std::vector<RecordedBytes> loads, checks;
  const std::vector<uint8_t>* program = nullptr;
};
// As write_job.
bool write_record(const std::string& directory, uint64_t job, const RecordedJob& record, std::string* error);

class RegionJob : public JobReader {
 protected:
  struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
    uint64_t size = 0;  // of a check
    std::string file;
    std::vector<uint8_t> expected;  // of a check
  };
  struct Region {
    bool is_known = false, is_read_only = false;
    uint64_t size = 0;
    std::vector<uint8_t> bytes;  // until they are loaded, 0xa5
  };

  RegionJob(std::string directory, const Options& options, const char* target, uint32_t most_regions)
      : JobReader(std::move(directory), options), target_(target), regions_(most_regions) {}
  ~RegionJob() = default;

  bool directive(const std::vector<std::string_view>& words) final;
  // A line with another first word than these.
  virtual bool other_directive(const std::vector<std::string_view>& words) { return unknown_line(words[0]); }

  // In this order. Each sets fault_ and returns false.
  bool read_job();
  bool read_checks();
  bool read_loads();
  bool compare_checks();

  const char* target_;
  std::vector<Region> regions_;
  std::string run_;  // the program's file
  std::vector<Place> loads_;

 private:
  bool read_region(const std::vector<std::string_view>& words);
  bool read_known(std::string_view word, uint32_t* index);
  bool read_place(const std::vector<std::string_view>& words, Place* place);
  bool is_inside(const Place& place);
  bool covers_read_only();

  std::vector<Place> checks_;
  bool has_target_ = false, has_run_ = false;
  uint64_t total_ = 0;     // bytes of all regions
  uint64_t compared_ = 0;  // of all checks
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_RECORD_H_
