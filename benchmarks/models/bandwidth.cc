#include "benchmarks/models/bandwidth.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "qplan/host.h"

namespace qplan::benchmarks {
namespace {

constexpr size_t kRound = 256;              // bytes that one round of a loop reads
constexpr size_t kPiece = size_t{1} << 20;  // that are timed at once: short, so that some are not interrupted
constexpr uint64_t kTotalBytes = uint64_t{1} << 30;

#if defined(__x86_64__)
// Loads alone: nothing is done with what they bring.
#define QPLAN_READ_LOOP(load)                                                                \
  asm volatile("1:\n.irp i, 0, 1, 2, 3\n" load "\n.endr\nadd $256, %0\ncmp %1, %0\njne 1b\n" \
               : "+r"(from)                                                                  \
               : "r"(end)                                                                    \
               : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3")

void read_512(const uint8_t* from, const uint8_t* end) {
  QPLAN_READ_LOOP("vmovdqa64 64*\\i(%0), %%zmm\\i");
  asm volatile("vzeroupper");
}
void read_256(const uint8_t* from, const uint8_t* end) {
  QPLAN_READ_LOOP("vmovdqa 64*\\i(%0), %%ymm\\i\nvmovdqa 64*\\i+32(%0), %%ymm\\i");
  asm volatile("vzeroupper");
}
void read_128(const uint8_t* from, const uint8_t* end) {
  QPLAN_READ_LOOP(
      "movdqa 64*\\i(%0), %%xmm\\i\nmovdqa 64*\\i+16(%0), %%xmm\\i\n"
      "movdqa 64*\\i+32(%0), %%xmm\\i\nmovdqa 64*\\i+48(%0), %%xmm\\i");
}

void read_all(const uint8_t* from, const uint8_t* end) {
  if (__builtin_cpu_supports("avx512f")) {
    read_512(from, end);
  } else if (__builtin_cpu_supports("avx2")) {
    read_256(from, end);
  } else {
    read_128(from, end);
  }
}
#else
void read_all(const uint8_t* from, const uint8_t* end) {
  for (; from != end; from += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, from, sizeof value);
    asm volatile("" : : "r"(value));
  }
}
#endif

}  // namespace

double measure_read_gb_per_s(size_t bytes) {
  const size_t piece = std::max(std::min(bytes, kPiece) / kRound, size_t{1}) * kRound;
  const size_t num_pieces = std::max(bytes / piece, size_t{1});
  const size_t reads =
      std::max(kPiece / piece, size_t{1});  // of a small piece, for a time that can be measured
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(kRound, num_pieces * piece),
                                                      std::free);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 1, num_pieces * piece);
  const auto* from = static_cast<const uint8_t*>(memory.get());
  uint64_t best_ns = UINT64_MAX;
  for (size_t i = 0; i < kTotalBytes / (reads * piece); ++i) {
    const uint8_t* begin = from + i % num_pieces * piece;
    const uint64_t begin_ns = qplan_host_now_ns(nullptr);
    for (size_t k = 0; k < reads; ++k) read_all(begin, begin + piece);
    best_ns = std::min(best_ns, qplan_host_now_ns(nullptr) - begin_ns);
  }
  return static_cast<double>(reads * piece) / static_cast<double>(std::max<uint64_t>(best_ns, 1));
}

}  // namespace qplan::benchmarks
