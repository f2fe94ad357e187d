// The simulator through the driver ABI: life of a device, buffers, jobs, caches.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/vta/sim/sim_device.h"

namespace qplan::sim::driver_test {
namespace {

using vta::testing::kProductInput;
using vta::testing::kProductOutput;
using vta::testing::product_blob;
using vta::testing::product_of;

const qplan_npu_driver& driver() { return SimDevice::driver(); }

TEST(SimDriver, ServesItsMajorOnly) {
  ASSERT_NE(qplan_npu_sim_driver(QPLAN_NPU_ABI), nullptr);
  EXPECT_NE(qplan_npu_sim_driver(QPLAN_NPU_ABI + 1), nullptr);
  EXPECT_EQ(qplan_npu_sim_driver(QPLAN_NPU_ABI + 0x10000), nullptr);
  EXPECT_EQ(driver().struct_size, sizeof(qplan_npu_driver));
  EXPECT_STREQ(driver().name, "sim");
}

TEST(SimDriver, StatusClasses) {
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_OK), 0);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_PENDING), 0);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_BLOB), QPLAN_NPU_CLASS_MISTAKE);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_MEMORY), QPLAN_NPU_CLASS_CPU_NOW);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_TIMEOUT), QPLAN_NPU_CLASS_RESET);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_RESET), QPLAN_NPU_CLASS_RESET);
  EXPECT_EQ(QPLAN_NPU_CLASS(QPLAN_NPU_E_ABSENT), QPLAN_NPU_CLASS_GONE);
}

TEST(SimDriver, RunsAJob) {
  SimDevice d;
  d.write(d.input, sample_input());
  ASSERT_EQ(d.run(), QPLAN_NPU_OK) << d.report.text;
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
  EXPECT_EQ(d.report.cycles, 229u);
  EXPECT_EQ(d.report.busy_cycles, 162u);
  EXPECT_EQ(d.report.macs, 256u);
  EXPECT_EQ(d.report.bytes_read, 276u);
  EXPECT_EQ(d.report.bytes_written, 16u);
  EXPECT_EQ(d.report.fault_instruction, QPLAN_NPU_NO_INSTRUCTION);
  EXPECT_STREQ(d.report.text, "");
  EXPECT_EQ(d.counter(QPLAN_NPU_COUNTER_JOBS), 1u);
  EXPECT_EQ(d.counter(QPLAN_NPU_COUNTER_MACS), 256u);
}

TEST(SimDriver, TwoDevicesKnowNothingOfEachOther) {
  SimDevice a("", 0), b("sram=quarter", 1, product_blob(vta::kQuarterConfig));
  a.write(a.input, sample_input(1));
  b.write(b.input, sample_input(2));
  qplan_npu_job job_a = 0, job_b = 0;
  ASSERT_EQ(a.submit(&job_a), QPLAN_NPU_OK);
  ASSERT_EQ(b.submit(&job_b), QPLAN_NPU_OK);
  EXPECT_EQ(b.wait(job_b), QPLAN_NPU_OK);
  EXPECT_EQ(a.wait(job_a), QPLAN_NPU_OK);
  EXPECT_EQ(a.read(a.output), product_of(sample_input(1)));
  EXPECT_EQ(b.read(b.output), product_of(sample_input(2)));
  EXPECT_EQ(b.load(product_blob()), QPLAN_NPU_E_VERSION);  // of the default's sizes
}

TEST(SimDriver, OptionsAreChecked) {
  qplan_npu_device device = 0;
  qplan_npu_reason why = {};
  EXPECT_EQ(driver().open(nullptr, 0, "sram=half", &device, &why), QPLAN_NPU_E_ARGUMENT);
  EXPECT_STREQ(why.text, "sim: options: 'sram=half': value out of range");
  EXPECT_EQ(driver().open(nullptr, 0, "speed=9", &device, &why), QPLAN_NPU_E_ARGUMENT);
  EXPECT_NE(std::string(why.text).find("unknown 'speed'; known are sram, multiply"), std::string::npos)
      << why.text;
  EXPECT_EQ(driver().open(nullptr, 0, "faults=at=0:1 kind=absent", &device, &why), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().open(nullptr, 2, "", &device, &why), QPLAN_NPU_E_ABSENT);
  uint32_t count = 0;
  EXPECT_EQ(driver().enumerate(nullptr, &count), QPLAN_NPU_OK);
  EXPECT_EQ(count, 2u);
}

TEST(SimDriver, UnknownHandlesAreErrors) {
  SimDevice d;
  void* memory = nullptr;
  qplan_npu_job job = 0;
  EXPECT_EQ(driver().map(d.device, 999, QPLAN_NPU_READ, &memory), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().release(d.device, 0), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().unload(d.device, d.input), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().wait(d.device, 12345, 0, nullptr), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().close(987654), QPLAN_NPU_E_ARGUMENT);
  ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(job), QPLAN_NPU_E_ARGUMENT);  // ended
  const qplan_npu_device closed = d.device;
  d.device = 0;
  EXPECT_EQ(driver().close(closed), QPLAN_NPU_OK);
  EXPECT_EQ(driver().close(closed), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().reset(closed), QPLAN_NPU_E_ARGUMENT);
}

TEST(SimDriver, FillsNoMoreThanTheCallersStruct) {
  SimDevice d;
  qplan_npu_capabilities c;
  std::memset(&c, 0x77, sizeof(c));
  c.struct_size = offsetof(qplan_npu_capabilities, target);
  ASSERT_EQ(driver().capabilities(d.device, &c), QPLAN_NPU_OK);
  EXPECT_EQ(c.struct_size, offsetof(qplan_npu_capabilities, target));
  EXPECT_EQ(c.abi, QPLAN_NPU_ABI);
  EXPECT_STREQ(c.vendor, "qplan");
  EXPECT_EQ(c.target[0], 0x77);
  c.struct_size = sizeof(c);
  ASSERT_EQ(driver().capabilities(d.device, &c), QPLAN_NPU_OK);
  EXPECT_STREQ(c.target, "vta-1x16x16_i8w8a32_15_15_18_17");
  EXPECT_EQ(c.onchip_bytes[0], 32768u);
  EXPECT_EQ(c.onchip_bytes[1], 262144u);
  EXPECT_EQ(c.onchip_bytes[2], 32768u);
  EXPECT_EQ(c.onchip_bytes[3], 131072u);
  EXPECT_EQ(c.contracts, uint32_t{QPLAN_NPU_TFL2 | QPLAN_NPU_ACC32});
  EXPECT_EQ(c.hash, config_hash(vta::kDefaultConfig));
}

TEST(SimDriver, WithoutProductsTfl2IsNotOffered) {
  vta::Config config = vta::kDefaultConfig;
  config.has_multiply = false;
  SimDevice d("multiply=0", 0, product_blob(config));
  qplan_npu_capabilities c = {};
  c.struct_size = sizeof(c);
  ASSERT_EQ(driver().capabilities(d.device, &c), QPLAN_NPU_OK);
  EXPECT_EQ(c.contracts, uint32_t{QPLAN_NPU_ACC32});
  EXPECT_EQ(c.flags & QPLAN_NPU_CAN_MULTIPLY, 0u);
}

TEST(SimDriver, BuffersFollowFromTensors) {
  SimDevice d;
  int64_t shape[] = {1, 4, 5, 16};
  DLTensor tensor = {};
  tensor.ndim = 4;
  tensor.dtype = {kDLInt, 8, 1};
  tensor.shape = shape;
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.usage = QPLAN_NPU_USE_INPUT;
  request.tensor = &tensor;
  qplan_npu_layout layout = {};
  layout.struct_size = sizeof(layout);
  ASSERT_EQ(driver().requirements(d.device, &request, &layout), QPLAN_NPU_OK);
  EXPECT_EQ(layout.bytes, 320u);
  EXPECT_EQ(layout.num_strides, 4u);
  EXPECT_EQ(layout.strides[0], 320);
  EXPECT_EQ(layout.strides[2], 16);
  EXPECT_EQ(layout.alignment, 256u);
  EXPECT_EQ(layout.device_address, 0u);
  EXPECT_EQ(layout.memory_kind, uint32_t{QPLAN_NPU_MEMORY_COHERENT});
  qplan_npu_buffer buffer = 0;
  ASSERT_EQ(driver().alloc(d.device, &request, &buffer), QPLAN_NPU_OK);
  ASSERT_EQ(driver().layout(d.device, buffer, &layout), QPLAN_NPU_OK);
  EXPECT_NE(layout.device_address, 0u);
  EXPECT_EQ(layout.device_address % layout.alignment, 0u);
  shape[1] = INT64_MAX;
  EXPECT_EQ(driver().alloc(d.device, &request, &buffer), QPLAN_NPU_E_ARGUMENT);
  shape[1] = 1 << 20;
  EXPECT_EQ(driver().alloc(d.device, &request, &buffer), QPLAN_NPU_E_UNSUPPORTED);  // above 32 MiB
}

TEST(SimDriver, MemoryEndsAndComesBack) {
  SimDevice d("memory=0x10000");
  std::vector<qplan_npu_buffer> buffers;
  for (;;) {
    const qplan_npu_buffer buffer = d.make_buffer(QPLAN_NPU_USE_SCRATCH, 8192);
    if (d.last_alloc != QPLAN_NPU_OK) break;
    buffers.push_back(buffer);
  }
  EXPECT_EQ(d.last_alloc, QPLAN_NPU_E_MEMORY);
  ASSERT_GT(buffers.size(), 3u);
  EXPECT_EQ(driver().release(d.device, buffers[1]), QPLAN_NPU_OK);
  EXPECT_NE(d.make_buffer(QPLAN_NPU_USE_SCRATCH, 8192), 0u);
}

TEST(SimDriver, AllocatesThroughThePlatformOnlyAndGivesAllBack) {
  struct Platform {
    int live = 0;
    int total = 0;
  } platform;
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.user = &platform;
  hooks.alloc = [](void* user, size_t size, size_t alignment) {
    auto* p = static_cast<Platform*>(user);
    ++p->live;
    ++p->total;
    return ::operator new(size, std::align_val_t(alignment));
  };
  hooks.free = [](void* user, void* memory) {
    --static_cast<Platform*>(user)->live;
    ::operator delete(memory, std::align_val_t(4096));
  };
  SimDevice d;
  ASSERT_EQ(driver().close(d.device), QPLAN_NPU_OK);
  ASSERT_EQ(driver().open(&hooks, 0, "coherent=0", &d.device, nullptr), QPLAN_NPU_OK);
  ASSERT_EQ(d.load(product_blob()), QPLAN_NPU_OK);
  d.input = d.make_buffer(QPLAN_NPU_USE_INPUT, 16);
  d.output = d.make_buffer(QPLAN_NPU_USE_OUTPUT, 16);
  d.write(d.input, sample_input());
  ASSERT_EQ(d.run(), QPLAN_NPU_OK) << d.report.text;
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
  EXPECT_EQ(platform.total, 5);  // program, and two buffers with what a cache would hold
  ASSERT_EQ(driver().close(d.device), QPLAN_NPU_OK);
  d.device = 0;
  EXPECT_EQ(platform.live, 0);
}

TEST(SimDriver, BindsAreChecked) {
  SimDevice d;
  qplan_npu_job job = 0;
  const auto refused = [&](std::vector<qplan_npu_bind> binds, const char* text) {
    EXPECT_EQ(d.submit(&job, binds), QPLAN_NPU_E_ARGUMENT);
    EXPECT_NE(std::string(d.why.text).find(text), std::string::npos) << d.why.text;
  };
  std::vector<qplan_npu_bind> binds = d.binds();
  refused({binds[0]}, "submit: output 'y' (region 3) is not bound");
  refused({binds[0], binds[0], binds[1]}, "bind 1: slot 2 is unknown, bound twice, or the program's own");
  binds[0].slot = 1;
  refused(binds, "slot 1 is unknown");
  binds = d.binds();
  binds[1].bytes = 15;
  refused(binds, "15 bytes at offset 0 of a buffer of 16 for output 'y' (region 3), which needs 16");
  binds = d.binds();
  binds[1].buffer = d.input;
  refused(binds, "made for neither outputs nor scratch");
  const qplan_npu_buffer large = d.make_buffer(QPLAN_NPU_USE_INPUT | QPLAN_NPU_USE_OUTPUT, 4096);
  binds = {{kProductInput, 0, large, 256, 16}, {kProductOutput, 0, large, 256, 16}};
  refused(binds, "overlap, and one of them is written");
  binds[1].offset = 16;
  refused(binds, "is no multiple of 256");
  binds[1].offset = 512;
  ASSERT_EQ(d.submit(&job, binds), QPLAN_NPU_OK) << d.why.text;
  EXPECT_EQ(d.wait(job), QPLAN_NPU_OK);
}

TEST(SimDriver, ImportsMemoryWithoutACopy) {
  SimDevice d;
  alignas(64) uint8_t x[64], y[64] = {};
  const std::vector<uint8_t> sample = sample_input();
  std::memcpy(x, sample.data(), 16);
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.min_bytes = 64;
  request.usage = QPLAN_NPU_USE_INPUT;
  ASSERT_EQ(driver().import_memory(d.device, &request, QPLAN_NPU_IMPORT_POINTER,
                                   reinterpret_cast<uintptr_t>(x), 0, &d.input),
            QPLAN_NPU_OK);
  request.usage = QPLAN_NPU_USE_OUTPUT;
  ASSERT_EQ(driver().import_memory(d.device, &request, QPLAN_NPU_IMPORT_POINTER,
                                   reinterpret_cast<uintptr_t>(y), 0, &d.output),
            QPLAN_NPU_OK);
  ASSERT_EQ(d.run(), QPLAN_NPU_OK) << d.why.text;
  EXPECT_EQ(std::vector<uint8_t>(y, y + 16), product_of(sample));
  EXPECT_EQ(driver().import_memory(d.device, &request, QPLAN_NPU_IMPORT_POINTER,
                                   reinterpret_cast<uintptr_t>(y), 8, &d.output),
            QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(driver().import_memory(d.device, &request, QPLAN_NPU_IMPORT_DMABUF, 3, 0, &d.output),
            QPLAN_NPU_E_UNSUPPORTED);
}

// ---- caches ----

TEST(SimDriver, AMissingFlushShowsAsStaleInputs) {
  SimDevice d("coherent=0");
  void* memory = nullptr;
  ASSERT_EQ(driver().map(d.device, d.input, QPLAN_NPU_WRITE, &memory), QPLAN_NPU_OK);
  std::memcpy(memory, sample_input().data(), 16);
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(d.read(d.output), product_of(std::vector<uint8_t>(16, 0xcd)));  // what the device's memory held
  ASSERT_EQ(driver().flush(d.device, d.input, 0, 16), QPLAN_NPU_OK);
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
}

TEST(SimDriver, AMissingInvalidateShowsAsStaleOutputs) {
  SimDevice d("coherent=0");
  void* memory = nullptr;
  ASSERT_EQ(driver().map(d.device, d.output, QPLAN_NPU_READ, &memory), QPLAN_NPU_OK);
  const std::vector<uint8_t> before(static_cast<uint8_t*>(memory), static_cast<uint8_t*>(memory) + 16);
  d.write(d.input, sample_input());
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(std::memcmp(memory, before.data(), 16), 0);
  ASSERT_EQ(driver().invalidate(d.device, d.output, 0, 16), QPLAN_NPU_OK);
  EXPECT_EQ(std::memcmp(memory, product_of(sample_input()).data(), 16), 0);
  EXPECT_EQ(driver().invalidate(d.device, d.output, 8, 16), QPLAN_NPU_E_ARGUMENT);
}

// ---- the queue ----

TEST(SimDriver, TheQueueIsBoundedAndAsynchronous) {
  SimDevice d("queue=3,faults=at=0:0 kind=hang");
  qplan_npu_job jobs[4] = {};
  for (int i = 0; i < 3; ++i) ASSERT_EQ(d.submit(&jobs[i]), QPLAN_NPU_OK);
  EXPECT_EQ(d.submit(&jobs[3]), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(d.wait(jobs[0], 0), QPLAN_NPU_PENDING);
  EXPECT_EQ(d.wait(jobs[2], 1000000), QPLAN_NPU_PENDING);
  EXPECT_EQ(driver().release(d.device, d.input), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(driver().unload(d.device, d.program), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(driver().power(d.device, 0), QPLAN_NPU_E_BUSY);
  ASSERT_EQ(driver().cancel(d.device, jobs[1]), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(jobs[1], 0), QPLAN_NPU_E_CANCELLED);
  ASSERT_EQ(driver().cancel(d.device, jobs[0]), QPLAN_NPU_OK);
  EXPECT_EQ(d.wait(jobs[0]), QPLAN_NPU_E_CANCELLED);
  EXPECT_EQ(d.wait(jobs[2]), QPLAN_NPU_OK);
  EXPECT_EQ(driver().release(d.device, d.input), QPLAN_NPU_OK);
  EXPECT_EQ(driver().unload(d.device, d.program), QPLAN_NPU_OK);
}

TEST(SimDriver, ResetEndsAllJobsAndKeepsBuffersAndPrograms) {
  SimDevice d("faults=at=0:* kind=hang");
  d.write(d.input, sample_input());
  qplan_npu_job jobs[2] = {};
  for (qplan_npu_job& job : jobs) ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
  ASSERT_EQ(d.wait(jobs[0], 1000000), QPLAN_NPU_PENDING);
  ASSERT_EQ(driver().reset(d.device), QPLAN_NPU_OK);
  for (const qplan_npu_job job : jobs) EXPECT_EQ(d.wait(job, 0), QPLAN_NPU_E_RESET);
  EXPECT_STREQ(d.report.text, "the device was reset");
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
  EXPECT_EQ(d.counter(QPLAN_NPU_COUNTER_RESETS), 1u);
  EXPECT_EQ(d.counter(QPLAN_NPU_COUNTER_FAILED_JOBS), 2u);
}

TEST(SimDriver, CloseEndsAHangingJob) {
  SimDevice d("faults=at=0:* kind=hang");
  qplan_npu_job job = 0;
  ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
}

// One instruction of 2^28 micro-ops, about ten seconds: the product, then the same as an addition.
std::vector<uint8_t> blob_of_a_long_job(bool is_alu) {
  const auto change = [is_alu](size_t index, vta::Instruction& i) {
    if (index != 4) return;
    if (is_alu)
      i = vta::testing::tokens("pop.prev push.next", vta::testing::alu_imm(vta::AluOp::kAdd, 0, 1, 1));
    i.iter_in = i.iter_out = 16383;
  };
  return product_blob(vta::kDefaultConfig, change, uint64_t{1} << 28);
}

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(SimDriver, CancelResetAndCloseDoNotWaitForAnInstructionToEnd) {
  for (const bool is_alu : {false, true}) {
    SimDevice d("", 0, blob_of_a_long_job(is_alu));
    d.write(d.input, sample_input());
    qplan_npu_job job = 0;
    ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK) << d.why.text;
    ASSERT_EQ(d.wait(job, 50'000'000), QPLAN_NPU_PENDING);  // it runs by now
    EXPECT_LT(seconds_of([&] {
                EXPECT_EQ(driver().cancel(d.device, job), QPLAN_NPU_OK);
                EXPECT_EQ(d.wait(job), QPLAN_NPU_E_CANCELLED);
              }),
              2);
    ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
    ASSERT_EQ(d.wait(job, 50'000'000), QPLAN_NPU_PENDING);
    EXPECT_LT(seconds_of([&] { EXPECT_EQ(driver().reset(d.device), QPLAN_NPU_OK); }), 2);
    EXPECT_EQ(d.wait(job, 0), QPLAN_NPU_E_RESET);
    EXPECT_STREQ(d.report.text, "the device was reset");
    ASSERT_EQ(d.submit(&job), QPLAN_NPU_OK);
    ASSERT_EQ(d.wait(job, 50'000'000), QPLAN_NPU_PENDING);
    EXPECT_LT(seconds_of([&] { EXPECT_EQ(driver().close(d.device), QPLAN_NPU_OK); }), 2);
    d.device = 0;
  }
}

TEST(SimDriver, DoneIsCalledAndAfterAndPriorityOrderJobs) {
  SimDevice d("faults=at=0:* kind=late_interrupt ms=50");
  struct Order {
    std::mutex mutex;
    std::vector<qplan_npu_job> jobs;
  } order;
  const auto submit = [&](uint32_t priority, std::vector<qplan_npu_job> after) {
    const std::vector<qplan_npu_bind> binds = d.binds();
    qplan_npu_submit s = {};
    s.struct_size = sizeof(s);
    s.program = d.program;
    s.binds = binds.data();
    s.num_binds = 2;
    s.priority = priority;
    s.after = after.data();
    s.num_after = static_cast<uint32_t>(after.size());
    s.user = &order;
    s.done = [](void* user, qplan_npu_job done, qplan_npu_status status) {
      EXPECT_EQ(status, QPLAN_NPU_OK);
      auto* o = static_cast<Order*>(user);
      const std::lock_guard<std::mutex> lock(o->mutex);
      o->jobs.push_back(done);
    };
    qplan_npu_job job = 0;
    EXPECT_EQ(driver().submit(d.device, &s, &job, nullptr), QPLAN_NPU_OK);
    return job;
  };
  const qplan_npu_job first = submit(0, {});  // runs while the others come
  const qplan_npu_job low = submit(0, {});
  const qplan_npu_job last = submit(9, {low});
  const qplan_npu_job high = submit(5, {});
  for (const qplan_npu_job job : {first, low, last, high}) EXPECT_EQ(d.wait(job), QPLAN_NPU_OK);
  ASSERT_EQ(driver().close(d.device), QPLAN_NPU_OK);
  d.device = 0;
  // Whether `first` had started by then does not change the order of the others.
  order.jobs.erase(std::find(order.jobs.begin(), order.jobs.end(), first));
  EXPECT_EQ(order.jobs, (std::vector<qplan_npu_job>{high, low, last}));
}

TEST(SimDriver, PoweredOffItTakesNoJobsAndForgetsNothingInBuffers) {
  SimDevice d;
  d.write(d.input, sample_input());
  qplan_npu_job job = 0;
  ASSERT_EQ(driver().power(d.device, 0), QPLAN_NPU_OK);
  EXPECT_EQ(d.submit(&job), QPLAN_NPU_E_OFF);
  EXPECT_EQ(driver().power(d.device, 0), QPLAN_NPU_E_ARGUMENT);
  ASSERT_EQ(driver().power(d.device, 1), QPLAN_NPU_OK);
  ASSERT_EQ(d.run(), QPLAN_NPU_OK);
  EXPECT_EQ(d.read(d.output), product_of(sample_input()));
}

TEST(SimDriver, ManyThreadsSubmitAndWait) {
  SimDevice d("queue=64");
  d.write(d.input, sample_input());
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const qplan_npu_buffer output = [&] {
        qplan_npu_buffer_request request = {};
        request.struct_size = sizeof(request);
        request.usage = QPLAN_NPU_USE_OUTPUT;
        request.min_bytes = 16;
        qplan_npu_buffer buffer = 0;
        EXPECT_EQ(driver().alloc(d.device, &request, &buffer), QPLAN_NPU_OK);
        return buffer;
      }();
      for (int n = 0; n < 25; ++n) {
        const qplan_npu_bind binds[] = {{kProductInput, 0, d.input, 0, 16},
                                        {kProductOutput, 0, output, 0, 16}};
        qplan_npu_submit s = {};
        s.struct_size = sizeof(s);
        s.program = d.program;
        s.binds = binds;
        s.num_binds = 2;
        qplan_npu_job job = 0;
        ASSERT_EQ(driver().submit(d.device, &s, &job, nullptr), QPLAN_NPU_OK);
        ASSERT_EQ(driver().wait(d.device, job, UINT64_MAX, nullptr), QPLAN_NPU_OK);
        ++completed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, 100);
}

// ---- what the packer asks ----

TEST(SimDriver, SupportedGivesAllReasons) {
  int64_t x_shape[] = {1, 8, 8, 16}, w_shape[] = {32, 3, 3, 16}, y_shape[] = {1, 8, 8, 32};
  const auto tensor = [](int64_t* shape, DLDataType type) {
    DLTensor t = {};
    t.ndim = 4;
    t.shape = shape;
    t.dtype = type;
    return t;
  };
  DLTensor x = tensor(x_shape, {kDLInt, 8, 1}), w = tensor(w_shape, {kDLInt, 8, 1}),
           y = tensor(y_shape, {kDLInt, 8, 1});
  qplan_npu_op op = {};
  op.struct_size = sizeof(op);
  op.op = QPLAN_NPU_OP_CONV2D;
  op.contract = QPLAN_NPU_TFL2;
  op.inputs[0] = &x;
  op.weights = &w;
  op.output = &y;
  op.groups = 1;
  op.num_scales = 32;
  uint32_t count = 0;
  EXPECT_EQ(driver().supported(0, &op, nullptr, &count), QPLAN_NPU_OK);
  EXPECT_EQ(count, 0u);
  op.contract = QPLAN_NPU_F32E;
  op.groups = 4;
  w.dtype.code = kDLUInt;
  qplan_npu_reason reasons[2] = {};
  count = 2;
  EXPECT_EQ(driver().supported(0, &op, reasons, &count), QPLAN_NPU_E_UNSUPPORTED);
  EXPECT_EQ(count, 3u);  // of which two fitted
  EXPECT_EQ(reasons[0].code, 102u);
  EXPECT_EQ(reasons[1].code, 105u);
  EXPECT_STRNE(reasons[1].text, "");
}

}  // namespace
}  // namespace qplan::sim::driver_test
