// A set of bytes of one memory, as disjoint ranges.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_BYTE_SET_H_
#define QPLAN_SRC_ETHOSU_COMPILER_BYTE_SET_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace qplan::ethosu::compiler {

class ByteSet {
 public:
  void add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ends_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ends_.erase(at);
    }
    ends_.emplace(begin, end);
  }

  // The first byte from `begin` on that is not in the set.
  uint64_t first_missing(uint64_t begin) const {
    const auto after = ends_.upper_bound(begin);
    return after == ends_.begin() ? begin : std::max(begin, std::prev(after)->second);
  }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by begin; no two touch
};

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_BYTE_SET_H_
