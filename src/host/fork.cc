#include "src/host/fork.h"

#include <pthread.h>

#include <atomic>

namespace qplan::host {
namespace {

std::atomic<uint32_t> forks{0};

}  // namespace

bool watch_forks() {
  static const bool watches =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }) == 0;
  return watches;
}

uint32_t forks_so_far() { return forks.load(std::memory_order_relaxed); }

}  // namespace qplan::host
