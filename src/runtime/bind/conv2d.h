// From a plan's parameters of a sum to its formula, for add, sub and layers that have a residual.
#ifndef QPLAN_SRC_RUNTIME_BIND_CONV2D_H_
#define QPLAN_SRC_RUNTIME_BIND_CONV2D_H_

#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/elementwise/add.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// dtype: of inputs and output.
bool check_add_formula(const StepCheck& check, const format::AddParams& params, Dtype dtype);
void fill_add_formula(const format::AddParams& params, Dtype dtype, AddFormula& formula);

// From a plan's step to Conv2dArgs, for conv2d and depthwise_conv2d, which have the same operands and
// parameters.

// In this order: what fill_conv2d_args relies on; after it, with what it has filled, the values of the
// parameters but groups and layout, which are the family's own business, and the sizes of the constants,
// which follow from these. may_have_residual: which the caller then checks. transposed: without what windows
// read.
bool check_conv2d_operands(const StepCheck& check, const StepView& step, bool may_have_residual = false);
bool check_conv2d_values(const StepCheck& check, const StepView& step, const Conv2dArgs& args,
                         bool transposed = false);
// Weights, bias, multiplier and shift or scale, once the layout is known and groups divides the input
// channels.
bool check_conv2d_constants(const StepCheck& check, const Conv2dArgs& args);

// Zeros after the taps of such weights, where their layout needs them.
bool check_conv2d_zeros(const StepCheck& check, const Conv2dArgs& args);

// All but the residual.
void fill_conv2d_args(const StepView& step, Conv2dArgs& args);
// KernelFamily::work: multiply-accumulates, those with padding included, one operation for each accumulator
// that becomes an output, and one for each residual.
uint64_t conv2d_work(const Conv2dArgs& args);

// Rows of the output from rows of the input, at the end of conv2d.cc.
extern const RowCut kConv2dRowCut;

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_CONV2D_H_
