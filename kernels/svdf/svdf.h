// svdf: a layer that is a fully connected layer of `rank` filters for each unit, each a product over the
// input and one over time. The state has the last `memory` results of each filter, the oldest first.
//
//   new[f]  = saturate(requantize_tfl2(feature_bias[f] + sum over k of feature_weights[f,k] * x[k],
//   feature_multiplier,
//                                      feature_shift))
//   state   = state without its oldest, then new[f]
//   y[u]    = clamp(output_zero_point + requantize_tfl2(bias[u] + sum over r < rank and t of
//                   time_weights[u*rank + r, t] * state[u*rank + r, t], output_multiplier, output_shift),
//                   -128, 127)
//
// Sums are taken modulo 2^32. feature_bias holds what the input's zero point contributes. The state and the
// weights over time are int8 or int16, to which new[f] is saturated. docs/numerics/lstm.md.
#ifndef QPLAN_KERNELS_SVDF_SVDF_H_
#define QPLAN_KERNELS_SVDF_SVDF_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct SvdfArgs {
  const int8_t* input = nullptr;            // [batch, input_c]
  const int8_t* feature_weights = nullptr;  // [filters, input_c]
  const void* time_weights = nullptr;       // [filters, memory]
  const int32_t* feature_bias = nullptr;    // [filters]
  const int32_t* bias = nullptr;            // [filters / rank]
  const void* first_state = nullptr;        // [batch, filters, memory]
  int8_t* output = nullptr;                 // [batch, filters / rank]
  void* last_state = nullptr;               // may be first_state
  uint32_t batch = 0;
  uint32_t input_c = 0;
  uint32_t filters = 0;  // batch * filters is below 2^31
  uint32_t rank = 1;     // divides filters
  uint32_t memory = 0;
  int32_t feature_multiplier = 0;
  int32_t feature_shift = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t output_zero_point = 0;
  Dtype state_dtype = Dtype::kOther;  // kS8, kS16
};

// Work items: units, sample * (filters / rank) + u.
#define QPLAN_SVDF_VARIANTS QPLAN_VARIANT(svdf_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SvdfArgs)
QPLAN_SVDF_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SVDF_SVDF_H_
