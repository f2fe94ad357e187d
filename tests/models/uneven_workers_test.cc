// Networks on threads of different speed: a fast one takes from a slow one, cascades too, and the bytes are
// the reference's.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/models/expect_golden.h"

namespace qplan::testing::uneven_workers_test {
namespace {

constexpr const char* kModel = "mobilenet_v1_0.25_128_quant.tflite";

// Passes tasks on to a pool; those of one worker take so much longer.
class SlowedPool {
 public:
  SlowedPool(uint32_t num_threads, uint32_t speeds, uint32_t slow_us) : slow_us_(slow_us) {
    qplan_pool_config config = {};
    config.struct_size = sizeof(config);
    config.num_threads = num_threads;
    config.speeds = speeds;
    if (qplan_pool_create_with(&config, &pool_, nullptr) < 0) throw std::runtime_error("no pool");
    api_ = *pool_;
    api_.user = this;
    api_.parallel_for = [](void* user, uint32_t count, Task task, void* ctx) {
      auto* self = static_cast<SlowedPool*>(user);
      Call call = {self, task, ctx};
      self->pool_->parallel_for(self->pool_->user, count, run, &call);
    };
  }
  ~SlowedPool() { qplan_pool_destroy(pool_); }
  SlowedPool(const SlowedPool&) = delete;
  SlowedPool& operator=(const SlowedPool&) = delete;

  const qplan_thread_pool* api() const { return &api_; }

  std::atomic<uint32_t> tasks_of[2] = {};

 private:
  using Task = void (*)(void* ctx, uint32_t index, uint32_t worker);
  struct Call {
    SlowedPool* self;
    Task task;
    void* ctx;
  };
  static void run(void* context, uint32_t index, uint32_t worker) {
    const Call& call = *static_cast<Call*>(context);
    call.task(call.ctx, index, worker);
    if (worker < 2) ++call.self->tasks_of[worker];
    if (worker == 1) std::this_thread::sleep_for(std::chrono::microseconds(call.self->slow_us_));
  }

  const qplan_thread_pool* pool_ = nullptr;
  qplan_thread_pool api_ = {};
  const uint32_t slow_us_;
};

TEST(UnevenWorkers, GiveTheReferencesBytesAndTakeFromSlowOnes) {
  const auto cases = golden_cases("A");
  if (cases.empty()) GTEST_SKIP() << kNoDataDirectory;
  for (const Fusing& fusing : kFusings) {
    const std::vector<uint8_t> plan = pack_model(model_path(kModel).string(), nullptr, true, fusing.fuse);
    for (const uint32_t threads : {2u, 3u, 5u}) {
      SlowedPool pool(threads, QPLAN_POOL_SPEEDS_UNEVEN, 300);
      ModelSession session(plan, QPLAN_ISA_AUTO, pool.api());
      for (const GoldenCase& golden : cases.at(kModel)) {
        expect_same(session.run({read_bytes(golden.inputs[0])})[0], read_bytes(golden.outputs[0]),
                    golden.name + ", " + fusing.name + ", " + std::to_string(threads) + " threads");
      }
      EXPECT_GT(pool.tasks_of[0], pool.tasks_of[1]) << fusing.name << ", " << threads << " threads";
    }
  }
}

// Rows at the borders of a cascade's ranges are computed twice: each worker has one range, unless some are
// slow.
TEST(UnevenWorkers, DivideCascadesFurther) {
  if (golden_cases("A").empty()) GTEST_SKIP() << kNoDataDirectory;
  const std::vector<uint8_t> plan = pack_model(model_path(kModel).string(), nullptr, true, QPLAN_FUSE_ALL);
  std::vector<uint32_t> tasks;
  for (const uint32_t speeds : {QPLAN_POOL_SPEEDS_EQUAL, QPLAN_POOL_SPEEDS_UNEVEN}) {
    SlowedPool pool(2, speeds, 0);
    ModelSession session(plan, QPLAN_ISA_AUTO, pool.api());
    session.run({std::vector<uint8_t>(128 * 128 * 3)});
    tasks.push_back(pool.tasks_of[0] + pool.tasks_of[1]);
  }
  EXPECT_GT(tasks[0], 0u);
  EXPECT_GT(tasks[1], tasks[0]);
}

}  // namespace
}  // namespace qplan::testing::uneven_workers_test
