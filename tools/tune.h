// The parts of `qplan tune`: the log of what was measured, and --calibrate.
#ifndef QPLAN_TOOLS_TUNE_H_
#define QPLAN_TOOLS_TUNE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/model_options.h"
#include "tools/session.h"

namespace qplan::tools {

// The file that `qplan tune` appends to. docs/schedules.md has the format of its lines.
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

// qplan tune --calibrate: what this machine takes for work of each kind, as a target file. docs/placement.md.

struct CalibrateOptions {
  ModelOptions model;
  PlacementOptions placement;
  SessionOptions session;
  std::vector<std::string> more;  // plans and models beside the model
  std::string file;
  double budget_s = 20;
};

// Measures the steps, prints how near the estimates come, writes the file. UsageError, Failure.
void calibrate(const CalibrateOptions& options);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_TUNE_H_
