// How large a tensor of a model may be. Models are untrusted: their extents reach arithmetic only after this
// check.
#ifndef QPLAN_SRC_PACKER_IR_LIMITS_H_
#define QPLAN_SRC_PACKER_IR_LIMITS_H_

#include <cstdint>
#include <string>

#include "src/packer/ir/types.h"

namespace qplan::ir {

inline constexpr size_t kMaxRank = 8;
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

// Empty when the type is one that a value may have: rank at most kMaxRank, every extent at least 1, at most
// kMaxTensorBytes, a dtype with a name. Otherwise what is wrong: "extent 0 of Tensor[(1, 0), int8] must be at
// least 1".
std::string type_error(const TensorType& type);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_LIMITS_H_
