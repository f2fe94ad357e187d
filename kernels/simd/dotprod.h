// The vocabulary of kernels/simd/simd.h with the dot products of Arm (SDOT, FEAT_DotProd): that of NEON with
// another matrix product. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTPROD_H_
#define QPLAN_KERNELS_SIMD_DOTPROD_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA dotprod
#define QPLAN_SIMD_VECTORS neon
#endif

// The tiles of the matrix product.
#define QPLAN_SIMD_TILES "kernels/simd/tiles_dotprod.h"

#include "kernels/simd/neon.h"

#endif  // QPLAN_KERNELS_SIMD_DOTPROD_H_
