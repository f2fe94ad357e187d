// Implements the pool hook with OpenMP's threads.
#include <omp.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <new>

#include "qplan/host.h"
#include "src/host/system.h"

namespace {

using Task = void (*)(void* ctx, uint32_t index, uint32_t worker);

// OpenMP keeps its threads for the process, and in a child of fork() its next parallel region waits for them
// without end. Whether this process is such a child: one whose parent has made a pool here. Its threads may
// have been made by the application, before the pool runs a task.
bool threads_are_gone() {
  static std::atomic<uint32_t> first_pool{0};  // 1 more than the forks before it; 0: not yet
  const uint32_t now = qplan::host::forks_so_far() + 1;
  uint32_t first = first_pool.load(std::memory_order_relaxed);
  if (first == 0 && first_pool.compare_exchange_strong(first, now, std::memory_order_relaxed)) first = now;
  return first != now;
}

void parallel_for(void* user, uint32_t count, Task task, void* ctx) {
  if (threads_are_gone()) {
    for (uint32_t i = 0; i < count; ++i) task(ctx, i, 0);
    return;
  }
  const auto num_threads = static_cast<int>(static_cast<const qplan_thread_pool*>(user)->num_threads);
#pragma omp parallel for num_threads(num_threads) schedule(dynamic, 1)
  for (uint32_t i = 0; i < count; ++i) task(ctx, i, static_cast<uint32_t>(omp_get_thread_num()));
}

}  // namespace

const qplan_thread_pool* qplan_openmp_pool_create(uint32_t num_threads) {
  if (num_threads > INT_MAX) return nullptr;  // OpenMP counts threads with int
  if (!qplan::host::watch_forks()) return nullptr;
  (void)threads_are_gone();  // from now on it notices
  auto* pool = new (std::nothrow) qplan_thread_pool();
  if (pool == nullptr) return nullptr;
  pool->struct_size = offsetof(qplan_thread_pool, is_uneven);  // as qplan_pool_create
  pool->num_threads = num_threads == 0 ? static_cast<uint32_t>(omp_get_num_procs()) : num_threads;
  pool->user = pool;
  pool->parallel_for = parallel_for;
  return pool;
}

void qplan_openmp_pool_destroy(const qplan_thread_pool* pool) { delete pool; }
