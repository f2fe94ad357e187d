// Descriptions of tensors, and access to their elements.
#ifndef QPLAN_TOOLS_TENSOR_H_
#define QPLAN_TOOLS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

std::string dtype_name(DLDataType dtype);                    // "uint8"
std::string shape_text(const int64_t* shape, int32_t ndim);  // "[1,128,128,3]"
std::string describe(int direction, uint32_t index,
                     const qplan_tensor_info& info);  // "input 0 'x' uint8[1,64]"

[[nodiscard]] bool is_type(DLDataType dtype, uint8_t code, uint8_t bits);
[[nodiscard]] uint64_t element_count(const qplan_tensor_info& info);

// All inputs or outputs of the plan's main function.
std::vector<qplan_tensor_info> tensor_infos(const qplan_plan& plan, int direction);

// The stored element, without scale; nothing for dtypes that have no plain C type (int4, float16, ...).
std::optional<double> element(const qplan_tensor_info& info, const void* bytes, uint64_t index);
// The real number that it represents: scale * (element - zero_point), per axis where the tensor is quantised
// so.
std::optional<double> real_value(const qplan_tensor_info& info, const void* bytes, uint64_t index);

// The element as text: integers in full, float32 with nine digits (reads back to the same value).
std::string element_text(const qplan_tensor_info& info, const void* bytes, uint64_t index);

// A packed row-major DLTensor over bytes.
DLTensor packed_tensor(const qplan_tensor_info& info, void* bytes);

// Class names for the values of a classifier's output.
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
  // Names that come from elsewhere; where: in place of the path.
  Labels(std::string where, std::vector<std::string> names)
      : path_(std::move(where)), names_(std::move(names)) {}

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

#endif  // QPLAN_TOOLS_TENSOR_H_
