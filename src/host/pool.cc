// The small pool: threads that look out for work for a moment, then sleep on a condition variable. Tasks are
// shared out in order, and whoever is done with its share takes from those of others: the steps of a plan go
// through their data in the same order, so that a worker finds in its cache what it wrote the step before.
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "qplan/host.h"
#include "src/host/system.h"

namespace {

using Task = void (*)(void* ctx, uint32_t index, uint32_t worker);

class Pool {
 public:
  Pool(uint32_t num_threads, bool is_uneven, uint32_t struct_size) : shares_(num_threads) {
    api_.struct_size = struct_size;
    api_.num_threads = num_threads;
    api_.is_uneven = is_uneven ? 1 : 0;
    api_.user = this;
    api_.parallel_for = [](void* user, uint32_t count, Task task, void* ctx) {
      static_cast<Pool*>(user)->parallel_for(count, task, ctx);
    };
    // The application's signals are for its own threads; but a fault is the thread's that makes it, and where
    // its signal is blocked the kernel kills the process past every handler.
    sigset_t others, before;
    sigfillset(&others);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&others, fault);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    try {
      for (uint32_t worker = 1; worker < num_threads; ++worker) {
        threads_.emplace_back([this, worker] { work(worker); });
      }
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      stop();
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  // In the process that made it.
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const qplan_thread_pool* api() const { return &api_; }

  // Thread i, but for the caller's, runs on processors[i] alone. Returns the first one that the system
  // refuses.
  const uint32_t* pin(const uint32_t* processors) {
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (!qplan::host::pin_thread(threads_[i].native_handle(), processors[i + 1])) return &processors[i + 1];
    }
    return nullptr;
  }

  // In a child of fork(), the threads are gone, and locks, counts and sleepers are as some thread left them:
  // nothing of that may be touched, and std::thread and std::condition_variable must not even be destroyed,
  // since they wait for threads. Such a pool stays in memory, where leak checkers find it.
  static void destroy(Pool* pool) {
    if (!pool->is_from_before_fork()) {
      delete pool;
      return;
    }
    static std::atomic<Pool*> abandoned{nullptr};
    pool->next_abandoned_ = abandoned.exchange(pool);
  }

 private:
  bool is_from_before_fork() const { return forks_ != qplan::host::forks_so_far(); }

  // state_ counts workers that may still join the current call, and those that run its tasks.
  static constexpr uint64_t kVacancy = uint64_t{1} << 32, kActive = 1;
  static constexpr uint64_t vacancies(uint64_t state) { return state / kVacancy; }
  static constexpr uint64_t active(uint64_t state) { return state % kVacancy; }

  void parallel_for(uint32_t count, Task task, void* ctx) {
    if (is_from_before_fork()) {
      for (uint32_t index = 0; index < count; ++index) task(ctx, index, 0);
      return;
    }
    const std::lock_guard<std::mutex> one_at_a_time(callers_);
    const uint32_t helpers = count == 0 ? 0 : std::min(api_.num_threads, count) - 1;
    if (helpers == 0) {
      for (uint32_t index = 0; index < count; ++index) task(ctx, index, 0);
      return;
    }
    task_ = task;
    ctx_ = ctx;
    count_ = count;
    num_shares_ = helpers + 1;
    for (uint32_t i = 0; i < num_shares_; ++i) shares_[i].next.store(begin_of(i), std::memory_order_relaxed);
    // Ordered before the look at sleepers_, as a sleeper's count is before its last look at state_.
    state_.store(helpers * kVacancy, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      for (uint32_t i = 0; i < helpers; ++i) wake_.notify_one();
    }
    run(0);
    // A worker that has not woken up by now is too late; no thread waits for it.
    uint64_t state = state_.fetch_and(kVacancy - 1, std::memory_order_acq_rel);
    for (uint32_t spins = 0; active(state) != 0; state = state_.load(std::memory_order_acquire))
      relax(&spins);
  }

  uint64_t begin_of(uint32_t share) const { return uint64_t{count_} * share / num_shares_; }

  void run(uint32_t worker) {
    for (uint32_t i = 0; i < num_shares_; ++i) {
      const uint32_t share = (worker + i) % num_shares_;
      const uint64_t end = begin_of(share + 1);
      for (;;) {
        // 64 bits: every worker counts once beyond the end.
        const uint64_t index = shares_[share].next.fetch_add(1, std::memory_order_relaxed);
        if (index >= end) break;
        task_(ctx_, static_cast<uint32_t>(index), worker);
      }
    }
  }

  // Whether there was a vacancy; then its tasks are done.
  bool join(uint32_t worker) {
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if (vacancies(state) == 0) return false;
    } while (!state_.compare_exchange_weak(state, state - kVacancy + kActive, std::memory_order_acq_rel));
    run(worker);
    state_.fetch_sub(kActive, std::memory_order_release);
    return true;
  }

  // The steps of a run follow each other within microseconds, and a thread that sleeps takes tens of them to
  // wake up: a worker looks out for the next call for a while before it sleeps.
  void work(uint32_t worker) {
    while (!stopping_.load(std::memory_order_acquire)) {
      for (uint32_t spins = 0; spins < kSpins;) {
        if (join(worker)) {
          spins = 0;
        } else if (stopping_.load(std::memory_order_relaxed)) {
          return;
        } else {
          relax(&spins);
        }
      }
      std::unique_lock<std::mutex> lock(mutex_);
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [this] {
        return stopping_.load(std::memory_order_relaxed) ||
               vacancies(state_.load(std::memory_order_seq_cst)) > 0;
      });
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  // A moment's wait; now and then another thread gets the processor, for the one that is waited for may need
  // it.
  static void relax(uint32_t* spins) {
    if (++*spins % kSpinsPerYield == 0) {
      sched_yield();
      return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_.store(true, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // About 50 microseconds of pauses.
  static constexpr uint32_t kSpins = 2048, kSpinsPerYield = 128;

  qplan_thread_pool api_ = {};
  const uint32_t forks_ = qplan::host::forks_so_far();
  Pool* next_abandoned_ = nullptr;
  std::mutex callers_;
  std::vector<std::thread> threads_;

  // State of the current call; it is written only while no thread is active and there are no vacancies.
  Task task_ = nullptr;
  void* ctx_ = nullptr;
  uint32_t count_ = 0;
  uint32_t num_shares_ = 1;
  struct alignas(64) Share {
    std::atomic<uint64_t> next{0};
  };
  std::vector<Share> shares_;
  alignas(64) std::atomic<uint64_t> state_{0};

  std::mutex mutex_;  // of going to sleep
  std::condition_variable wake_;
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace

// Whoever calls this may be older than is_uneven, and then copies a shorter struct than this one.
const qplan_thread_pool* qplan_pool_create(uint32_t num_threads) {
  try {
    if (!qplan::host::watch_forks()) return nullptr;
    if (num_threads == 0) num_threads = static_cast<uint32_t>(qplan::host::allowed_processors().size());
    return std::make_unique<Pool>(num_threads, false, uint32_t{offsetof(qplan_thread_pool, is_uneven)})
        .release()
        ->api();
  } catch (...) {
    return nullptr;
  }
}

qplan_status qplan_pool_create_with(const qplan_pool_config* config, const qplan_thread_pool** pool,
                                    qplan_error* error) {
  using qplan::host::report;
  try {
    if (pool != nullptr) *pool = nullptr;
    if (config == nullptr || pool == nullptr || config->struct_size == 0) {
      return report(error, QPLAN_INVALID_ARGUMENT,
                    "pool: config or pool is NULL, or struct_size of config is 0");
    }
    qplan_pool_config known = {};
    std::memcpy(&known, config, std::min<size_t>(config->struct_size, sizeof(known)));
    const uint32_t num_threads = known.num_threads != 0 ? known.num_threads : known.num_processors;
    if (known.num_processors != 0 && (known.processors == nullptr || known.num_processors != num_threads)) {
      return report(error, QPLAN_INVALID_ARGUMENT,
                    "pool: found " + std::to_string(known.num_processors) + " processors for " +
                        std::to_string(num_threads) + " threads, expected one for each");
    }
    if (known.speeds > QPLAN_POOL_SPEEDS_UNEVEN) {
      return report(error, QPLAN_INVALID_ARGUMENT,
                    "pool: speeds " + std::to_string(known.speeds) + " is not a QPLAN_POOL_SPEEDS_* value");
    }
    for (uint32_t i = 0; i < known.num_processors; ++i) {
      if (known.processors[i] < qplan::host::kMaxProcessors) continue;
      return report(error, QPLAN_INVALID_ARGUMENT,
                    "pool: found processor " + std::to_string(known.processors[i]) + ", expected one below " +
                        std::to_string(qplan::host::kMaxProcessors) + "; qplan names no others");
    }
    std::vector<uint32_t> processors = qplan::host::allowed_processors();
    if (known.num_processors != 0)
      processors.assign(known.processors, known.processors + known.num_processors);
    const bool is_uneven = known.speeds == QPLAN_POOL_SPEEDS_SYSTEM
                               ? qplan::host::differ_in_speed(processors)
                               : known.speeds == QPLAN_POOL_SPEEDS_UNEVEN;
    if (!qplan::host::watch_forks()) return report(error, QPLAN_OUT_OF_MEMORY, "pool: out of memory");
    auto made =
        std::make_unique<Pool>(num_threads != 0 ? num_threads : static_cast<uint32_t>(processors.size()),
                               is_uneven, uint32_t{sizeof(qplan_thread_pool)});
    if (known.num_processors != 0) {
      if (const uint32_t* refused = made->pin(known.processors)) {
        return report(error, QPLAN_INVALID_ARGUMENT,
                      "pool: no thread may run on processor " + std::to_string(*refused) +
                          " of this machine; 'taskset -cp $$' prints those that may");
      }
    }
    *pool = made.release()->api();
    return QPLAN_OK;
  } catch (...) {
    return report(error, QPLAN_OUT_OF_MEMORY, "pool: out of memory or threads");
  }
}

void qplan_pool_destroy(const qplan_thread_pool* pool) {
  if (pool != nullptr) Pool::destroy(static_cast<Pool*>(pool->user));
}
