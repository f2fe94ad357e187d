// Custom operators (qplan/custom_operator.h) as importers find and ask them.
#ifndef QPLAN_SRC_PACKER_IMPORT_CUSTOM_OPERATOR_H_
#define QPLAN_SRC_PACKER_IMPORT_CUSTOM_OPERATOR_H_

#include <span>
#include <string_view>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/packer/ir/module.h"
#include "src/packer/op/attributes.h"

namespace qplan::importer {

// The first operator of that name, or null.
const qplan_custom_operator* find_custom(std::span<const qplan_custom_operator* const> operators,
                                         std::string_view name);

// Completes `custom`, which has everything that the model says: the types of the outputs where the operator
// infers them, scratch and state by what it asks for. PackError (QPLAN_MODEL_INVALID) with the operator's
// reason, where it refuses.
void ask_custom(const qplan_custom_operator& op, const ir::Function& function,
                const std::vector<ir::ValueId>& operands, op::CustomAttributes* custom);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_CUSTOM_OPERATOR_H_
