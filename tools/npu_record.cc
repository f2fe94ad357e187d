#include <algorithm>
#include <filesystem>
#include <system_error>

#include "tools/error.h"
#include "tools/npu.h"

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

void remove_jobs(const std::string& directory) {
  for (const std::string& job : jobs_in(directory)) {
    std::error_code code;
    fs::remove_all(job, code);
    if (code) throw Failure("record '" + job + "': cannot be removed: " + code.message());
  }
}

}  // namespace

NpuRecord::NpuRecord(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  std::error_code code;
  fs::create_directories(directory_, code);
  if (code) throw Failure("--npu-record: cannot make directory '" + directory_ + "': " + code.message());
  remove_jobs(directory_);
}

void NpuRecord::finish(const qplan_session* session, const std::string& write_error) const {
  if (directory_.empty()) return;
  const std::vector<qplan_region_info> regions = region_infos(session);
  uint64_t ran = 0;
  bool differs = false;
  for (const qplan_region_info& region : regions) {
    ran += region.device_runs;
    differs |= region.mismatches > 0;
  }
  if (differs) {
    remove_jobs(directory_);
    check_mismatches(session);
  }
  if (regions.empty()) {
    throw Failure(
        "--npu-record: nothing was recorded: the plan has no regions for a device; pack it with --target "
        "\"vta, cpu\"");
  }
  if (ran == 0) {
    throw Failure("--npu-record: nothing was recorded: no region ran on its device: " +
                  one_line(regions.front().text));
  }
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

}  // namespace qplan::tools
