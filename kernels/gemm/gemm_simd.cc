// gemm_<isa>: what conv2d needs of the product, which the others need less of.
#define QPLAN_PRODUCT_ADDS_RESIDUAL 1  // where it can
#include "kernels/gemm/gemm.h"

#include <stdint.h>

#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {

QPLAN_DECLARE_GEMM(QPLAN_SIMD_VARIANT(gemm))

QPLAN_SIMD_NAMESPACE(gemm) {

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Gemm& product, uint32_t first_block, uint32_t end_block) {
  gemm(product, first_block, end_block);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(gemm)

}  // namespace qplan
