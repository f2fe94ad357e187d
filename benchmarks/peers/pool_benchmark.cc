// Thread pools side by side: qplan's own, OpenMP's and pthreadpool (the pool of XNNPACK), each as the
// qplan_thread_pool of a session. usage: pool_benchmark THREADS ROUNDS PLAN... The pools take turns. Prints a
// line for each plan: the fastest run of each pool in microseconds; and what a parallel_for of one empty task
// per thread costs. docs/decisions/0011-a-pool-of-our-own.md has the figures.
#include <pthreadpool.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <qplan/qplan.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// pthreadpool hands out indices without saying to which thread. Worker w takes every n-th task from w on, so
// that two tasks that run at the same time have different workers.
struct Peer {
  pthreadpool_t pool;
  uint32_t num_threads;
};

struct Call {
  uint32_t count, num_workers;
  void (*task)(void* context, uint32_t index, uint32_t worker);
  void* context;
};

void run_worker(void* context, size_t worker) {
  const auto& call = *static_cast<const Call*>(context);
  for (uint32_t i = static_cast<uint32_t>(worker); i < call.count; i += call.num_workers) {
    call.task(call.context, i, static_cast<uint32_t>(worker));
  }
}

void parallel_for(void* user, uint32_t count, void (*task)(void* context, uint32_t index, uint32_t worker),
                  void* context) {
  const auto& peer = *static_cast<const Peer*>(user);
  Call call = {count, std::min(count, peer.num_threads), task, context};
  pthreadpool_parallelize_1d(peer.pool, run_worker, &call, call.num_workers, 0);
}

struct Pool {
  const char* name;
  const qplan_thread_pool* pool;
};

uint64_t nanoseconds(Clock::time_point begin) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

// A session over any pool, which qplan::Session does not take.
class Runs {
 public:
  Runs(const qplan::Plan& plan, const qplan_thread_pool* pool) {
    platform_.struct_size = sizeof(platform_);
    platform_.thread_pool = pool;
    qplan_session_config config = {};
    config.struct_size = sizeof(config);
    config.kernels = qplan_kernels_all();
    config.platform = &platform_;
    qplan_error error = {};
    error.struct_size = sizeof(error);
    if (qplan_host_session_create(plan.get(), &config, &session_, &error) < 0) throw qplan::Error(error);
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  ~Runs() { qplan_host_session_destroy(session_); }
  uint64_t least(int count) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      if (qplan_session_invoke(qplan_host_session_get(session_)) < 0) std::abort();
      least = std::min(least, nanoseconds(begin));
    }
    return least;
  }

 private:
  qplan_platform platform_ = {};
  qplan_host_session* session_ = nullptr;
};

uint64_t least_empty(const qplan_thread_pool* pool, int count) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    pool->parallel_for(
        pool->user, pool->num_threads, [](void*, uint32_t, uint32_t) {}, nullptr);
    least = std::min(least, nanoseconds(begin));
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s THREADS ROUNDS PLAN...\n", argv[0]);
    return 2;
  }
  const auto threads = static_cast<uint32_t>(std::atoi(argv[1]));
  const int rounds = std::atoi(argv[2]);
  Peer peer = {pthreadpool_create(threads), threads};
  const qplan_thread_pool adapter = {sizeof(adapter), threads, &peer, parallel_for, 0, 0};
  const std::vector<Pool> pools = {{"none", nullptr},
                                   {"qplan", qplan_pool_create(threads)},
                                   {"openmp", qplan_openmp_pool_create(threads)},
                                   {"pthreadpool", &adapter}};
  std::printf("%-44s", "fastest, microseconds");
  for (const Pool& pool : pools) std::printf(" %12s", pool.name);
  std::printf("\n%-44s %12s", "an empty parallel_for", "-");
  for (size_t p = 1; p < pools.size(); ++p) {
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < rounds; ++round) least = std::min(least, least_empty(pools[p].pool, 2000));
    std::printf(" %12.2f", static_cast<double>(least) / 1e3);
  }
  std::printf("\n");
  for (int i = 3; i < argc; ++i) {
    const qplan::Plan plan = qplan::Plan::map(argv[i]);
    std::vector<uint64_t> least(pools.size(), UINT64_MAX);
    for (int round = 0; round < rounds; ++round) {
      for (size_t p = 0; p < pools.size(); ++p) {
        Runs runs(plan, pools[p].pool);
        runs.least(3);
        least[p] = std::min(least[p], runs.least(10));
      }
    }
    std::printf("%-44.44s", argv[i]);
    for (const uint64_t ns : least) std::printf(" %12.2f", static_cast<double>(ns) / 1e3);
    std::printf("\n");
  }
  pthreadpool_destroy(peer.pool);
  qplan_pool_destroy(pools[1].pool);
  qplan_openmp_pool_destroy(pools[2].pool);
  return 0;
}
