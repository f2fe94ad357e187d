#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/reports.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// A visit runs one plan for this long, and at least for this many runs; the first runs are not counted.
constexpr uint64_t kTurnNs = 20'000'000;
constexpr uint32_t kTurnRuns = 3, kTurnWarmUpRuns = 2;
constexpr double kNear = 1.5;  // the factor that the printed count of steps is about

std::string without_blanks(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// The CPU of a list of targets, "cpu,isa=avx2" of "vta,sram=quarter, cpu,isa=avx2"; "" where it has none. A
// part without '=' begins a target.
std::string cpu_of(const std::string& list) {
  std::string cpu;
  bool is_cpu = false;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = without_blanks(list.substr(begin, end - begin));
    if (part.find('=') == std::string::npos) is_cpu = part == "cpu";
    if (is_cpu) cpu += (cpu.empty() ? "" : ",") + part;
    begin = end + 1;
  }
  return cpu;
}

// A plan that is measured, with its session.
class Subject {
 public:
  // of_first: the target of the first subject, which others must have; "" for itself.
  Subject(const std::string& path, const std::string& of_first, const CalibrateOptions& options)
      : plan_(path, bytes_of(path, options)),
        steps_(plan_steps(plan_)),
        platform_(make_platform(QPLAN_LOG_WARNING)),
        fastest_(steps_.size(), UINT64_MAX) {
    check_target(of_first);
    times_.attach(platform_);
    SessionOptions of_session = options.session;
    of_session.custom_operators = options.model.custom_operators;
    session_ = std::make_unique<Session>(plan_, of_session, &platform_);
    write_random_inputs(plan_, *session_);
  }

  [[nodiscard]] const PlanFile& plan() const { return plan_; }
  [[nodiscard]] const Json& steps() const { return steps_; }
  [[nodiscard]] std::string isa() const { return session_->info().isa_name; }
  // "arch=x86_64,isa=avx2"
  [[nodiscard]] const std::string& target() const { return target_; }
  // The fastest turn's median; 0 of a step that does not run.
  [[nodiscard]] uint64_t ns(size_t step) const { return fastest_[step] == UINT64_MAX ? 0 : fastest_[step]; }

  void take_turn() {
    for (uint32_t i = 0; i < kTurnWarmUpRuns; ++i) session_->invoke();
    times_.clear();
    const uint64_t end = qplan_host_now_ns(nullptr) + kTurnNs;
    for (uint32_t runs = 0; runs < kTurnRuns || qplan_host_now_ns(nullptr) < end; ++runs) session_->invoke();
    for (uint32_t i = 0; i < fastest_.size(); ++i) {
      const uint64_t median = times_.summary(i).median_ns;
      if (median > 0) fastest_[i] = std::min(fastest_[i], median);
    }
  }

 private:
  // The plan as it is, or of the model, each layer as a step.
  static std::string bytes_of(const std::string& path, const CalibrateOptions& options) {
    if (is_plan_file(path)) {
      const std::vector<uint8_t> file = read_file(path, "plan");
      return {file.begin(), file.end()};
    }
    ModelOptions model = options.model;
    model.model = path;
    model.target = cpu_of(model.target);
    if (model.target.empty()) model.target = "cpu";
    return pack_model(model, options.placement, QPLAN_FUSE_OFF);
  }

  void check_target(const std::string& of_first) {
    qplan_plan_info info{};
    info.struct_size = sizeof info;
    qplan_error error = make_error();
    check(qplan_plan_get_info(&plan_.plan(), &info), error, "'" + plan_.path() + "'");
    target_ = one_line(info.target_options);
    const std::string found = "plan '" + plan_.path() + "': was packed for '" + target_ + "', expected ";
    if (info.is_for_other_arch != 0) throw Failure(found + "one for this machine");
    if (!of_first.empty() && target_ != of_first)
      throw Failure(found + "'" + of_first + "' as the first one; pack them for one target");
  }

  PlanFile plan_;
  std::string target_;
  Json steps_;
  StepTimes times_;
  qplan_platform platform_;
  std::unique_ptr<Session> session_;
  std::vector<uint64_t> fastest_;
};

using Subjects = std::deque<Subject>;

Subjects make_subjects(const CalibrateOptions& options) {
  Subjects subjects;
  subjects.emplace_back(options.model.model, "", options);
  for (const std::string& path : options.more)
    subjects.emplace_back(path, subjects.front().target(), options);
  return subjects;
}

// In turns, so that a slower machine slows all of them.
void measure(const CalibrateOptions& options, Subjects* subjects) {
  Progress progress;
  const uint64_t begin = qplan_host_now_ns(nullptr);
  const auto budget_ns = static_cast<uint64_t>(options.budget_s * 1e9);
  for (bool first = true; first || qplan_host_now_ns(nullptr) - begin < budget_ns; first = false) {
    for (Subject& subject : *subjects) {
      progress.update("measure, ms", (qplan_host_now_ns(nullptr) - begin) / 1'000'000,
                      budget_ns / 1'000'000 + 1);
      subject.take_turn();
    }
  }
}

// The measured steps as qplan_fit_costs takes them, and those that it has no figures for, by kernel.
struct Measurements {
  Json steps = Json::array();
  std::vector<size_t> ends;  // per subject: how many steps up to its last one
  std::map<std::string, uint32_t> unknown;
};

Measurements measurements_of(const Subjects& subjects) {
  Measurements result;
  for (const Subject& subject : subjects) {
    for (size_t i = 0; i < subject.steps().size(); ++i) {
      const Json& step = subject.steps()[i];
      if (step.at("op") == "npu" || subject.ns(i) == 0) continue;
      if (!step.contains("cost") || step.at("cost").is_null()) {
        ++result.unknown[step.at("op").get<std::string>()];
        continue;
      }
      result.steps.push_back(step.at("cost"));
      result.steps.back()["ns"] = subject.ns(i);
    }
    result.ends.push_back(result.steps.size());
  }
  if (result.steps.empty()) {
    throw Failure("plan '" + subjects.front().plan().path() +
                  "': has no step of a kind that the estimates know; calibrate with a model, or with a plan "
                  "of `qplan pack --fuse off`");
  }
  return result;
}

// The list of targets that the file gets: a plan states what its CPU is.
std::string target_text(const CalibrateOptions& options, const Subjects& subjects) {
  const std::string& list = options.model.target;
  if (!is_plan_file(options.model.model)) return cpu_of(list).empty() ? list + ", cpu" : list;
  const std::string& of_plan = subjects.front().target();
  return "cpu" + (of_plan.empty() ? "" : "," + of_plan);
}

Json fitted(const CalibrateOptions& options, const Subjects& subjects, const Json& steps) {
  Json measured;
  measured["target"] = target_text(options, subjects);
  measured["isa"] = subjects.front().isa();
  measured["steps"] = steps;
  std::string text;
  qplan_error error = make_error();
  check(qplan_fit_costs(json_text(measured).c_str(), append_to_string, &text, &error), error, "");
  return Json::parse(text);
}

bool is_near(uint64_t estimated, uint64_t measured) {
  const auto a = static_cast<double>(estimated), b = static_cast<double>(measured);
  return a <= b * kNear && b <= a * kNear;
}

std::string report(const Subjects& subjects, const Measurements& measured, const Json& fit) {
  const Json& estimates = fit.at("steps");
  std::string text = "calibrated with " + subjects.front().isa() + ": " +
                     count_text(measured.steps.size(), "step", "steps") + " of " +
                     count_text(subjects.size(), "plan", "plans") + "\n";
  char line[160];
  std::snprintf(line, sizeof line, "%6s %14s %14s %14s  %s\n", "steps", "measured us", "estimated us",
                "before us", "plan");
  text += line;
  size_t step = 0, near = 0, near_before = 0, subject = 0;
  for (const size_t end : measured.ends) {
    const size_t begin = step;
    uint64_t ns = 0, estimated_ns = 0, before_ns = 0;
    for (; step < end; ++step) {
      const auto of_step = measured.steps[step].at("ns").get<uint64_t>();
      const auto estimated = estimates[step].at("estimated_ns").get<uint64_t>();
      const auto before = estimates[step].at("default_ns").get<uint64_t>();
      ns += of_step;
      estimated_ns += estimated;
      before_ns += before;
      near += is_near(estimated, of_step);
      near_before += is_near(before, of_step);
    }
    std::snprintf(line, sizeof line, "%6zu %14.2f %14.2f %14.2f", end - begin, static_cast<double>(ns) / 1e3,
                  static_cast<double>(estimated_ns) / 1e3, static_cast<double>(before_ns) / 1e3);
    text += line + ("  " + one_line(subjects[subject++].plan().path())) + "\n";
  }
  text += std::to_string(near) + " of " + count_text(measured.steps.size(), "step", "steps") +
          " within a factor of 1.5 of their times, " + std::to_string(near_before) + " before\n";
  for (const auto& [op, count] : measured.unknown)
    text += "left out: " + count_text(count, "step", "steps") + " of '" + op + "', which has no estimate\n";
  return text;
}

}  // namespace

void calibrate(const CalibrateOptions& options) {
  if (options.session.processors.size() > 1) {
    throw UsageError("--calibrate: found " + std::to_string(options.session.processors.size()) +
                     " processors after --affinity, expected 1: estimates are for one thread");
  }
  if (options.session.threads != 1) {
    throw UsageError("--calibrate: found --threads " + std::to_string(options.session.threads) +
                     ", expected 1: estimates are for one thread");
  }
  if (!options.placement.target_file.empty()) {
    throw UsageError(
        "--calibrate: found --target-file, expected --target: the file that it writes has the "
        "targets of that list");
  }
  parse_isa(options.session.isa);
  std::vector<NamedFile> inputs = input_files(options.session, input_files(options.model, options.placement));
  for (const std::string& path : options.more) inputs.push_back({"--with", path});
  check_outputs({{"--calibrate", options.file}}, inputs);
  Subjects subjects = make_subjects(options);
  measure(options, &subjects);
  const Measurements measured = measurements_of(subjects);
  const Json fit = fitted(options, subjects, measured.steps);
  print(report(subjects, measured, fit));
  const std::string file = json_page(fit.at("file"));
  qplan_error error = make_error();
  check(qplan_file_write(options.file.c_str(), file.data(), file.size(), &error), error, "");
  const std::string& model = options.model.model;
  print("next: qplan explain " + (is_plan_file(model) ? "MODEL" : shell_word(model)) + " --target-file " +
        shell_word(options.file) + "\n");
}

// ---- the log

namespace {

// Logs are joined and edited by hand: a line must not continue somebody's last one.
bool lacks_last_newline(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

bool write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;
      return false;
    }
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

TuningLog::TuningLog(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0 && errno != ENOENT) fail(errno);
}

TuningLog::~TuningLog() {
  if (fd_ >= 0) ::close(fd_);
}

void TuningLog::fail(int reason) const {
  throw Failure("log '" + path_ + "': cannot be written: " + std::strerror(reason));
}

std::vector<nlohmann::json> TuningLog::lines() const {
  std::vector<nlohmann::json> lines;
  struct stat status;
  if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return lines;
  std::ifstream file(path_, std::ios::binary);
  for (std::string text; std::getline(file, text);) {
    nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object()) lines.push_back(std::move(line));
  }
  return lines;
}

void TuningLog::append(const std::string& lines) {
  if (lines.empty()) return;
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  struct stat status;
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail(errno);
  std::string before = S_ISREG(status.st_mode) && lacks_last_newline(path_) ? "\n" : "";
  // A line at a time: others may append to the log meanwhile, and the system mixes no two calls.
  for (size_t begin = 0; begin < lines.size(); before.clear()) {
    const size_t end = lines.find('\n', begin) + 1;
    if (!write_all(fd_, before + lines.substr(begin, end - begin))) fail(errno);
    begin = end;
  }
}

}  // namespace qplan::tools
