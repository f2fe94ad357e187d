// Jobs as directories whose memory is numbered regions: the base pointers of Ethos-U, or the slots of a
// program of any driver. DIR/job-NNNN/job.txt, a directive a line, regions first:
//   target NAME
//   region N BYTES
//   readonly N
//   load N OFFSET FILE        bytes put there before the run
//   run FILE                  the program, as the device or its driver gets it
//   check N OFFSET BYTES FILE
#ifndef QPLAN_SRC_VTA_SIM_REGION_JOB_H_
#define QPLAN_SRC_VTA_SIM_REGION_JOB_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/vta/sim/job_reader.h"

namespace qplan::sim {

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
// As write_job (record.h).
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

#endif  // QPLAN_SRC_VTA_SIM_REGION_JOB_H_
