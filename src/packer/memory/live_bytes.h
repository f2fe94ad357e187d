// How many bytes are needed at each step, while buffers come and go.
#ifndef QPLAN_SRC_PACKER_MEMORY_LIVE_BYTES_H_
#define QPLAN_SRC_PACKER_MEMORY_LIVE_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/checked.h"
#include "src/packer/memory/planner.h"

namespace qplan::memory {

// A tree over the steps: each node has what is alive all over its steps, and the most below it.
class LiveBytes {
 public:
  LiveBytes(uint32_t num_steps, uint64_t alignment) : alignment_(alignment) {
    while (leaves_ < num_steps) leaves_ *= 2;
    throughout_.assign(2 * leaves_, 0);
    most_.assign(2 * leaves_, 0);
  }

  void add(const Buffer& buffer) { change(buffer, round_up(buffer.size, alignment_)); }
  void remove(const Buffer& buffer) { change(buffer, 0 - round_up(buffer.size, alignment_)); }
  uint64_t peak() const { return most_[1]; }

 private:
  // Unsigned differences wrap back.
  void change(const Buffer& buffer, uint64_t bytes) {
    size_t begin = leaves_ + buffer.first, end = leaves_ + buffer.last + 1;
    for (size_t low = begin, high = end; low < high; low /= 2, high /= 2) {
      if (low % 2 != 0) cover(low++, bytes);
      if (high % 2 != 0) cover(--high, bytes);
    }
    for (const size_t leaf : {begin, end - 1}) {
      for (size_t node = leaf / 2; node != 0; node /= 2) {
        most_[node] = throughout_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
      }
    }
  }
  void cover(size_t node, uint64_t bytes) {
    throughout_[node] += bytes;
    most_[node] += bytes;
  }

  const uint64_t alignment_;
  size_t leaves_ = 1;
  std::vector<uint64_t> throughout_, most_;
};

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_LIVE_BYTES_H_
