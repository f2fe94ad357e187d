// The vocabulary of kernels/simd/simd.h with RISC-V's vectors (RVV 1.0 of 128 bits or more): that of
// generic.h, whose vectors of 16 bytes Clang computes in vector registers of any length
// (-riscv-v-vector-bits-min=128), with float epilogues and a matrix product of its own, which are written in
// Clang's intrinsics. GCC 12 has neither. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_RVV_H_
#define QPLAN_KERNELS_SIMD_RVV_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA rvv
#define QPLAN_SIMD_VECTORS rvv
#endif

// Questions to kernels are compiled without vectors.
#if defined(__riscv_vector)
// Four float32, within int32, to integers: from memory to memory, as Clang 14 gives assembly no vectors of 16
// bytes. QEMU 7.2 stops at vfcvt.rtz.x.f.v, which Clang makes of a conversion: frm rounds towards zero
// meanwhile.
#define QPLAN_SIMD_OWN_CONVERSION(from, to)                                        \
  do {                                                                             \
    uint64_t rounding;                                                             \
    __asm__ volatile(                                                              \
        "vsetivli zero, 4, e32, m1, ta, mu\n\tvle32.v v8, (%1)\n\tfsrmi %0, 1\n\t" \
        "vfcvt.x.f.v v8, v8\n\tfsrm %0\n\tvse32.v v8, (%2)"                        \
        : "=&r"(rounding)                                                          \
        : "r"(from), "r"(to)                                                       \
        : "memory", "v8");                                                         \
  } while (false)
#define QPLAN_SIMD_FLOAT_EPILOGUES "kernels/simd/float_epilogues_rvv.h"
#define QPLAN_SIMD_TILES "kernels/simd/tiles_rvv.h"
#endif

#include "kernels/simd/generic.h"

#endif  // QPLAN_KERNELS_SIMD_RVV_H_
