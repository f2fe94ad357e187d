// A directory of recorded jobs: DIR/job-NNNN/job.txt.
#ifndef TOOLS_NPU_RECORD_H_
#define TOOLS_NPU_RECORD_H_

#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

// The record of one run, whose jobs the simulator writes into the directory.
class NpuRecord {
 public:
  // directory "": nothing is recorded. Else it is made; jobs of an earlier recording in it are removed.
  // Failure where that cannot be done.
  explicit NpuRecord(std::string directory);
  // After the run: the check files are the CPU's bytes where the session (with QPLAN_NPU_VERIFY) found no
  // difference. Where it did the jobs are removed; that, or fewer jobs than ran, is a Failure. write_error:
  // what the simulator could not write, "" where it does not say.
  void finish(const qplan_session* session, const std::string& write_error) const;

 private:
  std::string directory_;
};

// Whether the file is in a job of the directory, which a new recording there removes.
bool is_in_recorded_job(const std::string& directory, const std::string& file);

// Paths of the jobs in a directory, or the directory itself where it is one. Failure where it is neither.
std::vector<std::string> find_jobs(const std::string& directory);

}  // namespace qplan::tools

#endif  // TOOLS_NPU_RECORD_H_
