// qplan bench: how long an inference takes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "tools/command.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/plan_file.h"
#include "tools/progress.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint32_t kWarmUpRuns = 5;
constexpr uint32_t kMinRuns = 30;
// Without --runs: small models are measured for this long, for a median that stands still.
constexpr uint64_t kDefaultNs = 500'000'000;
constexpr uint32_t kMaxDefaultRuns = 10'000;
constexpr uint32_t kInputSeed = 1;

struct BenchOptions {
  std::string plan;
  SessionOptions session;
  uint32_t runs = 0;  // 0: at least kMinRuns, at least kDefaultNs
  bool per_step = false;
  bool json = false;
};

struct Summary {
  uint64_t median_ns = 0;
  uint64_t p90_ns = 0;
  uint64_t min_ns = 0;
};

// median: the mean of the middle two of an even count; p90: the smallest value that 90 % do not exceed.
Summary summarise(std::vector<uint64_t> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {(times[(n - 1) / 2] + times[n / 2]) / 2, times[(n * 9 + 9) / 10 - 1], times.front()};
}

// Time of each step in each run, through the platform's hooks.
class StepTimes {
 public:
  void attach(qplan_platform& platform) {
    platform.user = this;
    platform.step_begin = [](void* user, const qplan_event*) {
      static_cast<StepTimes*>(user)->begin_ns_ = qplan_host_now_ns(nullptr);
    };
    platform.step_end = [](void* user, const qplan_event* event, qplan_status) {
      static_cast<StepTimes*>(user)->end(event->step);
    };
  }
  void clear() { times_.clear(); }
  [[nodiscard]] Summary summary(uint32_t step) const {
    return step < times_.size() ? summarise(times_[step]) : Summary();
  }

 private:
  void end(uint32_t step) {
    const uint64_t elapsed = qplan_host_now_ns(nullptr) - begin_ns_;
    if (step >= times_.size()) times_.resize(step + 1);
    times_[step].push_back(elapsed);
  }

  uint64_t begin_ns_ = 0;
  std::vector<std::vector<uint64_t>> times_;
};

// Random bytes for integers, [-1, 1) for floats: kernels whose time depends on values meet ordinary ones.
void write_random_inputs(const PlanFile& plan, Session& session) {
  std::mt19937 random(kInputSeed);
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  for (uint32_t i = 0; i < infos.size(); ++i) {
    std::vector<uint8_t> bytes(infos[i].size_bytes);
    if (is_type(infos[i].dtype, kDLFloat, 32)) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (size_t k = 0; k < bytes.size() / sizeof(float); ++k) {
        values[k] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
      }
    } else {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    }
    session.write(i, packed_tensor(infos[i], bytes.data()));
  }
}

std::vector<uint64_t> measure(const BenchOptions& options, Session& session) {
  Progress progress;
  std::vector<uint64_t> times;
  uint64_t total_ns = 0;
  const auto enough = [&]() {
    const auto runs = static_cast<uint32_t>(times.size());
    if (options.runs != 0) return runs >= options.runs;
    return runs >= kMinRuns && (total_ns >= kDefaultNs || runs >= kMaxDefaultRuns);
  };
  while (!enough()) {
    const uint64_t begin = qplan_host_now_ns(nullptr);
    session.invoke();
    times.push_back(qplan_host_now_ns(nullptr) - begin);
    total_ns += times.back();
    progress.update("run", times.size(), options.runs != 0 ? options.runs : kMinRuns);
  }
  return times;
}

double gmacs(uint64_t macs, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(macs) / static_cast<double>(ns);
}

void print_steps(const Session& session, const StepTimes& steps, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += steps.summary(i).median_ns;
  char line[512];
  std::snprintf(line, sizeof line, "%5s %12s %6s %8s  %-28s %s\n", "step", "median us", "%", "GMAC/s",
                "kernel", "name");
  print(line);
  for (uint32_t i = 0; i < count; ++i) {
    const Summary summary = steps.summary(i);
    const qplan_event event = session.step(i);
    std::snprintf(
        line, sizeof line, "%5u %12.2f %6.1f %8.2f  %-28s %s\n", i,
        static_cast<double>(summary.median_ns) / 1e3,
        total == 0 ? 0.0 : 100.0 * static_cast<double>(summary.median_ns) / static_cast<double>(total),
        gmacs(event.macs, summary.median_ns), event.kernel, event.name);
    print(line);
  }
}

Json steps_json(const Session& session, const StepTimes& steps, uint32_t count) {
  Json list = Json::array();
  for (uint32_t i = 0; i < count; ++i) {
    const Summary summary = steps.summary(i);
    const qplan_event event = session.step(i);
    Json entry;
    entry["step"] = i;
    entry["op"] = event.op;
    entry["kernel"] = event.kernel;
    entry["name"] = event.name;
    entry["macs"] = event.macs;
    entry["bytes"] = event.bytes;
    entry["median_ns"] = summary.median_ns;
    entry["p90_ns"] = summary.p90_ns;
    entry["min_ns"] = summary.min_ns;
    list.push_back(entry);
  }
  return list;
}

void run(const BenchOptions& options) {
  parse_isa(options.session.isa);
  const PlanFile plan(options.plan);
  qplan_platform platform = make_platform(QPLAN_LOG_WARNING);
  StepTimes steps;
  if (options.per_step) steps.attach(platform);
  Session session(plan, options.session, &platform);
  write_random_inputs(plan, session);
  for (uint32_t i = 0; i < kWarmUpRuns; ++i) session.invoke();
  steps.clear();
  const std::vector<uint64_t> times = measure(options, session);

  const Summary summary = summarise(times);
  const qplan_session_info info = session.info();
  if (options.json) {
    Json report;
    report["plan"] = options.plan;
    report["runs"] = times.size();
    report["median_ns"] = summary.median_ns;
    report["p90_ns"] = summary.p90_ns;
    report["min_ns"] = summary.min_ns;
    report["threads"] = info.num_threads;
    report["pool"] = options.session.pool;
    report["isa"] = info.isa_name;
    report["macs"] = info.macs;
    report["gmac_per_s"] = gmacs(info.macs, summary.median_ns);
    report["arena_bytes"] = info.memory_bytes;
    if (qplan_session_num_regions(session.get()) > 0) report["npu"] = npu_json(session.get());
    if (options.per_step) report["steps"] = steps_json(session, steps, info.num_steps);
    print(report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    check_mismatches(session.get());
    return;
  }
  if (options.per_step) print_steps(session, steps, info.num_steps);
  char line[256];
  std::snprintf(
      line, sizeof line,
      "median %.3f ms, p90 %.3f ms, min %.3f ms over %zu runs; %.2f GMAC/s; %u threads, %s, %llu macs, "
      "%llu arena bytes\n",
      static_cast<double>(summary.median_ns) / 1e6, static_cast<double>(summary.p90_ns) / 1e6,
      static_cast<double>(summary.min_ns) / 1e6, times.size(), gmacs(info.macs, summary.median_ns),
      info.num_threads, info.isa_name, static_cast<unsigned long long>(info.macs),
      static_cast<unsigned long long>(info.memory_bytes));
  print(line);
  print(npu_text(session.get()));
  check_mismatches(session.get());
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how long a plan takes");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  add_session_options(*command, options->session);
  command
      ->add_option("--runs", options->runs,
                   "Runs that are measured (default: at least 30, for at least half a second)")
      ->type_name("N")
      ->check([](const std::string& text) {
        uint32_t value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= 1) return std::string();
        return "'" + text + "' is not a number of runs from 1";
      });
  command->add_flag("--per-step", options->per_step,
                    "Also the time of each step (its clock reads add a little)");
  command->add_flag("--json", options->json, "Print the figures as JSON, times in nanoseconds");
  command->footer(
      "Inputs are random, the same in every call; 5 runs go before those that count.\n"
      "Examples:\n"
      "  qplan bench model.qplan --threads 2\n"
      "  qplan bench model.qplan --isa avx2 --per-step\n"
      "  qplan bench model.qplan --runs 200 --json\n"
      "  qplan bench npu.qplan --driver ./libmy_driver.so\n"
      "Regions on the simulator take the simulator's time, which says nothing of a device's.");
  command->callback([options]() { run(*options); });
}

}  // namespace qplan::tools
