// Kernel families for tests of the runtime: trivial arithmetic on bytes, and every property of a family that
// the runtime relies on. They use the numbers of real kernels whose parameters they borrow.
#ifndef QPLAN_TESTS_SUPPORT_TEST_KERNELS_H_
#define QPLAN_TESTS_SUPPORT_TEST_KERNELS_H_

#include <cstdint>

#include "qplan/qplan.h"
#include "tests/support/plan_builder.h"

namespace qplan::testing {

// y[i] = x[i] + k, k in NoParams. One unit per byte; may run in place; 64 bytes of scratch per worker,
// used. Two variants: add_byte_avx2 (no intrinsics in it) and add_byte_ref. k = 255 is refused by bind.
// Its work is 1 for each byte, with k = kHeavyAddend kHeavyWork; with k = kEndlessAddend 2^64 - 2 in all.
inline constexpr uint16_t kAddByte = 21;
inline constexpr uint8_t kHeavyAddend = 99, kEndlessAddend = 98;
inline constexpr uint64_t kHeavyWork = uint64_t{1} << 28;
// y[i] = sum of all inputs, any number of them. Not in place.
inline constexpr uint16_t kSum = 17;
// output j: y[i] = x[i] + j.
inline constexpr uint16_t kFan = 18;

const qplan_kernel_set* test_kernels();

// Called by each call of add_byte with kHeavyAddend, before it computes anything; null: nothing is.
void set_heavy_hook(void (*hook)(uint32_t begin));

// How often each has run since the last reset, and with how many different workers.
struct KernelCalls {
  uint32_t add_byte_ref;
  uint32_t add_byte_avx2;
};
KernelCalls kernel_calls();
void reset_kernel_calls();

// x -> (+1) -> a -> (+2) -> b -> (+3) -> y, int8 [2, 3, 4]; scratch 64; two names of steps and tensors.
PlanSpec sequence_spec();

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_TEST_KERNELS_H_
