// What bindings of layers with weights share: of convolutions and fully connected layers, and of the sum that
// a residual is added by.
#ifndef QPLAN_SRC_RUNTIME_BIND_LAYER_H_
#define QPLAN_SRC_RUNTIME_BIND_LAYER_H_

#include <stdint.h>

#include "format/plan_view.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/elementwise/add.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

// Inputs of convolutions and of fully connected layers, and how constants and parameters of 32 bits become
// arguments.
namespace qplan::layer {

// Under F32E the scales stand where the multipliers do, and there are no shifts; under ACC32 there is
// neither.
enum Input : uint32_t { kInput, kWeights, kBias, kMultiplier, kShift, kNumInputs, kScale = kMultiplier };

inline uint32_t num_inputs(format::Contract contract) {
  if (contract == format::Contract_ACC32) return kMultiplier;
  return contract == format::Contract_F32E ? kShift : kNumInputs;
}

inline uint32_t output_dtypes(format::Contract contract, Dtype input) {
  if (input == Dtype::kS16) return dtype_bit(Dtype::kS16);
  return contract == format::Contract_ACC32 ? dtype_bit(Dtype::kS32) : kDtypesU8S8;
}

// Weights, bias, contract and requantisation. inputs: of the step, as many as the contract has. p: of Params.
template <typename Params, typename Args>
__attribute__((always_inline)) inline void fill_constants(const StepView& step, const uint32_t* inputs,
                                                          const format::TableFields& p,
                                                          Args& __restrict args) {
  args.weights = static_cast<const int8_t*>(step.address(inputs[kWeights]));
  args.bias = static_cast<const int32_t*>(step.address(inputs[kBias]));
  const auto contract = static_cast<format::Contract>(p.scalar<uint8_t>(Params::VT_CONTRACT));
  args.contract = contract_of(contract);
  if (args.contract == Contract::kF32e) {
    args.scale = static_cast<const float*>(step.address(inputs[kScale]));
  } else if (args.contract != Contract::kAcc32) {
    args.multiplier = static_cast<const int32_t*>(step.address(inputs[kMultiplier]));
    args.shift = static_cast<const int32_t*>(step.address(inputs[kShift]));
  }
  fill_float_epilogue<Params>(p, contract, args);
}

}  // namespace qplan::layer

namespace qplan {

// From a plan's parameters of a sum to its formula, for add, sub and layers that have a residual. dtype: of
// inputs and output.
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

// Whether work items have to be computed in ascending order, none beside another: those of a convolution that
// writes over the beginning of its larger input, of which each row overwrites what rows before it read. In
// the place of an input of the same size, each pixel is made of itself alone. args: Conv2dArgs where the
// kernel is conv2d; they alone are asked, so that images without the family do not link its functions.
inline bool is_ordered(uint16_t kernel, const void* args) {
  if (kernel != kKernel_conv2d) return false;
  const auto& a = *static_cast<const Conv2dArgs*>(args);
  return a.input == a.output && a.output_h * a.output_w * a.output_c != a.input_h * a.input_w * a.input_c;
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_LAYER_H_
