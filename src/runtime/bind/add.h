// From a plan's parameters of a sum to its formula, for add, sub and layers that have a residual.
#ifndef QPLAN_SRC_RUNTIME_BIND_ADD_H_
#define QPLAN_SRC_RUNTIME_BIND_ADD_H_

#include "kernels/add/add_formula.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// dtype: of inputs and output.
bool check_add_formula(const StepCheck& check, const format::AddParams& params, Dtype dtype);
void fill_add_formula(const format::AddParams& params, Dtype dtype, AddFormula& formula);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_ADD_H_
