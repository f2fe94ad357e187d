// What steps of convolutions and of fully connected layers have alike: their inputs, and how constants and
// parameters of 32 bits become arguments.
#ifndef QPLAN_SRC_RUNTIME_BIND_LAYER_H_
#define QPLAN_SRC_RUNTIME_BIND_LAYER_H_

#include "format/table_fields.h"
#include "src/runtime/bind/step_check.h"

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

#endif  // QPLAN_SRC_RUNTIME_BIND_LAYER_H_
