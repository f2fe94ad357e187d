// Stands before glibc's allocator, whose functions have a second name; operator new ends in malloc.
#include "tests/support/malloc_trap.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "tests/support/sanitizers.h"

#if defined(__GLIBC__) && !QPLAN_ASAN && !QPLAN_TSAN
#define QPLAN_MALLOC_TRAP 1
#else
#define QPLAN_MALLOC_TRAP 0
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}

namespace qplan::testing {
uint64_t allocation_count() { return allocations; }
}  // namespace qplan::testing

#if QPLAN_MALLOC_TRAP
// Every name must be replaced or none: memory from one allocator may be freed through another name.
#pragma GCC visibility push(default)
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  ++allocations;
  return __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}
#pragma GCC visibility pop
#endif
