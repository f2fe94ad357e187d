// The AVX-VNNI variants of fully_connected and batch_matmul in AVX-512's encoding (evexvnni.h).
#define QPLAN_SIMD_ISA evexvnni
#define QPLAN_SIMD_VECTORS avx2
#define QPLAN_SIMD_HEADER "kernels/simd/avxvnni.h"
#include "kernels/matmul/matmul_simd.cc"  // NOLINT: the same source, for another instruction set
