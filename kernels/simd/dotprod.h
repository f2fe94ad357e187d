// The vocabulary of kernels/simd/simd.h with the dot products of Arm (SDOT, FEAT_DotProd): that of NEON with
// another matrix product. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTPROD_H_
#define QPLAN_KERNELS_SIMD_DOTPROD_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA dotprod
#define QPLAN_SIMD_VECTORS neon
#endif

// The tiles of the matrix product. Sources that only answer questions are compiled without this instruction
// set's flags, under which alone clang declares its intrinsics: they see NEON's.
#if !defined(QPLAN_ONLY_QUERIES)
#define QPLAN_SIMD_TILES "kernels/simd/tiles_dotprod.h"
#endif

#include "kernels/simd/neon.h"

#endif  // QPLAN_KERNELS_SIMD_DOTPROD_H_
