// qplan tune: measures on this machine which schedules of a plan's steps are fastest (docs/schedules.md), or
// what work of each kind takes (tune.cc).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "qplan/host.h"
#include "qplan/pack.h"
#include "tools/command.h"
#include "tools/files.h"
#include "tools/given_options.h"
#include "tools/model_options.h"
#include "tools/reports.h"
#include "tools/session.h"

namespace qplan::tools {
namespace {

using Json = nlohmann::ordered_json;

// A visit measures one plan for this long, and at least for this many runs; the first runs are not counted.
constexpr uint64_t kVisitNs = 20'000'000;
constexpr uint32_t kVisitRuns = 3;
constexpr uint32_t kVisitWarmUpRuns = 2;
// The heats sort out, the final decides: the plan's own and the fastest of the heats, in turns.
constexpr double kHeatShare = 0.6;  // of the budget
constexpr size_t kFinalists = 4;

struct TuneOptions {
  ModelOptions model;
  std::string fuse = "auto";
  PlacementOptions placement;
  SessionOptions session;
  std::string log;
  double budget_s = 20;
  std::string calibrate;          // a file
  std::vector<std::string> more;  // --with
};

// Steps with one key and the same choice, which have one schedule at a time. Of two steps with one key, one
// may be in place, or have more room for scratch memory.
struct Group {
  std::string key;
  std::vector<uint32_t> steps;
  std::vector<Json> candidates;  // schedules, the plan's own first
  // Per candidate: of each visit, the mean over the steps of their median times; and the runs of all visits.
  std::vector<std::vector<uint64_t>> visits;
  std::vector<uint64_t> runs;

  [[nodiscard]] uint64_t ns(size_t candidate) const { return summarise(visits[candidate]).median_ns; }
  // Candidates that were measured, the fastest first; the earlier one of equals.
  [[nodiscard]] std::vector<size_t> ranking() const {
    std::vector<size_t> order;
    for (size_t c = 0; c < candidates.size(); ++c) {
      if (!visits[c].empty()) order.push_back(c);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ns(a) < ns(b); });
    return order;
  }
  void forget() {
    visits.assign(candidates.size(), {});
    runs.assign(candidates.size(), 0);
  }
  // The schedules that no run has measured yet.
  [[nodiscard]] std::vector<size_t> unmeasured() const {
    std::vector<size_t> list;
    for (size_t c = 0; c < candidates.size(); ++c) {
      if (visits[c].empty()) list.push_back(c);
    }
    return list;
  }
};

struct Space {
  size_t num_steps = 0;
  std::vector<Group> groups;
  uint64_t num_candidates = 0, num_pruned = 0;
};

// The plan as it is, or of the model.
std::string plan_bytes(const TuneOptions& options) {
  if (is_plan_file(options.model.model)) {
    const std::vector<uint8_t> file = read_file(options.model.model, "plan");
    return {file.begin(), file.end()};
  }
  return pack_model(options.model, options.placement, parse_fuse(options.fuse));
}

Space tuning_space(const TuneOptions& options, const PlanFile& plan) {
  std::string text;
  qplan_error error = make_error();
  check(qplan_tuning_space(plan.bytes(), plan.size(), parse_isa(options.session.isa), options.session.threads,
                           append_to_string, &text, &error),
        error, "'" + plan.path() + "'");
  const Json json = Json::parse(text);
  Space space;
  space.num_steps = json.at("num_steps").get<size_t>();
  std::map<std::pair<std::string, std::string>, size_t> group_of;  // by key and choice
  for (const Json& step : json.at("steps")) {
    const auto key = step.at("key").get<std::string>();
    const auto [at, is_new] =
        group_of.emplace(std::pair(key, json_text(step.at("candidates"))), space.groups.size());
    if (is_new) {
      Group group;
      group.key = key;
      for (const Json& candidate : step.at("candidates")) group.candidates.push_back(candidate);
      for (const auto& [reason, count] : step.at("pruned").items()) space.num_pruned += count.get<uint64_t>();
      space.num_candidates += group.candidates.size();
      group.forget();
      space.groups.push_back(std::move(group));
    }
    space.groups[at->second].steps.push_back(step.at("step").get<uint32_t>());
  }
  return space;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// The instruction set that "auto" means here.
std::string isa_text(const std::string& name) {
  if (name != "auto") return name;
  const std::string all = available_isas();
  const size_t comma = all.rfind(", ");
  return comma == std::string::npos ? all : all.substr(comma + 2);
}

// Measurements as lines of the log.
class Recorder {
 public:
  Recorder(const TuneOptions& options, TuningLog* log)
      : threads_(options.session.threads),
        cpu_(cpu_model()),
        isa_(isa_text(options.session.isa)),
        log_(*log) {}

  // Takes what an earlier run on this machine, with as many threads and instructions, has left in the log;
  // returns how many schedules that were.
  uint64_t resume(Space* space) const {
    std::multimap<std::string, Group*> groups;
    for (Group& group : space->groups) groups.emplace(group.key, &group);
    uint64_t known = 0;
    for (const nlohmann::json& line : log_.lines()) {
      if (!is_mine(line)) continue;
      const auto [begin, end] = groups.equal_range(line["key"].get<std::string>());
      for (auto at = begin; at != end; ++at) {
        Group& group = *at->second;
        for (size_t c = 0; c < group.candidates.size(); ++c) {
          // The order of the names does not matter.
          if (nlohmann::json(group.candidates[c]) != line["schedule"]) continue;
          known += group.visits[c].empty();
          group.visits[c].push_back(line["ns"].get<uint64_t>());
        }
      }
    }
    return known;
  }

  [[nodiscard]] std::string line_of(const Group& group, size_t candidate, bool is_heat) const {
    Json line;
    line["key"] = group.key;
    line["schedule"] = group.candidates[candidate];
    line["threads"] = threads_;
    line["ns"] = group.ns(candidate);
    line["runs"] = group.runs[candidate];
    line["cpu"] = cpu_;
    line["version"] = QPLAN_VERSION;
    line["isa"] = isa_;
    if (is_heat) line["stage"] = "heat";
    return json_text(line) + "\n";
  }
  void append(const std::string& lines) const { log_.append(lines); }

 private:
  [[nodiscard]] bool is_mine(const nlohmann::json& line) const {
    const auto is = [&](const char* name, const nlohmann::json& value) {
      const auto at = line.find(name);
      return at != line.end() && *at == value;
    };
    const auto key = line.find("key"), schedule = line.find("schedule"), ns = line.find("ns");
    return is("threads", threads_) && is("cpu", cpu_) && is("version", QPLAN_VERSION) && is("isa", isa_) &&
           key != line.end() && key->is_string() && schedule != line.end() && schedule->is_object() &&
           ns != line.end() && ns->is_number_unsigned();
  }

  uint32_t threads_;
  std::string cpu_, isa_;
  TuningLog& log_;
};

class Tuner {
 public:
  Tuner(const TuneOptions& options, const PlanFile& plan, const Recorder& recorder, Space* space)
      : options_(options),
        plan_(plan),
        recorder_(recorder),
        space_(*space),
        begin_ns_(qplan_host_now_ns(nullptr)) {}

  // The heats are in the log as soon as they were measured, so that another run can go on from there.
  void run() {
    std::vector<std::vector<size_t>> heats;
    bool is_complete = true;
    for (const Group& group : space_.groups) {
      heats.push_back(group.unmeasured());
      is_complete = is_complete && heats.back().empty();
      if (heats.back().empty()) heats.back().push_back(0);  // runs along with the others
    }
    if (!is_complete) measure(heats, kHeatShare, true);
    std::vector<std::vector<size_t>> finalists;
    for (Group& group : space_.groups) {
      std::vector<size_t> best = {0};
      for (const size_t c : group.ranking()) {
        if (c != 0 && best.size() < kFinalists) best.push_back(c);
      }
      finalists.push_back(std::move(best));
      group.forget();
    }
    measure(finalists, 1, false);
    std::string lines;
    for (const Group& group : space_.groups) {
      for (const size_t c : group.ranking()) lines += recorder_.line_of(group, c, false);
    }
    recorder_.append(lines);
  }

 private:
  // Rounds in turns, until that share of the budget is spent and each had its turn: in round r each group has
  // the r-th of its candidates, from the first again where there are fewer.
  void measure(const std::vector<std::vector<size_t>>& candidates, double share, bool is_heat) {
    size_t num_rounds = 1;
    for (const std::vector<size_t>& list : candidates) num_rounds = std::max(num_rounds, list.size());
    const auto deadline = begin_ns_ + static_cast<uint64_t>(options_.budget_s * share * 1e9);
    for (bool first = true; first || qplan_host_now_ns(nullptr) < deadline; first = false) {
      for (size_t round = 0; round < num_rounds; ++round) {
        const uint64_t now = qplan_host_now_ns(nullptr);
        if (!first && now >= deadline) return;
        progress_.update("measure, ms", (now - begin_ns_) / 1'000'000,
                         static_cast<uint64_t>(options_.budget_s * 1e3) + 1);
        std::vector<size_t> chosen;
        for (const std::vector<size_t>& list : candidates) chosen.push_back(list[round % list.size()]);
        visit(chosen, is_heat);
      }
    }
  }

  // chosen: per group. The first measurement of a schedule in a heat goes into the log.
  void visit(const std::vector<size_t>& chosen, bool is_heat) {
    std::string lines;
    const PlanFile plan(plan_.path(), rescheduled(chosen));
    qplan_platform platform = make_platform(QPLAN_LOG_WARNING);
    StepTimes times;
    times.attach(platform);
    SessionOptions of_session = options_.session;
    of_session.custom_operators = options_.model.custom_operators;
    Session session(plan, of_session, &platform);
    write_random_inputs(plan, session);
    for (uint32_t i = 0; i < kVisitWarmUpRuns; ++i) session.invoke();
    times.clear();
    uint32_t runs = 0;
    const uint64_t end = qplan_host_now_ns(nullptr) + kVisitNs;
    for (; runs < kVisitRuns || qplan_host_now_ns(nullptr) < end; ++runs) session.invoke();
    for (size_t g = 0; g < chosen.size(); ++g) {
      Group& group = space_.groups[g];
      uint64_t sum = 0;
      for (const uint32_t step : group.steps) sum += times.summary(step).median_ns;
      const bool is_first = group.visits[chosen[g]].empty();
      group.visits[chosen[g]].push_back(sum / group.steps.size());
      group.runs[chosen[g]] += uint64_t{runs} * group.steps.size();
      if (is_heat && is_first) lines += recorder_.line_of(group, chosen[g], true);
    }
    recorder_.append(lines);
  }

  std::string rescheduled(const std::vector<size_t>& chosen) const {
    Json schedules(space_.num_steps, nullptr);
    for (size_t g = 0; g < chosen.size(); ++g) {
      if (chosen[g] == 0) continue;  // the plan's own
      for (const uint32_t step : space_.groups[g].steps)
        schedules[step] = space_.groups[g].candidates[chosen[g]];
    }
    std::string bytes;
    qplan_error error = make_error();
    check(qplan_reschedule(plan_.bytes(), plan_.size(), json_text(schedules).c_str(), append_to_string,
                           &bytes, &error),
          error, "'" + plan_.path() + "'");
    return bytes;
  }

  const TuneOptions& options_;
  const PlanFile& plan_;
  const Recorder& recorder_;
  Space& space_;
  const uint64_t begin_ns_;
  Progress progress_;
};

std::string table(const Space& space) {
  std::string text;
  char line[256];
  uint64_t before = 0, after = 0, better = 0;
  for (const Group& group : space.groups) {
    const size_t best = group.ranking().front();
    before += group.ns(0) * group.steps.size();
    after += group.ns(best) * group.steps.size();
    if (best == 0) continue;
    ++better;
    const double gain = 100 * (1 - static_cast<double>(group.ns(best)) /
                                       static_cast<double>(std::max<uint64_t>(group.ns(0), 1)));
    std::snprintf(line, sizeof line, "%5u %5zu %12.2f %12.2f %6.1f  %s\n", group.steps.front(),
                  group.steps.size(), static_cast<double>(group.ns(0)) / 1e3,
                  static_cast<double>(group.ns(best)) / 1e3, gain,
                  schedule_text(group.candidates[best]).c_str());
    if (better == 1) text += " step  like    before us      best us   gain %  schedule\n";
    text += line;
  }
  return text + std::to_string(better) + " of " +
         count_text(space.groups.size(), "kind of steps has", "kinds of steps have") +
         " a faster schedule; all steps " + time_text(before) + ", with them " + time_text(after) + "\n";
}

// What uses the log. A plan has no model to pack again.
std::string next_command(const CLI::App& command, const TuneOptions& options) {
  const std::string threads =
      options.session.threads == 1 ? "" : " --tuning-threads " + std::to_string(options.session.threads);
  const std::string log = " --tuning " + shell_word(options.log) + threads;
  if (is_plan_file(options.model.model)) return "next: qplan pack MODEL -o PLAN" + log + "\n";
  return "next: qplan pack " + shell_word(options.model.model) + " -o PLAN" + log +
         given_model_options(command) + "\n";
}

void run(const CLI::App& command, const TuneOptions& options) {
  if (options.log.empty() == options.calibrate.empty())
    throw UsageError("--log and --calibrate: found " + std::string(options.log.empty() ? "neither" : "both") +
                     ", expected one of them");
  if (is_plan_file(options.model.model) && std::ranges::all_of(options.more, is_plan_file))
    refuse_options_of_models(command);
  if (!options.calibrate.empty()) {
    refuse_without_effect(command, {"--fuse"}, "beside --calibrate, which makes a step of each layer");
    calibrate({options.model, options.placement, options.session, options.more, options.calibrate,
               options.budget_s});
    return;
  }
  refuse_without_effect(command, {"--with"}, "without --calibrate");
  parse_isa(options.session.isa);
  check_outputs({{"--log", options.log, NamedFile::Written::kAtItsEnd}},
                input_files(options.session, input_files(options.model, options.placement)));
  const PlanFile plan(options.model.model, plan_bytes(options));
  check_npu_options(options.session.npu, plan);
  Space space = tuning_space(options, plan);
  if (space.groups.empty())
    throw Failure("plan '" + plan.path() + "': has no steps that kernels of the CPU run");
  TuningLog log(options.log);
  const Recorder recorder(options, &log);
  print(count_text(space.groups.size(), "kind of steps", "kinds of steps") + ", " +
        count_text(space.num_candidates, "schedule to measure", "schedules to measure") + ", " +
        std::to_string(space.num_pruned) + " pruned\n");
  const uint64_t known = recorder.resume(&space);
  if (known > 0) {
    print("resumed: '" + one_line(options.log) + "' has " + std::to_string(known) +
          " of them from an earlier run\n");
  }
  Tuner(options, plan, recorder, &space).run();
  print(table(space));
  print(next_command(command, options));
}

}  // namespace

void add_tune_command(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand("tune", "Measure which schedules are fastest on this machine");
  add_model_options(*command, options->model, "MODEL", "Plan, or model file");
  add_placement_options(*command, options->placement);
  add_fuse_option(*command, options->fuse);
  add_session_options(*command, options->session);
  command
      ->add_option(
          "--log", options->log,
          "Where measurements are appended as they are made, for `qplan pack --tuning`; a run that was "
          "interrupted continues from its log")
      ->type_name("LOG");
  command
      ->add_option(
          "--calibrate", options->calibrate,
          "In place of --log: write what this machine takes for work of each kind there, as a target "
          "file, for the estimates of `qplan explain` and the cost gate of `qplan pack`")
      ->type_name("FILE");
  command
      ->add_option("--with", options->more,
                   "With --calibrate: another plan or model that is measured; may be repeated")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  command
      ->add_option("--budget", options->budget_s,
                   "Seconds that the measurements take (default 20); each schedule is measured at least once")
      ->type_name("SECONDS")
      ->check([](const std::string& text) {
        double seconds = 0;
        // Not CLI::Range, which NaN is in.
        if (CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 1e6) return std::string();
        return "'" + text + "' is not a number of seconds from 0 to 1000000";
      });
  command->footer(
      "MODEL may be a plan; options about models then have no effect and are refused. Outputs are the same "
      "bits with every "
      "schedule.\n"
      "Examples:\n"
      "  qplan tune model.tflite --log tuning.jsonl\n"
      "  qplan tune model.tflite --log tuning.jsonl --fuse all\n"
      "  qplan pack model.tflite -o model.qplan --tuning tuning.jsonl\n"
      "  qplan tune model.qplan --log tuning.jsonl --threads 2 --budget 60\n"
      "  qplan pack model.tflite -o model.qplan --tuning tuning.jsonl --tuning-threads 2\n"
      "  qplan tune model.tflite --calibrate board.json --target \"vta, cpu\"\n"
      "  qplan pack model.tflite -o model.qplan --target-file board.json");
  command->callback([command, options]() { run(*command, *options); });
}

}  // namespace qplan::tools
