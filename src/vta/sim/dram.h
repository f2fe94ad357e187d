// The device's address space as one job sees it: the regions that were bound, and nothing else. Remembers,
// for regions that the job may write, who touched which four bytes last: that is how unordered accesses are
// found.
#ifndef QPLAN_SRC_VTA_SIM_DRAM_H_
#define QPLAN_SRC_VTA_SIM_DRAM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace qplan::sim {

constexpr uint32_t kGranule = 4;  // the smallest element

// The last accesses to a granule, as numbers of instructions within their module; 0: none in this job.
struct Touches {
  uint32_t stored = 0;          // by STORE
  uint32_t loaded : 31;         // by the load module
  uint32_t was_read_first : 1;  // read while nothing had been stored
  uint32_t compute_read : 31;   // by LOADs of the compute module
  uint32_t is_known : 1;        // had bytes before the job
};

struct Segment {
  uint64_t address = 0;  // a multiple of kGranule
  uint64_t bytes = 0;
  uint8_t* memory = nullptr;  // what the device sees
  bool is_writable = false;
  bool is_initialised = true;    // false: reading what this job has not stored is a fault
  bool is_output = false;        // what the job is run for
  std::string name;              // for texts: "output 'conv2d_3' (region 2)"
  std::vector<Touches> touches;  // of a writable one
};

class Dram {
 public:
  // Segments do not overlap, unless both are only read.
  void add(Segment segment);
  // The segment that holds all of [address, address + bytes), or null.
  Segment* find(uint64_t address, uint64_t bytes);
  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }
  void forget_touches();

 private:
  std::vector<Segment> segments_;
  size_t last_ = 0;  // that was found
};

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_DRAM_H_
