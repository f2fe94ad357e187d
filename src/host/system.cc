#include "src/host/system.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

namespace qplan::host {

#if defined(__linux__)
static_assert(kMaxProcessors == CPU_SETSIZE);
#endif

std::vector<uint32_t> allowed_processors() {
  std::vector<uint32_t> processors;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (uint32_t i = 0; i < kMaxProcessors; ++i) {
      if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    }
  }
#endif
  if (!processors.empty()) return processors;
  const uint32_t count = std::max(1u, std::thread::hardware_concurrency());
  for (uint32_t i = 0; i < count; ++i) processors.push_back(i);
  return processors;
}

bool differ_in_speed(const std::vector<uint32_t>& processors, const std::string& folder) {
  uint64_t least = UINT64_MAX, most = 0;
  for (const uint32_t processor : processors) {
    std::ifstream file(folder + "/cpu" + std::to_string(processor) + "/cpu_capacity");
    uint64_t capacity = 0;
    if (!(file >> capacity)) return false;
    least = std::min(least, capacity);
    most = std::max(most, capacity);
  }
  return least < most;
}

bool pin_thread([[maybe_unused]] pthread_t thread, [[maybe_unused]] uint32_t processor) {
#if defined(__linux__)
  if (processor >= kMaxProcessors) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  return pthread_setaffinity_np(thread, sizeof(one), &one) == 0;
#else
  return false;
#endif
}

// ---- forks

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
