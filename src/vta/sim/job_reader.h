// What reading a recorded job takes, whatever its target: job.txt line by line, the files that it names, and
// the bytes that a check compares. A record may come from anybody: sizes are bounded, and each refusal is one
// line.
#ifndef QPLAN_SRC_VTA_SIM_JOB_READER_H_
#define QPLAN_SRC_VTA_SIM_JOB_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qplan/npu_driver.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::sim {

// All loads of a job together: inputs may overlap each other, so that the size of the memory is no limit.
constexpr uint64_t kMaxLoadedBytes = uint64_t{1} << 30;

// The name after "target" in DIR/job.txt; "" where there is none, or no such file.
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

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_JOB_READER_H_
