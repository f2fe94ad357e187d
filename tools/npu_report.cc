#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "tools/command.h"
#include "tools/npu.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

namespace fs = std::filesystem;

// "job-0012"
bool is_job_name(const std::string& name) {
  return name.size() >= 8 && name.compare(0, 4, "job-") == 0 &&
         std::all_of(name.begin() + 4, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// By number: names grow beyond four digits.
std::vector<std::string> jobs_in(const std::string& directory) {
  std::vector<std::string> jobs;
  std::error_code code;
  for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code)) {
    if (is_job_name(it->path().filename().string()) && fs::exists(it->path() / "job.txt", code)) {
      jobs.push_back(it->path().string());
    }
  }
  if (code) throw Failure("record '" + directory + "': cannot be read: " + code.message());
  std::sort(jobs.begin(), jobs.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return jobs;
}

[[noreturn]] void fail_without_jobs(const std::vector<qplan_region_info>& regions) {
  throw Failure("--npu-record: nothing was recorded: no region ran on its device: " +
                one_line(regions.front().text));
}

void remove_jobs(const std::string& directory) {
  for (const std::string& job : jobs_in(directory)) {
    std::error_code code;
    fs::remove_all(job, code);
    if (code) throw Failure("record '" + job + "': cannot be removed: " + code.message());
  }
}

}  // namespace

NpuRecord::NpuRecord(std::string directory, const qplan_session* session, OutputFiles* outputs)
    : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  const std::vector<qplan_region_info> regions = region_infos(session);
  if (regions.empty()) {
    throw Failure(
        "--npu-record: nothing was recorded: the plan has no regions for a device; pack it with --target "
        "\"vta, cpu\"");
  }
  if (std::ranges::none_of(regions, [](const auto& region) { return region.on_device != 0; }))
    fail_without_jobs(regions);
  outputs->make_directory(directory_, "--npu-record");
  remove_jobs(directory_);
}

void NpuRecord::finish(const qplan_session* session, const std::string& write_error) const {
  if (directory_.empty()) return;
  if (has_mismatches(session)) {
    remove_jobs(directory_);
    check_mismatches(session);
  }
  const std::vector<qplan_region_info> regions = region_infos(session);
  uint64_t ran = 0;
  for (const qplan_region_info& region : regions) ran += region.device_runs;
  if (ran == 0) fail_without_jobs(regions);
  const uint64_t written = jobs_in(directory_).size();
  if (written < ran) {
    throw Failure("--npu-record: '" + directory_ + "' holds " + std::to_string(written) + " of " +
                  std::to_string(ran) + " jobs" +
                  (write_error.empty() ? "; is the disk full?" : ": " + write_error));
  }
}

bool is_in_recorded_job(const std::string& directory, const std::string& file) {
  std::error_code code;
  const fs::path jobs = fs::canonical(directory, code);
  if (code) return false;
  const fs::path path = fs::canonical(file, code);
  if (code) return false;
  const fs::path relative = path.lexically_relative(jobs);
  return !relative.empty() && is_job_name(relative.begin()->string());
}

std::vector<std::string> find_jobs(const std::string& directory) {
  std::error_code code;
  if (!fs::is_directory(directory, code)) {
    throw Failure("record '" + directory +
                  "': " + (fs::exists(directory, code) ? "is not a directory" : "No such file or directory"));
  }
  if (fs::exists(fs::path(directory) / "job.txt", code)) return {directory};
  std::vector<std::string> jobs = jobs_in(directory);
  if (jobs.empty()) {
    throw Failure("record '" + directory +
                  "': neither a job (no job.txt) nor a directory of jobs (no job-NNNN); " +
                  "`qplan run PLAN --npu-record DIR` makes them");
  }
  return jobs;
}

// The report of what ran where, as text and JSON.

namespace {

using Json = nlohmann::ordered_json;

const char* state_name(uint32_t state) {
  static constexpr const char* kNames[] = {"present", "degraded", "quarantined", "absent"};
  return state < std::size(kNames) ? kNames[state] : "unknown";
}

std::string plural(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// "12.3 M cycles"
std::string cycles_text(uint64_t cycles) {
  char text[32];
  if (cycles < 10'000) return plural(cycles, "cycle", "cycles");
  const bool mega = cycles >= 1'000'000;
  std::snprintf(text, sizeof text, "%.1f %s cycles", static_cast<double>(cycles) / (mega ? 1e6 : 1e3),
                mega ? "M" : "k");
  return text;
}

std::string region_name(const qplan_region_info& region) {
  return region.name[0] != '\0' ? one_line(region.name) : "step " + std::to_string(region.step);
}

// Runs in place of the device.
uint64_t fallback_runs(const qplan_region_info& region, bool verifies) {
  return region.cpu_runs - (verifies ? std::min(region.device_runs, region.cpu_runs) : 0);
}

// Every run so far was on the device, and there was one.
bool ran_on_device(const qplan_region_info& region, bool verifies) {
  return region.device_runs > 0 && fallback_runs(region, verifies) == 0;
}

// Why a region did not run on its device, or had trouble there; "" where all went well. A device that was
// lost after the region's last run is no trouble of this region.
std::string trouble(const qplan_region_info& region, bool verifies) {
  const std::string text = region.text[0] != '\0' ? one_line(region.text) : qplan_status_name(region.status);
  const uint64_t cpu_runs = fallback_runs(region, verifies);
  if (region.failures > 0) {
    return plural(region.failures, "job failed", "jobs failed") + ", " + plural(cpu_runs, "run", "runs") +
           " on the cpu: " + text;
  }
  const bool has_run = region.device_runs + cpu_runs > 0;
  if (has_run ? cpu_runs == 0 : region.on_device != 0) return "";
  if (region.device_runs == 0) return "on the cpu: " + text;
  return std::to_string(cpu_runs) + " of " + plural(region.device_runs + cpu_runs, "run", "runs") +
         " on the cpu: " + text;
}

}  // namespace

std::vector<qplan_region_info> region_infos(const qplan_session* session) {
  std::vector<qplan_region_info> infos(qplan_session_num_regions(session));
  for (uint32_t i = 0; i < infos.size(); ++i) {
    infos[i].struct_size = sizeof infos[i];
    check(qplan_session_region_info(session, i, &infos[i]), make_error(), "region " + std::to_string(i));
  }
  return infos;
}

std::vector<qplan_device_info> device_infos(const qplan_session* session) {
  std::vector<qplan_device_info> infos(qplan_session_num_devices(session));
  for (uint32_t i = 0; i < infos.size(); ++i) {
    infos[i].struct_size = sizeof infos[i];
    check(qplan_session_device_info(session, i, &infos[i]), make_error(), "device " + std::to_string(i));
  }
  return infos;
}

std::string npu_text(const qplan_session* session, bool verifies) {
  const std::vector<qplan_region_info> regions = region_infos(session);
  std::string text;
  for (const qplan_device_info& device : device_infos(session)) {
    uint64_t count = 0, ran = 0, copies = 0, copy_bytes = 0;
    for (const qplan_region_info& region : regions) {
      if (std::string(region.target) != device.target) continue;
      ++count;
      ran += region.device_runs > 0;
      copies += region.copies;
      copy_bytes += region.copy_bytes;
    }
    text += "npu: " + std::to_string(ran) + " of " + plural(count, "region", "regions") + " on '" +
            one_line(device.target) + "' (" +
            (device.driver[0] != '\0' ? one_line(device.driver) : std::string("no driver")) + "), " +
            cycles_text(device.cycles) + ", " + plural(copies, "copy", "copies") + " (" +
            size_text(copy_bytes) + ")";
    if (device.state != QPLAN_DEVICE_PRESENT) text += ", " + std::string(state_name(device.state));
    text += "\n";
  }
  // Regions with the same reason share a line.
  std::vector<std::pair<std::string, std::vector<std::string>>> troubles;
  for (const qplan_region_info& region : regions) {
    const std::string why = trouble(region, verifies);
    if (why.empty()) continue;
    auto found =
        std::find_if(troubles.begin(), troubles.end(), [&](const auto& t) { return t.first == why; });
    if (found == troubles.end()) found = troubles.insert(troubles.end(), {why, {}});
    found->second.push_back(region_name(region));
  }
  for (const auto& [why, names] : troubles) {
    const std::string who =
        names.size() == 1 ? "region '" + names[0] + "'" : plural(names.size(), "region", "regions");
    text += "npu: " + who + " " + why + "\n";
  }
  return text;
}

Json npu_json(const qplan_session* session, bool verifies) {
  Json json;
  json["devices"] = Json::array();
  for (const qplan_device_info& device : device_infos(session)) {
    json["devices"].push_back({{"target", device.target},
                               {"driver", device.driver},
                               {"state", state_name(device.state)},
                               {"last_status", device.last_status},
                               {"regions", device.num_regions},
                               {"jobs", device.jobs},
                               {"failed_jobs", device.failed_jobs},
                               {"timeouts", device.timeouts},
                               {"retries", device.retries},
                               {"fallbacks", device.fallbacks},
                               {"resets", device.resets},
                               {"cycles", device.cycles},
                               {"program_bytes", device.program_bytes},
                               {"text", device.text}});
  }
  json["regions"] = Json::array();
  for (const qplan_region_info& region : region_infos(session)) {
    json["regions"].push_back({{"name", region.name},
                               {"step", region.step},
                               {"target", region.target},
                               {"on_device", region.on_device != 0},
                               {"ran_on_device", ran_on_device(region, verifies)},
                               {"status", qplan_status_name(region.status)},
                               {"operators", region.num_operators},
                               {"has_alternative", region.has_alternative != 0},
                               {"macs", region.macs},
                               {"device_runs", region.device_runs},
                               {"cpu_runs", region.cpu_runs},
                               {"failures", region.failures},
                               {"mismatches", region.mismatches},
                               {"copies", region.copies},
                               {"copy_bytes", region.copy_bytes},
                               {"last_cycles", region.last_cycles},
                               {"text", region.text}});
  }
  return json;
}

bool has_mismatches(const qplan_session* session) {
  return std::ranges::any_of(region_infos(session), [](const auto& region) { return region.mismatches > 0; });
}

void check_mismatches(const qplan_session* session) {
  std::string names;
  for (const qplan_region_info& region : region_infos(session)) {
    if (region.mismatches > 0) names += (names.empty() ? "'" : ", '") + region_name(region) + "'";
  }
  if (names.empty()) return;
  throw Failure("npu: the device computed other bytes than the cpu; using the CPU result: region " + names +
                "; the driver or the device is wrong, not the model");
}

}  // namespace qplan::tools
