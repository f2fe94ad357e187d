// Types of what a text leaves untyped: free variables, parameters without a type, constants without data.
#ifndef QPLAN_SRC_PACKER_TEXT_DEDUCE_H_
#define QPLAN_SRC_PACKER_TEXT_DEDUCE_H_

#include <functional>
#include <optional>
#include <string>

#include "src/packer/text/draft.h"

namespace qplan::text {

// Inference failed although its operands were known; unknown types after it are consequences.
struct DeductionFailure {
  qplan_status status = QPLAN_OK;
  size_t place = 0;
  std::string text;
};

// Fills in shapes and dtypes of values, forwards by inference and backwards where an operator leaves one
// choice: data of element-wise operators, weights and bias of layers whose attributes say their extents.
// Linear in the size of the draft. typed is called for each untyped parameter or placeholder whose type
// became known; it may give the value contents.
std::optional<DeductionFailure> deduce_types(Draft* draft, const std::function<void(ir::ValueId)>& typed);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_DEDUCE_H_
