// Which buffers are alive at the same time.
#ifndef QPLAN_SRC_PACKER_MEMORY_CONFLICTS_H_
#define QPLAN_SRC_PACKER_MEMORY_CONFLICTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/packer/memory/planner.h"

namespace qplan::memory {

// An undirected graph as adjacency lists in one array.
class Conflicts {
 public:
  // nullopt when there are more than max_pairs pairs.
  static std::optional<Conflicts> find(std::span<const Buffer> buffers, size_t max_pairs);

  std::span<const uint32_t> of(uint32_t buffer) const {
    return std::span(neighbours_).subspan(begin_[buffer], begin_[buffer + 1] - begin_[buffer]);
  }
  size_t num_pairs() const { return neighbours_.size() / 2; }

 private:
  std::vector<size_t> begin_;
  std::vector<uint32_t> neighbours_;
};

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_CONFLICTS_H_
