#include "tools/npu.h"

#include <algorithm>
#include <cstdio>

#include "qplan/npu_sim.h"
#include "qplan/pack.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

constexpr char kSimulator[] = "sim";
constexpr char kNone[] = "none";
constexpr uint32_t kMaxTimeoutMs = 3'600'000;
// A simulated job takes seconds of the host's time where the device takes milliseconds.
constexpr uint32_t kSimulatorTimeoutMs = 60'000;

const char* const kPolicies[] = {"fallback", "retry", "fail"};  // by QPLAN_NPU_FALLBACK, ...

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "," + b;
}

bool has_key(const std::string& options, const std::string& key) {
  return ("," + options).find("," + key + "=") != std::string::npos;
}

// A file or directory in the simulator's options, whose separator is the comma.
std::string path_option(const char* option, const char* key, const std::string& path) {
  if (path.find(',') != std::string::npos) {
    throw UsageError(std::string(option) + ": the simulator takes no path with a comma, found '" + path +
                     "'");
  }
  return std::string(key) + "=" + path;
}

}  // namespace

void add_driver_options(CLI::App& command, NpuOptions& options) {
  command
      .add_option("--driver", options.driver,
                  "What runs the plan's NPU regions: sim (the simulator of VTA and Ethos-U, default), none "
                  "(the CPU does), or "
                  "a driver's shared library; its own options may follow after a comma")
      ->type_name("LIB[,OPTIONS]");
  command.add_option("--npu-options", options.driver_options, "Options for the driver: \"explore=8,seed=3\"")
      ->type_name("TEXT");
}

void add_npu_options(CLI::App& command, NpuOptions& options) {
  add_driver_options(command, options);
  command
      .add_option(
          "--on-npu-failure", options.on_failure,
          "When a device is absent or fails: fallback (to the CPU, the same bits; default), retry (once, "
          "then fallback) or fail")
      ->type_name("POLICY:{fallback,retry,fail}")
      ->check([](const std::string& text) {
        for (const char* policy : kPolicies) {
          if (text == policy) return std::string();
        }
        return "unknown policy '" + text + "', expected fallback, retry or fail";
      });
  command.add_flag(
      "--npu-verify", options.verify,
      "Run every region on the CPU too; other bytes are an error. Programs that another compiler "
      "made have nothing to compare with");
  command
      .add_option("--npu-timeout-ms", options.timeout_ms,
                  "Until a job is cancelled, and again until its device is reset (default 1000, or 16 times "
                  "the job's "
                  "estimate if that is more, at most ten minutes; 60000 on the simulator)")
      ->type_name("MS")
      ->transform(whole_number())
      ->check([](const std::string& text) {
        uint32_t value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= 1 && value <= kMaxTimeoutMs)
          return std::string();
        return "'" + text + "' is not a number of milliseconds from 1 to " + std::to_string(kMaxTimeoutMs);
      });
}

void add_npu_file_options(CLI::App& command, NpuOptions& options) {
  command
      .add_option("--npu-record", options.record,
                  "Write each job there, for `qplan npu replay` and simulators of others; implies "
                  "--npu-verify, where "
                  "there are CPU steps to compare with")
      ->type_name("DIR");
  command
      .add_flag(
          "--npu-record-all", options.records_all,
          "With --npu-record: checks of intermediate tensors, too, as far as the job leaves them in its "
          "scratch")
      ->needs("--npu-record");
  command.add_option("--npu-trace", options.trace, "Write each instruction of the simulator, for Perfetto")
      ->type_name("FILE");
}

Driver::Driver(const std::string& name) {
  if (name == kSimulator) {
    driver_ = qplan_npu_sim_driver(QPLAN_NPU_ABI);
    return;
  }
  qplan_error error = make_error();
  if (name == kNone) throw UsageError("--driver: found none, expected sim or a driver's shared library");
  check(qplan_host_driver_load(name.c_str(), &driver_, &library_, &error), error, "--driver");
}

Driver::~Driver() { qplan_host_driver_unload(library_); }

std::string driver_name(const NpuOptions& options) {
  const std::string name = options.driver.substr(0, options.driver.find(','));
  if (name.empty()) throw UsageError("--driver: no name, expected sim, none or a shared library");
  return name;
}

bool is_simulator(const NpuOptions& options) { return driver_name(options) == kSimulator; }

bool is_driver_library(const NpuOptions& options) {
  return !is_simulator(options) && driver_name(options) != kNone;
}

std::string driver_options(const NpuOptions& options) {
  const size_t comma = options.driver.find(',');
  std::string text = comma == std::string::npos ? "" : options.driver.substr(comma + 1);
  text = joined(text, options.driver_options);
  if (driver_name(options) == kNone) {
    for (const auto& [option, is_given] :
         {std::pair("--npu-record", !options.record.empty()), std::pair("--npu-verify", options.verify),
          std::pair("--npu-options", !options.driver_options.empty())}) {
      if (is_given)
        throw UsageError(std::string(option) + ": no device runs a job, found --driver " + options.driver);
    }
  }
  if (!options.trace.empty() && !is_simulator(options))
    throw UsageError("--npu-trace: only the simulator can, found --driver " + options.driver);
  if (!is_simulator(options)) return text;  // record_jobs() wraps what it opens
  if (!options.record.empty()) text = joined(text, path_option("--npu-record", "record", options.record));
  if (options.records_all) text = joined(text, "record_all=1");
  if (!options.trace.empty()) text = joined(text, path_option("--npu-trace", "trace", options.trace));
  return text;
}

void check_npu_options(const NpuOptions& options, const PlanFile& plan) {
  if ((options.trace.empty() && options.driver_options.empty()) || !inspect_plan(plan).at("regions").empty())
    return;
  throw Failure(std::string(options.trace.empty() ? "--npu-options" : "--npu-trace") + ": plan '" +
                plan.path() + "' has no regions for a device; pack it with --target \"vta, cpu\"");
}

std::vector<PlanTarget> device_targets(const PlanFile& plan) {
  const auto report =
      nlohmann::ordered_json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'"));
  std::vector<PlanTarget> targets;
  for (const auto& target : report.at("targets")) {
    if (target.at("name") != "cpu") targets.push_back({target.at("name"), target.at("options"), {}});
  }
  for (const auto& region : report.at("regions")) {
    for (PlanTarget& target : targets) {
      if (target.name == region.at("target").get<std::string>())
        target.formats.push_back(region.at("blob_format"));
    }
  }
  return targets;
}

namespace {

// Why the device can load no program of the target; "" where it can, or says nothing.
std::string format_mismatch(const PlanTarget& target, const qplan_host_device& device,
                            const std::string& name) {
  qplan_npu_capabilities capabilities{};
  capabilities.struct_size = sizeof capabilities;
  if (device.driver == nullptr || target.formats.empty() ||
      device.driver->capabilities(device.device, &capabilities) < 0) {
    return "";
  }
  std::string known;
  for (const uint32_t format : capabilities.blob_formats) {
    if (format == 0) break;
    const std::string text = four_characters(format);  // as inspect prints it
    if (std::find(target.formats.begin(), target.formats.end(), text) != target.formats.end()) return "";
    known += (known.empty() ? "'" : ", '") + text + "'";
  }
  if (known.empty()) return "";
  return "--driver " + name + " takes programs of format " + known + ", those of the plan for '" +
         target.name + "' are '" + one_line(target.formats.front()) +
         "'; --driver LIB names the library of its driver";
}

// The options of the plan's target that the user does not set.
std::string options_not_in(const std::string& text, const std::string& plan) {
  std::string result;
  for (const std::string& option : CLI::detail::split(plan, ',')) {
    if (option.empty() || has_key(text, option.substr(0, option.find('=')))) continue;
    result = joined(result, option);
  }
  return result;
}

void warn_of_regions_without_cpu_steps(const PlanFile& plan) {
  const auto report =
      nlohmann::ordered_json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'"));
  for (const auto& region : report.at("regions")) {
    if (region.at("alternative_steps") != 0) continue;
    std::fprintf(stderr, "qplan: npu: region '%s' has no CPU steps, so that its outputs are not compared\n",
                 one_line(region.at("name").get<std::string>()).c_str());
  }
}

// Puts a driver that records in the place of the device's own.
void record_jobs(const NpuOptions& options, const qplan_platform* platform, qplan_host_device* device) {
  const uint32_t flags = options.records_all ? uint32_t{QPLAN_NPU_RECORD_ALL} : 0;
  if (qplan_npu_record(&device->driver, &device->device, platform, options.record.c_str(), flags) < 0)
    throw Failure("--npu-record: no memory left for the recorder");
}

}  // namespace

std::string simulator_options(const PlanTarget& target) {
  std::string options;
  if (target.name.starts_with("ethos-u")) return "device=" + target.name;
  for (const char* size : {"default", "quarter"}) {
    if (has_key(target.options, "sram") &&
        ("," + target.options + ",").find("sram=" + std::string(size) + ",") != std::string::npos) {
      options = "sram=" + std::string(size);
    }
  }
  if (("," + target.options + ",").find(",mul=off,") != std::string::npos)
    options = joined(options, "multiply=0");
  return options;
}

NpuDevices::NpuDevices(const PlanFile& plan, const NpuOptions& options, const qplan_platform* platform)
    : flags_(options.verify || !options.record.empty() ? uint32_t{QPLAN_NPU_VERIFY} : 0),
      timeout_us_(options.timeout_ms * 1000) {
  for (uint32_t i = 0; i < 3; ++i) {
    if (options.on_failure == kPolicies[i]) on_failure_ = i;
  }
  if (flags_ != 0) warn_of_regions_without_cpu_steps(plan);
  const std::string name = driver_name(options);
  const std::string text = driver_options(options);
  if (timeout_us_ == 0 && name == kSimulator) timeout_us_ = kSimulatorTimeoutMs * 1000;
  // A name that cannot be right is reported for plans without regions too.
  if (is_driver_library(options)) driver_ = std::make_unique<Driver>(name);
  targets_ = device_targets(plan);
  if (targets_.empty() || name == kNone) return;
  if (driver_ == nullptr) driver_ = std::make_unique<Driver>(name);
  if (!options.record.empty() || !options.trace.empty()) {
    // The driver ABI has no status for a file that cannot be written: simulator and recorder log it.
    forward_ = platform;
    platform_.struct_size = sizeof platform_;
    platform_.user = this;
    platform_.log = log;
    platform_.log_level = forward_ != nullptr ? std::max(forward_->log_level, uint32_t{QPLAN_LOG_ERROR})
                                              : uint32_t{QPLAN_LOG_ERROR};
    platform_.now_ns = qplan_host_now_ns;
    platform = &platform_;
  }
  devices_.reserve(targets_.size());
  configs_.reserve(targets_.size());
  for (const PlanTarget& target : targets_) {
    // The simulator becomes what the plan was made for, unless the user says which device it is.
    if (name == kSimulator) {
      const bool is_chosen = has_key(text, "sram") || has_key(text, "multiply");
      open(target, options, {"", is_chosen ? text : joined(simulator_options(target), text)}, platform);
    } else {  // a driver need not know the options of its target
      open(target, options, {options_not_in(text, target.options), text}, platform);
    }
  }
}

void NpuDevices::open(const PlanTarget& target, const NpuOptions& options, const OpenOptions& given,
                      const qplan_platform* platform) {
  qplan_host_device device{};
  qplan_error error = make_error();
  const auto attempt = [&](const std::string& text) {
    device = {};
    device.struct_size = sizeof device;
    error = make_error();
    return qplan_host_device_open(driver_->get(), 0, text.c_str(), platform, &device, &error);
  };
  qplan_status status = attempt(joined(given.of_plan, given.of_user));
  std::string refused;
  if (status == QPLAN_INVALID_ARGUMENT && !given.of_plan.empty()) {
    refused = error.text;
    status = attempt(given.of_user);
  }
  // Not there, or out of order: the policy's case. Wrong options are the user's mistake.
  if (status == QPLAN_INVALID_ARGUMENT || status == QPLAN_OUT_OF_MEMORY) {
    check(status, error, "--driver " + options.driver);
  }
  if (!refused.empty()) {
    const std::string line =
        "--driver " + driver_name(options) + ": refused the options '" + given.of_plan +
        "' of the plan's target '" + target.name + "' and was " +
        (status == QPLAN_OK ? "opened without them: " + refused
                            : "not opened without them either: " + refused + "; without them: " + error.text);
    std::fprintf(stderr, "qplan: npu: %s\n", one_line(line).c_str());
  }
  devices_.push_back(device);
  if (!options.record.empty() && !is_simulator(options) && device.driver != nullptr) {
    record_jobs(options, platform, &devices_.back());
    device = devices_.back();
  }
  if (const std::string mismatch = format_mismatch(target, device, driver_name(options)); !mismatch.empty()) {
    if (on_failure_ == QPLAN_NPU_FAIL) {
      close();
      throw Failure(mismatch);
    }
    std::fprintf(stderr, "qplan: npu: %s\n", one_line(mismatch).c_str());
  }
  qplan_npu_device_config config{};
  config.struct_size = sizeof config;
  config.target = target.name.c_str();
  config.driver = device.driver;
  config.device = device.device;
  config.status = device.status;
  configs_.push_back(config);
}

NpuDevices::~NpuDevices() { close(); }

void NpuDevices::close() {
  for (qplan_host_device& device : devices_) qplan_host_device_close(&device);
}

void NpuDevices::log(void* user, uint32_t level, const char* text) {
  auto* self = static_cast<NpuDevices*>(user);
  if (level == QPLAN_LOG_ERROR) {
    const std::lock_guard<std::mutex> lock(self->mutex_);
    if (self->write_error_.empty()) self->write_error_ = one_line(text);
    return;
  }
  const qplan_platform* to = self->forward_;
  if (to != nullptr && to->log != nullptr && level <= to->log_level) to->log(to->user, level, text);
}

std::string NpuDevices::write_error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return write_error_;
}

void NpuDevices::configure(qplan_session_config* config) const {
  config->npu = qplan_npu_client_default();
  config->devices = configs_.data();
  config->num_devices = static_cast<uint32_t>(configs_.size());
  config->on_npu_failure = on_failure_;
  config->npu_flags = flags_;
  config->npu_timeout_us = timeout_us_;
}

}  // namespace qplan::tools
