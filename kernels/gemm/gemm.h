// The product of kernels/numeric/gemm.h, compiled once for an instruction set: conv2d, conv2d_transpose,
// fully_connected, batch_matmul and lstm call it. A copy in each of conv2d, fully_connected and lstm would be
// 480 KB more of libqplan.a for AVX-512 alone.
#ifndef QPLAN_KERNELS_GEMM_GEMM_H_
#define QPLAN_KERNELS_GEMM_GEMM_H_

#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/variant.h"

namespace qplan {

// gemm_<isa>::run: all rows of the product by the channels of blocks [first_block, end_block), 16 channels
// each. No session chooses among these: a variant of a family calls the one of its own instruction set.
#define QPLAN_GEMM_VARIANTS QPLAN_DOT_VARIANTS(gemm)
#define QPLAN_DECLARE_GEMM(name)                                           \
  namespace name {                                                         \
  void run(const Gemm& product, uint32_t first_block, uint32_t end_block); \
  }
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_GEMM(name)
QPLAN_GEMM_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_GEMM_GEMM_H_
