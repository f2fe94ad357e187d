// Counts what this program takes from the heap, by whatever way: malloc, calloc, realloc, operator new,
// memalign.
#ifndef QPLAN_TESTS_SUPPORT_MALLOC_TRAP_H_
#define QPLAN_TESTS_SUPPORT_MALLOC_TRAP_H_

#include <cstdint>

namespace qplan::testing {

// Allocations of all threads so far. Constant 0 under a sanitizer, whose malloc cannot be intercepted.
uint64_t allocation_count();

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_MALLOC_TRAP_H_
