// The logistic function 1 / (1 + exp(-x)) of one 8-bit value, with which packers fill the table of a lut8
// step. The output has scale 1/256 and the dtype's least value as zero point. The rule is that of TFLite's
// own kernels; all operations are in float32 but exp, which is computed in double and then rounded:
//   v   = input_scale * (x - input_zero_point)
//   out = min + clamp(round half away (256 / (1 + exp(-v))), 0, 255)
#ifndef QPLAN_KERNELS_LOGISTIC_LOGISTIC_H_
#define QPLAN_KERNELS_LOGISTIC_LOGISTIC_H_

#include <stdint.h>

namespace qplan {

// input_scale is positive and finite, input_zero_point of the dtype.
uint8_t logistic_u8(uint8_t x, float input_scale, int32_t input_zero_point);
int8_t logistic_s8(int8_t x, float input_scale, int32_t input_zero_point);

}  // namespace qplan

#endif  // QPLAN_KERNELS_LOGISTIC_LOGISTIC_H_
