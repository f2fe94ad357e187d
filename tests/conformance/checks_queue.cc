// The queue: waiting, done, order, cancel, reset, close, and several of everything at once.
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "tests/conformance/check.h"
#include "tests/conformance/device.h"

namespace qplan::conformance {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Calls of done, in their order.
class Log {
 public:
  static void done(void* user, qplan_npu_job job, qplan_npu_status status) {
    auto* log = static_cast<Log*>(user);
    const std::lock_guard<std::mutex> lock(log->mutex_);
    log->calls_.emplace_back(job, status);
  }
  std::vector<std::pair<qplan_npu_job, qplan_npu_status>> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  // done may come a little after wait has reported the end.
  void await(size_t count) const {
    const auto begin = Clock::now();
    while (calls().size() < count && seconds_since(begin) < 10)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    require(calls().size() == count, "done was called " + std::to_string(calls().size()) + " times for " +
                                         std::to_string(count) + " jobs");
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<qplan_npu_job, qplan_npu_status>> calls_;
};

struct Busy {  // a device with a long job's program
  explicit Busy(const Subject& s, Size size = Size::kLong)
      : device(s), workload(device.make(size, 21)), loaded(device, workload) {}
  qplan_npu_status submit(Log* log, qplan_npu_job* job, std::vector<qplan_npu_job> after = {}) {
    qplan_npu_submit submit = loaded.request();
    submit.done = Log::done;
    submit.user = log;
    submit.after = after.data();
    submit.num_after = static_cast<uint32_t>(after.size());
    return device.driver.submit(device.handle, &submit, job, nullptr);
  }
  qplan_npu_job must_submit(Log* log, std::vector<qplan_npu_job> after = {}) {
    qplan_npu_job job = 0;
    require_ok(submit(log, &job, std::move(after)), "submit");
    return job;
  }

  Device device;
  Workload workload;
  Loaded loaded;
};

// Whether the job was still pending just after its submission; ends when it has.
bool wait_in_steps(const Busy& b) {
  const qplan_npu_driver& d = b.device.driver;
  const qplan_npu_job job = b.loaded.must_submit();
  auto begin = Clock::now();
  qplan_npu_status status = d.wait(b.device.handle, job, 0, nullptr);
  require(seconds_since(begin) < 2, "wait with timeout 0 blocks");
  const bool was_pending = status == QPLAN_NPU_PENDING;
  if (was_pending) {
    begin = Clock::now();
    status = d.wait(b.device.handle, job, 1'000'000, nullptr);  // 1 ms
    require(seconds_since(begin) < 2, "wait of 1 ms takes " + std::to_string(seconds_since(begin)) + " s");
  }
  while (status == QPLAN_NPU_PENDING) status = d.wait(b.device.handle, job, 50'000'000, nullptr);
  require_ok(status, "wait");
  require_status(d.wait(b.device.handle, job, 0, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "wait for a job whose end was told");
  b.loaded.require_result();
  return was_pending;
}

void queue_wait(const Subject& s) {
  Busy b(s);
  const bool is_async = (b.device.capabilities.flags & QPLAN_NPU_CAN_ASYNC) != 0;
  // On a loaded machine a job may end before this thread runs again, but not each time.
  constexpr int kTries = 20;
  bool was_pending = wait_in_steps(b);
  for (int i = 1; is_async && !was_pending && i < kTries; ++i) was_pending = wait_in_steps(b);
  require(was_pending || !is_async,
          "the device says that it is asynchronous, and submit has waited for the job each of " +
              std::to_string(kTries) + " times");
  b.device.close();
}

void queue_done(const Subject& s) {
  Busy b(s);
  Log log;
  std::vector<qplan_npu_job> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(b.must_submit(&log));
    require_ok(wait_for(b.device, jobs.back()), "wait");
  }
  log.await(3);
  for (size_t i = 0; i < 3; ++i) {
    require(log.calls()[i].first == jobs[i], "done was called with the handle of another job");
    require_ok(log.calls()[i].second, "the status given to done");
  }
  b.device.close();
}

void queue_full(const Subject& s) {
  Busy b(s);
  Log log;
  const uint32_t room = b.device.capabilities.max_queue;
  if (room > 1024) throw Skipped("a queue of more than 1024 jobs");
  std::vector<qplan_npu_job> jobs;
  qplan_npu_status status = QPLAN_NPU_OK;
  // Submits that found a full queue and were taken nevertheless: a job may end just then, but not each time.
  size_t taken_when_full = 0;
  while (jobs.size() < 4 * size_t{room} + 4) {
    qplan_npu_job job = 0;
    const size_t over = log.calls().size();
    const bool is_full = jobs.size() - std::min(jobs.size(), over) >= room;
    status = b.submit(&log, &job);
    if (status != QPLAN_NPU_OK) {
      require_status(status, QPLAN_NPU_E_BUSY, "submit to a full queue");
      require(jobs.size() - over >= room, "the queue is full with " + std::to_string(jobs.size() - over) +
                                              " jobs of " + std::to_string(room));
      break;
    }
    jobs.push_back(job);
    taken_when_full += is_full ? 1 : 0;
    require(taken_when_full <= 2 * size_t{room}, "submit waits where the queue is full");
    const size_t pending = jobs.size() - std::min(jobs.size(), log.calls().size());
    require(pending <= room + 1,
            "the queue holds " + std::to_string(pending) + " jobs, max_queue is " + std::to_string(room));
  }
  for (const qplan_npu_job job : jobs) require_ok(b.device.driver.cancel(b.device.handle, job), "cancel");
  for (const qplan_npu_job job : jobs) (void)wait_for(b.device, job);
  b.loaded.must_run();  // there is room again
  b.loaded.require_result();
  b.device.close();
}

void queue_after(const Subject& s) {
  Busy b(s);
  if (b.device.capabilities.max_queue < 3) throw Skipped("the queue has no room for three jobs");
  Log log;
  const qplan_npu_job first = b.must_submit(&log);
  const qplan_npu_job second = b.must_submit(&log, {first});
  const qplan_npu_job third = b.must_submit(&log, {second, first});
  require_ok(wait_for(b.device, third), "wait for the last of three");
  require_ok(b.device.driver.wait(b.device.handle, first, 0, nullptr),
             "wait for the first, when the last is over");
  require_ok(b.device.driver.wait(b.device.handle, second, 0, nullptr),
             "wait for the second, when the last is over");
  log.await(3);
  const auto calls = log.calls();
  require(calls[0].first == first && calls[1].first == second && calls[2].first == third,
          "jobs did not complete in the order that `after` asks for");
  const qplan_npu_job fourth = b.must_submit(&log, {first, third});  // that are over, and reported
  require_ok(wait_for(b.device, fourth), "wait for a job after jobs that are over");
  b.loaded.require_result();
  b.device.close();
}

void queue_cancel(const Subject& s) {
  Busy b(s);
  Log log;
  std::vector<qplan_npu_job> jobs;
  const size_t count = std::min<size_t>(3, b.device.capabilities.max_queue);
  while (jobs.size() < count) jobs.push_back(b.must_submit(&log));
  require_ok(b.device.driver.cancel(b.device.handle, jobs.back()), "cancel of the last job");
  require_ok(b.device.driver.cancel(b.device.handle, jobs.front()), "cancel of the first job");
  for (const qplan_npu_job job : jobs) {
    auto report = sized<qplan_npu_report>();
    const qplan_npu_status status = wait_for(b.device, job, &report);
    require(status == QPLAN_NPU_OK ||
                (status == QPLAN_NPU_E_CANCELLED && (job == jobs.front() || job == jobs.back())),
            "a job in a queue with cancelled ones ended with " + status_text(status));
    require(report.status == status, "the report's status is not what wait returned");
  }
  log.await(count);
  require_status(b.device.driver.cancel(b.device.handle, jobs[0]), QPLAN_NPU_E_ARGUMENT,
                 "cancel of a job that is over");
  b.loaded.must_run();
  b.loaded.require_result();
  b.loaded.require_unharmed();
  b.device.close();
}

void queue_reset(const Subject& s) {
  Busy b(s);
  Log log;
  std::vector<qplan_npu_job> jobs;
  const size_t count = std::min<size_t>(3, b.device.capabilities.max_queue);
  while (jobs.size() < count) jobs.push_back(b.must_submit(&log));
  require_ok(b.device.driver.reset(b.device.handle), "reset");
  for (const qplan_npu_job job : jobs) {
    const qplan_npu_status status = b.device.driver.wait(b.device.handle, job, 0, nullptr);
    require(status == QPLAN_NPU_OK || status == QPLAN_NPU_E_RESET,
            "a job of before the reset ended with " + status_text(status) + ", expected E_RESET or OK");
  }
  log.await(count);
  b.loaded.require_unharmed();
  b.loaded.must_run();  // buffers and programs survived
  b.loaded.require_result();
  b.device.close();
}

void queue_close(const Subject& s) {
  Busy b(s);
  Log log;
  const size_t count = std::min<size_t>(4, b.device.capabilities.max_queue);
  for (size_t i = 0; i < count; ++i) (void)b.must_submit(&log);
  b.device.close();
  require(log.calls().size() == count, "after close done had been called " +
                                           std::to_string(log.calls().size()) + " times for " +
                                           std::to_string(count) + " jobs");
  for (const auto& [job, status] : log.calls()) {
    require(status == QPLAN_NPU_OK || status == QPLAN_NPU_E_CANCELLED,
            "a job in flight at close ended with " + status_text(status));
  }
}

// Longer than anything takes that stops the job which runs, shorter than the job. A machine may be busy.
constexpr auto kStopTime = std::chrono::seconds(10);
// Until a job that was submitted runs for certain.
constexpr uint64_t kStartTimeNs = 300'000'000;

// call(), on a thread of its own: one that does not return is a failure, and its thread stays until the
// process ends.
template <typename Call>
void require_returns(const std::string& what, Call call) {
  std::packaged_task<qplan_npu_status()> task(std::move(call));
  std::future<qplan_npu_status> result = task.get_future();
  std::thread(std::move(task)).detach();
  require(result.wait_for(kStopTime) == std::future_status::ready,
          what + " has not returned " + std::to_string(kStopTime.count()) +
              " s after it was called while a job runs; it must stop the job, not wait for its end");
  require_ok(result.get(), what);
}

// A job that would take minutes.
void queue_bounded(const Subject& s) {
  // Never deleted: when a call does not return, its thread uses them for as long as the process lives.
  Busy& b = *new Busy(s, Size::kEndless);
  Log& log = *new Log;
  const qplan_npu_driver& d = b.device.driver;
  const qplan_npu_device handle = b.device.handle;
  if ((b.device.capabilities.flags & QPLAN_NPU_CAN_ASYNC) == 0)
    throw Skipped("the device is not asynchronous: no job runs when submit has returned");
  const auto start = [&] {
    const qplan_npu_job job = b.must_submit(&log);
    const qplan_npu_status status = d.wait(handle, job, kStartTimeNs, nullptr);
    if (status == QPLAN_NPU_OK) throw Skipped("the device is so fast that the job was over at once");
    require_status(status, QPLAN_NPU_PENDING, "wait for a job that has just begun");
    return job;
  };
  qplan_npu_job job = start();
  require_returns("reset", [&d, handle] { return d.reset(handle); });
  const qplan_npu_status status = d.wait(handle, job, 0, nullptr);
  require(status == QPLAN_NPU_OK || status == QPLAN_NPU_E_RESET,
          "the job that ran when the device was reset ended with " + status_text(status) +
              ", expected E_RESET or OK");
  log.await(1);
  b.loaded.require_unharmed();
  (void)start();
  b.device.handle = 0;
  require_returns("close", [&d, handle] { return d.close(handle); });
  require(log.calls().size() == 2,
          "after close done had been called " + std::to_string(log.calls().size()) + " times for 2 jobs");
  require(b.device.hooks.num_live() == 0,
          std::to_string(b.device.hooks.num_live()) + " blocks of hooks.alloc did not go back in close");
}

void device_two(const Subject& s) {
  Busy a(s);
  Device second(s);
  const Workload workload = second.make(Size::kRandom, 31);
  const Loaded loaded(second, workload);
  const qplan_npu_job job = a.loaded.must_submit();
  // As of Arm's core driver with one NPU: who has a job has the hardware.
  qplan_npu_job other = 0;
  if (loaded.submit(&other) == QPLAN_NPU_E_BUSY)
    throw Skipped("the second device is busy while the first has a job: they are the same hardware");
  (void)loaded.must_wait(other);
  loaded.require_result();
  require_ok(second.driver.reset(second.handle), "reset of the second device");
  second.close();
  (void)a.loaded.must_wait(job);  // the first one has noticed nothing
  a.loaded.require_result();
  a.device.close();
}

void threads_smoke(const Subject& s) {
  Device device(s);
  constexpr int kThreads = 4;
  constexpr uint32_t kEach = 6;
  std::vector<Workload> workloads;  // made here: where there is none, the check is skipped
  for (uint32_t i = 0; i < kThreads * kEach; ++i) workloads.push_back(device.make(Size::kSmall, 200 + i));
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::string error;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        for (uint32_t i = 0; i < kEach; ++i) {
          const Workload& workload = workloads[static_cast<size_t>(t) * kEach + i];
          const Loaded loaded(device, workload);
          qplan_npu_job job = 0;
          qplan_npu_status status = loaded.submit(&job);
          while (status == QPLAN_NPU_E_BUSY) {
            std::this_thread::yield();
            status = loaded.submit(&job);
          }
          require_ok(status, "submit");
          (void)loaded.must_wait(job);
          loaded.require_result();
          loaded.release();
        }
      } catch (const std::exception& e) {
        const std::lock_guard<std::mutex> lock(mutex);
        error = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  require(error.empty(), "with " + std::to_string(kThreads) + " threads: " + error);
  device.close();
}

}  // namespace

std::vector<Check> queue_checks() {
  return {
      {"queue.wait", "wait polls, times out, waits, and tells the end once", queue_wait},
      {"queue.done", "done is called once for each job, with its handle and status", queue_done},
      {"queue.full", "submit never blocks; beyond max_queue it is E_BUSY, and not before", queue_full},
      {"queue.after", "a job starts after those that it names", queue_after},
      {"queue.cancel", "a cancelled job ends as E_CANCELLED, or as if nothing had been asked; others run",
       queue_cancel},
      {"queue.reset", "reset ends all jobs; buffers, programs and inputs survive", queue_reset},
      {"queue.close", "close with jobs in flight ends them, calls done, and gives all memory back",
       queue_close},
      {"queue.bounded", "reset and close return in bounded time while a job runs", queue_bounded},
      {"device.two", "two open devices know nothing of each other", device_two},
      {"threads.smoke", "several threads share a device", threads_smoke},
  };
}

}  // namespace qplan::conformance
