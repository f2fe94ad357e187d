// Memory of an exact size between pages without access: an access outside it ends the process, in release
// builds and in uninstrumented kernels too.
#ifndef QPLAN_TESTS_FUZZ_GUARDED_MEMORY_H_
#define QPLAN_TESTS_FUZZ_GUARDED_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/sanitizers.h"

#if QPLAN_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace qplan::testing {

// Mappings are kept for the next input: two system calls for each memory would take longer than most plans
// run.
class GuardPages {
 public:
  static constexpr size_t kPageBytes = 4096;

  static GuardPages& get() {
    static GuardPages pages;
    return pages;
  }
  // count writable pages between two guards.
  uint8_t* take(size_t count) {
    std::vector<uint8_t*>& free = free_[count];
    if (!free.empty()) {
      uint8_t* const taken = free.back();
      free.pop_back();
      return taken;
    }
    void* const all = mmap(nullptr, (count + 2) * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(all != MAP_FAILED, "no memory");
    uint8_t* const first = static_cast<uint8_t*>(all) + kPageBytes;
    FUZZ_CHECK(mprotect(first, count * kPageBytes, PROT_READ | PROT_WRITE) == 0, "no memory");
    return first;
  }
  void give_back(uint8_t* first, size_t count) {
    if (count > kMostKeptPages) {
      munmap(first - kPageBytes, (count + 2) * kPageBytes);
    } else {
      free_[count].push_back(first);
    }
  }

 private:
  static constexpr size_t kMostKeptPages = 256;
  std::map<size_t, std::vector<uint8_t*>> free_;
};

class GuardedMemory {
 public:
  // alignment: a power of two, at most a page. at_end: the last byte is the one before the guard, as nearly
  // as the alignment allows; else the first byte follows the guard. The bytes that the alignment leaves are
  // checked when the memory is freed.
  GuardedMemory(size_t size, size_t alignment, bool at_end, uint8_t fill)
      : size_(size), num_pages_((size + GuardPages::kPageBytes - 1) / GuardPages::kPageBytes) {
    if (num_pages_ == 0) num_pages_ = 1;
    first_ = GuardPages::get().take(num_pages_);
    const size_t slack = num_pages_ * GuardPages::kPageBytes - size;
    data_ = first_ + (at_end ? slack & ~(alignment - 1) : 0);
    std::memset(data_, fill, size);
    std::memset(first_, kCanary, before());
    std::memset(data_ + size, kCanary, after());
    poison(true);
  }
  GuardedMemory(GuardedMemory&& other) noexcept
      : first_(other.first_), data_(other.data_), size_(other.size_), num_pages_(other.num_pages_) {
    other.first_ = nullptr;
  }
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory() {
    if (first_ == nullptr) return;
    poison(false);
    check(first_, before());
    check(data_ + size_, after());
    GuardPages::get().give_back(first_, num_pages_);
  }

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static constexpr uint8_t kCanary = 0xc9;

  size_t before() const { return static_cast<size_t>(data_ - first_); }
  size_t after() const { return num_pages_ * GuardPages::kPageBytes - before() - size_; }
  static void check(const uint8_t* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
      FUZZ_CHECK(bytes[i] == kCanary, "written %zu bytes outside a memory", i);
  }
  void poison(bool yes) const {
#if QPLAN_ASAN
    if (yes) {
      ASAN_POISON_MEMORY_REGION(first_, before());
      ASAN_POISON_MEMORY_REGION(data_ + size_, after());
    } else {
      ASAN_UNPOISON_MEMORY_REGION(first_, num_pages_ * GuardPages::kPageBytes);
    }
#else
    (void)yes;
#endif
  }

  uint8_t* first_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t size_;
  size_t num_pages_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_GUARDED_MEMORY_H_
