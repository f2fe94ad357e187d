// Networks on threads of different speed: a fast one takes from a slow one, cascades too, and the bytes are
// the reference's.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/models/expect_golden.h"
#include "tests/packer/import/tflite_builder.h"

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
    api_.struct_size = sizeof(api_);
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

  std::atomic<uint32_t> tasks{0}, tasks_of[2] = {};

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
    ++call.self->tasks;
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
    tasks.push_back(pool.tasks);
  }
  EXPECT_GT(tasks[0], 0u);
  EXPECT_GT(tasks[1], tasks[0]);
}

using tflite_test::TfliteBuilder;

std::vector<uint8_t> batch_matmul_model() {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 384, 512}, 0.05f, 3),
                y = b.activation("y", {1, 512, 256}, 0.04f, -5);
  const int32_t product = b.activation("product", {1, 384, 256}, 1.2f, 7);
  b.op(tflite::BuiltinOperator_BATCH_MATMUL, {x, y}, {product}, tflite::BuiltinOptions_BatchMatMulOptions,
       tflite::CreateBatchMatMulOptions(b.fbb(), false, false).Union());
  return b.finish({x, y}, {product});
}

std::vector<uint8_t> conv2d_transpose_model() {
  constexpr int32_t kIn = 64, kOut = 64, kExtent = 40;
  TfliteBuilder b;
  std::vector<uint8_t> weights(size_t{kOut} * 3 * 3 * kIn);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i * 37 % 251);
  const int32_t x = b.activation("x", {1, kExtent, kExtent, kIn}, 0.05f, 3);
  const int32_t shape = b.ints("shape", {1, 2 * kExtent, 2 * kExtent, kOut});
  const int32_t w = b.tensor(
      {.name = "w", .shape = {kOut, 3, 3, kIn}, .scales = {0.01f}, .zero_points = {0}, .data = weights});
  const int32_t y = b.activation("y", {1, 2 * kExtent, 2 * kExtent, kOut}, 0.8f, -2);
  b.op(tflite::BuiltinOperator_TRANSPOSE_CONV, {shape, w, x}, {y},
       tflite::BuiltinOptions_TransposeConvOptions,
       tflite::CreateTransposeConvOptions(b.fbb(), tflite::Padding_SAME, 2, 2).Union());
  return b.finish({x}, {y});
}

// Their vector kernels pack all weights in each call: a fast thread that took half a range would pack them
// once more.
TEST(UnevenWorkers, HaveOneTaskEachWhereCallsPackWeights) {
  struct Model {
    const char* name;
    std::vector<uint8_t> bytes;
    std::vector<size_t> inputs;
  };
  const Model models[] = {{"batch_matmul", batch_matmul_model(), {384 * 512, 512 * 256}},
                          {"conv2d_transpose", conv2d_transpose_model(), {40 * 40 * 64}}};
  for (const Model& model : models) {
    const std::vector<uint8_t> plan = pack_bytes(model.bytes, "net.tflite");
    std::vector<std::vector<uint8_t>> inputs;
    for (const size_t size : model.inputs) {
      inputs.emplace_back(size);
      for (size_t i = 0; i < size; ++i) inputs.back()[i] = static_cast<uint8_t>(i * 29 % 253);
    }
    const std::vector<uint8_t> expected = ModelSession(plan, QPLAN_ISA_REFERENCE, 1).run(inputs)[0];
    for (const uint32_t threads : {2u, 3u}) {
      for (const uint32_t speeds : {QPLAN_POOL_SPEEDS_EQUAL, QPLAN_POOL_SPEEDS_UNEVEN}) {
        SlowedPool pool(threads, speeds, 0);
        ModelSession session(plan, QPLAN_ISA_AUTO, pool.api());
        const std::string what = std::string(model.name) + ", " + std::to_string(threads) + " threads";
        expect_same(session.run(inputs)[0], expected, what);
        qplan_event step = {};
        step.struct_size = sizeof(step);
        ASSERT_EQ(qplan_session_step_info(session.get(), 0, &step), QPLAN_OK);
        EXPECT_EQ(std::string(step.op), model.name);
        if (std::string(step.kernel).find("_ref") != std::string::npos) continue;  // packs nothing
        EXPECT_EQ(pool.tasks, threads) << what << ", speeds " << speeds << ", " << step.kernel;
      }
    }
  }
}

}  // namespace
}  // namespace qplan::testing::uneven_workers_test
