#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "qplan/host.h"
#include "src/host/system.h"
#include "src/runtime/structs.h"

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

namespace {

struct PoolKind {
  const char* name;
  const qplan_thread_pool* (*create)(uint32_t);
  void (*destroy)(const qplan_thread_pool*);
};
void PrintTo(const PoolKind& kind, std::ostream* out) { *out << kind.name; }

using Pool = std::unique_ptr<const qplan_thread_pool, void (*)(const qplan_thread_pool*)>;

void parallel_for(const qplan_thread_pool& pool, uint32_t count,
                  std::function<void(uint32_t, uint32_t)> task) {
  pool.parallel_for(
      pool.user, count,
      [](void* ctx, uint32_t index, uint32_t worker) {
        (*static_cast<std::function<void(uint32_t, uint32_t)>*>(ctx))(index, worker);
      },
      &task);
}

class HostPool : public ::testing::TestWithParam<PoolKind> {
 protected:
  void SetUp() override {
    if (kThreadSanitizer && std::string(GetParam().name) == "OpenMP") {
      GTEST_SKIP() << "libgomp's own synchronisation is invisible to ThreadSanitizer";
    }
  }
  static Pool make(uint32_t num_threads) { return {GetParam().create(num_threads), GetParam().destroy}; }
};

TEST_P(HostPool, RunsEachIndexOnce) {
  for (const uint32_t threads : {1u, 2u, 4u, 9u}) {
    const Pool pool = make(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->num_threads, threads);
    for (const uint32_t count : {0u, 1u, 2u, 3u, 64u, 1000u}) {
      std::vector<uint32_t> runs(count);  // not atomic: each index is one task's own
      std::atomic<uint32_t> bad_workers{0};
      parallel_for(*pool, count, [&](uint32_t index, uint32_t worker) {
        ++runs[index];
        if (worker >= threads) ++bad_workers;
      });
      EXPECT_EQ(runs, std::vector<uint32_t>(count, 1));
      EXPECT_EQ(bad_workers, 0u);
    }
  }
}

TEST_P(HostPool, TasksAtTheSameTimeHaveDifferentWorkers) {
  const Pool pool = make(4);
  std::atomic<bool> busy[4] = {};
  std::atomic<uint32_t> clashes{0};
  for (int round = 0; round < 50; ++round) {
    parallel_for(*pool, 16, [&](uint32_t, uint32_t worker) {
      if (busy[worker].exchange(true)) ++clashes;
      std::this_thread::yield();
      busy[worker] = false;
    });
  }
  EXPECT_EQ(clashes, 0u);
}

// What tasks wrote is visible after parallel_for, and what the caller wrote in tasks: plain memory, many
// short calls.
TEST_P(HostPool, CallsAreOrdered) {
  const Pool pool = make(3);
  std::vector<uint32_t> values(30, 0);
  for (uint32_t round = 0; round < 2000; ++round) {
    for (uint32_t& value : values) ASSERT_EQ(value, round);
    parallel_for(*pool, 30, [&](uint32_t index, uint32_t) { ++values[index]; });
  }
}

TEST_P(HostPool, SeveralPoolsAndSeveralCallers) {
  const Pool a = make(3), b = make(2);
  std::atomic<uint32_t> total{0};
  const auto call = [&](const qplan_thread_pool& pool) {
    for (int i = 0; i < 200; ++i) parallel_for(pool, 7, [&](uint32_t, uint32_t) { ++total; });
  };
  std::thread first([&] { call(*a); }), second([&] { call(*a); }), third([&] { call(*b); });
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(total, 3u * 200 * 7);
}

TEST_P(HostPool, ZeroMeansAsManyAsProcessorsForThisProcess) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const Pool pool = make(0);
  EXPECT_EQ(pool->num_threads, static_cast<uint32_t>(CPU_COUNT(&allowed)));
}

TEST_P(HostPool, ZeroHeedsTheAffinityOfTheCaller) {
  uint32_t num_threads = 0;
  std::thread restricted([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0) num_threads = make(0)->num_threads;
  });
  restricted.join();
  EXPECT_EQ(num_threads, 1u);
}

TEST_P(HostPool, EnvironmentDoesNotChangeTheNumber) {
  setenv("OMP_NUM_THREADS", "7", 1);
  const Pool pool = make(2);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(pool->num_threads, 2u);
  std::atomic<uint32_t> most{0};
  parallel_for(*pool, 100, [&](uint32_t, uint32_t worker) {
    if (worker > most) most = worker;
  });
  EXPECT_LT(most, 2u);
}

// In a child of fork() the threads of the pool are gone: its tasks run on the calling thread, and it can be
// destroyed. Five seconds end a child that waits for threads that it does not have.
uint32_t run_in_child(const std::function<uint32_t()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(static_cast<int>(work()));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) ? static_cast<uint32_t>(WEXITSTATUS(status)) : 1000;
}

uint32_t count_tasks(const qplan_thread_pool& pool, uint32_t count, uint32_t* other_workers) {
  std::atomic<uint32_t> tasks{0}, others{0};
  parallel_for(pool, count, [&](uint32_t, uint32_t worker) {
    ++tasks;
    if (worker != 0) ++others;
  });
  *other_workers = others;
  return tasks;
}

TEST_P(HostPool, WorksAndGoesInAChildOfFork) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends children of processes with threads";
  // Asleep for long, and in the middle of their looking out for work.
  for (const int sleep_ms : {0, 20}) {
    Pool pool = make(4);
    uint32_t others = 0;
    ASSERT_EQ(count_tasks(*pool, 64, &others), 64u);
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms));
    EXPECT_EQ(run_in_child([&] {
                const uint32_t tasks = count_tasks(*pool, 64, &others);
                pool.reset();
                return others == 0 ? tasks : 999;
              }),
              64u);
    EXPECT_EQ(count_tasks(*pool, 64, &others), 64u) << "the parent's goes on";
  }
}

TEST_P(HostPool, CanBeMadeInAChildOfFork) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends children of processes with threads";
  const Pool before = make(3);
  uint32_t others = 0;
  ASSERT_EQ(count_tasks(*before, 64, &others), 64u);
  EXPECT_EQ(run_in_child([&] {
              const Pool pool = make(3);
              return pool == nullptr ? 999 : count_tasks(*pool, 64, &others);
            }),
            64u);
}

// Another thread may be inside the pool at the moment of the fork: in the child nobody unlocks what it holds.
TEST_P(HostPool, WorksInAChildThatWasForkedWhileItWasBusy) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends children of processes with threads";
  Pool pool = make(2);
  std::atomic<bool> is_inside{false}, may_leave{false};
  std::thread other([&] {
    parallel_for(*pool, 2, [&](uint32_t, uint32_t) {
      is_inside = true;
      while (!may_leave) std::this_thread::yield();
    });
  });
  while (!is_inside) std::this_thread::yield();
  uint32_t others = 0;
  EXPECT_EQ(run_in_child([&] {
              const uint32_t tasks = count_tasks(*pool, 9, &others);
              pool.reset();
              return tasks;
            }),
            9u);
  may_leave = true;
  other.join();
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, HostPool,
    ::testing::Values(PoolKind{"Small", qplan_pool_create, qplan_pool_destroy},
                      PoolKind{"OpenMP", qplan_openmp_pool_create, qplan_openmp_pool_destroy}),
    [](const ::testing::TestParamInfo<PoolKind>& kind) { return std::string(kind.param.name); });

// Until both have begun their first task nobody can take from the other.
TEST(HostSmallPool, WorkersBeginWithSharesOfTheirOwn) {
  const Pool pool = {qplan_pool_create(2), qplan_pool_destroy};
  ASSERT_NE(pool, nullptr);
  std::atomic<uint32_t> begun[2] = {};
  std::atomic<uint32_t> first[2] = {};
  parallel_for(*pool, 8, [&](uint32_t index, uint32_t worker) {
    if (begun[worker].exchange(1) != 0) return;
    first[worker] = index;
    while (begun[1 - worker] == 0) std::this_thread::yield();
  });
  EXPECT_EQ(first[0], 0u);
  EXPECT_EQ(first[1], 4u);
}

TEST(HostSmallPool, WhoIsDoneTakesFromOthers) {
  const Pool pool = {qplan_pool_create(2), qplan_pool_destroy};
  ASSERT_NE(pool, nullptr);
  std::atomic<uint32_t> done{0}, of_slow{0};
  parallel_for(*pool, 8, [&](uint32_t, uint32_t worker) {
    if (worker == 1) {
      ++of_slow;
      while (done < 7) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, 8u);
  EXPECT_LE(of_slow, 1u);
}

// A core that takes fifty times as long for a task: the other one does most of them.
TEST(HostSmallPool, AFastThreadTakesMoreThanASlowOne) {
  const Pool pool = {qplan_pool_create(2), qplan_pool_destroy};
  ASSERT_NE(pool, nullptr);
  for (const uint32_t slow : {0u, 1u}) {
    std::atomic<uint32_t> begun{0}, of_worker[2] = {};
    parallel_for(*pool, 40, [&](uint32_t, uint32_t worker) {
      // Both take part, however late a thread wakes up.
      for (++begun; begun < 2;) std::this_thread::yield();
      ++of_worker[worker];
      std::this_thread::sleep_for(std::chrono::microseconds(worker == slow ? 10'000 : 200));
    });
    EXPECT_EQ(of_worker[0] + of_worker[1], 40u);
    EXPECT_GT(of_worker[1 - slow], 2 * of_worker[slow]) << "slow: worker " << slow;
  }
}

qplan_pool_config pool_config(uint32_t num_threads, const std::vector<uint32_t>& processors = {},
                              uint32_t speeds = QPLAN_POOL_SPEEDS_SYSTEM) {
  qplan_pool_config config = {};
  config.struct_size = sizeof(config);
  config.num_threads = num_threads;
  config.processors = processors.empty() ? nullptr : processors.data();
  config.num_processors = static_cast<uint32_t>(processors.size());
  config.speeds = speeds;
  return config;
}
Pool make_with(const qplan_pool_config& config) {
  const qplan_thread_pool* pool = nullptr;
  EXPECT_EQ(qplan_pool_create_with(&config, &pool, nullptr), QPLAN_OK);
  return {pool, qplan_pool_destroy};
}

TEST(HostSmallPool, ThreadsRunOnTheProcessorsOfTheConfig) {
  const std::vector<uint32_t> allowed = qplan::host::allowed_processors();
  const uint32_t last = allowed.back();
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const std::vector<uint32_t> processors = {allowed.front(), last, last};
  const Pool pool = make_with(pool_config(0, processors));
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->num_threads, 3u);
  std::atomic<uint32_t> arrived{0}, elsewhere{0};
  parallel_for(*pool, 3, [&](uint32_t, uint32_t worker) {
    for (++arrived; arrived < 3;) std::this_thread::yield();
    cpu_set_t mine;
    if (worker != 0 && (sched_getaffinity(0, sizeof(mine), &mine) != 0 || CPU_COUNT(&mine) != 1 ||
                        !CPU_ISSET(last, &mine))) {
      ++elsewhere;
    }
  });
  EXPECT_EQ(elsewhere, 0u);
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller's thread is its own";
}

TEST(HostSmallPool, RefusesConfigsThatCannotBe) {
  const auto refusal = [](const qplan_pool_config& config) {
    qplan_error error = {};
    error.struct_size = sizeof(error);
    const qplan_thread_pool* pool = reinterpret_cast<const qplan_thread_pool*>(1);
    EXPECT_EQ(qplan_pool_create_with(&config, &pool, &error), QPLAN_INVALID_ARGUMENT);
    EXPECT_EQ(pool, nullptr);
    return std::string(error.text);
  };
  const uint32_t first = qplan::host::allowed_processors().front();
  const std::vector<uint32_t> absent = {first, 1023}, beyond = {first, 1024}, three = {first, first, first};
  EXPECT_EQ(refusal(pool_config(2, absent)),
            "pool: no thread may run on processor 1023 of this machine; 'taskset -cp $$' prints those that "
            "may");
  EXPECT_EQ(refusal(pool_config(2, beyond)),
            "pool: found processor 1024, expected one below 1024; qplan names no others");
  EXPECT_EQ(refusal(pool_config(2, three)), "pool: found 3 processors for 2 threads, expected one for each");
  EXPECT_EQ(refusal(pool_config(2, {}, 9)), "pool: speeds 9 is not a QPLAN_POOL_SPEEDS_* value");
  EXPECT_EQ(refusal({}), "pool: config or pool is NULL, or struct_size of config is 0");
}

TEST(HostSmallPool, SaysWhetherItsThreadsDifferInSpeed) {
  EXPECT_EQ(make_with(pool_config(2, {}, QPLAN_POOL_SPEEDS_UNEVEN))->is_uneven, 1u);
  EXPECT_EQ(make_with(pool_config(2, {}, QPLAN_POOL_SPEEDS_EQUAL))->is_uneven, 0u);
  EXPECT_EQ(make_with(pool_config(2))->is_uneven != 0,
            qplan::host::differ_in_speed(qplan::host::allowed_processors()));
}

// A program that was built when qplan_thread_pool ended before is_uneven copies so much of it. The copy ends
// where a page does that may not be read: known_fields, the runtime's own, reads as far as struct_size says.
TEST_P(HostPool, MayBeCopiedByProgramsThatAreOlderThanItsLastFields) {
  constexpr size_t kOldSize = offsetof(qplan_thread_pool, is_uneven);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const end = static_cast<uint8_t*>(pages) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  const Pool pool = make(2);
  ASSERT_NE(pool, nullptr);
  std::memcpy(end - kOldSize, pool.get(), kOldSize);
  auto* const copy = reinterpret_cast<const qplan_thread_pool*>(end - kOldSize);
  ASSERT_LE(copy->struct_size, kOldSize);
  const qplan_thread_pool known = qplan::known_fields(copy);
  EXPECT_EQ(known.num_threads, 2u);
  EXPECT_EQ(known.parallel_for, pool->parallel_for);
  EXPECT_EQ(known.is_uneven, 0u);
  std::atomic<uint32_t> done{0};
  parallel_for(known, 5, [&](uint32_t, uint32_t) { ++done; });
  EXPECT_EQ(done, 5u);
  munmap(pages, 2 * page);
}

TEST(HostProcessors, DifferInSpeedWhereTheSystemSaysSo) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("qplan_cpus_" + std::to_string(getpid()));
  const uint32_t capacities[] = {512, 512, 1024};
  for (uint32_t i = 0; i < 3; ++i) {
    std::filesystem::create_directories(folder / ("cpu" + std::to_string(i)));
    std::ofstream(folder / ("cpu" + std::to_string(i)) / "cpu_capacity") << capacities[i] << "\n";
  }
  EXPECT_TRUE(qplan::host::differ_in_speed({0, 1, 2}, folder.string()));
  EXPECT_FALSE(qplan::host::differ_in_speed({0, 1}, folder.string()));
  EXPECT_FALSE(qplan::host::differ_in_speed({2}, folder.string()));
  EXPECT_FALSE(qplan::host::differ_in_speed({0, 2, 7}, folder.string())) << "of one it is not said";
  EXPECT_FALSE(qplan::host::differ_in_speed({}, folder.string()));
  std::filesystem::remove_all(folder);
}

TEST(HostSmallPool, DoesNotSpinWhenIdle) {
  const Pool pool(qplan_pool_create(4), qplan_pool_destroy);
  parallel_for(*pool, 8, [](uint32_t, uint32_t) {});
  const auto processor_us = [] {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  const long before = processor_us();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(processor_us() - before, 50000);
}

// The application's handlers run on its own threads, but a fault is the affair of the thread that makes it:
// where its signal is blocked, the kernel kills the process past every handler.
TEST(HostSmallPool, WorkersBlockSignalsButNotFaults) {
  const Pool pool(qplan_pool_create(2), qplan_pool_destroy);
  std::atomic<uint32_t> arrived{0};
  sigset_t blocked;
  sigemptyset(&blocked);
  parallel_for(*pool, 2, [&](uint32_t, uint32_t worker) {
    if (worker == 1) pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    // Both at once, so that worker 1 has one of them.
    for (++arrived; arrived < 2;) std::this_thread::yield();
  });
  for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGCHLD}) EXPECT_EQ(sigismember(&blocked, signal), 1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    EXPECT_EQ(sigismember(&blocked, signal), 0) << strsignal(signal);
  }
}

// What a compiler makes of "#pragma omp parallel"; runtimes of other compilers have it too.
extern "C" __attribute__((weak)) void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads,
                                                    unsigned flags);

// OpenMP's threads may be somebody else's: the pool has not run a task before the fork.
TEST(HostOpenMpPool, WorksInAChildOfAnApplicationThatUsedOpenMpItself) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer ends children of processes with threads";
  if (GOMP_parallel == nullptr) GTEST_SKIP() << "this OpenMP has no GOMP_parallel";
  const Pool pool = {qplan_openmp_pool_create(2), qplan_openmp_pool_destroy};
  ASSERT_NE(pool, nullptr);
  std::atomic<uint32_t> threads{0};
  GOMP_parallel([](void* data) { ++*static_cast<std::atomic<uint32_t>*>(data); }, &threads, 2, 0);
  ASSERT_EQ(threads, 2u);
  uint32_t others = 0;
  EXPECT_EQ(run_in_child([&] { return count_tasks(*pool, 64, &others); }), 64u);
  EXPECT_EQ(run_in_child([&] {
              const Pool mine = {qplan_openmp_pool_create(2), qplan_openmp_pool_destroy};
              return mine == nullptr ? 999 : count_tasks(*mine, 64, &others);
            }),
            64u);
}

TEST(HostOpenMpPool, MoreThreadsThanOpenMpCanCountAreRefused) {
  EXPECT_EQ(qplan_openmp_pool_create(0x80000000u), nullptr);
  EXPECT_EQ(qplan_openmp_pool_create(UINT32_MAX), nullptr);
}

TEST(HostSmallPool, DestroyTakesNull) {
  qplan_pool_destroy(nullptr);
  qplan_openmp_pool_destroy(nullptr);
}

}  // namespace
