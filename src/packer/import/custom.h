// What importers ask operators of the application's (qplan/custom_operator.h).
#ifndef QPLAN_SRC_PACKER_IMPORT_CUSTOM_H_
#define QPLAN_SRC_PACKER_IMPORT_CUSTOM_H_

#include <span>
#include <string_view>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/custom.h"

namespace qplan::importer {

using CustomOperators = std::span<const qplan_custom_operator* const>;

// Null where there is none of that name.
const qplan_custom_operator* find_custom(CustomOperators operators, std::string_view name);

// Completes `custom`, which has everything that the model says: the types of the outputs where the operator
// infers them, scratch and state by what it asks for. PackError (QPLAN_MODEL_INVALID) with the operator's
// reason, where it refuses.
void ask_custom(const qplan_custom_operator& op, const ir::Function& function,
                const std::vector<ir::ValueId>& operands, op::CustomAttributes* custom);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_CUSTOM_H_
