// The common parts of fuzz targets: libFuzzer's functions, checks that end the process, and numbers drawn
// from an input. It knows no test framework, since a target runs millions of times.
#ifndef QPLAN_TESTS_FUZZ_FUZZ_TARGET_H_
#define QPLAN_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The target defines this function.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
// libFuzzer or replay_main.cc defines this function: it changes data at random and returns the new size.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// A broken promise of the product: libFuzzer keeps the input, a replay fails.
#define FUZZ_CHECK(condition, ...)                                                 \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, __VA_ARGS__);                                           \
      std::fputc('\n', stderr);                                                    \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace qplan::testing {

// Takes numbers off the end of an input, so that its beginning stays what the format says. Zero when it is
// used up.
class InputTail {
 public:
  InputTail(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t byte() { return size_ == 0 ? 0 : data_[--size_]; }
  uint32_t word() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  // The rest of the input.
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_FUZZ_TARGET_H_
