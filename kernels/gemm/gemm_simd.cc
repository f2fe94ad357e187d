// gemm_<isa>, for conv2d, conv2d_transpose, fully_connected, batch_matmul and lstm. conv2d alone adds
// residuals.
#define QPLAN_PRODUCT_ADDS_RESIDUAL 1  // where it can
#include <stdint.h>

#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {

QPLAN_SIMD_NAMESPACE(gemm) {

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Gemm& product, uint32_t first_block, uint32_t end_block) {
  gemm(product, first_block, end_block);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(gemm)

}  // namespace qplan
