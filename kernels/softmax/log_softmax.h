// log_softmax: the logarithm of softmax along the last axis, in fixed point under TFL2; the output has scale
// 1/16 and the dtype's greatest value as zero point.
//
//   d(i), z(i), e(i), sum: as softmax (softmax.h)
//   log    = fixed_log(sum)                                          Q5.26 (kernels/numeric/fixed_point.h)
//   least  = max(diff_min - 1, requantize_tfl2(log - 2^31, reverse_multiplier, reverse_shift))
//   out(i) = max + clamp(round((z(i) - log) / 2^22), -255, 0)        where d(i) > least, else min
//
// least is the difference whose z(i) - log would leave Q5.26. Input and output have one dtype, int8 or uint8.
// docs/numerics/softmax.md.
#ifndef QPLAN_KERNELS_SOFTMAX_LOG_SOFTMAX_H_
#define QPLAN_KERNELS_SOFTMAX_LOG_SOFTMAX_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct LogSoftmaxArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* input = nullptr;
  void* output = nullptr;
  uint32_t rows = 1;  // fits int32
  uint32_t depth = 1;
  int32_t input_multiplier = 0;  // these three: as softmax's
  int32_t input_left_shift = 0;
  int32_t diff_min = 0;
  int32_t reverse_multiplier = 0;  // from Q5.26 to differences: [0, 2^31)
  int32_t reverse_shift = 0;       // [-31, 0]
};

// Work items: rows.
#define QPLAN_LOG_SOFTMAX_VARIANTS QPLAN_VARIANT(log_softmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, LogSoftmaxArgs)
QPLAN_LOG_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SOFTMAX_LOG_SOFTMAX_H_
