// The small pool: threads that sleep on a condition variable.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "qplan/host.h"

namespace {

using Task = void (*)(void* ctx, uint32_t index, uint32_t worker);

// Those that the calling thread may run on: hardware_concurrency counts what taskset and cpusets withhold.
uint32_t num_processors() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    return std::max(1u, static_cast<uint32_t>(CPU_COUNT(&allowed)));
  }
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

class Pool {
 public:
  explicit Pool(uint32_t num_threads) {
    api_.struct_size = sizeof(api_);
    api_.num_threads = num_threads;
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
  ~Pool() { stop(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const qplan_thread_pool* api() const { return &api_; }

 private:
  void parallel_for(uint32_t count, Task task, void* ctx) {
    const std::lock_guard<std::mutex> one_at_a_time(callers_);
    const uint32_t helpers = count == 0 ? 0 : std::min(api_.num_threads, count) - 1;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      task_ = task;
      ctx_ = ctx;
      count_ = count;
      next_.store(0, std::memory_order_relaxed);
      vacancies_ = helpers;
    }
    for (uint32_t i = 0; i < helpers; ++i) wake_.notify_one();
    run(task, ctx, count, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    // Whoever has not woken up by now comes too late; nobody waits for it.
    vacancies_ = 0;
    idle_.wait(lock, [this] { return active_ == 0; });
  }

  void run(Task task, void* ctx, uint32_t count, uint32_t worker) {
    for (;;) {
      // 64 bits: every worker counts once beyond the end.
      const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      task(ctx, static_cast<uint32_t>(index), worker);
    }
  }

  void work(uint32_t worker) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || vacancies_ > 0; });
      if (stopping_) return;
      --vacancies_;
      ++active_;
      const Task task = task_;
      void* const ctx = ctx_;
      const uint32_t count = count_;
      lock.unlock();
      run(task, ctx, count, worker);
      lock.lock();
      if (--active_ == 0) idle_.notify_one();
    }
  }

  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  qplan_thread_pool api_ = {};
  std::mutex callers_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards all below but next_
  std::condition_variable wake_;
  std::condition_variable idle_;
  Task task_ = nullptr;
  void* ctx_ = nullptr;
  uint32_t count_ = 0;
  uint32_t vacancies_ = 0;  // workers that may still join the current call
  uint32_t active_ = 0;     // workers that run tasks of it
  bool stopping_ = false;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

const qplan_thread_pool* qplan_pool_create(uint32_t num_threads) {
  try {
    if (num_threads == 0) num_threads = num_processors();
    return (new Pool(num_threads))->api();
  } catch (...) {
    return nullptr;
  }
}

void qplan_pool_destroy(const qplan_thread_pool* pool) {
  if (pool != nullptr) delete static_cast<Pool*>(pool->user);
}
