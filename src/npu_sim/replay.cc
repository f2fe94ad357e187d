// Recorded jobs, run again: on the simulated devices of all kinds, and those whose memory is the slots of a
// program on the driver of a device.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "qplan/npu_sim.h"
#include "src/ethosu/sim/device.h"
#include "src/vta/sim/options.h"
#include "src/vta/sim/record.h"

namespace qplan::sim {
namespace {

constexpr uint64_t kMostProgramBytes = uint64_t{1} << 30;

// What a replay makes on a device; released at its end, whatever that was.
class Holdings {
 public:
  Holdings(const qplan_npu_driver& driver, qplan_npu_device device) : driver_(driver), device_(device) {}
  ~Holdings() {
    for (const qplan_npu_bind& bind : binds) (void)driver_.release(device_, bind.buffer);
    if (program != 0) (void)driver_.unload(device_, program);
  }
  Holdings(const Holdings&) = delete;
  Holdings& operator=(const Holdings&) = delete;

  qplan_npu_program program = 0;
  std::vector<qplan_npu_bind> binds;

 private:
  const qplan_npu_driver& driver_;
  qplan_npu_device device_;
};

class DriverReplay : RegionJob {
 public:
  DriverReplay(const qplan_npu_driver& driver, qplan_npu_device device, std::string directory)
      : RegionJob(std::move(directory), kOptions, "slots", kMostSlots),
        driver_(driver),
        device_(device),
        held_(driver, device) {}

  // The fault has no status where all bytes are equal. report takes what the driver says of the run.
  Fault run(uint32_t timeout_ms, qplan_npu_report* report) {
    std::vector<uint8_t> program;
    (void)(read_job() && (has_format_ || malformed("job.txt has no format")) &&
           read_file(run_, kMostProgramBytes, &program) && read_checks() && read_loads() &&
           load_program(program) && make_buffers() && play(timeout_ms, report) && fetch() &&
           compare_checks());
    return fault_;
  }

 private:
  static inline const Options kOptions = {};

  bool other_directive(const std::vector<std::string_view>& words) override {
    if (words[0] == "device" && words.size() == 2) return once(words[0], &has_device_);
    if (words[0] != "format" || words.size() != 2) return unknown_line(words[0]);
    uint64_t number = 0;
    if (!parse_number(words[1], &number) || number > UINT32_MAX)
      return malformed_line(in_quotes(words[1]) + " is not the number of a format");
    format_ = static_cast<uint32_t>(number);
    return once(words[0], &has_format_);
  }

  // What a function of the driver said.
  bool refuse(const char* function, qplan_npu_status status, const char* text = "") {
    return fail(status, std::string(driver_.name) + ": " + function + ": " +
                            (text[0] != '\0' ? text : "status " + std::to_string(status)));
  }

  bool load_program(const std::vector<uint8_t>& bytes) {
    qplan_npu_reason why = {};
    const qplan_npu_status status =
        driver_.load(device_, format_, bytes.data(), bytes.size(), &held_.program, &why);
    why.text[sizeof(why.text) - 1] = '\0';
    if (status >= 0) return true;
    held_.program = 0;
    return refuse("load", status, why.text);
  }

  bool make_buffers() {
    qplan_npu_program_info info = {};
    info.struct_size = sizeof(info);
    const qplan_npu_status status = driver_.program_info(device_, held_.program, &info);
    if (status < 0) return refuse("program_info", status);
    for (uint32_t slot = 0; slot < info.num_regions; ++slot) {
      qplan_npu_region_info region = {};
      region.struct_size = sizeof(region);
      const qplan_npu_status known = driver_.region_info(device_, held_.program, slot, &region);
      if (known < 0) return refuse("region_info", known);
      if (region.is_bound != 0 && !make_buffer(slot, region)) return false;
    }
    return true;
  }

  bool make_buffer(uint32_t slot, const qplan_npu_region_info& info) {
    if (slot >= kMostSlots || !regions_[slot].is_known || regions_[slot].size < info.bytes)
      return malformed("the program needs region " + std::to_string(slot) + " of " +
                       std::to_string(info.bytes) + " bytes, which job.txt does not have");
    const Region& region = regions_[slot];
    qplan_npu_buffer_request request = {};
    request.struct_size = sizeof(request);
    request.usage = info.usage;
    request.alignment = info.alignment;
    request.min_bytes = region.size;
    qplan_npu_buffer buffer = 0;
    const qplan_npu_status status = driver_.alloc(device_, &request, &buffer);
    if (status < 0) return refuse("alloc", status);
    held_.binds.push_back({slot, 0, buffer, 0, region.size});
    return access(buffer, QPLAN_NPU_WRITE,
                  [&](void* memory) { std::memcpy(memory, region.bytes.data(), region.size); });
  }

  template <typename Use>
  bool access(qplan_npu_buffer buffer, uint32_t kind, Use use) {
    void* memory = nullptr;
    qplan_npu_status status = driver_.map(device_, buffer, kind, &memory);
    if (status < 0) return refuse("map", status);
    use(memory);
    status = driver_.unmap(device_, buffer, kind);
    return status >= 0 || refuse("unmap", status);
  }

  bool play(uint32_t timeout_ms, qplan_npu_report* report) {
    qplan_npu_submit submit = {};
    submit.struct_size = sizeof(submit);
    submit.num_binds = static_cast<uint32_t>(held_.binds.size());
    submit.program = held_.program;
    submit.binds = held_.binds.data();
    qplan_npu_job job = 0;
    qplan_npu_reason why = {};
    qplan_npu_status status = driver_.submit(device_, &submit, &job, &why);
    why.text[sizeof(why.text) - 1] = '\0';
    if (status < 0) return refuse("submit", status, why.text);
    const uint64_t timeout_ns = uint64_t{timeout_ms} * 1'000'000;
    report->struct_size = sizeof(*report);
    status = driver_.wait(device_, job, timeout_ns, report);
    report->text[sizeof(report->text) - 1] = '\0';
    if (status == QPLAN_NPU_PENDING) return stop(job, timeout_ns);
    return status >= 0 || refuse("the job", status, report->text);
  }

  bool stop(qplan_npu_job job, uint64_t timeout_ns) {
    (void)driver_.cancel(device_, job);
    if (driver_.wait(device_, job, timeout_ns, nullptr) == QPLAN_NPU_PENDING) {
      (void)driver_.reset(device_);
      (void)driver_.wait(device_, job, timeout_ns, nullptr);
    }
    return refuse("the job", QPLAN_NPU_E_TIMEOUT, "did not end in time");
  }

  bool fetch() {
    for (const qplan_npu_bind& bind : held_.binds) {
      Region& region = regions_[bind.slot];
      if (!access(bind.buffer, QPLAN_NPU_READ,
                  [&](const void* memory) { std::memcpy(region.bytes.data(), memory, region.size); }))
        return false;
    }
    return true;
  }

  const qplan_npu_driver& driver_;
  qplan_npu_device device_;
  Holdings held_;
  uint32_t format_ = 0;
  bool has_format_ = false, has_device_ = false;
};

// As far as the caller's struct reaches.
void give_report(const Fault& fault, const char* text, qplan_npu_report all, qplan_npu_report* report) {
  if (report == nullptr) return;
  all.struct_size = report->struct_size;
  all.status = fault.status;
  all.fault_instruction = fault.instruction;
  all.fault_address = fault.address;
  std::strncpy(all.text, text, sizeof(all.text) - 1);
  std::memcpy(report, &all, std::min<size_t>(report->struct_size, sizeof(all)));
}

Fault replay(const std::string& directory, const Options& options, qplan_npu_report* report) {
  const std::string target = job_target(directory);
  if (target == "ethosu") return ethosu::sim::replay_ethosu(directory, options, report);
  if (target == "slots") {
    Fault fault;
    fault.status = QPLAN_NPU_E_UNSUPPORTED;
    fault.text = "replay: target 'slots' is a program that its driver alone can run; --driver LIB names it";
    return fault;
  }
  return replay_vta(directory, options, report);  // which refuses other targets
}

// The status of play(), whose fault and counts the report has.
template <typename Play>
qplan_npu_status reported(qplan_npu_report* report, Play play) {
  if (report != nullptr && report->struct_size < sizeof(report->struct_size)) return QPLAN_NPU_E_ARGUMENT;
  try {
    qplan_npu_report all = {};
    const Fault fault = play(&all);
    give_report(fault, fault.text.c_str(), all, report);
    return fault.status;
  } catch (...) {
    Fault fault;
    fault.status = QPLAN_NPU_E_MEMORY;
    give_report(fault, "replay: no memory left for the job", {}, report);  // a text that needs none itself
    return fault.status;
  }
}

}  // namespace
}  // namespace qplan::sim

qplan_npu_status qplan_npu_sim_replay(const char* directory, const char* text, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (directory == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return reported(report, [&](qplan_npu_report* all) {
    Options options;
    Fault fault;
    if (parse_options(text == nullptr ? "" : text, &options, &fault.text))
      return replay(directory, options, all);
    fault.status = QPLAN_NPU_E_ARGUMENT;
    return fault;
  });
}

qplan_npu_status qplan_npu_replay(const qplan_npu_driver* driver, qplan_npu_device device,
                                  const char* directory, uint32_t timeout_ms, qplan_npu_report* report) {
  using namespace qplan::sim;
  if (driver == nullptr || directory == nullptr) return QPLAN_NPU_E_ARGUMENT;
  return reported(report, [&](qplan_npu_report* all) {
    return DriverReplay(*driver, device, directory).run(timeout_ms, all);
  });
}
