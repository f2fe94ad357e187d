// What rows of several composites share.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_CONSTRAINTS_H_
#define QPLAN_SRC_ETHOSU_COMPILER_CONSTRAINTS_H_

#include <string>

#include "src/base/checked.h"
#include "src/ethosu/compiler/unit.h"

namespace qplan::ethosu::compiler {

inline constexpr const char* kNothingToChange = "nothing to change in the model";
inline constexpr const char* kQuantizeInt8 = "quantise the model to 8-bit integers";
inline constexpr const char* kLeaveNoPassOut =
    "the packer's passes bring models into this form; do not skip any of them";
inline constexpr int64_t kMaxExtent = 65536;

void append(Rows* rows, Rows more);

// A node without weights, by its name in the pattern ("": the root), whose first operands are activations (0:
// all): one 8-bit dtype, images, no constants.
Rows activation_rows(const std::string& prefix, const char* node, size_t operands);
// Operands [first, last), scales and zero points, are one number each; contract tfl2.
Rows quantization_rows(const std::string& prefix, const char* node, size_t first, size_t last);
// Whether they are one number each.
bool are_scalars(const Candidate& c, const ir::Node& node, size_t first, size_t last);

// Saturating product of extents.
template <typename... Factors>
int64_t product(Factors... factors) {
  int64_t result = 1;
  const auto times = [&](int64_t factor) {
    if (!checked_mul(result, factor, &result)) result = INT64_MAX;
  };
  (times(factors), ...);
  return result;
}

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_CONSTRAINTS_H_
