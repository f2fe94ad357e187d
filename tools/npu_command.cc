// qplan npu: what concerns devices alone: recorded jobs, listings, drivers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "qplan/npu_sim.h"
#include "qplan/pack.h"
#include "src/base/listing.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/npu.h"
#include "tools/number_option.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// ---- replay ----

struct ReplayOptions {
  std::string directory;
  NpuOptions npu;
  bool json = false;
};

constexpr uint32_t kReplayTimeoutMs = 600'000;

// Where jobs run: this program's simulator of their target, or a driver's device.
class Replayer {
 public:
  explicit Replayer(const NpuOptions& options) {
    if (is_simulator(options)) {
      options_ = driver_options(options);
      return;
    }
    driver_ = std::make_unique<Driver>(driver_name(options));
    device_.struct_size = sizeof device_;
    qplan_error error = make_error();
    check(
        qplan_host_device_open(driver_->get(), 0, driver_options(options).c_str(), nullptr, &device_, &error),
        error, "--driver " + options.driver);
  }
  ~Replayer() { qplan_host_device_close(&device_); }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  qplan_npu_status run(const std::string& path, qplan_npu_report* report) const {
    if (driver_ == nullptr) return qplan_npu_sim_replay(path.c_str(), options_.c_str(), report);
    return qplan_npu_replay(device_.driver, device_.device, path.c_str(), kReplayTimeoutMs, report);
  }

 private:
  std::string options_;  // of the simulator
  std::unique_ptr<Driver> driver_;
  qplan_host_device device_{};
};

struct RecordedCheck {
  std::string region;  // of Ethos-U and of drivers; empty: VTA, which has one arena
  std::string address, bytes, file;

  // As reports give it: include/qplan/npu_sim.h.
  uint64_t begin() const {
    return std::strtoull(region.c_str(), nullptr, 0) << QPLAN_NPU_SIM_REGION_BIT |
           std::strtoull(address.c_str(), nullptr, 0);
  }
};

// The checks of a job whose job.txt the replayer has taken.
std::vector<RecordedCheck> recorded_checks(const std::string& job) {
  std::vector<RecordedCheck> checks;
  qplan_file file{};
  qplan_error error = make_error();
  if (qplan_file_map((job + "/job.txt").c_str(), &file, &error) < 0) return checks;
  std::istringstream lines(std::string(static_cast<const char*>(file.bytes), file.size));
  qplan_file_unmap(&file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    if (words.empty() || words[0] != "check") continue;
    if (words.size() == 4) checks.push_back({"", words[1], words[2], words[3]});
    if (words.size() == 5) checks.push_back({words[1], words[2], words[3], words[4]});
  }
  return checks;
}

bool contains(const RecordedCheck& check, uint64_t address) {
  const uint64_t begin = check.begin();
  return address >= begin && address - begin < std::strtoull(check.bytes.c_str(), nullptr, 0);
}

struct ReplayedJob {
  std::string path;
  std::vector<std::pair<RecordedCheck, std::string>> checks;  // "OK", "differs", "not compared"
  qplan_npu_report report{};
  std::string text;  // why it failed
};

ReplayedJob replay_job(const std::string& path, const Replayer& replayer) {
  ReplayedJob job;
  job.path = path;
  job.report.struct_size = sizeof job.report;
  const qplan_npu_status status = replayer.run(path, &job.report);
  job.report.status = status;
  job.text = job.report.text;
  if (status < 0 && job.text.empty()) job.text = "status " + std::to_string(status);
  // A job that could not be read: its job.txt may be anything.
  if (status == QPLAN_NPU_E_ARGUMENT || status == QPLAN_NPU_E_MEMORY || status == QPLAN_NPU_E_UNSUPPORTED)
    return job;
  // Checks are compared in their order; the first byte that differs has an address. The same status also says
  // that the job left its memory: nothing is compared then.
  const bool differs = status == QPLAN_NPU_E_BUS && job.text.rfind("replay: byte ", 0) == 0;
  bool is_over = status < 0 && !differs;
  for (const RecordedCheck& check : recorded_checks(path)) {
    std::string verdict = is_over ? "not compared" : "OK";
    if (differs && !is_over && contains(check, job.report.fault_address)) {
      verdict = "differs";
      is_over = true;
    }
    job.checks.emplace_back(check, verdict);
  }
  return job;
}

void print_job(const ReplayedJob& job) {
  std::string text = one_line(job.path) + ": ";
  if (job.report.status >= 0) {
    text += std::to_string(job.checks.size()) + (job.checks.size() == 1 ? " check OK, " : " checks OK, ") +
            std::to_string(job.report.cycles) + " cycles\n";
  } else {
    text += "FAILED: " + one_line(job.text) + "\n";
  }
  for (const auto& [check, verdict] : job.checks) {
    text += "  " + one_line(check.file) + " (" + one_line(check.bytes) + " bytes at " +
            one_line(check.address) + (check.region.empty() ? "" : " of region " + one_line(check.region)) +
            "): " + verdict + "\n";
  }
  print(text);
}

Json job_json(const ReplayedJob& job) {
  Json json{{"job", job.path},  {"ok", job.report.status >= 0}, {"status", job.report.status},
            {"text", job.text}, {"cycles", job.report.cycles},  {"macs", job.report.macs}};
  json["checks"] = Json::array();
  for (const auto& [check, verdict] : job.checks) {
    Json entry{{"address", check.address}, {"bytes", check.bytes}, {"file", check.file}, {"result", verdict}};
    if (!check.region.empty()) entry["region"] = check.region;
    json["checks"].push_back(std::move(entry));
  }
  return json;
}

void replay(const ReplayOptions& options) {
  size_t failed = 0, count = 0;
  std::string first;
  Json list = Json::array();
  const std::vector<std::string> jobs = find_jobs(options.directory);
  const Replayer replayer(options.npu);
  for (const std::string& path : jobs) {
    const ReplayedJob job = replay_job(path, replayer);
    ++count;
    if (job.report.status < 0 && failed++ == 0) first = path + ": " + job.text;
    options.json ? list.push_back(job_json(job)) : print_job(job);
  }
  if (options.json) print(json_page(list));
  if (failed > 0) {
    throw Failure("npu replay: " + std::to_string(failed) + " of " + std::to_string(count) +
                  (count == 1 ? " job" : " jobs") + " failed; the first is " + first);
  }
}

void add_replay(CLI::App& npu) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = npu.add_subcommand("replay", "Run recorded jobs again and compare their outputs");
  command->add_option("DIR", options->directory, "A job, or a directory of job-NNNN")
      ->required()
      ->type_name("");
  command
      ->add_option(
          "--driver", options->npu.driver,
          "What runs the jobs: sim (the simulator of VTA and Ethos-U, default), or the shared library "
          "of the driver that ran them; its own options may follow after a comma")
      ->type_name("LIB[,OPTIONS]");
  command
      ->add_option("--npu-options", options->npu.driver_options,
                   "Options of the simulator (seed, explore, hazards, memory, work) or of the driver")
      ->type_name("TEXT");
  command->add_flag("--json", options->json, "As JSON");
  command->footer(
      "A job is run from its files alone, by the simulator or a driver. Exit status 1 when a byte differs or "
      "a job "
      "cannot run.\n"
      "Records of others are safe to replay: only regular files inside a job's directory are read, and what "
      "a job\n"
      "may take is bounded (memory=BYTES, work=N).\n"
      "Examples:\n"
      "  qplan run model.qplan --input x.npy --npu-record jobs\n"
      "  qplan npu replay jobs\n"
      "  qplan npu replay jobs/job-0000 --npu-options explore=8\n"
      "  qplan npu replay jobs --driver ./libmy_driver.so");
  command->callback([options]() { replay(*options); });
}

// ---- disasm ----

struct DisasmOptions {
  std::string plan;
  std::optional<uint32_t> region;
  NpuOptions npu;  // --driver
};

void print_line(void*, const char* text) { print(one_line(text) + "\n"); }

// A format that is its driver's own.
void refuse_without_lister(const NpuOptions& options, const std::string& where, const std::string& format) {
  if (!is_simulator(options)) return;
  throw Failure(where + " is a program of format '" + one_line(format) +
                "', which only its driver can read; --driver LIB names the driver's library");
}

void list_by_driver(const NpuOptions& options, const std::string& where, const std::string& format,
                    const void* blob, uint64_t bytes) {
  const Driver driver(driver_name(options));
  const qplan_npu_driver& table = *driver.get();
  constexpr size_t kBytes = offsetof(qplan_npu_driver, disassemble) + sizeof table.disassemble;
  if (table.struct_size < kBytes || table.disassemble == nullptr) {
    throw Failure(where + ": driver '" + one_line(table.name) +
                  "' lists no programs: its table has no function 'disassemble' (qplan/npu_driver.h)");
  }
  qplan_npu_reason why{};
  const qplan_npu_status status = table.disassemble(
      blob_format_of(format), blob, bytes, driver_options(options).c_str(), print_line, nullptr, &why);
  why.text[sizeof why.text - 1] = '\0';
  if (status < 0) throw Failure(where + ": " + one_line(why.text));
}

// Whether qplan lists programs of the format itself.
bool is_known_format(const std::string& format) {
  return format == "VTA1" || format == "ETU1" || format == "QOP1";
}

void disassemble(const CLI::App& command, const DisasmOptions& options) {
  const PlanFile plan(options.plan);
  const Json report = Json::parse(inspect_text(plan.bytes(), plan.size(), "'" + plan.path() + "'"));
  const Json regions = report.value("regions", Json::array());
  if (regions.empty()) {
    throw Failure("plan '" + options.plan +
                  "': has no regions for a device; pack it with --target \"vta, cpu\"");
  }
  if (options.region && *options.region >= regions.size()) {
    throw Failure("plan '" + options.plan + "': has no region " + std::to_string(*options.region) +
                  ", only 0 to " + std::to_string(regions.size() - 1));
  }
  const bool needs_no_driver = std::ranges::all_of(
      regions, [](const Json& region) { return is_known_format(region.at("blob_format")); });
  if (needs_no_driver)
    refuse_without_effect(command, {"--driver"},
                          "on '" + options.plan + "', whose programs qplan lists itself");
  const std::vector<PlanTarget> targets = device_targets(plan);
  for (uint32_t i = 0; i < regions.size(); ++i) {
    if (options.region && *options.region != i) continue;
    const Json& region = regions[i];
    const std::string name = one_line(region.at("name").get<std::string>());
    const std::string format = region.at("blob_format");
    const uint64_t offset = region.at("blob_offset"), bytes = region.at("blob_bytes");
    const bool is_known = is_known_format(format);
    const std::string where = "plan '" + options.plan + "': region " + std::to_string(i) + " '" + name + "'";
    if (!is_known) refuse_without_lister(options.npu, where, format);
    std::string simulator;
    for (const PlanTarget& target : targets) {
      if (target.name == region.at("target").get<std::string>()) simulator = simulator_options(target);
    }
    print("program of region " + std::to_string(i) + " '" + name + "' on " +
          one_line(region.at("target").get<std::string>()) + ", " + std::to_string(bytes) + " bytes\n");
    const auto* const blob = static_cast<const char*>(plan.bytes()) + offset;
    if (!is_known) {
      list_by_driver(options.npu, where, format, blob, bytes);
      continue;
    }
    if (format == "QOP1") {
      std::string text;
      if (!list_operators(blob, bytes, &text))
        throw Failure("plan '" + options.plan + "': region '" + name + "': " + text);
      print(text);
      continue;
    }
    qplan_npu_reason why{};
    const qplan_npu_status status =
        qplan_npu_sim_disassemble(blob, bytes, simulator.c_str(), print_line, nullptr, &why);
    if (status < 0)
      throw Failure("plan '" + options.plan + "': region '" + name + "': " + one_line(why.text));
  }
}

void add_disasm(CLI::App& npu) {
  auto options = std::make_shared<DisasmOptions>();
  CLI::App* command = npu.add_subcommand("disasm", "List the programs of a plan's NPU regions");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  command->add_option("--region", options->region, "Only this one, from 0 in the order of the steps")
      ->type_name("N")
      ->transform(whole_number(0, UINT32_MAX));
  command
      ->add_option(
          "--driver", options->npu.driver,
          "The driver's shared library, where programs have a format of its own; its own options may "
          "follow after a comma")
      ->type_name("LIB[,OPTIONS]");
  command->footer(
      "Regions of the program's memory, then one line per instruction under the names of the operators; of "
      "an\n"
      "operator list, which drivers of other devices take, one line per operator.\n"
      "Examples:\n"
      "  qplan npu disasm model.qplan | less\n"
      "  qplan npu disasm model.qplan --region 0\n"
      "  qplan npu disasm model.qplan --driver ./libmy_driver.so");
  command->callback([command, options]() { disassemble(*command, *options); });
}

}  // namespace

void add_npu_command(CLI::App& app) {
  CLI::App* npu = app.add_subcommand("npu", "Recorded jobs, programs and drivers of NPUs");
  npu->require_subcommand(1);
  add_replay(*npu);
  add_disasm(*npu);
  add_npu_info_command(*npu);
  npu->footer(
      "Examples:\n"
      "  qplan npu replay jobs\n"
      "  qplan npu disasm model.qplan --region 0\n"
      "  qplan npu info --driver ./libmy_driver.so");
}

}  // namespace qplan::tools
