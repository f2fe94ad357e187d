// The instruction sets that a session can be limited to, as parameters of tests.
#ifndef QPLAN_TESTS_SUPPORT_ISAS_H_
#define QPLAN_TESTS_SUPPORT_ISAS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "qplan/qplan.h"

namespace qplan::testing {

// Lowest first; those that this machine lacks, too: their tests skip.
inline constexpr uint32_t kIsas[] = {
    QPLAN_ISA_REFERENCE,
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) QPLAN_ISA_##NAME,
#include "kernels/isa.def"
#undef QPLAN_ISA
};

// Names a test after its instruction set.
inline std::string isa_test_name(const ::testing::TestParamInfo<uint32_t>& info) {
  return qplan_isa_name(info.param);
}

}  // namespace qplan::testing

// Leaves the test unless this machine and build have the instruction set.
#define QPLAN_SKIP_UNLESS_ISA(isa)                                           \
  if (qplan_isa_available(isa) == 0) {                                       \
    GTEST_SKIP() << "this machine or build lacks " << (qplan_isa_name(isa)); \
  }                                                                          \
  static_assert(true, "the macro wants a semicolon")

#endif  // QPLAN_TESTS_SUPPORT_ISAS_H_
