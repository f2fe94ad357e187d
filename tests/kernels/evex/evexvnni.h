// The AVX-VNNI kernels with their one instruction in the encoding of AVX-512, for machines that have only
// that.
#ifndef QPLAN_TESTS_KERNELS_EVEX_EVEXVNNI_H_
#define QPLAN_TESTS_KERNELS_EVEX_EVEXVNNI_H_

#include "kernels/conv2d/conv2d.h"
#include "kernels/matmul/matmul.h"
#include "src/runtime/bind/family.h"

#if defined(QPLAN_TEST_EVEX)
namespace qplan {

QPLAN_DECLARE_VARIANT(conv2d_evexvnni, Conv2dArgs)
QPLAN_DECLARE_VARIANT(fully_connected_evexvnni, FullyConnectedArgs)

namespace testing {

inline constexpr KernelVariant kConv2dEvexVnni =
    QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_evexvnni, QPLAN_ISA_AVX512VNNI);
inline constexpr KernelVariant kFullyConnectedEvexVnni =
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_evexvnni, QPLAN_ISA_AVX512VNNI);

}  // namespace testing
}  // namespace qplan
#endif

#endif  // QPLAN_TESTS_KERNELS_EVEX_EVEXVNNI_H_
