// Files in and out. Errors are Failure with the path and the system's reason.
#ifndef QPLAN_TOOLS_FILES_H_
#define QPLAN_TOOLS_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/host.h"

namespace qplan::tools {

// How much of a file is read: a longer one is an error before memory is spent on it.
struct ReadLimit {
  uint64_t bytes = UINT64_MAX;
  std::string expected;  // ends the error "has 70 bytes, ": "expected at most 64"
};
// Limit for devices and pipes, which have no size, where the caller gives none.
inline constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 28;

// The whole file. what names its role in errors: "image", "labels". Failure where it is longer than the
// limit.
std::vector<uint8_t> read_file(const std::string& path, std::string_view what, const ReadLimit& limit = {});

// Writes text to standard output; finish_stdout reports whether all of it arrived (a full disk shows only
// there).
void print(std::string_view text);
void finish_stdout();

// Several files that belong together in one directory, which is created when it is missing. Nothing is
// written where one of them is a directory. Each is written atomically; when one fails, those that this call
// made are removed, and the directory if it is new. Files that were there before keep their old or get their
// new bytes.
struct NamedBytes {
  std::string name;
  const void* bytes;
  size_t size;
};
void write_files(const std::string& directory, const std::vector<NamedBytes>& files);

// Fails where write_files would, before any work is done: directory is something else, or cannot be created.
void check_output_directory(const std::string& directory);

// Keeps a command from replacing a file that it reads.

// A file of the command line; role names it in errors: "model", "--bind", "--output".
struct NamedFile {
  std::string role;
  std::string path;  // empty: not given
};

// Failure where writing an output would replace an input, or two outputs are one file. Files are the same
// when the system says so (device and inode), whatever their paths; devices and pipes are never the same. To
// be called before anything is read or written.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// A plan file, mapped and opened.

// Whether the file begins like a plan; false too where it cannot be read.
bool is_plan_file(const std::string& path);

class PlanFile {
 public:
  // flags: QPLAN_PLAN_*. Failure when path cannot be mapped or holds no valid plan.
  explicit PlanFile(const std::string& path, uint32_t flags = 0);
  // A plan that is no file; label in place of the path. Failure as above.
  PlanFile(const std::string& label, const std::string& bytes);
  ~PlanFile();
  PlanFile(const PlanFile&) = delete;
  PlanFile& operator=(const PlanFile&) = delete;

  [[nodiscard]] const qplan_plan& plan() const { return plan_; }
  [[nodiscard]] const void* bytes() const { return file_.bytes; }
  [[nodiscard]] size_t size() const { return file_.size; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::string path_;
  qplan_file file_{};
  std::unique_ptr<void, Free> copy_;  // the bytes of a plan that is no file
  qplan_plan plan_{};
};

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_FILES_H_
