// Device memory: address ranges handed out page by page, and buffers in them.
#ifndef QPLAN_SRC_VTA_SIM_MEMORY_H_
#define QPLAN_SRC_VTA_SIM_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "qplan/npu_driver.h"

namespace qplan::sim {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kArenaBase = 0x1000;  // of every record as well
constexpr uint64_t kCacheLineBytes = 64;

// Free and used ranges of [kArenaBase, kArenaBase + bytes), the lowest fit first: addresses stay small.
class AddressSpace {
 public:
  explicit AddressSpace(uint64_t bytes) : end_(kArenaBase + bytes) {}
  // 0 when there is no room. bytes > 0.
  uint64_t take(uint64_t bytes);
  void give_back(uint64_t address) { used_.erase(address); }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_;
  std::map<uint64_t, uint64_t> used_;  // address -> bytes, whole pages
};

// Memory from the platform's hooks, or from the heap where it has none.
class Block {
 public:
  Block() = default;
  Block(const qplan_device_hooks& hooks, uint64_t bytes, uint8_t fill,
        uint32_t memory_class = QPLAN_NPU_MEMORY_CLASS_ANY);
  Block(Block&& other) noexcept { *this = static_cast<Block&&>(other); }
  Block& operator=(Block&& other) noexcept;
  ~Block();
  uint8_t* data() const { return data_; }  // null: no memory

 private:
  const qplan_device_hooks* hooks_ = nullptr;
  uint8_t* data_ = nullptr;
};

// What the CPU sees and what the device sees. Coherent: the same memory. Otherwise the CPU's copy is what a
// cache would hold, and bytes go from one to the other only when somebody says so.
struct Buffer {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint8_t* host = nullptr;
  uint8_t* device = nullptr;
  Block owned_host;
  Block owned_device;
  uint32_t usage = 0;
  uint32_t users = 0;  // jobs
  qplan_npu_layout layout = {};

  // Whole cache lines around [offset, offset + count); within the buffer.
  void flush(uint64_t offset, uint64_t count);
  void invalidate(uint64_t offset, uint64_t count);
};

// The device's address space as one job sees it: the regions that were bound, and nothing else. Remembers,
// for regions that the job may write, who touched which four bytes last: that is how unordered accesses are
// found.
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

#endif  // QPLAN_SRC_VTA_SIM_MEMORY_H_
