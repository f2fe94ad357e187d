// The parts of the text without names: types and attribute values.
#ifndef QPLAN_SRC_PACKER_TEXT_SYNTAX_H_
#define QPLAN_SRC_PACKER_TEXT_SYNTAX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/ir/attrs.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"
#include "src/packer/text/token_stream.h"

namespace qplan::text {

// One type, or several in parentheses.
struct ResultType {
  std::vector<ir::TensorType> types;
  bool tuple = false;
};

ir::TensorType parse_tensor_type(TokenStream* tokens);  // Tensor[(1, 3), int8], or int8 for a scalar
ResultType parse_result_type(TokenStream* tokens);

int64_t parse_integer(TokenStream* tokens);
std::vector<std::string> parse_strings(TokenStream* tokens);  // ["a", "b"]

struct AttrName {
  std::string text;
  bool quoted = false;
};
AttrName parse_attr_name(TokenStream* tokens);  // with the '=' after it
// Nothing for None, which means that the attribute is not there.
std::optional<ir::AttrValue> parse_attr_value(TokenStream* tokens);
// The value as the operator's attribute of that name wants it, where Relay writes it in another way: 1 for 1f
// or True, 2 for [2], [2] for 2, [] for a list of lists. Everything else is left to the operator's checks.
ir::AttrValue coerce_attr(const op::OpDef& op, const std::string& name, ir::AttrValue value);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_SYNTAX_H_
