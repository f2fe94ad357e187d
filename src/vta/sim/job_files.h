// The files of a recorded job. A record may come from anybody, and its job.txt names the files: only regular
// files inside the record's directory are opened, no symbolic link is followed, and their sizes are known
// before a byte is read.
#ifndef QPLAN_SRC_VTA_SIM_JOB_FILES_H_
#define QPLAN_SRC_VTA_SIM_JOB_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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

// In quotes, cut where it is long, control characters replaced: for one-line texts.
std::string quoted(std::string_view text);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_JOB_FILES_H_
