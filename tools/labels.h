// Class names for the values of a classifier's output.
#ifndef TOOLS_LABELS_H_
#define TOOLS_LABELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

struct Score {
  uint64_t index;  // of the value in the output
  double score;    // its real value
};

// The count largest values, largest first; of equal ones the first. Empty for dtypes without a plain C type.
std::vector<Score> top_scores(const qplan_tensor_info& info, const void* bytes, uint32_t count);

class Labels {
 public:
  // One name per line; empty lines at the end do not count.
  explicit Labels(const std::string& path);

  // Whether the names fit an output of this many values: as many, or one more (the first, background, is
  // skipped).
  [[nodiscard]] bool fits(uint64_t values) const {
    return names_.size() == values || names_.size() == values + 1;
  }
  [[nodiscard]] const std::string& name(uint64_t index, uint64_t values) const {
    return names_[index + (names_.size() - values)];
  }
  [[nodiscard]] size_t count() const { return names_.size(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace qplan::tools

#endif  // TOOLS_LABELS_H_
