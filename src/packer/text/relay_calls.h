// Relay's calls that say the same as the IR's in another way, as the operators' OpDefs know them: attributes
// without meaning here, rounding as a string, extents taken from the operand.
#ifndef QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_
#define QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/packer/op/op_def.h"

namespace qplan::text {

// The name of the operator with this name among its OpDef::relay_names; else the name.
std::string_view ir_operator(std::string_view relay_name);
// Whether Relay's operator gives back its (only) operand: copy, nn.dropout, ...
bool is_identity(std::string_view relay_name);

// What becomes of an attribute as Relay writes it: OpDef::relay_attrs.
using op::RelayAttr;
RelayAttr read_relay_attr(std::string_view relay_name, const std::string& attr, const ir::AttrValue& value);

// Attributes that are left to the operands' types: OpDef::complete.
void complete_relay_call(ir::Node* node, const std::vector<ir::TensorType>& operands);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_RELAY_CALLS_H_
