// OpenMP's threads behind the pool hook.
#include <omp.h>

#include <climits>
#include <cstdint>
#include <new>

#include "qplan/host.h"

namespace {

using Task = void (*)(void* ctx, uint32_t index, uint32_t worker);

void parallel_for(void* user, uint32_t count, Task task, void* ctx) {
  const auto num_threads = static_cast<int>(static_cast<const qplan_thread_pool*>(user)->num_threads);
#pragma omp parallel for num_threads(num_threads) schedule(dynamic, 1)
  for (uint32_t i = 0; i < count; ++i) task(ctx, i, static_cast<uint32_t>(omp_get_thread_num()));
}

}  // namespace

const qplan_thread_pool* qplan_openmp_pool_create(uint32_t num_threads) {
  if (num_threads > INT_MAX) return nullptr;  // OpenMP counts threads with int
  auto* pool = new (std::nothrow) qplan_thread_pool();
  if (pool == nullptr) return nullptr;
  pool->struct_size = sizeof(*pool);
  pool->num_threads = num_threads == 0 ? static_cast<uint32_t>(omp_get_num_procs()) : num_threads;
  pool->user = pool;
  pool->parallel_for = parallel_for;
  return pool;
}

void qplan_openmp_pool_destroy(const qplan_thread_pool* pool) { delete pool; }
