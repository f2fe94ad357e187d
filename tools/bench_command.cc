// qplan bench: how long an inference takes.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "qplan/host.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/number_option.h"
#include "tools/reports.h"
#include "tools/session.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint32_t kWarmUpRuns = 5;
constexpr uint32_t kMinRuns = 30;
// Without --runs small models are measured for this long, so that the median is stable.
constexpr uint64_t kDefaultNs = 500'000'000;
constexpr uint32_t kMaxDefaultRuns = 10'000;

struct BenchOptions {
  std::string plan;
  SessionOptions session;
  uint32_t runs = 0;  // 0: at least kMinRuns, at least kDefaultNs
  uint32_t warm_up = kWarmUpRuns;
  std::vector<std::string> inputs;
  std::string mean, std;
  std::string csv, trace;
  bool per_step = false;
  bool json = false;
};

std::vector<uint64_t> measure(const BenchOptions& options, Session& session, BenchTrace* trace) {
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
    const uint64_t end = qplan_host_now_ns(nullptr);
    times.push_back(end - begin);
    if (!options.trace.empty()) trace->add_run(begin, end);
    total_ns += times.back();
    progress.update("run", times.size(), options.runs != 0 ? options.runs : kMinRuns);
  }
  return times;
}

struct Figures {
  std::vector<uint64_t> times;
  uint64_t open_ns = 0;   // mapping the plan, and verifying it
  double peak_gmacs = 0;  // of all threads; 0: unknown, or not asked for
  Json schedules;         // of the plan's steps, or not asked for
  MachineLoad load;       // before the runs
};

std::vector<std::string> warnings_of(const Session& session, const Figures& figures) {
  return load_warnings(figures.load, session.info().num_threads, summarise(figures.times),
                       figures.times.size());
}

Json report_json(const BenchOptions& options, const Session& session, const StepTimes& steps,
                 const Figures& figures) {
  const TimeSummary summary = summarise(figures.times);
  const qplan_session_info info = session.info();
  Json report;
  report["plan"] = options.plan;
  report["runs"] = figures.times.size();
  report["warmup"] = options.warm_up;
  report["inputs"] = options.inputs.empty() ? Json("random") : Json(options.inputs);
  report["median_ns"] = summary.median_ns;
  report["p90_ns"] = summary.p90_ns;
  report["p99_ns"] = summary.p99_ns;
  report["min_ns"] = summary.min_ns;
  report["threads"] = info.num_threads;
  report["pool"] = options.session.pool;
  report["isa"] = info.isa_name;
  report["macs"] = info.macs;
  report["gmac_per_s"] = gmacs(info.macs, summary.median_ns);
  report["memory_bytes"] = info.memory_bytes;
  report["arena_bytes"] =
      info.memory_bytes;  // its older name, for scripts; not the arena that `inspect` reports
  report["open_ns"] = figures.open_ns;
  report["init_ns"] = session.init_ns();
  report["load_average"] = figures.load.average;
  report["warnings"] = warnings_of(session, figures);
  if (qplan_session_num_regions(session.get()) > 0)
    report["npu"] = npu_json(session.get(), session.verifies());
  if (options.per_step) {
    report["peak_gmac_per_s"] = figures.peak_gmacs > 0 ? Json(figures.peak_gmacs) : Json();
    report["steps"] = steps_json({session, steps, figures.peak_gmacs, figures.schedules});
  }
  return report;
}

std::string summary_text(const Session& session, const Figures& figures) {
  const TimeSummary summary = summarise(figures.times);
  const qplan_session_info info = session.info();
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.2f GMAC/s", gmacs(info.macs, summary.median_ns));
  std::string text = "median " + time_text(summary.median_ns) + ", p90 " + time_text(summary.p90_ns) +
                     ", p99 " + time_text(summary.p99_ns) + ", min " + time_text(summary.min_ns) + " over " +
                     count_text(figures.times.size(), "run", "runs") + "; " + rate + "; " +
                     count_text(info.num_threads, "thread", "threads") + ", " + info.isa_name + ", " +
                     count_text(info.macs, "MAC", "MACs") + ", " +
                     count_text(info.memory_bytes, "byte", "bytes") + " of memory" + "; opened in " +
                     time_text(figures.open_ns) + ", session made in " + time_text(session.init_ns()) + "\n";
  for (const std::string& warning : warnings_of(session, figures)) text += "warning: " + warning + "\n";
  return text;
}

void write_inputs(const BenchOptions& options, const PlanFile& plan, Session& session) {
  if (options.inputs.empty()) return write_random_inputs(plan, session);
  const std::vector<qplan_tensor_info> infos = tensor_infos(plan.plan(), QPLAN_INPUT);
  if (options.inputs.size() != infos.size()) {
    throw Failure("plan '" + plan.path() + "' has " + count_text(infos.size(), "input", "inputs") +
                  ", found " + std::to_string(options.inputs.size()) + " after --input");
  }
  const PlanMetadata metadata(plan);
  for (uint32_t i = 0; i < infos.size(); ++i) {
    std::vector<uint8_t> bytes = load_input(options.inputs[i], infos[i], describe(QPLAN_INPUT, i, infos[i]),
                                            metadata.normalisation(i, options.mean, options.std));
    session.write(i, packed_tensor(infos[i], bytes.data()));
  }
}

std::string runs_csv(const std::vector<uint64_t>& times) {
  std::string text = "run,ns\n";
  for (size_t i = 0; i < times.size(); ++i) text += std::to_string(i) + "," + std::to_string(times[i]) + "\n";
  return text;
}

void run(const BenchOptions& options) {
  parse_isa(options.session.isa);
  check_outputs({{"--csv", options.csv}, {"--trace", options.trace}},
                input_files(options.session, {{"plan", options.plan}}, options.inputs));
  Figures figures;
  const uint64_t begin = qplan_host_now_ns(nullptr);
  const PlanFile plan(options.plan);
  figures.open_ns = qplan_host_now_ns(nullptr) - begin;
  check_npu_options(options.session.npu, plan);
  qplan_platform platform = make_platform(QPLAN_LOG_WARNING);
  StepTimes steps;
  if (options.per_step) steps.attach(platform);
  BenchTrace trace;
  SessionOptions of_session = options.session;
  if (!options.trace.empty()) trace.attach(platform, of_session);
  Session session(plan, of_session, &platform);
  write_inputs(options, plan, session);
  if (options.per_step) {
    const qplan_session_info info = session.info();
    figures.schedules = plan_schedules(plan);
    figures.peak_gmacs = measure_peak_gmacs(info.isa) * info.num_threads;
  }
  figures.load = machine_load();
  for (uint32_t i = 0; i < options.warm_up; ++i) session.invoke();
  steps.clear();
  trace.clear();
  figures.times = measure(options, session, &trace);
  OutputFiles outputs;
  if (!options.trace.empty()) outputs.write(options.trace, trace.text());
  if (!options.csv.empty()) {
    outputs.write(options.csv, options.per_step
                                   ? steps_csv({session, steps, figures.peak_gmacs, figures.schedules})
                                   : runs_csv(figures.times));
  }
  outputs.keep();

  if (options.json) {
    print(json_page(report_json(options, session, steps, figures)));
  } else {
    if (options.per_step) print(steps_text({session, steps, figures.peak_gmacs, figures.schedules}));
    print(summary_text(session, figures));
    print(npu_text(session.get(), session.verifies()));
  }
  check_mismatches(session.get());
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how long a plan takes");
  command->add_option("PLAN", options->plan, "Plan file")->required()->type_name("");
  add_session_options(*command, options->session);
  add_custom_operators_option(*command, options->session.custom_operators);
  command
      ->add_option("--runs", options->runs,
                   "Runs that are measured (default: at least 30, for at least half a second)")
      ->type_name("N")
      ->transform(whole_number(1, UINT32_MAX));
  command->add_option("--warmup", options->warm_up, "Runs before those that are measured (default 5)")
      ->type_name("N")
      ->transform(whole_number())
      ->check(CLI::Range(0, 1000000).description(""));
  command->add_option("--input", options->inputs, "Inputs as those of `qplan run`, in place of random ones")
      ->type_name("FILE");
  command->add_option("--mean", options->mean, "Of pictures after --input: see `qplan run`")->type_name("M");
  command->add_option("--std", options->std, "See --mean")->type_name("S");
  command
      ->add_option(
          "--csv", options->csv,
          "Write a line for each run there, with its nanoseconds; with --per-step a line for each step")
      ->type_name("FILE");
  command
      ->add_option("--trace", options->trace,
                   "Write runs, steps and what each worker does when, for Perfetto; the measured times then "
                   "include reading the clock")
      ->type_name("FILE");
  command->add_flag("--per-step", options->per_step,
                    "Also the time of each step (its clock reads add a little), its MACs and bytes, "
                    "and its share of what this machine can multiply at most");
  command->add_flag("--json", options->json, "Print the figures as JSON, times in nanoseconds");
  command->footer(
      "Without --input, inputs are random, the same in every call; 5 runs go before those that count. A "
      "warning says\n"
      "when other work kept the machine busy or the runs spread widely: such figures are not the\n"
      "machine's best.\n"
      "Examples:\n"
      "  qplan bench model.qplan --threads 2\n"
      "  qplan bench model.qplan --isa avx2 --per-step\n"
      "  qplan bench model.qplan --runs 200 --json\n"
      "  qplan bench model.qplan --input cat.bmp --warmup 50 --csv runs.csv\n"
      "  qplan bench model.qplan --threads 2 --runs 5 --trace trace.json\n"
      "  qplan bench npu.qplan --driver ./libmy_driver.so\n"
      "Regions on the simulator take the simulator's time, not a device's.");
  command->callback([command, options]() {
    refuse_unused_normalisation(*command, options->inputs);
    run(*options);
  });
}

}  // namespace qplan::tools
