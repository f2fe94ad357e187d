// Jobs as events of the Trace Event Format (Perfetto, chrome://tracing): a row for each module, on the
// simulated clock; jobs follow each other without gaps.
#ifndef QPLAN_SRC_VTA_SIM_TRACE_H_
#define QPLAN_SRC_VTA_SIM_TRACE_H_

#include <cstdint>
#include <string>

#include "src/vta/sim/program.h"

namespace qplan::sim {

class Trace {
 public:
  void add(const vta::Config& config, uint64_t job, const Program& program);
  // False with *error set when the file cannot be written.
  bool write(const std::string& path, std::string* error) const;
  std::string to_json() const;

 private:
  std::string events_;
  uint64_t origin_ns_ = 0;  // of the next job
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_TRACE_H_
