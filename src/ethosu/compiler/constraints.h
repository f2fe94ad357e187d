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
