// Conditions that several lowerings have. A lowering runs only where all of its row's conditions hold, so
// that it reads what it needs without checking again.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_CONSTRAINTS_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_CONSTRAINTS_H_

#include <initializer_list>
#include <string>
#include <string_view>

#include "src/packer/error.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

inline constexpr const char* kNothingToChange = "nothing to change in the model";
inline constexpr const char* kQuantizeTo8Bits = "quantise the model to 8-bit integers";
inline constexpr const char* kRunThePasses =
    "the packer's passes bring models into this form; leave none of them out";
inline constexpr const char* kMakeConstant = "run the model through a constant folder or bind it with --bind";

// What `read` refuses, "" where it refuses nothing: for conditions on values that reading checks.
template <typename Read>
std::string refusal_of(const Read& read) {
  try {
    read();
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return error.what();
  }
  return "";
}

// The chain's first node, or the first one with this operator; null where there is none.
const ir::Node* node_of(const Matched& match, std::string_view op = {});

// The prefixes below are those of ids: "cpu.conv2d.".

// The attribute `contract` of the node names one of these.
Constraint contract_among(const std::string& prefix, std::initializer_list<format::Contract> computed,
                          std::string_view op = {});
// The dtype of the first node's operand, or of its result, is int8 or uint8.
Constraint operand_is_8_bit(const std::string& prefix, size_t operand);
Constraint result_is_8_bit(const std::string& prefix);
// Both operands and the result have one 8-bit dtype.
Constraint one_8_bit_dtype(const std::string& prefix);
// The attribute `layout` is NHWC.
Constraint nhwc(const std::string& prefix);
// `read` reads the scales and zero points and computes with them; it refuses what it cannot.
Constraint scales_are_constants(const std::string& prefix, void (*read)(const Matched& match));

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_CONSTRAINTS_H_
