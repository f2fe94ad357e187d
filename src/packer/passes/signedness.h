// What each operator does with the dtype of its 8-bit operands and results: where the same operator computes
// the same reals when int8 q with zero point z becomes uint8 q + 128 with zero point z + 128, or the other
// way.
#ifndef QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_
#define QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_

#include <span>
#include <string>
#include <vector>

#include "src/packer/pattern/rebuild.h"

namespace qplan::passes {

inline constexpr size_t kNoZeroPoint = SIZE_MAX;

// An operand whose integers stand for reals by themselves.
struct DataOperand {
  size_t index;
  size_t zero_point = kNoZeroPoint;  // operand that moves with it
};

struct SignednessRule {
  std::vector<DataOperand> data = {};       // operands that may change; all operands where `variadic`
  size_t result_zero_point = kNoZeroPoint;  // operand that moves with the results
  bool one_dtype = true;                    // data and results change together, or not at all
  bool changes_results = true;              // false: they are no 8-bit reals (accumulators, indices, floats)
  bool variadic = false;
};
// Null for operators that look at the integers themselves (cast, integer arithmetic) or are not known.
const SignednessRule* signedness_rule(pattern::PreNode node);

// Null, or why the other dtype gives other reals at times under the node's contract.
const char* rounds_by_signedness(const pattern::Pre& pre, pattern::PreNode node);
// Whether the node's contract has zero points at all; those for devices without them keep their dtypes.
bool contract_has_zero_points(pattern::PreNode node);

bool is_8_bit(ir::DType dtype);
// A qnn.requantize whose results are the same reals, in the same dtype or with every integer moved by 128.
bool keeps_reals(const pattern::Pre& pre, pattern::PreNode node);

// ---- constants ----
ir::ConstantRef other_signedness(const ir::Constant& data);  // each byte XOR 0x80
ir::ConstantRef moved_zero_points(const ir::Constant& zero_points, int32_t offset);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_SIGNEDNESS_H_
