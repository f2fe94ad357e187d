// Relay's calls that say the same as the IR's in another way: attributes without meaning here, rounding as a
// string, extents taken from the operand.
#ifndef QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_
#define QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::text {

// The operator that stands for Relay's of this name: nn.global_avg_pool2d for nn.adaptive_avg_pool2d; else
// the name.
std::string_view ir_operator(std::string_view relay_name);
// Whether Relay's operator gives back its (only) operand: copy, nn.dropout, ...
bool is_identity(std::string_view relay_name);

// What becomes of an attribute as Relay writes it.
struct RelayAttr {
  enum class Kind : uint8_t { kKeep, kDrop, kRefuse } kind = Kind::kKeep;
  std::string name;     // kKeep: under this name
  ir::AttrValue value;  // and with this value
  std::string reason;   // kRefuse
};
RelayAttr read_relay_attr(std::string_view relay_name, const std::string& attr, const ir::AttrValue& value);

// Stands for the dtype of the first operand until that is known.
inline constexpr std::string_view kOperandDtype = "as operand 0";
// Attributes that are left to the operand's type: newshape 0, axes of transpose absent or negative,
// kOperandDtype.
void complete_relay_call(ir::Node* node, const std::vector<ir::TensorType>& operands);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_
