// Files in and out. Errors are Failure with the path and the system's reason.
#ifndef QPLAN_TOOLS_FILES_H_
#define QPLAN_TOOLS_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
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

// A file of the command line; role names it in errors: "model", "--bind", "--output".
struct NamedFile {
  // How an output is written: replaced as a whole; the same, in a folder that is made where it is missing; or
  // appended to.
  enum class Written { kAsAWhole, kInItsFolder, kAtItsEnd };

  std::string role;
  std::string path;  // empty: not given
  Written written = Written::kAsAWhole;
};

// To be called before anything is read or written. Failure where writing an output would replace an input, or
// two outputs are one file: the same to the system (device and inode), or, where they are not there yet, with
// the same absolute path without links. Devices and pipes are never the same. Failure, too, where an output
// cannot be written, as far as that is known before; of one in its folder check_output_directory says it.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Failure where the folder is something else, or cannot be made or written to. what names its role.
void check_output_directory(const std::string& directory, std::string_view what = "output directory");

struct NamedBytes {
  std::string name;
  const void* bytes;
  size_t size;
};

// The outputs of a command, each written as a whole. Unless they are kept, those that were not there before
// are removed at the end, with the folders that were made for them. Files that were there before keep their
// old or get their new bytes.
class OutputFiles {
 public:
  OutputFiles() = default;
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  void write(const std::string& path, std::string_view bytes);
  // Several files in one folder, which is made. Nothing is written where one of them is a directory.
  void write(const std::string& directory, const std::vector<NamedBytes>& files);
  void make_directory(const std::string& directory, std::string_view what = "output directory");
  // Something else is about to write the file; "": it is not.
  void expect(const std::string& path);
  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;  // in the order in which they came
};

// All of them, or none that was not there before.
void write_files(const std::string& directory, const std::vector<NamedBytes>& files);

// A plan file, mapped and opened.

// Whether the file begins like a plan; false too where it cannot be read, or is not regular.
bool is_plan_file(const std::string& path);
// The same of TensorFlow Lite's models.
bool is_tflite_file(const std::string& path);

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
