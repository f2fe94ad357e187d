// The vocabulary of kernels/simd/simd.h with Arm's products of two by eight bytes (SMMLA, USMMLA, SUDOT;
// FEAT_I8MM): that of NEON with another matrix product. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_I8MM_H_
#define QPLAN_KERNELS_SIMD_I8MM_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA i8mm
#define QPLAN_SIMD_VECTORS neon
#endif

// Weights may lie in groups of eight bytes.
#define QPLAN_SIMD_EIGHTS 1
// The tiles of the matrix product.
#define QPLAN_SIMD_TILES "kernels/simd/tiles_i8mm.h"

#include "kernels/simd/neon.h"

#endif  // QPLAN_KERNELS_SIMD_I8MM_H_
