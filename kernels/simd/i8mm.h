// The vocabulary of kernels/simd/simd.h with Arm's products of two by eight bytes (SMMLA, USMMLA, SUDOT;
// FEAT_I8MM): that of NEON with another matrix product. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_I8MM_H_
#define QPLAN_KERNELS_SIMD_I8MM_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA i8mm
#define QPLAN_SIMD_VECTORS neon
#endif

// The tiles multiply weights in groups of eight bytes, too: the layouts o16r8, o16i8 and o16z8.
#define QPLAN_SIMD_EIGHTS 1
// The tiles of the matrix product.
#if !defined(QPLAN_ONLY_QUERIES)  // see kernels/simd/dotprod.h
#define QPLAN_SIMD_TILES "kernels/simd/tiles_i8mm.h"
#endif

#include "kernels/simd/neon.h"

#endif  // QPLAN_KERNELS_SIMD_I8MM_H_
