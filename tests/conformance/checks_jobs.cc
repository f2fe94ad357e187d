// Jobs: binds, results, reports, counters.
#include <cstring>

#include "tests/conformance/check.h"
#include "tests/conformance/device.h"

namespace qplan::conformance {
namespace {

void job_results(const Subject& s) {
  Device device(s);
  for (uint32_t seed = 0; seed < s.num_layers; ++seed) {
    const Workload workload = device.make(Size::kRandom, 100 + seed);
    const Loaded loaded(device, workload);
    loaded.must_run();
    loaded.require_result();
    loaded.require_unharmed();
    loaded.release();
  }
  device.close();
}

void job_again(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kRandom, 50);
  const Loaded loaded(device, workload);
  for (int i = 0; i < 3; ++i) {
    const qplan_npu_bind& out = loaded.binds()[workload.output];
    device.write(out.buffer, std::vector<uint8_t>(static_cast<size_t>(out.bytes), 0x5a));
    loaded.must_run();
    loaded.require_result();
  }
  device.close();
}

void job_inputs(const Subject& s) {
  Device device(s);
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const Workload workload = device.make(Size::kRandom, 60 + seed);
    const Loaded loaded(device, workload);
    loaded.must_run();
    loaded.require_unharmed();
    loaded.must_run();  // with weights that are as they were
    loaded.require_result();
    loaded.require_unharmed();
  }
  device.close();
}

// A bind within a larger buffer: the bytes around it stay unchanged.
void job_offset(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kSmall, 70);
  const Loaded loaded(device, workload);
  std::vector<qplan_npu_bind> binds = loaded.binds();
  constexpr uint64_t kOffset = 4096;
  qplan_npu_bind& out = binds[workload.output];
  const auto total = static_cast<size_t>(out.bytes + 2 * kOffset);
  out.buffer = device.alloc(QPLAN_NPU_USE_OUTPUT, total);
  out.offset = kOffset;
  device.write(out.buffer, std::vector<uint8_t>(total, 0xc3));
  qplan_npu_submit submit = loaded.request();
  submit.binds = binds.data();
  qplan_npu_job job = 0;
  require_ok(device.driver.submit(device.handle, &submit, &job, nullptr), "submit with an offset");
  (void)loaded.must_wait(job);
  const std::vector<uint8_t> bytes = device.read(out.buffer, total);
  for (size_t i = 0; i < total; ++i) {
    if (i < kOffset || i >= kOffset + out.bytes)
      require(bytes[i] == 0xc3, "byte " + std::to_string(i) + ", outside the bind, was written");
  }
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(kOffset);
  const std::vector<uint8_t> result = workload.unpack({begin, begin + static_cast<ptrdiff_t>(out.bytes)});
  require(std::equal(workload.expected.begin(), workload.expected.end(), result.begin()),
          "the result is wrong");
  device.close();
}

void job_binds(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kSmall, 71);
  const Loaded loaded(device, workload);
  const auto refused = [&](std::vector<qplan_npu_bind> binds, const char* what) {
    qplan_npu_submit submit = loaded.request();
    submit.binds = binds.data();
    submit.num_binds = static_cast<uint32_t>(binds.size());
    qplan_npu_job job = 0;
    qplan_npu_reason why = {};
    std::memset(why.text, 'x', sizeof(why.text));
    require_status(device.driver.submit(device.handle, &submit, &job, &why), QPLAN_NPU_E_ARGUMENT,
                   std::string("submit with ") + what);
  };
  const std::vector<qplan_npu_bind> good = loaded.binds();
  const auto changed = [&](auto change) {
    std::vector<qplan_npu_bind> binds = good;
    change(binds);
    return binds;
  };
  refused({}, "no binds");
  refused(changed([](auto& b) { b.pop_back(); }), "a slot that is not bound");
  refused(changed([](auto& b) { b.push_back(b[0]); }), "a slot bound twice");
  refused(changed([](auto& b) { b[0].slot = 0x7fffffff; }), "an unknown slot");
  refused(changed([](auto& b) { b[0].buffer = 0xdeadbeef; }), "an unknown buffer");
  refused(changed([](auto& b) { b[0].bytes -= 1; }), "fewer bytes than the slot needs");
  refused(changed([](auto& b) { b[0].bytes = uint64_t{1} << 40; }), "bytes beyond the buffer");
  refused(changed([](auto& b) { b[0].offset = uint64_t{1} << 40; }), "an offset beyond the buffer");
  refused(changed([](auto& b) { b[0].offset = UINT64_MAX - b[0].bytes + 1; }),
          "offset and bytes whose sum wraps");
  qplan_npu_submit submit = loaded.request();
  qplan_npu_job job = 0;
  submit.binds = nullptr;
  require_status(device.driver.submit(device.handle, &submit, &job, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "submit with binds NULL");
  submit = loaded.request();
  require_status(device.driver.submit(device.handle, &submit, nullptr, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "submit without a place for the handle");
  const qplan_npu_job nobody = UINT64_MAX - 1;
  submit.after = &nobody;
  submit.num_after = 1;
  require_status(device.driver.submit(device.handle, &submit, &job, nullptr), QPLAN_NPU_E_ARGUMENT,
                 "submit after an unknown job");
  loaded.must_run();
  loaded.require_result();
  device.close();
}

void job_report(const Subject& s) {
  Device device(s);
  const Workload workload = device.make(Size::kRandom, 80);
  const Loaded loaded(device, workload);
  const qplan_npu_report report = loaded.must_wait(loaded.must_submit());
  require(report.status == QPLAN_NPU_OK, "the report's status is not what wait returned");
  require(report.text[0] == '\0', "the text of a job that succeeded is not empty");
  require(report.fault_instruction == QPLAN_NPU_NO_INSTRUCTION,
          "a job that succeeded names a faulting instruction");
  require(report.fault_address == 0, "a job that succeeded names a faulting address");
  if ((device.capabilities.flags & QPLAN_NPU_CAN_COUNT) != 0) {
    require(report.cycles > 0 && report.busy_cycles <= report.cycles,
            "cycles are 0, or fewer than the busy ones");
    require(report.bytes_read > 0 && report.bytes_written > 0, "no bytes were counted");
  }
  require_ok(device.driver.wait(device.handle, loaded.must_submit(), UINT64_MAX, nullptr),
             "wait without a report");
  device.close();
}

void counters_count(const Subject& s) {
  Device device(s);
  if (device.driver.counters == nullptr) throw Skipped("the driver has no counters");
  const uint64_t before = device.counter(QPLAN_NPU_COUNTER_JOBS);
  const uint64_t bytes = device.counter(QPLAN_NPU_COUNTER_BUFFER_BYTES);
  const Workload workload = device.make(Size::kSmall, 81);
  const Loaded loaded(device, workload);
  require(device.counter(QPLAN_NPU_COUNTER_BUFFER_BYTES) > bytes, "buffers are not counted");
  for (int i = 0; i < 3; ++i) loaded.must_run();
  require(device.counter(QPLAN_NPU_COUNTER_JOBS) == before + 3,
          "3 jobs counted as " + std::to_string(device.counter(QPLAN_NPU_COUNTER_JOBS) - before));
  require(device.counter(QPLAN_NPU_COUNTER_FAILED_JOBS) == 0, "a job that succeeded is counted as failed");
  require_ok(device.driver.reset(device.handle), "reset");
  require(device.counter(QPLAN_NPU_COUNTER_RESETS) == 1, "a reset is not counted");
  loaded.release();
  require(device.counter(QPLAN_NPU_COUNTER_BUFFER_BYTES) == bytes, "released buffers are still counted");
  const uint32_t ids[] = {QPLAN_NPU_COUNTER_JOBS, 500};
  uint64_t values[] = {0, 77};
  require_status(device.driver.counters(device.handle, ids, values, 2), QPLAN_NPU_E_UNSUPPORTED,
                 "counters of an unknown id");
  require(values[0] == before + 3 && values[1] == 0,
          "the value of an unknown counter is not 0, or a known one is lost");
  device.close();
}

}  // namespace

std::vector<Check> job_checks() {
  return {
      {"job.results", "random layers give the bytes of the CPU's reference", job_results},
      {"job.again", "a program runs any number of times, whatever its outputs held", job_again},
      {"job.inputs", "inputs and weights are never written", job_inputs},
      {"job.offset", "a bind is a part of a buffer, and nothing around it is written", job_offset},
      {"job.binds", "binds that are missing, doubled, unknown, too small or outside are E_ARGUMENT",
       job_binds},
      {"job.report", "a report has the job's status, and of success no fault", job_report},
      {"counters.count", "counters count jobs, resets and bytes; unknown ones are 0 and E_UNSUPPORTED",
       counters_count},
  };
}

}  // namespace qplan::conformance
