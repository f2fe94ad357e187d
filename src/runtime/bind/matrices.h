// What batch_matmul and float_batch_matmul share: tensors whose last two axes are matrices.
#ifndef QPLAN_SRC_RUNTIME_BIND_MATRICES_H_
#define QPLAN_SRC_RUNTIME_BIND_MATRICES_H_

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// The leading axes of a tensor of matrices.
inline Shape batches_of(const Shape& shape) {
  Shape batches = shape;
  batches.rank -= 2;
  return batches;
}

// Whether the matrices of a and b make those of the output, which are few enough to count.
inline bool are_matrices(const StepCheck& check, const Shape& a, const Shape& b, const Shape& output,
                         bool transpose_b) {
  if (a.rank < 2 || b.rank < 2 || output.rank < 2)
    return check.fail() << "a tensor of matrices has rank 2 or more";
  const uint32_t b_k = b[b.rank - (transpose_b ? 1 : 2)], b_n = b[b.rank - (transpose_b ? 2 : 1)];
  if (a[a.rank - 1] != b_k || output[output.rank - 2] != a[a.rank - 2] || output[output.rank - 1] != b_n) {
    return check.fail() << "matrices of " << a[a.rank - 2] << " x " << a[a.rank - 1] << " and " << b_k
                        << " x " << b_n << " do not make " << output[output.rank - 2] << " x "
                        << output[output.rank - 1];
  }
  return check.range("output rows", static_cast<int64_t>(output.elements() / output[output.rank - 1]), 1,
                     INT32_MAX);
}

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_BIND_MATRICES_H_
