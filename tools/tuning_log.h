// The file that `qplan tune` appends to. docs/schedules.md has the format of its lines.
#ifndef TOOLS_TUNING_LOG_H_
#define TOOLS_TUNING_LOG_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qplan::tools {

class TuningLog {
 public:
  // The file is made with the first line. Failure where it could not be, or cannot be appended to.
  explicit TuningLog(std::string path);
  ~TuningLog();
  TuningLog(const TuningLog&) = delete;
  TuningLog& operator=(const TuningLog&) = delete;

  // The previous lines of a regular file, except those that are not JSON objects.
  [[nodiscard]] std::vector<nlohmann::json> lines() const;

  // Whole lines, each with its line feed. Failure with the system's reason; a regular file then holds what it
  // did before, and one that this call made is removed.
  void append(const std::string& lines);

 private:
  [[noreturn]] void fail(int reason) const;

  std::string path_;
  int fd_ = -1;
};

}  // namespace qplan::tools

#endif  // TOOLS_TUNING_LOG_H_
