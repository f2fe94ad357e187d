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
#ifndef QPLAN_SRC_VTA_SIM_RECORD_H_
#define QPLAN_SRC_VTA_SIM_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/vta/sim/dram.h"
#include "src/vta/sim/program.h"

namespace qplan::sim {

class Recording {
 public:
  // Keeps what lies in writable segments now, before the run.
  explicit Recording(const Dram& dram);
  // After a run without fault. False with *error set; a directory that this call made is gone then.
  bool write(const std::string& directory, uint64_t job, const vta::Config& config,
             const std::vector<vta::Instruction>& stream, const Dram& dram, std::string* error) const;

 private:
  bool write_files(const std::filesystem::path& path, const vta::Config& config,
                   const std::vector<vta::Instruction>& stream, const Dram& dram, std::string* error) const;

  std::vector<std::vector<uint8_t>> before_;  // of writable segments
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_RECORD_H_
